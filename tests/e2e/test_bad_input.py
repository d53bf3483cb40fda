"""One clear line, the right exit code, nothing lost or overwritten."""
import json
import resource
import subprocess
import time

import pytest
from conftest import BINARY, ROOT, TINY, run, train

USAGE, DATA = 2, 3


@pytest.mark.parametrize("settings, expected", [
    (["model.d_modle=32"], "Did you mean 'model.d_model'?"),
    (["norm.scheme=lpp"], "Did you mean 'lp'?"),
    (["norm.p=0"], "above 0"),
    (["norm.p=-1"], "above 0"),
    (["norm.p=two"], "norm.p"),
    (["model.n_heads=3"], "multiple of model.n_heads"),
    (["model.n_kv_heads=3"], "divisor"),
    (["data.fold=10"], "data.fold"),
    (["data.folds=1"], "data.folds"),
    (["optim.min_lr=1"], "optim.min_lr"),
    (["model.activation=tanh"], "one of gelu, gelu_tanh, relu, swiglu, geglu"),
    (["train.max_steps=1e3"], "whole number"),
    (["train.max_steps"], "key=value"),
    (["norm.p=[1, 2]"], "studies"),
    (["norm.scheme=lp", "norm.learn_p=true", "norm.p=1"], "above 1"),
    (["model.positions=rope", "model.d_head=3"], "odd"),
])
def test_wrong_settings(text, tmp_path, settings, expected):
    done = train(text, tmp_path / "run", *settings, check=USAGE)
    assert expected in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("content, expected", [
    (None, "no such file"), (b"", "empty"), (b"ab\x00cd" * 999, "NUL"), (b"ab\xff\xfe" * 999, "UTF-8"), (b"short", "window"),
])
def test_wrong_data(tmp_path, content, expected):
    path = tmp_path / "data.txt"
    if content is not None:
        path.write_bytes(content)
    done = run("train", "--data", path, "--out", tmp_path / "run", "--set", *TINY)
    assert done.returncode in (USAGE, DATA) and expected.lower() in done.stderr.lower(), done.stderr
    assert not (tmp_path / "run" / "checkpoints").exists() or not list((tmp_path / "run" / "checkpoints").iterdir())


@pytest.mark.parametrize("arguments", [[], ["trian"], ["train", "--no-such-option"], ["eval"], ["generate"]])
def test_wrong_command_lines(arguments):
    done = run(*arguments, check=USAGE)
    assert "--help" in done.stderr


def test_config_files(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text("[model]\nn_layers = = 3\n")
    assert "bad.toml:2" in run("config", "check", "--config", path, check=USAGE).stderr
    path.write_text("[model]\nn_layer = 3\n")
    assert "model.n_layers" in run("config", "check", "--config", path, check=USAGE).stderr
    assert run("config", "check", "--config", tmp_path / "none.toml").returncode in (USAGE, DATA)


def test_a_folder_with_another_run_is_left_alone(text, tmp_path):
    train(text, tmp_path / "run")
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "run").rglob("*") if p.is_file()}
    done = train(text, tmp_path / "run", check=USAGE)
    assert "--resume" in done.stderr
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "run").rglob("*") if p.is_file()}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("precious")
    train(text, tmp_path / "other", check=USAGE)
    assert [p.name for p in (tmp_path / "other").iterdir()] == ["thesis.tex"]


def test_two_processes_on_one_run(text, tmp_path):
    out = tmp_path / "run"
    first = subprocess.Popen([str(BINARY), "train", "--data", str(text), "--out", str(out), "-q", "--set", *TINY,
                              "train.max_steps=100000", "train.eval_every=0"], stderr=subprocess.PIPE)
    while not (out / "metrics.jsonl").exists():
        assert first.poll() is None, first.stderr.read()
        time.sleep(0.01)
    done = run("train", "--resume", "--out", out, check=1)
    first.terminate()
    assert first.wait(60) == 75
    assert str(first.pid) in done.stderr


