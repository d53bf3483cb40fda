#!/usr/bin/env bash
# Unpacks Debian's arm64 builds of the libraries of packages.txt into the folder $1 (310 MB), for `make test-arm`.
# apt-get has lists of its own there, so the packages of this machine stay as they are; nothing needs root.
# All work is done in $1.part, renamed at the end: what stands at $1 is complete.
set -euo pipefail
target=$1
part=$target.part
tools=$(cd "$(dirname "$0")" && pwd)
[[ ! -d $target ]] || exit 0
mkdir -p "$(dirname "$target")"
exec 9>"$target.lock"
flock 9
[[ ! -d $target ]] || exit 0

trap 'rm -rf "$part"' EXIT
trap 'exit 130' INT TERM  # or apt-get's end would be taken for a failure of the network
rm -rf "$part"
mkdir -p "$part"/apt/{lists,archives}/partial "$part"/usr/{lib,bin,sbin}
part=$(cd "$part" && pwd)
touch "$part/apt/status"  # no package is installed, so all dependencies come along
cat >"$part/apt/conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
Dir::State "$part/apt";
Dir::State::status "$part/apt/status";
Dir::Cache "$part/apt";
END

packages=$(awk '!/^#/ && NF == 1 && /-dev$/' "$tools/packages.txt")
echo "[setup] fetching arm64 libraries (50 MB) into $target"
fetch() {
  apt-get -qq update || true  # a source without arm64 must not stop us, so only the download itself decides
  apt-get -qq install -y --no-install-recommends --download-only $packages libstdc++-12-dev
}
export APT_CONFIG=$part/apt/conf
log=$(fetch 2>&1) || {
  printf '%s\n' "[setup] the arm64 libraries could not be fetched; nothing was installed. apt-get said:" \
    "$(grep -E '^(W|E):' <<<"$log" | head -n 3)" \
    "Expected the package sources of Debian 12. Check the network and run make again." >&2
  exit 1
}

for folder in lib bin sbin; do ln -s "usr/$folder" "$part/$folder"; done  # as in Debian
for package in "$part"/apt/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink --no-same-owner -C "$part"
done
rm -rf "$part/apt" "$part"/usr/bin/* "$part"/usr/sbin/* "$part"/usr/share/{doc,man}
# Links to absolute paths would lead out of the folder.
find "$part" -type l -lname '/*' -printf '%l %p\n' | while read -r to link; do ln -sfr "$part$to" "$link"; done
mv -T "$part" "$target"
