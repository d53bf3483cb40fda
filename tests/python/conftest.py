"""The Python package, from the copy in the build folder or, with NORMLAB_INSTALLED=1, from the environment."""
import importlib.util
import os
import shutil
import sys

import pytest
from program_runs import BINARY, ROOT, train, write_pairs, write_text  # noqa: F401

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # tests run in parallel: waiting threads must not spin
# One process compiles, without a precompiled header, which takes longer than all that the tests compile.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
os.environ.setdefault("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")


def why_not():
    """Why the package cannot be tested here; empty when it can."""
    if importlib.util.find_spec("torch") is None:
        return "no torch in this environment: `make test` installs one from PyPI, which was not reachable"
    if not os.environ.get("NORMLAB_INSTALLED"):
        if not (BINARY.parent / "python/normlab/libnormlab_ops.so").exists():
            return f"{BINARY.parent}/python/normlab is not built: cmake --build build --target normlab_ops"
        sys.path.insert(0, str(BINARY.parent / "python"))
        os.environ["PYTHONPATH"] = str(BINARY.parent / "python")
    return ""


REASON = why_not()


class Skipped(pytest.Module):
    """A test file that cannot be imported here, skipped by name."""

    def collect(self):
        yield pytest.Function.from_parent(self, name=self.path.stem, callobj=lambda: pytest.skip(REASON))


def pytest_pycollect_makemodule(module_path, parent):
    if REASON:
        return Skipped.from_parent(parent, path=module_path)
    return None


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    return write_text(tmp_path_factory.mktemp("data") / "text.txt")


@pytest.fixture(scope="session")
def pairs(tmp_path_factory):
    return write_pairs(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="session")
def lm_run(text, tmp_path_factory):
    """A run of a language model that several tests read."""
    return train(text, tmp_path_factory.mktemp("lm") / "run", "norm.scheme=qknorm", "probe.every=10")


@pytest.fixture
def copied_run(lm_run, tmp_path):
    return shutil.copytree(lm_run, tmp_path / "copy", symlinks=True)
