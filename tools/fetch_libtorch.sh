#!/usr/bin/env bash
# Fetches libtorch, as the wheels of torch-requirements.txt, into the folder $1 (0.5 GB), once for all clones.
# $2 is the processor's architecture, for a cross build; without it, this machine's.
# All work is done in $1.part, renamed at the end: what stands at $1 is complete.
set -euo pipefail
target=$1
arch=${2:-$(uname -m)}
part=$target.part
tools=$(cd "$(dirname "$0")" && pwd)
[[ ! -d $target ]] || exit 0

fail() {
  printf '%s\n' "$@" "To use a libtorch or torch wheel you have: make build TORCH_DIR=<its folder>" >&2
  exit 1
}
[[ $arch == x86_64 || $arch == aarch64 ]] ||
  fail "[setup] there is no libtorch wheel for this machine; got $arch, expected x86_64 or aarch64."

mkdir -p "$(dirname "$target")"
exec 9>"$target.lock"
flock -n 9 || { echo "[setup] another make is fetching libtorch; waiting for it" && flock 9; }
[[ ! -d $target ]] || exit 0

trap 'rm -rf "$part"' EXIT
trap 'exit 130' INT TERM  # or pip's end would be taken for a failure of the network
rm -rf "$part"
mkdir -p "$part/wheels"
echo "[setup] fetching libtorch (0.5 GB) into $target"
# Fixed Python version and platforms: the same wheels whatever Python the user has. TMPDIR: /tmp may be too small.
TMPDIR=$part /usr/bin/python3 -I -m pip download --no-cache-dir --no-deps --only-binary=:all: --python-version 3.11 \
  --platform "manylinux_2_28_$arch" --platform "manylinux_2_25_$arch" --platform "manylinux_2_17_$arch" \
  --require-hashes -r "$tools/torch-requirements.txt" --dest "$part/wheels" 2>"$part/errors" ||
  fail "[setup] libtorch could not be downloaded; nothing was installed. pip said:" \
    "$(grep -E '^(WARNING|ERROR|[A-Za-z]+Error)' "$part/errors" | tail -n 3)" \
    "Check the network (PyPI must be reachable) and the free space of $(dirname "$target"), then run make again."

# Only what C++ on a CPU needs: 0.5 GB of 1.3. On aarch64 matrix products are Arm's and NVIDIA's.
wanted=('torch/include/*' torch/lib/{libtorch_cpu.so,libc10.so,libgomp.so.1} 'torch/lib/lib'{arm_compute,nvpl_}'*.so*'
  'nvidia/*/lib/'{libcudart,libcupti}'.so.*' '*.dist-info/licenses/*')
for wheel in "$part"/wheels/*.whl; do
  # Exit code 11: a pattern matches nothing in this wheel, but in another.
  unzip -q -o "$wheel" "${wanted[@]}" -d "$part" 2>"$part/errors" || (($? == 11)) ||
    fail "[setup] libtorch could not be unpacked; nothing was installed. unzip said:" "$(tail -n 3 "$part/errors")"
done
rm -rf "$part/wheels" "$part/errors"
if [[ $arch == $(uname -m) ]] && ldd "$part/torch/lib/libtorch_cpu.so" | grep 'not found' >&2; then
  fail "[setup] the libraries above, needed by libtorch, are missing; nothing was installed."
fi
sync -f "$part"  # a power cut must not leave a complete name on incomplete files
mv -T "$part" "$target"
