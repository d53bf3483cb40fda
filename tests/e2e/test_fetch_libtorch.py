"""Which wheels tools/fetch_libtorch.sh asks for, by machine. Nothing is downloaded: pip finds empty wheels in a folder."""
import os
import re
import subprocess

import pytest
from conftest import ROOT

REQUIRED = re.findall(r"^([\w-]+)==([\d.]+)", (ROOT / "tools/torch-requirements.txt").read_text(), re.MULTILINE)


def fetch(folder, machine, offered):
    """What the script says on a machine, where wheels are on offer for the processors `offered`."""
    fake = folder / "bin" / "uname"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\necho {machine}\n")
    fake.chmod(0o755)
    links = folder / "links"
    links.mkdir()
    for name, version in REQUIRED:
        for arch in offered:
            (links / f"{name.replace('-', '_')}-{version}-py3-none-manylinux_2_28_{arch}.whl").write_bytes(b"")
    path = f"{fake.parent}:{os.environ['PATH']}"
    environment = dict(os.environ, PATH=path, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(links))
    done = subprocess.run([ROOT / "tools/fetch_libtorch.sh", folder / "libtorch"], env=environment, capture_output=True,
                          text=True)
    assert done.returncode == 1 and not (folder / "libtorch").exists()
    return done.stderr


@pytest.mark.parametrize("machine, other", [("x86_64", "aarch64"), ("aarch64", "x86_64")])
def test_the_wheels_are_those_of_the_machine(tmp_path, machine, other):
    for name in ["own", "foreign"]:
        (tmp_path / name).mkdir()
    # The empty wheel of the machine is taken and refused for its hash; that of another is not taken at all.
    assert "DO NOT MATCH THE HASHES" in fetch(tmp_path / "own", machine, [machine, other])
    assert "No matching distribution found for torch==" in fetch(tmp_path / "foreign", machine, [other])


def test_a_machine_without_wheels_is_told_so(tmp_path):
    assert "got riscv64, expected x86_64 or aarch64" in fetch(tmp_path, "riscv64", [])
