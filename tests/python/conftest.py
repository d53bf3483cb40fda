"""The Python package, from the copy in the build folder or, with NORMLAB_INSTALLED=1, from the environment."""
import importlib.util
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("NORMLAB_BINARY", ROOT / "build" / "normlab"))
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
