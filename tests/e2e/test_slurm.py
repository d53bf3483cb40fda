"""A real Slurm of one node: a study from the generated job script, whatever is cancelled or queued again."""
import os
import re

import pytest
from conftest import run
from slurm_cluster import Slurm, missing
from test_report import timeless
from test_shared_study import sessions_that_began
from test_study import arguments, compare, record, results, results_so_far, trials

WHY_NOT = missing() if "NORMLAB_TORTURE" in os.environ else "a minute of a quiet machine: run by make torture"
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "-")
# Six trials of seconds.
LONG = ["train.max_steps=1500", "train.eval_every=500", "train.save_every=100", "data.folds=3"]


def steps_of(out):
    """How far the trials that have not ended are: rows of metrics."""
    return {t: (t / "metrics.jsonl").read_text().count("\n") for t in trials(out)
            if (t / "metrics.jsonl").exists() and not (t / "trial.json").exists()}


def job_script(out):
    said = run("plan", out, "--slurm", check=0).stdout
    return out / "slurm.sh", int(re.search(r"(\d+) trials to do", said).group(1))


def test_a_study_cancelled_and_queued_again(text, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "a study at 5%"
    compare(text, whole, *LONG)
    verb, *rest = arguments(text, out, *LONG)
    run(verb, "--prepare", *rest, check=0)
    script, count = job_script(out)
    assert count == 6
    with Slurm() as slurm:
        job = slurm.submit(script)

        # Slurm's warning before the time limit: the trial saves, and the task queues itself again.
        slurm.wait_for(lambda: max(steps_of(out).values(), default=0) > 3, 60)
        warned = min(slurm.tasks(job, "RUNNING"))
        slurm.call("scancel", "--signal=USR1", warned)
        slurm.wait_for(lambda: restarts(slurm, warned) == 1, 60)

        # Queued again by an administrator, or for a job of higher priority.
        slurm.wait_for(lambda: set(slurm.tasks(job, "RUNNING")) - {warned} and steps_of(out), 60)
        evicted = min(set(slurm.tasks(job, "RUNNING")) - {warned})
        slurm.call("scontrol", "requeue", evicted)
        slurm.wait_for(lambda: restarts(slurm, evicted) == 1, 60)

        # Cancelled midway, and the rest submitted anew.
        slurm.wait_for(lambda: results_so_far(out) > 0 and steps_of(out), 60)
        slurm.call("scancel", job)
        slurm.wait_for(lambda: not slurm.tasks(job), 60)
        script, left = job_script(out)
        assert 0 < left < 6
        job = slurm.submit(script)
        slurm.wait_for(lambda: not slurm.tasks(job), 120)

        logs = {path.name: path.read_text() for path in out.glob("slurm-*_*.log")}
        assert len(logs) >= left and sum("stopped; resume with" in said for said in logs.values()) >= 2, logs

    assert len(trials(out)) == 6 and not list(out.glob("trials/*/*.claim-*"))
    assert all(record(t)["outcome"] == "finished" and sessions_that_began(t) == 1 for t in trials(out))
    assert results(out) == results(whole)
    for folder in (out, whole):
        run("report", folder, check=0)
    for table in ("summary.csv", "trials.csv"):
        assert timeless(out / table) == timeless(whole / table)


def restarts(slurm, task):
    found = re.search(r"Restarts=(\d+)", slurm.call("scontrol", "show", "job", task, check=False))
    return int(found.group(1)) if found else 0
