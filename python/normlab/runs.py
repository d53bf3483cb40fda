"""Runs and studies as pandas data frames."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normlab.checkpoint import Folder, read_config
from normlab.program import run

if TYPE_CHECKING:
    import pandas

READING = re.compile(r"(?P<group>\w+)/(?:(?P<stack>[a-z]+)(?P<layer>\d+)/)?(?:head(?P<head>\d+)/)?(?P<quantity>\w+)")


def import_pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError("[normlab] data frames need pandas: pip install pandas.") from None
    return pandas


@dataclass(frozen=True)
class Run:
    """A run as ``read_run`` returns it."""

    folder: Path
    config: pandas.Series
    """The resolved configuration, by dotted key such as ``norm.scheme``."""
    metrics: pandas.DataFrame
    """One row per step that was logged or evaluated: ``loss``, ``grad_norm``, ``lr``, ``val_loss`` and others."""
    probes: pandas.DataFrame
    """One row per reading: ``step``, ``group``, ``stack``, ``layer``, ``head``, ``quantity``, ``value``."""
    warnings: pandas.DataFrame
    """``step`` and ``warning``."""


def read_run(folder: Folder) -> Run:
    """Configuration, metrics and probes of a run, finished or not.

    >>> run = normlab.read_run(RUN)
    >>> run.config["norm.scheme"]
    'qknorm'
    >>> run.metrics["val_loss"].dropna().index.tolist()
    [0, 10, 20]
    >>> layers = run.probes[run.probes["head"].isna() & (run.probes["quantity"] == "entropy")]
    >>> layers.pivot(index="step", columns="layer", values="value").shape
    (2, 2)

    Raises FileNotFoundError for a folder that is no run, ImportError without pandas.
    """
    pandas = import_pandas()
    path = Path(folder)
    config = read_config(path)
    rows = read_rows(path / "metrics.jsonl")
    flat = {f"{section}.{key}": value for section, keys in config.items() for key, value in keys.items()}
    plain = [{key: value for key, value in row.items() if "/" not in key and key != "warning"} for row in rows]
    metrics = pandas.DataFrame([row for row in plain if len(row) > 1], columns=None if plain else ["step"])
    # A step can have a row of training and one of evaluation.
    metrics = metrics.groupby("step").first() if len(metrics) else pandas.DataFrame(index=pandas.Index([], name="step"))
    readings = [
        {"step": row["step"], **place.groupdict(), "value": value}
        for row in rows
        for key, value in row.items()
        if (place := READING.fullmatch(key))
    ]
    columns = ["step", *READING.groupindex, "value"]
    probes = pandas.DataFrame(readings, columns=columns).astype({"layer": "Int64", "head": "Int64", "value": float})
    warnings = pandas.DataFrame([row for row in rows if "warning" in row], columns=["step", "warning"])
    return Run(path, pandas.Series(flat, name=str(path), dtype=object), metrics, probes, warnings)


def read_rows(file: Path) -> list[dict[str, Any]]:
    """Rows of metrics.jsonl; values that JSON cannot hold become floats, an unfinished last line is skipped."""
    if not file.is_file():
        raise FileNotFoundError(f"[{file}] is missing; expected the metrics of a run.")
    rows = []
    lines = file.read_text().splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            if number == len(lines) and not line.endswith("\n"):
                break
            raise ValueError(f"[{file}] is damaged: line {number} is not JSON.") from None
        rows.append({key: float(v) if v in ("nan", "inf", "-inf") else v for key, v in row.items()})
    return rows


@dataclass(frozen=True)
class Study:
    """A study as ``read_study`` and ``compare`` return it; a notebook shows its report."""

    folder: Path
    verdict: str
    """What was found, in a sentence."""
    variants: pandas.DataFrame
    """One row per variant: mean loss, difference to the baseline, intervals, p-values, speed."""
    trials: pandas.DataFrame
    """One row per trial: variant, fold, seed, status, losses, times, folder."""

    def _repr_html_(self) -> str:
        page = html.escape((self.folder / "report.html").read_text())
        return f'<iframe srcdoc="{page}" width="100%" height="800" style="border: 0"></iframe>'

    def __repr__(self) -> str:
        return f"{self.verdict}\n{len(self.trials)} trials; report: {self.folder / 'report.html'}"


def read_study(folder: Folder) -> Study:
    """Variants and trials of a study, finished or not; writes its report, as ``normlab report`` does.

    >>> study = normlab.read_study(STUDY)
    >>> study.trials.groupby("variant")["final_loss"].count()
    variant
    none      2
    qknorm    2
    Name: final_loss, dtype: int64

    Raises FileNotFoundError for a folder that is no study, ImportError without pandas.
    """
    pandas = import_pandas()
    path = Path(folder)
    if not (path / "study.toml").is_file():
        raise FileNotFoundError(f"[{path}] is not a study; expected a folder of `normlab compare`, with study.toml.")
    report = json.loads(run(["report", str(path), "--json"]))
    return Study(path, report["verdict"], pandas.DataFrame(report["variants"]), pandas.DataFrame(report["trials"]))
