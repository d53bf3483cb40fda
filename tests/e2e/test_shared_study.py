"""One study, many processes: claims of trials, job scripts, joining of studies."""
import os
import random
import re
import shutil
import signal
import subprocess

from conftest import TINY, metrics, run
from test_study import STUDY, compare, record, results, start, trials, wait_for

USAGE, STOPPED = 2, 75
# 2 variants x 4 folds x 5 seeds = 40 trials of a fraction of a second.
FORTY = [*TINY, "norm.scheme=lp", "norm.p=[2,3]", "data.folds=4", "train.seed=[1,2,3,4,5]", "model.n_layers=1",
         "train.max_steps=60", "train.eval_every=60", "train.save_every=20"]


def prepare(text, out, settings):
    run("compare", "--data", text, "--out", out, "--prepare", "--set", *settings, check=0)


def sessions_that_began(folder):
    """How often a trial was started from its first step."""
    return sum(row.get("step") == 0 for row in metrics(folder))


def test_twenty_processes_share_forty_trials_and_five_are_killed(text, tmp_path):
    out = tmp_path / "study"
    prepare(text, out, FORTY)
    draw = random.Random(11)
    workers = [start("trial", out, "--all", "--quiet") for _ in range(20)]
    doomed = draw.sample(workers, 5)
    for worker in doomed:
        done = len(list(out.glob("trials/*/*/trial.json")))
        wait_for(lambda: len(list(out.glob("trials/*/*/trial.json"))) > done, 120)
        worker.kill()
    ends = {worker: worker.communicate(timeout=300)[1] for worker in workers}
    for worker, said in ends.items():
        assert worker.returncode == (-signal.SIGKILL if worker in doomed else 0), said
    folders = trials(out)
    assert len(folders) == 40
    finished = re.findall(r"^trial (\d+) .* finished", "\n".join(ends.values()), re.M)
    for folder in folders:
        assert record(folder)["outcome"] == "finished" and record(folder)["step"] == 60
        assert [row["step"] for row in metrics(folder) if "loss" in row] == list(range(1, 61))
        assert sessions_that_began(folder) == 1
    assert len(finished) == len(set(finished))  # nobody finished a trial that another had finished
    assert len(list(out.glob("trials/*/*.claim-*"))) <= 5  # a process may be killed between the result and its claim
    # The result of a trial does not depend on who ran it, or on who was killed.
    again = tmp_path / "again"
    prepare(text, again, [*FORTY, "data.fold=2"])
    run("compare", "--out", again, check=0)
    expected = results(again)
    assert {name: value for name, value in results(out).items() if name in expected} == expected


def test_next_takes_one_trial_and_leaves_those_that_run(text, tmp_path):
    out = tmp_path / "study"
    prepare(text, out, STUDY)
    assert "trial 1 (p = 2, fold 0, seed 1337) finished" in run("trial", out, "--next", check=0).stderr
    assert [record(t)["outcome"] for t in trials(out)] == ["finished"]
    slow = start("trial", out, "--next", "--quiet")
    wait_for(lambda: list(out.glob("trials/*/*.claim-1")))
    slow.send_signal(signal.SIGSTOP)  # alive, and neither beating nor finishing
    try:
        assert "another process (pid" in run("trial", out, 2, check=1).stderr
        for _ in range(4):
            run("trial", out, "--next", check=0)
        done = run("trial", out, "--next", check=0)
        assert "no free trial: 5 of 6 have ended, 1 run elsewhere" in done.stderr
    finally:
        slow.send_signal(signal.SIGCONT)
    assert slow.wait(60) == 0
    assert len(trials(out)) == 6 and not list(out.glob("trials/*/*.claim-*"))
    assert "no free trial: 6 of 6 have ended\n" in run("trial", out, "--all", check=0).stderr


def test_a_stopped_trial_is_free_and_resumes(text, tmp_path):
    out, whole = tmp_path / "study", tmp_path / "whole"
    long = ["train.max_steps=400", "train.eval_every=100", "data.fold=0"]
    compare(text, whole, *long)
    compare(text, out, *long, extra=["--prepare"])
    process = start("trial", out, "--next", "--quiet")
    wait_for(lambda: list(out.glob("trials/*/*/metrics.jsonl")))
    process.send_signal(signal.SIGUSR1)
    assert process.wait(60) == STOPPED
    assert "given back" in next(out.glob("trials/*/*.claim-1")).read_text()
    run("trial", out, "--all", check=0)
    assert results(out) == results(whole)


