#!/bin/bash
# Installs a Debian package of normlab in a fresh Debian 12 in a temporary folder and trains, generates and compiles a C
# program there. Needs root, mmdebstrap and the package archive; without one of them it says so and ends with 77.
# Usage: tools/try_deb.sh FILE.deb
set -euo pipefail
deb=$(realpath "$1")
skip() { echo "skipped: $1" >&2; exit 77; }
[ "$(id -u)" = 0 ] || skip "a clean root needs root"
command -v mmdebstrap >/dev/null || skip "mmdebstrap is not installed"

root=$(mktemp -d)
trap 'umount "$root/debian/proc" 2>/dev/null || true; rm -rf --one-file-system "$root"' EXIT
# The sources and settings of apt on this machine, such as a proxy, and nothing else of it.
sources=$(find /etc/apt/sources.list /etc/apt/sources.list.d -name '*.list' -o -name '*.sources' 2>/dev/null || true)
settings=$(find /etc/apt/apt.conf.d -type f ! -name '*docker*' -printf '--aptopt=%p ')
mmdebstrap --mode=root --variant=minbase --include=ca-certificates $settings bookworm "$root/debian" $sources \
  >"$root/log" 2>&1 || { tail -5 "$root/log" >&2; skip "mmdebstrap could not make a Debian 12"; }
mount -t proc proc "$root/debian/proc" || skip "/proc cannot be mounted here"
cp "$deb" "$root/debian/normlab.deb"
cp /etc/resolv.conf "$root/debian/etc/" 2>/dev/null || true

inside() { chroot "$root/debian" /usr/bin/env -i HOME=/root PATH=/usr/bin:/bin:/usr/sbin:/sbin LC_ALL=C.UTF-8 "$@"; }
inside sh -c 'apt-get update -q && apt-get install -qy --no-install-recommends /normlab.deb' >"$root/log" 2>&1 ||
  { tail -20 "$root/log" >&2; exit 1; }

inside normlab --version
inside sh -c 'for i in $(seq 400); do echo "the cat sat on the mat, number $i"; done >/root/text'
inside normlab train --data /root/text --out /root/run --set model.d_model=16 model.n_layers=1 model.n_heads=2 \
  model.seq_len=16 train.batch_size=4 train.max_steps=3 train.eval_windows=4
inside normlab generate /root/run --prompt 'the ' --tokens 20
inside sh -c 'ls /usr/share/man/man1/normlab.1.gz /usr/include/normlab/normlab.h /usr/share/normlab/recipes/shakespeare.toml \
  /usr/share/bash-completion/completions/normlab' >/dev/null
[ -z "$(inside sh -c 'ldd /usr/bin/normlab /usr/libexec/normlab/normlab-torch $(find /usr/lib -name libnormlab.so.0) | grep "not found"')" ]
inside apt-get remove -qy normlab >/dev/null
[ ! -e "$root/debian/usr/lib/normlab" ]
echo "the package works in a clean Debian $(cat "$root/debian/etc/debian_version")"
