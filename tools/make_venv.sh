#!/usr/bin/env bash
# Makes the virtual environment $1 for the tests in Python from the requirements file $2.
# A virtual environment cannot be renamed, so the file `complete`, written last, tells a whole one from a broken one.
set -euo pipefail
venv=$1
requirements=$2
python=/usr/bin/python3
version=$($python --version)  # a new system Python breaks the environments of the old one

is_complete() { [[ $(cat "$venv/complete" 2>/dev/null) == "$version" ]]; }
! is_complete || exit 0

mkdir -p "$(dirname "$venv")"
exec 9>"$venv.lock"
flock -n 9 || { echo "[setup] another make is installing the Python packages; waiting for it" && flock 9; }
! is_complete || exit 0

trap 'rm -f "$venv.log"; is_complete || rm -rf "$venv"' EXIT
trap 'exit 130' INT TERM  # or pip's end would be taken for a failure of the network
echo "[setup] installing the Python packages of the tests into $venv"
install() {
  $python -I -m venv --clear "$venv" &&
    "$venv/bin/python" -I -m pip install -q --no-cache-dir --only-binary=:all: -r "$requirements"
}
install 2>"$venv.log" || {
  printf '%s\n' "[setup] the Python packages of the tests could not be installed; nothing was kept. pip said:" \
    "$(grep -E '^(WARNING|ERROR|[A-Za-z]+Error)' "$venv.log" | tail -n 3)" \
    "Check the network (PyPI must be reachable), then run make again." >&2
  exit 1
}
echo "$version" >"$venv/complete"