def test_exactly_one_of_number_next_and_all(text, tmp_path):
    prepare(text, tmp_path / "study", STUDY)
    assert "expected one of N, --next and --all, got none" in run("trial", tmp_path / "study", check=USAGE).stderr
    assert "got several" in run("trial", tmp_path / "study", 1, "--next", check=USAGE).stderr


def test_slurm_script_and_parallel_line(text, tmp_path):
    out = tmp_path / "a study"
    prepare(text, out, STUDY)
    run("trial", out, 1, check=0)
    done = run("plan", out, "--slurm", check=0)
    script = out / "slurm.sh"
    assert f"submit with: sbatch '{script}'" in done.stdout and "5 trials to do" in done.stdout
    content = script.read_text()
    for line in ("#SBATCH --array=1-5", "#SBATCH --cpus-per-task=1", "#SBATCH --signal=USR1@120", "#SBATCH --requeue"):
        assert line in content.splitlines()
    days, hours, minutes, _ = map(int, re.search(r"--time=(\d+)-(\d\d):(\d\d):(\d\d)", content).groups())
    assert 3 <= minutes < 30 and days == hours == 0  # seconds of training, two minutes' warning, one to start
    slower = run("plan", out, "--slurm", "--speed", 1e4, check=0).stdout
    assert "at the given speed" in slower and "--time=0-00:0" not in script.read_text()
    # The script as bash runs it, with srun and scontrol that only do what matters here.
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, body in (("srun", 'test "$1" = --cpus-per-task=1 && shift && exec "$@"'), ("scontrol", f'echo "$@" >> {tools}/requeued')):
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "SLURM_ARRAY_JOB_ID": "7",
                   "SLURM_ARRAY_TASK_ID": "3"}
    subprocess.run(["bash", script], env=environment, check=True, stderr=subprocess.DEVNULL)
    assert len(list(out.glob("trials/*/*/trial.json"))) == 2 and not (tools / "requeued").exists()
    (tools / "srun").write_text("#!/bin/sh\nexit 75\n")
    assert subprocess.run(["bash", script], env=environment).returncode == 75
    assert (tools / "requeued").read_text() == "requeue 7_3\n"

    line = run("plan", out, "--parallel", check=0).stdout.strip()
    assert line.startswith("seq 4 | parallel -N0 -j ") and line.endswith("--next --quiet'")
    if shutil.which("parallel"):
        subprocess.run(["bash", "-c", line], check=True, stderr=subprocess.DEVNULL)
        assert "has no trial left to run" in run("plan", out, "--parallel", check=USAGE).stderr
    assert "expect one study" in run("plan", "--slurm", check=USAGE).stderr


def test_merge(text, tmp_path):
    whole, a, b, out = (tmp_path / name for name in ("whole", "a", "b", "out"))
    compare(text, whole)
    compare(text, a, "data.fold=[0,1]")
    compare(text, b, "data.fold=2")
    done = run("merge", a, b, "--out", out, check=0)
    assert "6 of 6 trials have ended" in done.stdout and f"report {out}" in done.stdout
    assert results(out) == results(whole)
    run("report", out, check=0)
    assert "6 to do" not in run("compare", "--out", out, check=0).stderr
    assert (out / "summary.csv").read_text().split("\n")[0] == (whole / "summary.csv").read_text().split("\n")[0]

    other = tmp_path / "other.txt"
    other.write_text(text.read_text()[:-1] + "!")
    c = tmp_path / "c"
    run("compare", "--data", other, "--out", c, "--prepare", "--set", *STUDY, "data.fold=1", check=0)
    assert "data.source" in run("merge", b, c, "--out", tmp_path / "no", check=USAGE).stderr
    assert "expected two or more" in run("merge", b, "--out", tmp_path / "no", check=USAGE).stderr
    assert "exists" in run("merge", a, b, "--out", out, check=USAGE).stderr
    assert not (tmp_path / "no").exists()
