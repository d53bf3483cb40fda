"""The package as a whole: types, versions of torch."""
import shutil
import subprocess
import sys
from pathlib import Path

import normlab

FOLDER = Path(normlab.__file__).parent


def test_the_package_is_typed():
    assert (FOLDER / "py.typed").exists()
    assert normlab.attention.__doc__ and normlab.__version__


def test_another_version_of_torch_is_refused_in_one_sentence(tmp_path):
    copy = tmp_path / "normlab"
    copy.mkdir()
    for file in FOLDER.glob("*"):
        if file.is_file():
            shutil.copy(file, copy / file.name)
    build = (copy / "_build.py").read_text()
    (copy / "_build.py").write_text(build.replace(f'torch_version = "{normlab._build.torch_version}"',
                                                  'torch_version = "2.14.1"'))
    done = subprocess.run([sys.executable, "-c", "import normlab"], cwd=tmp_path, capture_output=True, text=True,
                          env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: [normlab] this copy was built for torch 2.14; got torch 2.15")
