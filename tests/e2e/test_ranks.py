"""Data-parallel training under mpirun: N ranks compute what one process computes."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from conftest import BINARY, TINY, metrics, run, train, weights
from test_study import arguments as study_arguments
from test_study import compare, results, trials
from test_translate import TINY as TINY_PAIRS
from test_translate import pairs, train_pairs  # noqa: F401, a fixture

STOPPED = 75
HOST = socket.gethostname()
MODULE = BINARY.parent / "normlab-mpi.so"
pytestmark = [
    pytest.mark.skipif(not shutil.which("mpirun"), reason="there is no mpirun: openmpi-bin is not installed"),
    pytest.mark.skipif(not MODULE.exists(), reason="normlab was built without MPI: libopenmpi-dev is not installed"),
]
HUNDRED = ["train.batch_size=8", "train.max_steps=100", "train.eval_every=50", "optim.lr=0.001",
           "model.dropout=0.1"]
PAIRS = ["train.max_steps=100", "train.eval_every=50", "norm.embedding=none", "optim.lr=0.001"]
MUON = ["optim.optimizer=muon"]


START = ["mpirun", *(["--allow-run-as-root"] if os.getuid() == 0 else []), "--oversubscribe"]


def mpirun(ranks, *arguments):
    return [*START, "-n", str(ranks), str(BINARY), *map(str, arguments)]


def mpirun_in(folders, *arguments):
    """One rank in each folder."""
    words = [[":", "-n", "1", "--wdir", str(folder), str(BINARY), *map(str, arguments)] for folder in folders]
    return [*START, *sum(words, [])[1:]]


def arguments(data, out, tiny, settings, *extra):
    return ["train", "--data", data, "--out", out, "--json", "--threads", 1, *extra, "--set", *tiny, *settings]


def on_ranks(ranks, *words, check=0):
    done = subprocess.run(mpirun(ranks, *words), capture_output=True, text=True, timeout=300)
    assert done.returncode == check, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def losses(folder):
    return [row[key] for row in metrics(folder) for key in ("loss", "val_loss") if key in row]


def worst(a, b):
    """The largest relative difference."""
    assert len(a) == len(b) >= 100
    return max(abs(x - y) / abs(y) for x, y in zip(a, b))


# Sums of float32 in another order differ by 1e-7 per step, and training amplifies that.
@pytest.mark.parametrize("ranks, scheme, optimiser", [
    (2, "none", []), (4, "none", MUON), (4, "lp", []), (2, "lp", MUON), (2, "ngpt", []), (4, "ngpt", MUON),
    (4, "angpt", []), (2, "angpt", MUON)], ids=lambda value: "muon" if value == MUON else str(value or "adamw"))
def test_ranks_compute_what_one_process_computes(text, tmp_path, ranks, scheme, optimiser):
    settings = [*HUNDRED, f"norm.scheme={scheme}", *optimiser]
    one, many = tmp_path / "one", tmp_path / "many"
    train(text, one, *settings)
    on_ranks(ranks, *arguments(text, many, TINY, settings))
    assert worst(losses(many), losses(one)) < 1e-5


@pytest.mark.parametrize("ranks, scheme, optimiser", [(2, "lp", []), (4, "none", MUON)], ids=["lp-adamw", "none-muon"])
def test_translators(pairs, tmp_path, ranks, scheme, optimiser):
    settings = [*PAIRS, f"norm.scheme={scheme}", *optimiser]
    one, many = tmp_path / "one", tmp_path / "many"
    expected = train_pairs(pairs, one, *settings)
    done = json.loads(on_ranks(ranks, *arguments(pairs, many, TINY_PAIRS, settings)).stdout)
    assert worst(losses(many), losses(one)) < 1e-5
    assert done["test_bleu"] == expected["test_bleu"]
    assert (many / "translations/test.en").read_text() == (one / "translations/test.en").read_text()


def test_same_bits_again_and_many_buckets(text, tmp_path):
    """A model of several buckets of gradients, which are summed while others are computed."""
    wide = ["model.d_model=256", "model.n_layers=3", "model.seq_len=32", "train.max_steps=6", "train.eval_every=3",
            "train.batch_size=5", "norm.scheme=lp", "probe.every=3"]
    train(text, tmp_path / "one", *wide)
    for name in ("a", "b"):
        on_ranks(2, *arguments(text, tmp_path / name, TINY, wide))
    a, b, one = (weights(tmp_path / name) for name in ("a", "b", "one"))
    assert all((a[name] == b[name]).all() for name in a)
    assert metrics(tmp_path / "a") == metrics(tmp_path / "b")
    assert max(abs(a[name] - one[name]).max() for name in a) < 1e-4
    assert [sorted(row) for row in metrics(tmp_path / "a")] == [sorted(row) for row in metrics(tmp_path / "one")]


def test_any_rank_stops_all_and_another_number_resumes(text, tmp_path):
    settings = ["train.max_steps=2000", "train.eval_every=1000", "train.batch_size=8", "train.save_every=0"]
    out = tmp_path / "run"
    process = subprocess.Popen(mpirun(3, *arguments(text, out, TINY, settings, "--quiet")), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    wait_for_step(out, 20)
    os.kill(rank_pid(process.pid, 2), signal.SIGUSR1)
    _, said = process.communicate(timeout=60)
    assert process.returncode == STOPPED, said
    stopped = json.loads((out / "checkpoints/latest/state.json").read_text())["step"]
    assert 20 <= stopped < 2000 and f"stopped at step {stopped}" in said
    on_ranks(2, "train", out, "--resume", "--quiet", "--set", f"train.max_steps={stopped + 10}")
    assert [row["step"] for row in metrics(out) if "loss" in row] == list(range(1, stopped + 11))
    run("train", out, "--resume", "--quiet", "--set", f"train.max_steps={stopped + 20}", check=0)


def rank_pid(parent, rank):
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = dict(word.split(b"=", 1) for word in (entry / "environ").read_bytes().split(b"\0") if b"=" in word)
            mother = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            continue
        if mother == parent and words.get(b"OMPI_COMM_WORLD_RANK") == str(rank).encode():
            return int(entry.name)
    raise AssertionError("no such rank")


def max_step(out):
    path = out / "metrics.jsonl"
    return max((row["step"] for row in metrics(out)), default=0) if path.exists() else 0


def wait_for_step(out, step):
    end = time.time() + 60
    while max_step(out) < step:
        assert time.time() < end
        time.sleep(0.05)


@pytest.mark.parametrize("how, words", [(signal.SIGKILL, ["rank 1", f"on node {HOST}", "signal 9"]),
                                        (signal.SIGSTOP, [f"rank 1 on {HOST} has not been heard"])], ids=["killed", "stopped"])
def test_a_dying_rank_ends_the_job_and_it_continues(text, tmp_path, how, words):
    out = tmp_path / "run"
    settings = ["train.max_steps=100000", "train.eval_every=50000", "train.save_every=10"]
    process = subprocess.Popen(mpirun(2, *arguments(text, out, TINY, settings, "--quiet")), stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    wait_for_step(out, 25)
    victim = rank_pid(process.pid, 1)
    os.kill(victim, how)
    start = time.time()
    said = process.communicate(timeout=60)[1]
    assert process.returncode not in (0, STOPPED) and time.time() - start < 10
    assert all(word in said for word in words), said
    step = max(int(path.name.split("-")[1]) for path in out.glob("checkpoints/step-*"))
    assert step >= 10
    on_ranks(2, "train", out, "--resume", "--quiet", "--set", f"train.max_steps={step + 30}", "train.eval_every=50000")
    assert [row["step"] for row in metrics(out) if "loss" in row] == list(range(1, step + 31))


def test_a_rank_that_fails_ends_the_job(text, tmp_path):
    """Only the first machine has the text."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir(), there.mkdir()
    shutil.copy(text, here / "text.txt")
    done = subprocess.run(mpirun_in([here, there], *arguments("text.txt", tmp_path / "run", TINY, [], "--quiet")),
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 3, done.stderr
    assert f"error [rank 1 of 2 on {HOST}] " in done.stderr and "text.txt" in done.stderr


def test_ranks_whose_weights_differ_are_named(text, tmp_path):
    """Machines with different weights under the same name."""
    folders = [tmp_path / "a", tmp_path / "b", tmp_path / "a"]
    for seed, folder in enumerate(folders[:2]):
        folder.mkdir()
        train(text, folder / "start", "train.max_steps=0", f"train.seed={seed}")
    out = tmp_path / "run"
    settings = ["train.start=start", "train.max_steps=300", "train.eval_every=0", "train.save_every=50"]
    done = subprocess.run(mpirun_in(folders, *arguments(text, out, TINY, settings, "--quiet")), capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    assert f"after step 100 the weights of rank 1 on {HOST} differ from those of rank 0 on {HOST}" in done.stderr
    assert sorted(path.name for path in out.glob("checkpoints/step-*"))[-1].endswith("50")


def test_a_slow_rank_is_reported(text, tmp_path):
    # Large enough for a step to be computation rather than waiting.
    settings = ["train.max_steps=105", "train.eval_every=0", "train.batch_size=6", "model.d_model=128",
                "model.seq_len=64", "train.eval_windows=1"]
    process = subprocess.Popen(mpirun(3, *arguments(text, tmp_path / "run", TINY, settings, "--quiet")),
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for_step(tmp_path / "run", 1)
    slow = rank_pid(process.pid, 1)
    while process.poll() is None and max_step(tmp_path / "run") < 101:
        os.kill(slow, signal.SIGSTOP)
        time.sleep(0.04)
        os.kill(slow, signal.SIGCONT)
        time.sleep(0.01)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 0, said
    times = re.findall(rf"rank 1 on {HOST} is slow: its part of a step takes ([0-9.]+) times the median", said)
    assert times and all(float(each) > 1.5 for each in times), said


SHORT = ["train.batch_size=8", "train.max_steps=12", "train.eval_every=6", "optim.lr=0.001", "model.dropout=0.1"]


@pytest.mark.parametrize("settings", [["norm.scheme=ngpt"], ["norm.scheme=lp", *MUON],
                                      ["norm.scheme=lp", "model.kernels=composite"]], ids=["adamw", "muon", "composite"])
def test_shards_of_the_optimiser(text, tmp_path, settings):
    """The same bits as without, also resumed on other numbers of ranks."""
    whole, shards = tmp_path / "whole", tmp_path / "shards"
    settings = [*SHORT, *settings]
    on_ranks(3, *arguments(text, whole, TINY, settings))
    on_ranks(3, *arguments(text, shards, TINY, settings, "--shard"))
    assert same_bits(shards, whole)
    for steps, ranks in ((18, 2), (24, 1)):
        more = ["--resume", "--quiet", "--set", f"train.max_steps={steps}"]
        if ranks == 1:
            run("train", whole, *more, check=0), run("train", shards, *more, check=0)
        else:
            on_ranks(ranks, "train", whole, *more), on_ranks(ranks, "train", shards, "--shard", *more)
        assert same_bits(shards, whole)
    assert metrics(shards) == metrics(whole)


def same_bits(a, b):
    files = ("model.safetensors", "optimizer.safetensors")
    return all((weights(a, file)[name] == tensor).all() for file in files for name, tensor in weights(b, file).items())


def test_shards_of_one_process_are_refused(text, tmp_path):
    done = run("train", "--data", text, "--out", tmp_path / "run", "--shard", check=2)
    assert "[--shard] this is one process" in done.stderr and not (tmp_path / "run").exists()


@pytest.mark.parametrize("ranks, rows", [(2, 8), (3, 2)], ids=["rows", "fewer-rows-than-ranks"])
def test_probes_see_all_ranks(text, tmp_path, ranks, rows):
    settings = [*SHORT, f"train.batch_size={rows}", "norm.scheme=lp", "probe.every=4"]
    one, many, unseen = tmp_path / "one", tmp_path / "many", tmp_path / "unseen"
    train(text, one, *settings)
    on_ranks(ranks, *arguments(text, many, TINY, settings))
    on_ranks(ranks, *arguments(text, unseen, TINY, [*settings, "probe.every=0"]))
    assert same_bits(many, unseen)
    probed, expected = ([row for row in metrics(folder) if "loss" not in row and "val_loss" not in row]
                        for folder in (many, one))
    assert [row["step"] for row in probed] == [4, 8, 12] and len(probed[0]) > 50
    for row, wanted in zip(probed, expected):
        assert list(row) == list(wanted)
        assert list(row.values()) == pytest.approx(list(wanted.values()), rel=1e-4, abs=1e-7)


def test_what_is_hidden_is_reported(text, tmp_path):
    done = on_ranks(2, *arguments(text, tmp_path / "run", TINY, SHORT))
    summary = json.loads(done.stdout)
    assert summary["ranks"] == 2 and summary["gradient_bytes"] == 4 * summary["parameters"]
    assert summary["sum_seconds"] > 0 and 0 <= summary["hidden_share"] <= 1
    assert re.search(r"sums over 2 ranks: \S+B and \S+ ms a step, \d+ % of it while gradients were computed", done.stderr)


def test_bench_ranks(tmp_path):
    recipe = tmp_path / "tiny.toml"
    recipe.write_text("[model]\nn_layers = 2\nn_heads = 2\nd_model = 32\nseq_len = 16\n[train]\nbatch_size = 8\n")
    got = json.loads(on_ranks(2, "bench", "ranks", "--config", recipe, "--repeat", 2, "--json").stdout)
    assert got["ranks"] == 2 and 0 <= got["hidden_share"] <= 1 and got["step_seconds"] > 0
    assert [row["ranks"] for row in got["projection"]] == [2 ** i for i in range(11)]
    assert got["projection"][1]["sums"] == pytest.approx(1e3 * got["sum_seconds"])
    alone = json.loads(run("bench", "ranks", "--config", recipe, "--repeat", 1, "--bandwidth", 1.25e8, "--latency", 5e-5,
                           "--json", check=0).stdout)
    steps = [row["efficiency"] for row in alone["projection"]]
    assert steps[0] == 100 and steps == sorted(steps, reverse=True) and alone["bandwidth"] == 1.25e8
    assert "Start several with mpirun" in run("bench", "ranks", "--config", recipe, check=2).stderr
    refused = on_ranks(3, "bench", "ranks", "--config", recipe, check=2)
    assert "expected a multiple of 3" in refused.stderr


def test_a_mistake_is_reported_once(tmp_path):
    done = on_ranks(3, "train", "--data", tmp_path / "missing.txt", "--out", tmp_path / "run", check=3)
    assert re.findall(r"error \[rank (\d) of 3 on ", done.stderr) == ["0"]
    assert not (tmp_path / "run").exists()


def test_a_study_on_ranks(text, tmp_path):
    out, whole = tmp_path / "study", tmp_path / "whole"
    said = on_ranks(2, *study_arguments(text, out, "data.fold=0")).stderr
    assert "2 in parallel, one per rank" in said and len(re.findall(r"^trial \d .* finished", said, re.M)) == 2, said
    compare(text, whole, "data.fold=0")
    assert len(trials(out)) == 2 and results(out) == results(whole) and (out / "report.html").exists()
