#!/usr/bin/env bash
# Installs the missing packages of packages.txt: those every target needs, or those of the target named by $1.
set -euo pipefail
for_target=${1:-}

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

missing_packages() {
  local wanted installed
  wanted=$(awk -v t="$for_target" '!/^#/ && NF && $2 == t { print $1 }' "${BASH_SOURCE%/*}/packages.txt" | sort)
  # dpkg-query complains about packages it has never heard of: those are missing too.
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null |
    sed -n 's/^installed //p' | sort -u)
  comm -23 <(echo "$wanted") <(echo "$installed") | xargs
}

command -v dpkg-query >/dev/null || fail "[setup] this set-up knows Debian and Ubuntu only; found no dpkg-query." \
  "Install what tools/packages.txt lists, then: cmake --preset release -DTORCH_DIR=... && cmake --build build"
missing=$(missing_packages || true)
[[ -n $missing ]] || exit 0

command="apt-get update && apt-get install -y --no-install-recommends $missing"
as_root=()
if [[ $(id -u) != 0 ]]; then
  # With a terminal sudo may ask for the password, without one it must not hang.
  if sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  elif [[ -t 0 ]] && command -v sudo >/dev/null && sudo -v; then
    as_root=(sudo)
  else
    fail "[setup] system packages are missing, and neither root nor sudo is at hand. As root, type:" "  $command"
  fi
fi

# apt-get update has no way to wait for another one, so two concurrent set-ups take turns here.
exec 9</var/lib/dpkg
flock -n 9 || { echo "[setup] another make is installing packages; waiting for it" && flock 9; }
missing=$(missing_packages || true)
[[ -n $missing ]] || exit 0

echo "[setup] installing system packages (up to 120 MB, a minute or two): $missing"
# A broken foreign source must not stop us, so only the installation itself decides.
install() {
  "${as_root[@]}" apt-get -qq update || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 \
    install -y --no-install-recommends $missing
}
log=$(install 2>&1) ||
  fail "[setup] the system packages could not be installed. apt-get said:" \
    "$(grep -m 1 '^W:' <<<"$log" || true; grep -m 2 '^E:' <<<"$log")" \
    "Check the network and run make again, or as root, type:" "  $command"
