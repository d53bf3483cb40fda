"""What a wheel installs, from the rules that a wheel uses: the program and the operators in the folder of the package.

`make wheel` compiles everything again, with the torch of its environment; this copy comes from the build folder.
"""
import os
import shutil
import subprocess
import sys

import pytest
from conftest import BINARY, ROOT


def sh(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder as site-packages would be."""
    if os.environ.get("NORMLAB_INSTALLED"):
        pytest.skip("the installed package is tested itself")
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "python/normlab", site / "normlab", ignore=shutil.ignore_patterns("__pycache__"))
    for component in ("program", "python"):
        sh("cmake", "--install", BINARY.parent, "--component", component, "--prefix", site / "normlab")
    return site


def test_the_installed_module_and_command(site):
    environment = {"PYTHONPATH": str(site), "PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    where = sh(sys.executable, "-c", "import normlab; print(normlab.__file__)", env=environment, cwd=site)
    assert where.strip() == str(site / "normlab/__init__.py")
    (site.parent / "bin").mkdir(exist_ok=True)
    # In a folder of its own, as a wheel installs it: Python looks for modules beside a script first.
    command = [sys.executable, shutil.copy(ROOT / "python/command.py", site.parent / "bin" / "normlab")]
    assert sh(*command, "--version", env=environment) == sh(BINARY, "--version")
    assert "libtorch" in sh(*command, "doctor", env=environment)
    failed = subprocess.run([*command, "schemes", "lpp"], capture_output=True, text=True, env=environment)
    assert failed.returncode == 2 and "lp" in failed.stderr


def test_a_wheel_needs_no_other_files():
    listed = {path.name for path in (ROOT / "python/normlab").iterdir() if path.name != "__pycache__"}
    assert "py.typed" in listed and "_build.py" not in listed and "libnormlab_ops.so" not in listed
