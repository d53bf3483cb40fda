"""Studies: every trial once, whatever is stopped, killed, damaged or changed in between."""
import fcntl
import json
import os
import pathlib
import pty
import random
import shutil
import signal
import subprocess
import time

import pytest
from conftest import BINARY, TINY, complaints, metrics, run

USAGE, DATA, STOPPED = 2, 3, 75
STUDY = [*TINY, "norm.scheme=lp", "norm.p=[2,3]", "data.folds=3", "model.dropout=0.1", "train.save_every=5",
         "train.log_every=5"]
LONG = ["train.max_steps=4000", "train.eval_every=2000"]  # until it is stopped
TIMES = {"train_seconds", "train_cpu_seconds"}


def arguments(text, out, *settings):
    return ["compare", "--data", text, "--out", out, "--set", *STUDY, *settings]


def compare(text, out, *settings, check=0, extra=()):
    verb, *rest = arguments(text, out, *settings)
    return run(verb, *extra, *rest, check=check)


def start(*words):
    return subprocess.Popen([str(BINARY), *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def trials(out):
    return sorted(path.parent for path in out.glob("trials/*/*/config.toml"))


def record(trial):
    return {k: v for k, v in json.loads((trial / "trial.json").read_text()).items() if k not in TIMES}


def results(out):
    """All that a study computes, without times."""
    return {str(t.relative_to(out)): (record(t), metrics(t)) for t in trials(out)}


def results_so_far(out):
    return len(list(out.glob("trials/*/*/trial.json")))


def state(out):
    """Every file with the time of its last change."""
    return {str(p.relative_to(out)): p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file() and p.suffix != ".lock"}


def wait_for(condition, seconds=30):
    end = time.time() + seconds
    while not condition():
        assert time.time() < end
        time.sleep(0.01)


def children(process):
    """Process ids and trial numbers of a study's children."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except (OSError, IndexError):
            continue
        if parent == process.pid and words[1:2] == [b"trial"]:
            found[int(entry.name)] = int(words[3])
    return found


@pytest.fixture(scope="module")
def whole(text, tmp_path_factory):
    """An undisturbed study, only to be read or copied."""
    out = tmp_path_factory.mktemp("study") / "whole"
    compare(text, out)
    return out


@pytest.fixture
def copy(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "copy", symlinks=True)
    return tmp_path / "copy"


def test_every_trial_is_an_ordinary_run(whole):
    assert [str(t.relative_to(whole)) for t in trials(whole)] == [
        f"trials/p={p}/fold0{fold}-seed1337" for p in (2, 3) for fold in range(3)]
    for trial in trials(whole):
        assert record(trial)["outcome"] == "finished" and record(trial)["step"] == 20
        assert record(trial)["val_loss"] == metrics(trial)[-1]["val_loss"]
        assert json.loads((trial / "trial.json").read_text())["train_cpu_seconds"] > 0
        assert not list(trial.rglob("optimizer.safetensors"))
        assert json.loads((trial / "manifest.json").read_text())["sessions"][0]["threads"] == 1
    losses = [record(t)["val_loss"] for t in trials(whole)]
    assert len(set(losses)) == 6
    assert run("eval", trials(whole)[0], "--threads", 1, check=0)
    assert not [p for p in whole.rglob("*") if "staging" in p.name]


def test_a_trial_gives_what_train_gives(whole, text, tmp_path):
    settings = [s.replace("[2,3]", "3") for s in STUDY]
    run("train", "--data", text, "--out", tmp_path / "run", "--threads", 1, "--set", *settings, "data.fold=1", check=0)
    assert metrics(tmp_path / "run") == metrics(whole / "trials/p=3/fold01-seed1337")


def test_running_again_does_nothing(text, copy):
    compare(text, copy)  # the report names its folder, so the copy gets a new one
    before = state(copy)
    assert "6 of 6" in compare(text, copy).stderr
    summary = json.loads(run("compare", "--out", copy, "--json", check=0).stdout)
    assert summary["finished"] == summary["trials"] == 6
    assert state(copy) == before


def test_a_longer_list_keeps_what_is_done(text, whole, copy):
    before = state(copy)
    run("compare", "--out", copy, "--set", "norm.p=[3,2,4]", "data.fold=[0,2]", check=0)
    after = state(copy)
    assert {k: v for k, v in before.items() if k.startswith("trials/")}.items() <= after.items()
    assert {k.split("/")[1] for k in set(after) - set(before)} == {"p=4"}
    assert len(trials(copy)) == 8  # also those that are no longer part of it
    compare(text, copy)  # back to the first study: nothing to do
    assert results(copy).items() >= results(whole).items()


def test_another_configuration_is_refused(text, copy):
    before = state(copy)
    done = compare(text, copy, "optim.lr=0.5", check=USAGE)
    assert "p=2/fold00-seed1337" in done.stderr and "optim.lr is 0.001 there and 0.5" in done.stderr
    assert state(copy) == before
    other = copy.parent / "text.txt"
    other.write_text(text.read_text() + "More.")
    assert "data.source" in run("compare", "--out", copy, "--data", other, check=USAGE).stderr
    assert state(copy) == before


def test_a_changed_text_is_refused(text, tmp_path):
    own, out = tmp_path / "text.txt", tmp_path / "study"
    own.write_text(text.read_text())
    compare(own, out, "data.fold=[0,1]", "train.max_steps=5")
    before = state(out)
    own.write_text(text.read_text()[::-1])
    assert "text has changed" in compare(own, out, "data.fold=[0,1]", "train.max_steps=5", check=DATA).stderr
    assert state(out) == before


def test_a_deleted_trial_is_run_again(text, whole, copy):
    gone = trials(copy)[4]
    shutil.rmtree(gone)
    before = state(copy)
    compare(text, copy)
    assert results(copy) == results(whole)
    changed = {k for k, v in state(copy).items() if before.get(k) != v}
    reports = {"report.html", "report.md", "report.json", "summary.csv", "trials.csv", "charts"}
    assert {k.split("/")[0] for k in changed} - reports == {"trials", "manifest.json"}
    assert {k for k in changed if k.startswith("trials/") and not k.startswith(str(gone.relative_to(copy)))} == set()


def test_damaged_trials_are_named_and_left_alone(text, whole, copy):
    a, b, c = trials(copy)[:3]
    (a / "trial.json").write_text("{")
    (b / "metrics.jsonl").write_text("".join((b / "metrics.jsonl").read_text().splitlines(True)[:2]))
    shutil.rmtree(c)
    damage = [(a / "trial.json").read_text(), (b / "metrics.jsonl").read_text()]
    done = compare(text, copy, check=1)
    assert all(str(trial) in done.stderr for trial in (a, b)) and str(c) not in done.stderr.split("error")[-1]
    assert done.stderr.count("damaged: ") == 2 and "delete" in done.stderr
    assert damage == [(a / "trial.json").read_text(), (b / "metrics.jsonl").read_text()]
    assert record(c) == record(trials(whole)[2])
    assert "Delete the folder" in run("trial", copy, 1, check=DATA).stderr
    for trial in (a, b):
        shutil.rmtree(trial)
    compare(text, copy)
    assert results(copy) == results(whole)


def test_crashed_trials_do_not_stop_the_others_and_are_tried_again(text, whole, copy):
    bad = trials(copy)[1]
    for trial in trials(copy)[:3]:
        (trial / "trial.json").unlink()
        (trial / "metrics.jsonl").unlink()
        shutil.rmtree(trial / "checkpoints")
    (bad / "checkpoints/step-000005").mkdir(parents=True)  # a checkpoint without its files
    done = compare(text, copy, check=1)
    assert "trial 3 (p = 2, fold 1, seed 1337) crashed" in done.stderr and "state.json is missing" in done.stderr
    assert record(bad)["outcome"] == "crashed" and "state.json is missing" in record(bad)["message"]
    assert (copy / "trials/p=2/fold01-seed1337.log").read_text().startswith("error")
    shutil.rmtree(bad / "checkpoints")
    compare(text, copy)
    assert results(copy) == results(whole)


def kill_first_trial(process, out, times, how=signal.SIGKILL):
    """Each time once it has written rows."""
    log = out / "trials/p=2/fold00-seed1337/metrics.jsonl"
    killed = set()
    for _ in range(times):
        wait_for(lambda: log.exists() and log.read_bytes().count(b"\n") > 3 and set(children(process)) - killed)
        (child,) = set(children(process)) - killed
        os.kill(child, how)
        killed.add(child)
    wait_for(lambda: set(children(process)) - killed or process.poll() is not None)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_trial_is_tried_once_more(text, whole, tmp_path, how):
    out = tmp_path / "study"
    process = start(*arguments(text, out, "train.max_steps=400", "data.fold=[0]"), "--jobs", 1)
    kill_first_trial(process, out, 1, how)
    assert process.wait(300) == 0
    words = "killed by signal 9 (Killed)" if how == signal.SIGKILL else "stopped by a signal"
    assert f"trial 1 (p = 2, fold 0, seed 1337) was {words}; it is tried once more" in process.stderr.read()
    compare(text, tmp_path / "whole", "train.max_steps=400", "data.fold=[0]")
    assert results(out) == results(tmp_path / "whole")


def test_a_trial_killed_twice_counts_as_crashed(text, tmp_path):
    out = tmp_path / "study"
    process = start(*arguments(text, out, *LONG, "data.fold=[0,1]"), "--jobs", 1)
    kill_first_trial(process, out, 2)
    process.terminate()
    assert process.wait(30) == STOPPED
    crash = record(out / "trials/p=2/fold00-seed1337")
    assert crash["outcome"] == "crashed" and "signal 9" in crash["message"]


def test_divergence_is_a_result(text, tmp_path):
    settings = ["norm.p=2", "optim.lr=[1e-3,1e30]", "optim.min_lr=0", "optim.clip=0", "data.fold=[0,1]"]
    done = compare(text, tmp_path / "study", *settings)
    assert "2 of them diverged" in done.stderr
    diverged = tmp_path / "study/trials/lr=1e+30/fold00-seed1337"
    assert record(diverged)["outcome"] == "diverged"
    before = state(tmp_path / "study")
    summary = json.loads(compare(text, tmp_path / "study", *settings, extra=["--json"]).stdout)
    assert summary["diverged"] == 2 and summary["finished"] == 2
    assert "diverged" in run("trial", tmp_path / "study", 2, check=4).stderr
    assert state(tmp_path / "study") == before


def test_one_process_at_a_time(text, tmp_path):
    out = tmp_path / "study"
    process = start(*arguments(text, out, *LONG), "--jobs", 1)
    wait_for(lambda: list(out.glob("trials/*/*/metrics.jsonl")))
    assert "another process" in compare(text, out, *LONG, check=1).stderr
    assert "another process" in run("trial", out, 1, check=1).stderr
    assert process.poll() is None and not list(out.glob("trials/*/*/trial.json"))
    process.terminate()
    assert process.wait(30) == STOPPED
    assert f"normlab compare --out {out}" in process.stderr.read()


def test_a_trial_run_elsewhere_is_left_to_that_process(text, whole, tmp_path):
    """compare does the others meanwhile, and waits."""
    out = tmp_path / "study"
    compare(text, out, extra=["--prepare"])
    folder = out / "trials/p=2/fold00-seed1337"
    folder.mkdir(parents=True)
    with open(folder / "run.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = start("compare", "--out", out)
        wait_for(lambda: len(list(out.glob("trials/*/*/trial.json"))) == 5)
        assert process.poll() is None
    assert process.wait(60) == 0
    assert results(out) == results(whole)


def test_children_do_not_outlive_a_killed_study(text, tmp_path):
    out = tmp_path / "study"
    process = start(*arguments(text, out, *LONG), "--jobs", 2)
    wait_for(lambda: len(list(out.glob("trials/*/*/metrics.jsonl"))) == 2)
    pids = children(process)
    assert len(pids) == 2
    process.kill()
    process.wait()
    wait_for(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids))
    assert len(list(out.glob("trials/*/*/checkpoints/step-*"))) >= 2  # they have saved


def test_killed_at_random_moments(text, tmp_path):
    """SIGTERM and SIGKILL in turn, ten times; the results are those of an undisturbed study."""
    settings = ["train.max_steps=1500", "train.eval_every=500", "data.fold=[0,1]", "train.save_every=25"]
    compare(text, tmp_path / "whole", *settings)
    draw, out = random.Random(3), tmp_path / "killed"
    for kill in range(10):
        process = start(*arguments(text, out, *settings))
        while kill == 9 and not trials(out):  # a busy machine: nothing has been begun so far
            time.sleep(0.05)
        time.sleep(draw.uniform(0.1, 0.9))
        process.send_signal(signal.SIGKILL if kill % 2 else signal.SIGTERM)
        assert process.wait(30) in (STOPPED, -signal.SIGKILL, -signal.SIGTERM), process.stderr.read()
    assert 0 < len(trials(out)) and results_so_far(out) < 4
    compare(text, out, *settings)
    assert results(out) == results(tmp_path / "whole")
    assert not [p for p in out.rglob("*") if "staging" in p.name]


def test_trials_one_by_one_are_the_same_study(text, whole, tmp_path):
    out = tmp_path / "study"
    done = compare(text, out, extra=["--prepare"])
    assert "6 to do" in done.stderr and not trials(out)
    for number in range(1, 7):
        run("trial", out, number, check=0, cwd=tmp_path)
    assert results(out) == results(whole)
    before = state(out)
    assert "finished" in run("trial", out, 3, check=0).stderr
    assert state(out) == before


@pytest.mark.parametrize("number", ["0", "7", "-1", "x", "1.5"])
def test_wrong_trial_numbers(whole, number):
    done = run("trial", whole, number, check=USAGE)
    assert number in done.stderr


def test_a_study_of_another_version(text, copy):
    path = copy / "study.toml"
    ours = path.read_text()
    path.write_text(ours.replace('normlab = "', 'normlab = "9'))
    before = state(copy)
    for done in (compare(text, copy, check=DATA), run("trial", copy, 1, check=DATA)):
        assert "normlab 9" in done.stderr
    path.write_text(ours.replace('normlab = "', 'normlab = "9').replace("[norm]", "[norm]\nflavour = 3"))
    assert "normlab 9" in run("trial", copy, 1, check=DATA).stderr
    path.write_text("this is not TOML")
    assert "study.toml:1" in run("compare", "--out", copy, check=USAGE).stderr
    assert set(state(copy)) == set(before)


@pytest.mark.parametrize("settings, expected", [
    (["norm.p=[]"], "empty"),
    (["norm.p=2"], "nothing to compare"),
    (["norm.p=[2,2.0]"], "twice"),
    (["norm.pp=[1,2]"], "norm.p"),
    (["norm.p=[1,0]"], "above 0"),
    (["norm.scheme=[lp,lpp]"], "'lp'"),
    (["study.baseline=p = 5"], "Did you mean"),
    (["data.folds=[2,3]"], "same for all"),
    (["data.folds=1"], "data.folds"),
    (["data.fold=[0,3]"], "data.fold"),
    (["model.seq_len=50000"], "window"),
    (["variant.label=x"], "[[variant]]"),
])
def test_wrong_studies(text, tmp_path, settings, expected):
    done = compare(text, tmp_path / "study", *settings, check=None)
    assert done.returncode in (USAGE, DATA) and expected in done.stderr
    assert len(complaints(done)) == 1
    assert not (tmp_path / "study").exists()


def test_wrong_folders(text, whole, tmp_path):
    (tmp_path / "thesis.txt").write_text("years")
    assert "not empty" in compare(text, tmp_path, check=USAGE).stderr
    assert "is a file" in compare(text, tmp_path / "thesis.txt", check=USAGE).stderr
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]
    assert "not a study" in run("trial", tmp_path, 1, check=DATA).stderr
    assert "nothing to compare" in run("compare", "--out", tmp_path / "none", check=USAGE).stderr
    assert "--out" in run("compare", "--set", "norm.p=[1,2]", check=USAGE).stderr
    assert "study" in run("train", "--config", whole / "study.toml", "--out", tmp_path / "run", check=USAGE).stderr


def test_one_fold_is_said(text, tmp_path):
    assert "one fold" in compare(text, tmp_path / "study", "data.fold=1", "train.max_steps=3").stderr


def test_variants_of_a_file(text, tmp_path):
    path = tmp_path / "study.toml"
    path.write_text('[study]\nbaseline = "plain"\n[[variant]]\nlabel = "plain"\n'
                    '[[variant]]\nlabel = "L3"\nnorm.scheme = "lp"\n')
    settings = [s for s in STUDY if not s.startswith("norm")]
    run("compare", "--config", path, "--data", text, "--out", tmp_path / "out", "--set", *settings, "data.fold=[0,1]",
        "train.max_steps=3", check=0)
    assert {t.parent.name for t in trials(tmp_path / "out")} == {"plain", "L3"}
    assert 'scheme = "lp"' in (tmp_path / "out/trials/L3/fold00-seed1337/config.toml").read_text()


def test_dry_run_shows_the_plan_and_writes_nothing(text, whole, tmp_path):
    plan = json.loads(compare(text, tmp_path / "study", extra=["--dry-run", "--json"]).stdout)
    assert [t["number"] for t in plan["plan"]] == [1, 2, 3, 4, 5, 6] and plan["missing"] == 6
    assert plan["seconds_left"] > 0 and plan["flops_left"] == pytest.approx(sum(t["flops"] for t in plan["plan"]))
    assert plan["plan"][1]["folder"].endswith("trials/p=3/fold00-seed1337")
    assert list(tmp_path.iterdir()) == []
    before = state(whole)
    shown = compare(text, whole, "norm.p=[2,3,4]", extra=["--dry-run"]).stdout
    assert "9 trials" in shown and "to do: 3 trials" in shown and "p = 4" in shown
    assert state(whole) == before


def test_longest_trials_first(text, tmp_path):
    out = tmp_path / "study"
    compare(text, out, "norm.p=3", "train.max_steps=[2,40,20]", "data.fold=[0,1]", extra=["--jobs", 1])
    order = sorted(trials(out), key=lambda t: (t / "trial.json").stat().st_mtime_ns)
    assert [t.parent.name for t in order] == [f"max_steps={n}" for n in (40, 40, 20, 20, 2, 2)]


def test_threads_and_priority(text, tmp_path):
    out = tmp_path / "study"
    process = start(*arguments(text, out, *LONG), "--threads-per-trial", 2, "--jobs", 1, "--nice", 7)
    wait_for(lambda: list(out.glob("trials/*/*/metrics.jsonl")))
    (pid,) = children(process)
    assert os.getpriority(os.PRIO_PROCESS, pid) == 7
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == STOPPED
    assert json.loads((trials(out)[0] / "manifest.json").read_text())["sessions"][0]["threads"] == 2


def test_decimal_commas(text, whole, tmp_path):
    german = {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "TZ": "Asia/Kathmandu"}
    run(*arguments(text, tmp_path / "study"), env=german, check=0)
    assert results(tmp_path / "study") == results(whole)
    assert (tmp_path / "study/study.toml").read_text() == (whole / "study.toml").read_text()


def test_table_on_a_terminal(text, tmp_path):
    ours, its = pty.openpty()
    process = subprocess.Popen([str(BINARY), *map(str, arguments(text, tmp_path / "study", "train.max_steps=300"))],
                               stdout=subprocess.DEVNULL, stderr=its, env={**os.environ, "TERM": "xterm"})
    os.close(its)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:
        pass  # the end of a pseudo-terminal
    assert process.wait(60) == 0
    shown = shown.decode()
    assert "p = 3  \u2591" in shown and "\u2588  3/3  val" in shown
    assert "trial 1 (p = 2, fold 0, seed 1337)  step" in shown and "left 0:00" in shown
    assert "\x1b[4A" in shown and "6 of 6 trials have ended" in shown


TUNE = ["study.tune.key=optim.lr", "study.tune.values=[1e-3,1e-2,3e-2]", "study.tune.seed=5", "data.fold=[0,1]"]


def test_tuning_gives_each_variant_its_best_value(text, tmp_path):
    out = tmp_path / "study"
    planned = json.loads(compare(text, out, *TUNE, extra=["--dry-run", "--json"]).stdout)
    assert planned["tuning"]["trials"] == 6 and not out.exists()
    assert planned["flops_left"] > planned["tuning"]["flops_left"] > 0
    log = compare(text, out, *TUNE).stderr
    tuning = {t.parent.name: record(t)["val_loss"] for t in trials(out / "tuning")}
    assert len(tuning) >= 6
    for p in (2, 3):
        losses = {float(name.split("lr=")[1]): loss for name, loss in tuning.items() if name.startswith(f"p={p},")}
        best = min(losses, key=losses.get)
        assert f"p = {p}: optim.lr = {best:g}" in log
        for trial in out.glob(f"trials/p={p}/*/config.toml"):
            assert f"\nlr = {best:g}\n" in trial.read_text()
    assert len(trials(out)) == 4
    before = state(out)
    compare(text, out, *TUNE)  # nothing is left to do
    assert {k: v for k, v in before.items() if "trials/" in k} == {k: v for k, v in state(out).items() if "trials/" in k}
    report = json.loads(run("report", out, "--json").stdout)
    assert report["tuning"]["trials"] == len(tuning) and report["tuning"]["cpu_seconds"] > 0
    assert "How was each variant tuned?" in (out / "report.html").read_text()
    assert (out / "charts" / "tuning.svg").exists()


def test_tuning_resumes_where_it_was_killed(text, tmp_path):
    calm, disturbed = tmp_path / "calm", tmp_path / "disturbed"
    compare(text, calm, *TUNE)
    study = start(*arguments(text, disturbed, *TUNE))
    wait_for(lambda: len(list(disturbed.glob("tuning/trials/*/*/trial.json"))) >= 2)
    study.kill()
    study.communicate()
    assert "tuning" in run("trial", disturbed, 1, check=USAGE).stderr
    compare(text, disturbed, *TUNE)
    assert results(disturbed) == results(calm)
    assert results(disturbed / "tuning") == results(calm / "tuning")
