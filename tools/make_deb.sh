#!/bin/bash
# Writes normlab_VERSION_ARCHITECTURE.deb into a folder: program, recipes, documents and the library for C of a build
# folder, with the libtorch it was linked with in /usr/lib/normlab. The same build gives the same bytes.
# Usage: tools/make_deb.sh BUILD OUT
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")

NORMLAB_VERSION=$(sed -n 's/^project(normlab VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
NORMLAB_STAGE=$work/stage
NORMLAB_OUT=$work/out
export NORMLAB_VERSION NORMLAB_STAGE NORMLAB_OUT SOURCE_DATE_EPOCH

umask 022
DESTDIR=$NORMLAB_STAGE cmake --install "$build" --prefix /usr >/dev/null
usr=$NORMLAB_STAGE/usr
# The library for C++ needs libtorch's headers, which the package does not have; MPI would be a dependency of all.
find "$usr/include/normlab" -mindepth 1 -maxdepth 1 -type d -exec rm -r {} +
find "$usr/lib" -name '*.a' -delete
find "$usr/lib" -depth \( -name cmake -o -name pkgconfig \) -exec rm -r {} +
rm -f "$usr/libexec/normlab/normlab-mpi.so"

torch=$(readelf -d "$usr/libexec/normlab/normlab-torch" | sed -n 's/.*R.*PATH.*\[\([^]:]*\).*/\1/p')
libraries=$usr/lib/normlab
mkdir -p "$libraries"
# What libtorch needs beyond Debian's libraries stands beside it, where $ORIGIN of its own path finds it.
for library in libtorch_cpu.so libc10.so libgomp.so.1 libcudart.so.13 libcupti.so.13; do
  found=$(find -L "$torch" "$torch/../../nvidia" -name "$library" -print -quit 2>/dev/null || true)
  if [ -n "$found" ]; then install -m 644 "$found" "$libraries/$library"; fi
done
programs=("$usr/libexec/normlab/normlab-torch" "$usr/bin/normlab")
shared=$(find "$usr/lib" -name 'libnormlab.so.*.*.*')
for file in "${programs[@]}" "$shared"; do
  strip --strip-unneeded "$file"
  echo "if(NOT \"$file\" STREQUAL \"$usr/bin/normlab\")
    file(RPATH_CHANGE FILE \"$file\" OLD_RPATH \"$torch\" NEW_RPATH /usr/lib/normlab)
  endif()" >"$work/rpath.cmake"
  cmake -P "$work/rpath.cmake" >/dev/null 2>&1
done
missing=$(LD_LIBRARY_PATH=$libraries ldd "${programs[@]}" "$shared" | grep 'not found' || true)
if [ -n "$missing" ]; then
  echo "libraries that neither Debian nor libtorch has:" $missing >&2
  exit 1
fi

doc=$usr/share/doc/normlab
cp LICENSE "$doc/copyright"
for notices in "$torch"/../../torch-*.dist-info; do
  [ ! -d "$notices" ] || find "$notices" -iname 'LICENSE*' -type f | sort | xargs cat >"$doc/copyright.libtorch"
done
gzip -9n "$usr/share/man/man1/normlab.1"
find "$NORMLAB_STAGE" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

(cd "$work" && cpack --config "$OLDPWD/cmake/deb.cmake" >"$work/cpack.log") || { cat "$work/cpack.log" >&2; exit 1; }
mv "$NORMLAB_OUT"/*.deb "$out/"
(cd "$out" && realpath --relative-to="$OLDPWD" normlab_"$NORMLAB_VERSION"*.deb)
