#!/usr/bin/env bash
# Writes Debian's package descriptions in LANGUAGE and English as aligned text: FOLDER/descriptions.{LANGUAGE,en},
# one paragraph a line. They come from the package sources that apt is set up with; the system's own lists stay as
# they are. The translations are by Debian's translators, under the licences of the packages they describe.
# usage: tools/fetch_debian_parallel.sh FOLDER [LANGUAGE, default sk]
set -euo pipefail
folder=${1:?usage: tools/fetch_debian_parallel.sh FOLDER [LANGUAGE]}
language=${2:-sk}
[[ $language =~ ^[a-z]{2,3}(_[A-Z]{2})?$ ]] || {
  echo "[fetch] got the language '$language', expected a code such as sk, de or pt_BR." >&2
  exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/archives/partial"

cat >"$work/apt.conf" <<END
#clear Acquire::Languages;
Acquire::Languages { "en"; "$language"; };
Dir::State::Lists "$work/lists";
Dir::Cache::Archives "$work/archives";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
END
# The sandbox user of apt cannot write into a folder of ours.
if ! apt-get -c "$work/apt.conf" -o APT::Sandbox::User="$(id -un)" update >"$work/log" 2>&1; then
  echo "[fetch] apt-get update failed: $(grep -E '^[EW]:' "$work/log" | tail -n 1)" >&2
  exit 1
fi

python3 - "$work/lists" "$folder" "$language" <<'END'
import glob, os, subprocess, sys

lists, folder, language = sys.argv[1:]


def descriptions(code):
    """Paragraphs of each description, by package and checksum of the English text."""
    found = {}
    for path in sorted(glob.glob(f"{lists}/*_Translation-{code}*")):
        command = ["/usr/lib/apt/apt-helper", "cat-file", path]  # unpacks whatever apt packed
        text = subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8")
        for entry in text.split("\n\n"):
            fields, body = {}, None
            for line in entry.split("\n"):
                if line.startswith(" "):
                    if body is not None:
                        body.append(line[1:])
                    continue
                name, _, value = line.partition(": ")
                body = [value] if name.startswith("Description-") and name != "Description-md5" else None
                fields["text" if body is not None else name] = body if body is not None else value
            if "text" in fields and "Description-md5" in fields:
                found[fields.get("Package"), fields["Description-md5"]] = paragraphs(fields["text"])
    return found


def paragraphs(lines):
    """The title, then the paragraphs, each as one line; verbatim lines and lists are left out, but keep their place."""
    parts = [[lines[0]], []]
    for line in lines[1:]:
        if line.strip() == ".":
            parts.append([])
        else:
            parts[-1].append(line)
    return [" ".join(" ".join(part).split()) if not any(line.startswith(" ") for line in part) else "" for part in parts]


ours, english = descriptions(language), descriptions("en")
pairs = {}  # each once, in the order of the packages
for key in sorted(ours.keys() & english.keys(), key=lambda key: (key[0] or "", key[1])):
    if len(ours[key]) == len(english[key]):
        for pair in zip(ours[key], english[key]):
            if all(len(side.split()) > 3 for side in pair) and pair[0] != pair[1]:
                pairs[pair] = None
if not pairs:
    sys.exit(f"[fetch] apt offers no descriptions in the language {language}.")
os.makedirs(folder, exist_ok=True)
for side, code in enumerate([language, "en"]):
    path = os.path.join(folder, f"descriptions.{code}")
    with open(path + ".part", "w", encoding="utf-8") as out:
        out.writelines(pair[side] + "\n" for pair in pairs)
    os.replace(path + ".part", path)
print(f"{len(pairs)} pairs in {folder}/descriptions.{language} and {folder}/descriptions.en")
END
