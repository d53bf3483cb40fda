"""JSONL, token files and texts that are not held in memory: the losses of memory, and what is refused."""
import json
import os
import struct

import pytest
from conftest import metrics, run, train, weights

SHORT = ["train.max_steps=4", "train.eval_every=2"]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "normlab" / "tokens"


def entries(cache):
    return [path for path in cache.iterdir() if path.is_dir()]


def same_run(one, other):
    a, b = weights(one), weights(other)
    return metrics(one) == metrics(other) and all((a[name] == b[name]).all() for name in a)


@pytest.fixture
def tokenizer(text, tmp_path):
    run("bpe", "learn", "--bytes", "--input", text, "--operations", 60, "--codes", tmp_path / "tokenizer.json", check=0)
    return tmp_path / "tokenizer.json"


def token_files(text, tokenizer, folder):
    """train.bin and val.bin as nanoGPT writes them: nine tenths and the rest of the tokens."""
    ids = [int(word) for word in run("bpe", "encode", "--whole", "-t", tokenizer, "-i", text, check=0).stdout.split()]
    folder.mkdir()
    cut = len(ids) // 10 * 9 + len(ids) % 10 * 9 // 10
    for name, part in (("train.bin", ids[:cut]), ("val.bin", ids[cut:])):
        (folder / name).write_bytes(struct.pack(f"<{len(part)}H", *part))
    return folder


def test_a_text_in_the_cache_trains_as_one_in_memory(text, tokenizer, own_cache, tmp_path):
    for name, settings in {"byte": ["data.tokenizer=byte"],
                           "subword": ["data.tokenizer=subword", f"data.tokenizer_file={tokenizer}"]}.items():
        train(text, tmp_path / name, *SHORT, *settings)
        train(text, tmp_path / f"{name}-cached", *SHORT, *settings, "data.memory_mb=0")
        assert same_run(tmp_path / name, tmp_path / f"{name}-cached")
    assert len(entries(own_cache)) == 2
    held, cached = (json.loads(run("eval", tmp_path / run_name, "--json", check=0).stdout)
                    for run_name in ("subword", "subword-cached"))
    assert {k: v for k, v in held.items() if k != "checkpoint"} == {k: v for k, v in cached.items() if k != "checkpoint"}
    run("train", tmp_path / "subword-cached", "--resume", "--set", "train.max_steps=6", "data.memory_mb=64", check=0)
    run("train", tmp_path / "subword", "--resume", "--set", "train.max_steps=6", check=0)
    assert same_run(tmp_path / "subword", tmp_path / "subword-cached")


def test_token_files_train_as_their_text(text, tokenizer, tmp_path):
    folder = token_files(text, tokenizer, tmp_path / "ids")
    subword = ["data.tokenizer=subword", f"data.tokenizer_file={tokenizer}"]
    train(text, tmp_path / "text", *SHORT, *subword)
    train(folder, tmp_path / "files", *SHORT, *subword)
    assert same_run(tmp_path / "text", tmp_path / "files")  # fold 9 of 10 is that split

    train(folder, tmp_path / "alone", *SHORT)  # without a tokenizer
    assert all("val_bits_per_byte" not in row for row in metrics(tmp_path / "alone"))
    numbers = run("generate", tmp_path / "alone", "--prompt", "5 6", "--tokens", 5, check=0).stdout.split()
    assert len(numbers) >= 5 and all(word.isdigit() for word in numbers)
    assert "bits_per_byte" not in json.loads(run("eval", tmp_path / "alone", "--json", check=0).stdout)
    run("train", tmp_path / "alone", "--resume", "--set", "train.max_steps=6", check=0)

    refused = train(folder, tmp_path / "fold", "data.fold=3", check=2)
    assert "data.fold" in refused.stderr and "val.bin" in refused.stderr
    refused = train(folder, tmp_path / "small", "data.vocab_size=7", check=3)
    assert "has the token" in refused.stderr and not (tmp_path / "small").exists()
    refused = run("generate", tmp_path / "alone", "--prompt", "the king")
    assert refused.returncode == 3 and "'the'" in refused.stderr


def test_trials_of_a_study_share_one_entry(text, own_cache, tmp_path):
    run("compare", "--data", text, "--out", tmp_path / "study", "--jobs", 2, "--set", "norm.scheme=[none,qknorm]",
        "data.fold=[8,9]", "model.n_layers=1", "model.n_heads=2", "model.d_model=16", "model.seq_len=16",
        "train.batch_size=4", "train.max_steps=4", "train.eval_every=0", "train.threads=1", "data.memory_mb=0", check=0)
    assert len(entries(own_cache)) == 1


@pytest.mark.parametrize("name, content, message", [
    ("bad.jsonl", b'{"text": "a"}\nnothing\n', "line 2 is not JSON"),
    ("field.jsonl", b'{"body": "a"}\n', 'line 1 has no "text"; it has "body"'),
    ("type.jsonl", b'{"text": ["a"]}\n', 'line 1: "text" is a JSON array'),
    ("nul.jsonl", b'{"text": "a\\u0000"}\n', "line 1"),
    ("deep.jsonl", b"[" * 100_000, "line 1 is not JSON"),
    ("cut.bin", b"abc", "odd number"),
    ("empty.bin", b"", "is empty"),
    ("text.gz", b"\x1f\x8b\x08\x00\x00", "gunzip"),
])
@pytest.mark.parametrize("memory", [0, 64])
def test_what_cannot_be_read_is_refused(name, content, message, memory, tmp_path):
    (tmp_path / name).write_bytes(content)
    done = train(tmp_path / name, tmp_path / "run", f"data.memory_mb={memory}", check=3)
    assert message in done.stderr and name in done.stderr and not (tmp_path / "run").exists()


def test_a_pipe_is_refused(tmp_path):
    for name in ("pipe.jsonl", "pipe.bin"):
        os.mkfifo(tmp_path / name)
        assert "not a regular file" in train(tmp_path / name, tmp_path / "run", check=3).stderr
