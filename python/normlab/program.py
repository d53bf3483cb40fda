"""The program ``normlab``, which trains and compares: where it is, and how it is run as a child process."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def find_program() -> str:
    """NORMLAB_BINARY if it is set, otherwise the program that a wheel installs, otherwise the one on PATH."""
    named = os.environ.get("NORMLAB_BINARY")
    own = Path(__file__).with_name("bin") / "normlab"
    found = named or (str(own) if own.is_file() else shutil.which("normlab"))
    if not found or not os.access(found, os.X_OK):
        where = f"NORMLAB_BINARY={named}" if named else f"{own.parent} or on PATH"
        raise FileNotFoundError(
            f"[normlab] there is no program normlab in {where}. Install it with `pip install .` or `make install`, or "
            "set NORMLAB_BINARY."
        )
    return found


def run(arguments: Sequence[str]) -> str:
    """What a verb prints; RuntimeError with the program's own words if it fails."""
    done = subprocess.run([find_program(), *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"normlab {arguments[0]} ended with exit code {done.returncode}")
    return done.stdout


def setting(value: Any) -> str:
    """A value as ``--set KEY=VALUE`` reads it.

    >>> setting([1, 2.5, "none"]), setting(True)
    ('[1,2.5,none]', 'true')
    """
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(setting(each) for each in value) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)
