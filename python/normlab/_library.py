"""Loads the operators, compiled from the sources of the program, into PyTorch."""
from pathlib import Path

import torch

from normlab import _build


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def load() -> None:
    # Another version would fail with an undefined symbol, or worse, without one.
    if _minor(torch.__version__) != _minor(_build.torch_version):
        raise ImportError(f"[normlab] this copy was built for torch {_minor(_build.torch_version)}; got torch "
                          f"{torch.__version__}. Build it again in this environment: pip install --force-reinstall "
                          "--no-deps <the normlab sources>.")
    torch.ops.load_library(Path(__file__).with_name("libnormlab_ops.so"))


load()
