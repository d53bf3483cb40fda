"""Stopped and killed runs go on bit for bit."""
import json
import random
import signal
import subprocess
import time

import pytest
from conftest import BINARY, TINY, metrics, run, train, weights

SETTINGS = ["model.dropout=0.1", "norm.scheme=lp", "train.max_steps=60", "train.eval_every=10", "train.save_every=5",
            "train.keep_last=2"]


def start(text, out, *settings):
    command = [str(BINARY), "train", "--data", str(text), "--out", str(out), "--resume", "--threads", "1", "-q",
               "--set", *TINY, *SETTINGS, *settings]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def expect_same(a, b):
    assert metrics(a) == metrics(b)
    for file in ["model.safetensors", "optimizer.safetensors"]:
        x, y = weights(a, file), weights(b, file)
        assert x.keys() == y.keys() and all((x[k] == y[k]).all() for k in x)


def test_stopping_and_going_on_changes_nothing(text, tmp_path):
    train(text, tmp_path / "whole", *SETTINGS)
    for stop in [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1]:
        out = tmp_path / stop.name
        process = start(text, out)
        while not (out / "metrics.jsonl").exists() or len(metrics(out)) < 20:
            time.sleep(0.005)
        process.send_signal(stop)
        assert process.wait(60) == 75, process.stderr.read()
        assert metrics(out)[-1]["step"] < 60
        assert run("train", "--resume", "--out", out, check=0)
        expect_same(tmp_path / "whole", out)


@pytest.mark.parametrize("scheme, optimizer", [
    ("ngpt", "adamw"), ("angpt", "adamw"), ("sigma-reparam", "adamw"), ("qk-clip", "adamw"),
    ("none", "muon"), ("ngpt", "muon"), ("angpt", "muon"), ("qk-clip", "muon")])
def test_what_a_scheme_and_an_optimiser_remember_is_in_the_checkpoint(text, tmp_path, scheme, optimizer):
    settings = [f"norm.scheme={scheme}", f"optim.optimizer={optimizer}", "optim.lr=0.01", "optim.decay_steps=12",
                "train.eval_every=6"]
    settings += ["norm.qk_clip=0.001"] if scheme == "qk-clip" else []
    train(text, tmp_path / "whole", *settings, "train.max_steps=12")
    train(text, tmp_path / "parts", *settings, "train.max_steps=6")
    run("train", "--resume", "--out", tmp_path / "parts", "--set", "train.max_steps=12", check=0)
    expect_same(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_killed_at_random_moments(text, tmp_path, optimizer):
    """SIGKILL between steps and inside checkpoint writes, again and again."""
    train(text, tmp_path / "whole", *SETTINGS, f"optim.optimizer={optimizer}")
    draw, out, kills = random.Random(4), tmp_path / "killed", 0
    while True:
        process = start(text, out, f"optim.optimizer={optimizer}")
        try:
            # Longer from time to time: on a busy machine the start alone takes as long.
            assert process.wait(draw.uniform(0.15, 0.9) * (1 + kills / 20)) == 0, process.stderr.read()
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
            for checkpoint in (out / "checkpoints").glob("step-*") if (out / "checkpoints").exists() else []:
                json.loads((checkpoint / "state.json").read_text())
        assert kills < 200
    expect_same(tmp_path / "whole", out)
    leftovers = [p for p in out.rglob("*") if "tmp" in p.name or "staging" in p.name]
    assert not leftovers


def test_killed_inside_a_checkpoint_write(text, tmp_path):
    """strace-free: a save every step makes most of the time checkpoint writing."""
    settings = ["train.save_every=1", "train.max_steps=40"]
    train(text, tmp_path / "whole", *SETTINGS, *settings)
    draw, out = random.Random(8), tmp_path / "killed"
    for _ in range(8):
        process = start(text, out, *settings)
        try:
            process.wait(draw.uniform(0.25, 0.6))
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    assert start(text, out, *settings).wait(120) == 0
    expect_same(tmp_path / "whole", out)


def test_sigusr2_saves_and_goes_on(text, tmp_path):
    out = tmp_path / "run"
    process = start(text, out, "train.save_every=0", "train.eval_every=0", "train.max_steps=400")
    while not (out / "metrics.jsonl").exists() or len(metrics(out)) < 5:
        time.sleep(0.005)
    process.send_signal(signal.SIGUSR2)
    while not list((out / "checkpoints").glob("step-*[1-9]*")):  # that of step 0 is always written
        assert process.poll() is None
        time.sleep(0.005)
    assert process.wait(120) == 0
    assert metrics(out)[-1]["step"] == 400


def test_a_longer_run_goes_on_from_a_finished_one(text, tmp_path):
    train(text, tmp_path / "run")
    run("train", "--resume", "--out", tmp_path / "run", "--set", "train.max_steps=30", check=0)
    assert metrics(tmp_path / "run")[-1]["step"] == 30


def test_another_configuration_is_refused(text, tmp_path):
    train(text, tmp_path / "run")
    before = metrics(tmp_path / "run")
    done = run("train", "--resume", "--out", tmp_path / "run", "--set", "optim.lr=0.5", check=2)
    assert "optim.lr" in done.stderr and metrics(tmp_path / "run") == before
