"""The documents say what is there: generated pages, the file tree, links."""
import re
import subprocess

import pytest
from conftest import BINARY, ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
RESULTS = sorted((ROOT / "docs/results").rglob("*.md"))


def test_generated_pages_are_what_the_program_prints(tmp_path):
    subprocess.run([ROOT / "tools/generate_docs.sh", BINARY, tmp_path], check=True)
    for page in tmp_path.iterdir():
        assert page.read_text() == (ROOT / "docs" / page.name).read_text(), f"run tools/generate_docs.sh: {page.name}"
    assert {p.name for p in tmp_path.iterdir()} == {"command-line.md", "configuration.md"}


def files_of_the_tree():
    tree = (ROOT / "README.md").read_text().split("<!-- tree -->")[1].split("<!-- end of tree -->")[0]
    folder = None
    for line in tree.strip().strip("`").strip().splitlines():
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


@pytest.mark.parametrize("page", [*PAGES, *RESULTS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", prose):
        if "://" in target:
            continue
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(place), f"{page.name}: {target}#{anchor}"


def test_every_page_is_linked_from_the_readme():
    linked = set(re.findall(r"\]\(([^)#\s]*)", (ROOT / "README.md").read_text()))
    assert {str(p.relative_to(ROOT)) for p in PAGES} - {"README.md"} <= linked


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


def test_a_mechanism_is_named_in_five_files():
    """The table of docs/add-a-scheme.md, against the sources; importers of others' weights come on top."""
    page = (ROOT / "docs/add-a-scheme.md").read_text()
    mechanism, table = re.search(r"<!-- files of (\S+) -->(.*?)<!-- end of files -->", page, re.DOTALL).groups()
    listed = set(re.findall(r"^\| `(src/\S+)`", table, re.MULTILINE))
    enum, value = mechanism.split("::")
    declares = rf"enum class {enum} \{{[^}}]*\b{value}\b|enum_names<{enum}>\(\) \{{[^}}]*\"{value}\"|{enum}::{value}\b"
    naming = {str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.*")
              if re.search(declares, path.read_text()) and not path.name.startswith("import")}
    assert naming == listed
    assert len(listed) <= 5
