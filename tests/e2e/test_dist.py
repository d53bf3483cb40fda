"""The source archive: the same bytes every time, and everything that a build needs."""
import shutil
import subprocess
import tarfile

import pytest
from conftest import ROOT


def test_the_source_archive_is_whole_and_reproducible(tmp_path):
    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{ROOT}", str(tmp_path / "clone")], check=True)
    bytes_of = []
    for _ in range(2):
        done = subprocess.run(["make", "-s", "archive"], cwd=tmp_path / "clone", check=True, capture_output=True, text=True)
        archive = tmp_path / "clone" / done.stdout.strip()
        bytes_of.append(archive.read_bytes())
        names = tarfile.open(archive).getnames()
        shutil.rmtree(archive.parent)
    assert bytes_of[0] == bytes_of[1]
    top = names[0].split("/")[0]
    assert {f"{top}/{name}" for name in ["CMakeLists.txt", "Makefile", "LICENSE", "src/normlab/cli/main.cpp"]} <= set(names)
    assert all(name.split("/")[0] == top for name in names)
