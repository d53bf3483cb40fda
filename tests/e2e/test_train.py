"""A run on disk: what it holds, and that others can read it."""
import json
import math

import pytest
import tomllib
from conftest import ROOT, metrics, run, train, weights


def test_a_run_holds_what_it_promises(text, tmp_path):
    out = tmp_path / "run"
    summary = train(text, out)
    assert summary["outcome"] == "finished" and summary["step"] == 20
    rows = metrics(out, timeless=False)
    assert [r["step"] for r in rows if "loss" in r] == list(range(1, 21))
    assert [r["step"] for r in rows if "val_loss" in r] == [0, 10, 20]
    assert rows[-1]["val_loss"] == summary["val_loss"] < rows[0]["val_loss"]
    assert rows[-1]["val_bits_per_byte"] == pytest.approx(summary["val_loss"] / math.log(2))
    config = tomllib.loads((out / "config.toml").read_text())
    assert config["model"]["d_head"] == 8 and config["optim"]["decay_steps"] == 20
    manifest = json.loads((out / "manifest.json").read_text())
    assert "train" in json.dumps(manifest)
    latest = out / "checkpoints" / "latest"
    assert latest.resolve().name == "step-000020"
    assert sorted(p.name for p in latest.iterdir()) == [
        "SHA256SUMS", "config.toml", "model.safetensors", "optimizer.safetensors", "state.json", "tokenizer.json"]
    assert (out / "checkpoints" / "best").exists()


