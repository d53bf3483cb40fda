"""``normlab.compare``: a study by the program, with progress where the caller is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from normlab.checkpoint import Folder
from normlab.program import find_program, setting
from normlab.runs import Study, import_pandas, read_study

STOPPED = (75, 130)  # exit codes of the program: interrupted once, after saving, and twice


def compare(
    recipe: Folder | None = None,
    *,
    data: Folder | None = None,
    budget: str | None = None,
    schemes: Sequence[str] | None = None,
    set: Mapping[str, Any] | None = None,
    out: Folder | None = None,
    jobs: int | None = None,
) -> Study:
    """Runs a study and returns it; a notebook shows its report.

    Either a recipe, a TOML file in which a list means "try each of these", or a text and a budget, for which the
    program chooses model and steps. ``set`` overrides keys and may hold lists. Running it again does only what is
    missing, and ``out`` alone resumes a study.

    >>> study = normlab.compare(data=TEXT, set=SMALL | {"norm.scheme": ["none", "rms"]}, out=NEW)
    >>> sorted(study.trials["variant"].unique())
    ['none', 'rms']

    Without a recipe: ``normlab.compare(data="my.txt", budget="15m", schemes=["none", "qknorm"])``. An interrupt saves
    what is running and raises KeyboardInterrupt; the same call resumes.

    Raises RuntimeError with the program's words when it refuses or fails.
    """
    import_pandas()  # before hours of work, not after them
    arguments = ["compare"]
    arguments += ["--config", os.fspath(recipe)] if recipe is not None else []
    arguments += ["--data", os.fspath(data)] if data is not None else []
    arguments += ["--budget", budget] if budget is not None else []
    arguments += ["--schemes", ",".join(schemes)] if schemes is not None else []
    arguments += ["--jobs", str(jobs)] if jobs is not None else []
    if out is None:
        if budget is None or data is None:
            raise ValueError("[normlab.compare] no folder for the study; expected out=..., or data=... and budget=...")
        out = Path("studies") / Path(data).stem
    arguments += ["--out", os.fspath(out)]
    if set:
        arguments += ["--set", *(f"{key}={setting(value)}" for key, value in set.items())]
    run_with_progress(arguments, Path(out))
    return read_study(out)


def run_with_progress(arguments: Sequence[str], out: Path) -> None:
    on_terminal = not in_notebook() and sys.stderr.isatty()  # where the program draws a table itself
    # A session of its own: an interrupt of the terminal or kernel reaches the program once, from here.
    child = subprocess.Popen(
        [find_program(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=None if on_terminal else subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    lines: list[str] = []
    while True:
        try:
            if child.stderr:
                show(child.stderr, lines)
            code = child.wait()
            break
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)  # the first one saves, a second one ends at once
        except BaseException:
            child.terminate()
            child.wait()
            raise
    if code in STOPPED:
        raise KeyboardInterrupt(f"stopped; resume with normlab.compare(out={str(out)!r})")
    if code != 0:
        errors = [line for line in lines if line.startswith("error ")]
        raise RuntimeError(errors[-1] if errors else f"[normlab.compare] exit code {code}; its message is above")


def in_notebook() -> bool:
    """Whether this is a Jupyter kernel, which shows nothing that a child process writes."""
    kernel = sys.modules.get("ipykernel.kernelapp")
    return kernel is not None and kernel.IPKernelApp.initialized()


def show(output: Iterable[str], lines: list[str]) -> None:
    """What the program says: in a notebook the latest lines, replaced as they come; elsewhere on standard error."""
    if not in_notebook():
        for line in output:
            sys.stderr.write(line)
            lines.append(line.rstrip("\n"))
        return
    from IPython.display import display

    shown = display({"text/plain": ""}, raw=True, display_id=True)
    for line in output:
        lines.append(line.rstrip("\n"))
        shown.update({"text/plain": "\n".join(lines[-12:])}, raw=True)