def test_another_vocabulary_at_resume(text, tmp_path):
    own = tmp_path / "text.txt"
    own.write_text(text.read_text())
    train(own, tmp_path / "run")
    own.write_text(text.read_text() + "\u00e9\u00e8")
    done = run("train", "--resume", "--out", tmp_path / "run", "--set", "train.max_steps=30", check=DATA)
    assert "vocabulary" in done.stderr
    own.write_text(text.read_text()[:-1])
    done = run("train", "--resume", "--out", tmp_path / "run", "--set", "train.max_steps=30", check=DATA)
    assert "has changed" in done.stderr


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.safetensors", "state.json", "tokenizer.json"])
@pytest.mark.parametrize("damage", ["truncate", "garbage", "empty", "missing"])
def test_damaged_checkpoints(text, tmp_path, file, damage):
    train(text, tmp_path / "run")
    path = tmp_path / "run" / "checkpoints" / "latest" / file
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"truncate": content[:len(content) // 2], "garbage": b"\xa5" * len(content), "empty": b""}[damage])
    assert run("eval", path.parent).returncode == (0 if (damage, file) == ("missing", "optimizer.safetensors") else DATA)
    done = run("train", "--resume", "--out", tmp_path / "run", "--set", "train.max_steps=30", check=0)
    assert "damaged-step-" in done.stderr and "[internal]" not in done.stderr, done.stderr
    assert len(list((tmp_path / "run" / "checkpoints").glob("damaged-step-*"))) == 1


def test_a_checkpoint_of_another_model(text, tmp_path):
    train(text, tmp_path / "a")
    train(text, tmp_path / "b", "model.d_model=32")
    source = tmp_path / "a" / "checkpoints" / "latest" / "model.safetensors"
    target = tmp_path / "b" / "checkpoints" / "latest" / "model.safetensors"
    target.write_bytes(source.read_bytes())
    assert "another model" in run("eval", tmp_path / "b", check=DATA).stderr
    assert run("eval", text.parent).returncode == DATA


def test_a_full_disk_loses_nothing(text, tmp_path):
    out = tmp_path / "run"
    train(text, out)
    before = (out / "checkpoints" / "latest" / "model.safetensors").read_bytes()
    limit = len(before) // 2
    done = subprocess.run([str(BINARY), "train", "--resume", "--out", str(out), "--set", "train.max_steps=40"],
                          capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert done.returncode == 1 and len(done.stderr.strip().splitlines()) <= 4, done.stderr
    assert (out / "checkpoints" / "latest" / "model.safetensors").read_bytes() == before
    run("train", "--resume", "--out", out, "--set", "train.max_steps=40", check=0)


def test_unwritable_output(text, tmp_path):
    (tmp_path / "file").write_text("")
    assert train(text, tmp_path / "file" / "run", check=None or 1).returncode == 1


def test_unknown_characters_in_a_prompt(text, tmp_path):
    train(text, tmp_path / "run")
    assert "U+" in run("generate", tmp_path / "run", "--prompt", "\u4e2d", check=DATA).stderr


def test_decimal_commas_change_nothing(text, tmp_path):
    train(text, tmp_path / "run", "optim.lr=0.0015")
    assert "lr = 0.0015" in (tmp_path / "run" / "config.toml").read_text()
    done = run("config", "print", "--set", "optim.lr=0.0015", env={"LC_ALL": "de_DE.UTF-8"}, check=0)
    assert "lr = 0.0015" in done.stdout


def test_verify_tells_good_from_bad(tmp_path):
    reference = ROOT / "tests/reference/nanogpt-bias.safetensors"
    content = bytearray(reference.read_bytes())
    content[-5] ^= 0x40
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(content)
    done = run("verify", reference, bad, check=DATA)
    assert done.stdout.strip().endswith("1 passed, 1 failed")
    bad.write_bytes(content[:1000])
    assert "0 passed, 1 failed" in run("verify", bad, check=DATA).stdout


def test_a_loss_that_is_not_finite_at_the_last_step_is_divergence(text, tmp_path):
    done = train(text, tmp_path / "run", "optim.lr=1e30", "optim.clip=0", "optim.warmup_steps=0", "train.max_steps=1",
                 check=4)
    assert "not finite" in done.stderr


def test_a_text_that_is_too_short_leaves_no_folder(tmp_path):
    (tmp_path / "short.txt").write_text("short")
    run("train", "--data", tmp_path / "short.txt", "--out", tmp_path / "run", "--set", *TINY, check=DATA)
    assert not (tmp_path / "run").exists()


def test_json_output_is_always_valid(text, tmp_path):
    train(text, tmp_path / "run", "data.tokenizer=byte")
    done = subprocess.run([str(BINARY), "generate", str(tmp_path / "run"), "--json", "--tokens", "3", "--prompt", b"\xff\xfe"],
                          capture_output=True)
    assert done.returncode == 0 and "text" in json.loads(done.stdout), done.stderr