@pytest.mark.parametrize("tokenizer", ["char", "byte"])
@pytest.mark.parametrize("windows", [0, 3])
def test_bits_are_those_of_the_text_that_is_evaluated(tmp_path, tokenizer, windows):
    """German, then Vietnamese with its many bytes per character; the last fold holds out Vietnamese only."""
    german = "Ein Mann fährt mit dem Rad durch die Straße und hört Musik. " * 60
    vietnamese = "Một người đàn ông đi xe đạp qua phố và nghe nhạc ở đó. " * 60
    path = tmp_path / "text.txt"
    path.write_text(german + vietnamese)
    train(path, tmp_path / "run", f"data.tokenizer={tokenizer}", "data.folds=10", "data.fold=9",
          f"train.eval_windows={windows}")
    found = json.loads(run("eval", tmp_path / "run", "--json", "--windows", windows, check=0).stdout)
    file = path.read_bytes()
    units = [bytes([each]) for each in file] if tokenizer == "byte" else [c.encode() for c in file.decode()]
    held_out = units[9 * len(units) // 10:]
    whole = (len(held_out) - 1) // 16
    starts = [(2 * i + 1) * whole // (2 * windows) * 16 for i in range(windows)]
    targets = sum((held_out[at + 1:at + 17] for at in starts), []) if windows else held_out[1:]
    assert found["tokens"] == len(targets)
    bits = found["loss"] / math.log(2) * len(targets)
    last = metrics(tmp_path / "run")[-1]
    assert last["val_bits_per_byte"] == pytest.approx(found["bits_per_byte"])
    assert last["val_bits_per_character"] == pytest.approx(found["bits_per_character"])
    if tokenizer == "char":
        assert found["bits_per_character"] == pytest.approx(bits / len(targets))
    elif not windows:  # the first target may be the middle of a character
        characters = len(b"".join(targets).decode(errors="ignore"))
        assert found["bits_per_character"] == pytest.approx(bits / characters, rel=2 / characters)
    assert found["bits_per_byte"] == pytest.approx(bits / len(b"".join(targets)))
    assert found["bytes"] == len(b"".join(targets))


def test_the_same_run_gives_the_same_bits_twice(text, tmp_path):
    for name in "ab":
        train(text, tmp_path / name, "model.dropout=0.2", "norm.scheme=lp")
    assert metrics(tmp_path / "a") == metrics(tmp_path / "b")
    a, b = weights(tmp_path / "a"), weights(tmp_path / "b")
    assert a.keys() == b.keys() and all((a[k] == b[k]).all() for k in a)


def test_tensorboard_reads_the_events(text, tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    out = tmp_path / "run"
    train(text, out)
    events = accumulator.EventAccumulator(str(out)).Reload()
    assert set(events.Tags()["scalars"]) == {"train/loss", "train/grad_norm", "train/lr", "val/loss"}
    losses = [r["loss"] for r in metrics(out) if "loss" in r]
    assert [e.value for e in events.Scalars("train/loss")] == pytest.approx(losses, rel=1e-6)


def test_early_stop(text, tmp_path):
    summary = train(text, tmp_path / "run", "train.early_stop=2", "train.eval_every=1", "optim.lr=0", "optim.min_lr=0")
    assert summary["outcome"] == "stopped_early" and summary["step"] == 2


def test_divergence_stops_with_its_own_code(text, tmp_path):
    done = train(text, tmp_path / "run", "optim.lr=1e30", "optim.min_lr=0", "optim.warmup_steps=0",
                 "optim.clip=0", "train.eval_every=1", check=4)
    assert "not finite" in done.stderr
    assert (tmp_path / "run" / "checkpoints" / "latest" / "model.safetensors").exists()


def test_retention_keeps_the_last_and_the_best(text, tmp_path):
    train(text, tmp_path / "run", "train.eval_every=2", "train.keep_last=3", "train.keep_best=1")
    kept = sorted(p.name for p in (tmp_path / "run" / "checkpoints").glob("step-*"))
    assert kept == ["step-000016", "step-000018", "step-000020"]


def test_eval_and_generate(text, tmp_path):
    out = tmp_path / "run"
    summary = train(text, out)
    report = json.loads(run("eval", out, "--json", check=0).stdout)
    assert report["loss"] == pytest.approx(summary["best_loss"], rel=1e-6)
    other = json.loads(run("eval", out, "--data", text, "--json", check=0).stdout)
    assert other["tokens"] == len(text.read_text()) - 1
    first = run("generate", out, "--prompt", "The", "--tokens", 40, "--seed", 7, check=0).stdout
    assert first.startswith("The") and len(first) == 44
    assert run("generate", out, "--prompt", "The", "--tokens", 40, "--seed", 7, check=0).stdout == first
    assert run("generate", out, "--prompt", "The", "--tokens", 40, "--seed", 8, check=0).stdout != first
    greedy = ["generate", out, "--prompt", "The", "--tokens", 40, "--temperature", 0]
    assert run(*greedy, check=0).stdout == run(*greedy, "--seed", 9, check=0).stdout
    assert run(*greedy[:-2], "--top-k", 1, check=0).stdout == run(*greedy, check=0).stdout
    assert run(*greedy[:-2], "--top-p", 0, check=0).stdout == run(*greedy, check=0).stdout


def test_fused_and_composite_kernels_give_the_same_curve(tmp_path):
    curves = {}
    for kernels in ["fused", "composite"]:
        run("train", "--config", ROOT / "recipes/shakespeare-cpu.toml", "--out", tmp_path / kernels, "--set",
            f"model.kernels={kernels}", "train.max_steps=200", "train.eval_every=50", "train.eval_windows=64", check=0)
        curves[kernels] = [row["val_loss"] for row in metrics(tmp_path / kernels) if "val_loss" in row]
    assert len(curves["fused"]) == 5 and curves["fused"] == pytest.approx(curves["composite"], rel=0.005)


def test_the_cpu_recipe_reaches_its_loss(tmp_path):
    """nanoGPT reports 1.88, from 240 random windows. Over the whole validation part PyTorch itself gives 1.900, 1.915
    and 1.922 for three seeds of this recipe, and we 1.901 to 1.925 for fourteen (docs/verify.md)."""
    found = json.loads(run("doctor", "--json", check=0).stdout)["data tinyshakespeare"]
    try:
        done = run("train", "--config", ROOT / "recipes/shakespeare-cpu.toml", "--out", tmp_path / "run", "--json")
        if done.returncode and "not found" in found:
            pytest.skip(f"Tiny Shakespeare cannot be had here: {done.stderr.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["val_loss"] <= 1.93
    finally:
        print(metrics(tmp_path / "run")[-1])


def test_bfloat16_is_recorded_resumed_and_used(text, tmp_path):
    """A run in bfloat16 resumes bit-exactly, with blocks computed again or not, and other verbs read it."""
    settings = ["train.dtype=bfloat16", "norm.scheme=lp", "model.dropout=0.1", "optim.decay_steps=12",
                "train.eval_every=6"]
    train(text, tmp_path / "whole", *settings, "train.max_steps=12")
    train(text, tmp_path / "parts", *settings, "train.max_steps=6")
    run("train", "--resume", "--out", tmp_path / "parts", "--set", "train.max_steps=12",
        "model.checkpoint_activations=true", check=0)
    assert metrics(tmp_path / "parts") == metrics(tmp_path / "whole")
    first, second = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert all((first[name] == second[name]).all() for name in first)
    assert {tensor.dtype.name for tensor in first.values()} == {"float32"}
    config = tomllib.loads((tmp_path / "parts" / "config.toml").read_text())
    assert (config["train"]["dtype"], config["model"]["kernels"]) == ("bfloat16", "composite")
    sessions = json.loads((tmp_path / "parts" / "manifest.json").read_text())["sessions"]
    assert [session["dtype"] for session in sessions] == ["bfloat16"] * 2
    evaluated = json.loads(run("eval", tmp_path / "whole", "--json", check=0).stdout)
    assert abs(evaluated["loss"] - metrics(tmp_path / "whole")[-1]["val_loss"]) < 1e-3
    assert run("generate", tmp_path / "whole", "--prompt", "the", "--tokens", 20, check=0).stdout


@pytest.mark.parametrize("settings, reason", [
    (["train.dtype=float16"], "float16 is not supported: it ends at 65504"),
    (["train.dtype=bfloat16", "model.kernels=fused"], "train.dtype is bfloat16")])
def test_types_that_are_refused(text, tmp_path, settings, reason):
    done = train(text, tmp_path / "run", *settings, check=2)
    assert reason in done.stderr and not (tmp_path / "run").exists()
