"""The documents say what is there: generated pages, the file tree, links."""
import re
import subprocess

import pytest
from conftest import BINARY, ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
IMPORTED_NAMES = {"GPTConfig"}  # of other projects
README_LIMIT = 8 * 1024  # bytes: what a newcomer reads to the end
RESULTS = sorted((ROOT / "docs/results").rglob("*.md"))
# What docs/licences.md calls the libraries that start so.
LIBRARIES = {"libhwy": "Highway", "libz.": "zlib", "libutf8proc": "utf8proc", "libsentencepiece": "SentencePiece",
             "libpcre2": "PCRE2", "libcpp-httplib": "cpp-httplib", "libcrypto": "OpenSSL", "libssl": "OpenSSL",
             "libbrotli": "Brotli", "libtorch": "PyTorch", "libc10": "PyTorch", "libgomp": "libgomp", "libcu": "CUDA",
             **dict.fromkeys(["linux-vdso", "ld-linux", "libc.", "libm.", "libstdc++", "libgcc_s", "librt", "libdl",
                              "libpthread", "libutil"], "GNU C and C++ libraries")}


def test_generated_pages_are_what_the_program_prints(tmp_path):
    subprocess.run([ROOT / "tools/generate_docs.sh", BINARY, tmp_path], check=True)
    for page in tmp_path.iterdir():
        assert page.read_text() == (ROOT / "docs" / page.name).read_text(), f"run tools/generate_docs.sh: {page.name}"
    assert {p.name for p in tmp_path.iterdir()} == {"command-line.md", "configuration.md"}


def files_of_the_tree():
    tree = (ROOT / "docs/layout.md").read_text().split("<!-- tree -->")[1].split("<!-- end of tree -->")[0]
    folder = None
    for line in tree.strip().removeprefix("```text").strip("`").strip().splitlines():
        name, purpose = line.split(maxsplit=1)
        assert purpose, line
        if not line.startswith(" "):
            folder = name
            continue
        stem, *endings = re.split(r"[{,}]", name)
        yield from (folder + stem + ending for ending in (endings[:-1] or [""]))


def test_the_tree_names_every_file_once():
    named = list(files_of_the_tree())
    there = [path for folder in ["src", "tools", "recipes"] for path in (ROOT / folder).rglob("*") if path.is_file()]
    assert sorted(named) == sorted(str(path.relative_to(ROOT)) for path in there)


def anchors(page):
    """GitHub's anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *RESULTS, ROOT / "tests/reference/README.md"],
                         ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", prose):
        if "://" in target:
            continue
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(place), f"{page.name}: {target}#{anchor}"


def test_readme_is_short():
    assert (ROOT / "README.md").stat().st_size < README_LIMIT


def linked_from(page):
    targets = re.findall(r"\]\(([^)#\s]*)", page.read_text())
    return {(page.parent / target).resolve() for target in targets if target and "://" not in target}


def test_every_page_is_linked_from_the_readme_or_the_index():
    readme, index = ROOT / "README.md", ROOT / "docs/README.md"
    assert index in linked_from(readme)
    missing = {*PAGES, ROOT / "tests/reference/README.md"} - {readme, index} - linked_from(readme) - linked_from(index)
    assert not missing


def test_every_reference_file_has_its_origin():
    page = (ROOT / "tests/reference/README.md").read_text()
    named = set(re.findall(r"`([\w-]+)\.safetensors`", page))
    assert named == {path.stem for path in (ROOT / "tests/reference").glob("*.safetensors")}


@pytest.mark.parametrize("program", ["normlab", "normlab-torch"])
def test_every_linked_library_has_its_licence(program):
    page = (ROOT / "docs/licences.md").read_text()
    needed = subprocess.run(["ldd", BINARY.resolve().with_name(program)], capture_output=True, text=True, check=True)
    names = [line.split()[0].rsplit("/", 1)[-1] for line in needed.stdout.splitlines()]
    assert len(names) > 10
    for name in names:
        known = [title for start, title in LIBRARIES.items() if name.startswith(start)]
        assert known and known[0] in page, name


def test_commands_in_the_documents_exist():
    """Every `normlab VERB --option` of the prose is a verb and an option of the program."""
    known = (ROOT / "docs/command-line.md").read_text()
    verbs = set(re.findall(r"^## normlab (\w+)$", known, re.MULTILINE)) - {"VERB"}
    for page in PAGES:
        commands = re.findall(r"(?:^build/|^ {4}|`)normlab ([a-z]+)([^`\n#]*)", page.read_text(), re.MULTILINE)
        for verb, rest in commands:
            assert verb in verbs, f"{page.name}: normlab {verb}"
            sections = re.findall(rf"^## normlab {verb}\b.*?(?=^## |\Z)", known, re.MULTILINE | re.DOTALL)
            for option in re.findall(r" (--[a-z-]+)", rest):
                assert option in "".join(sections), f"{page.name}: normlab {verb} {option}"


def test_the_files_of_a_mechanism_are_listed():
    """The table of docs/add-a-scheme.md against the sources, without importers of other projects' weights."""
    page = (ROOT / "docs/add-a-scheme.md").read_text()
    mechanism, table = re.search(r"<!-- files of (\S+) -->(.*?)<!-- end of files -->", page, re.DOTALL).groups()
    listed = set(re.findall(r"^\| `(src/\S+)`", table, re.MULTILINE))
    enum, value = mechanism.split("::")
    declares = rf"enum class {enum} \{{[^}}]*\b{value}\b|enum_names<{enum}>\(\) \{{[^}}]*\"{value}\"|{enum}::{value}\b"
    naming = {str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.*")
              if re.search(declares, path.read_text()) and not path.name.startswith("import")}
    assert naming == listed


@pytest.mark.parametrize("page", ["docs/training-step.md", "docs/verify.md"])
def test_names_of_the_code_exist(page):
    """Functions, types and files that a page names, against the sources."""
    files = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".h", ".cpp")]
    words = set(re.findall(r"\w+", " ".join(path.read_text() for path in files)))
    prose = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    for name in re.findall(r"`([A-Za-z_]\w*(?:::\w+)*)`", prose):
        assert set(name.split("::")) <= words or name in IMPORTED_NAMES, name
    for path in re.findall(r"\b([a-z]+/\w+\.(?:h|cpp))\b", prose):
        assert any(str(file).endswith("/" + path) for file in files), path
