#!/usr/bin/env bash
# Looks at the C++ files that differ from a branch: formatting, clang-tidy, and whether each compiles alone, outside the
# groups in which the build joins them. usage: tools/check_changes.sh BASE
set -euo pipefail
cd "$(dirname "$0")/.."
base=$(git merge-base HEAD "${1:-main}")
mapfile -t files < <({ git diff --name-only --diff-filter=d "$base"; git ls-files -o --exclude-standard; } |
                     grep -E '\.(h|cpp)$' | sort -u)
if [ ${#files[@]} = 0 ]; then
  echo "no C++ file differs from ${1:-main}"
  exit
fi
clang-format --dry-run --Werror "${files[@]}"

# The compiler flags of the layers that include torch serve every file.
flags=$(python3 - <<'PY'
import json, shlex
for entry in json.load(open("build/compile_commands.json")):
    if "normlab_torch.dir" in entry["file"] or "normlab_torch.dir" in entry["command"]:
        words = shlex.split(entry["command"])
        keep, skip = [], False
        for word in words[1:]:
            if skip: skip = False; continue
            if word in ("-o", "-c", "-MF", "-MT"): skip = word != "-c"; continue
            if word.startswith(("-I", "-D", "-isystem", "-std", "-f", "-W")) or keep and keep[-1] == "-isystem":
                keep.append(word)
        print(" ".join(keep)); break
PY
)
failed=0
for file in "${files[@]}"; do
  case $file in
    *-inl.h) continue ;;
    examples/* | tests/*) includes="-Itests" ;;
    *) includes= ;;
  esac
  echo "alone: $file"
  # shellcheck disable=SC2086
  c++ $flags $includes -DNORMLAB_SOURCE_DIR='""' -DNORMLAB_TORCH_PROGRAM='""' -DNORMLAB_TORCH_VERSION='""' \
    -fsyntax-only -Wno-pragma-once-outside-header -x c++ "$file" || failed=1
done
sources=()
for file in "${files[@]}"; do [[ $file == src/*.cpp ]] && sources+=("$file"); done
if [ ${#sources[@]} != 0 ]; then
  # shellcheck disable=SC2086
  clang-tidy --quiet "${sources[@]}" -- $flags || failed=1
fi
exit $failed
