"""A study that is killed again and again, for as long as it takes, ends with the table of an undisturbed one.

`make torture` kills a study of 200 trials for ten minutes, `make test` one of six for some seconds."""
import json
import os
import random
import signal
import time

from conftest import run
from test_study import TINY, children, record, results, start, trials

ALL = "NORMLAB_TORTURE" in os.environ
SHAPE = ["norm.p=[1,1.5,2,3,4]", "data.folds=10", "train.seed=[1,2,3,4]"] if ALL else ["norm.p=[2,3]", "data.folds=3"]
TRIALS, SECONDS, PAUSE = (200, 600, (1.0, 6.0)) if ALL else (6, 10, (0.5, 1.5))
STUDY = [*TINY, "norm.scheme=lp", "model.dropout=0.1", "train.max_steps=60", "train.eval_every=20", "train.save_every=5",
         "train.log_every=5", *SHAPE]


def table(out):
    """The report, without names, commands and times."""
    run("report", out, check=0)
    report = without_times(json.loads((out / "report.json").read_text()))
    return {k: v for k, v in report.items() if k not in ("title", "command", "provenance")}


def without_times(value):
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if "seconds" not in k and "time" not in k}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def kill_one_of(process, draw):
    """The study, which asks its trials to stop; a trial; or all at once."""
    kind, pids = draw.choice(["study", "trial", "all"]), list(children(process))
    if kind != "trial" or not pids:
        process.kill()
    for pid in pids if kind == "all" else pids[:1] if kind == "trial" else []:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it has just finished
            pass
    return kind


def test_killed_every_few_seconds(text, tmp_path):
    arguments = ["compare", "--data", text, "--jobs", 1, "--nice", 0, "--set", *STUDY]
    whole, out = tmp_path / "whole", tmp_path / "killed"
    undisturbed = start(*arguments, "--out", whole)  # at the same time, in a folder of its own
    draw, kills, end = random.Random(15), [], time.time() + SECONDS
    process = start(*arguments, "--out", out)
    while time.time() < end and len(list(out.glob("trials/*/*/trial.json"))) < TRIALS:
        time.sleep(draw.uniform(*PAUSE))
        if process.poll() is None:
            kills.append(kill_one_of(process, draw))
        if process.poll() is not None or kills[-1] != "trial":
            process.communicate()
            process = start(*arguments, "--out", out)
    process.communicate()
    for _ in range(5):  # trials that were killed count as crashed; they are run again
        if run(*arguments, "--out", out).returncode == 0:
            break
    assert undisturbed.wait() == 0 and len(trials(whole)) == TRIALS
    print(f"{TRIALS} trials, {len(kills)} kills: " +
          ", ".join(f"{kills.count(kind)} of {kind}" for kind in ("study", "trial", "all")))
    assert len(kills) > SECONDS / 10
    assert all(record(trial)["outcome"] == "finished" for trial in trials(out))
    assert results(out) == results(whole)
    assert table(out) == table(whole)
    assert not [path for path in out.rglob("*") if "staging" in path.name]
