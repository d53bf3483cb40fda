"""The program itself, run as a user runs it."""
import json
import os
import pathlib
import random
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("NORMLAB_BINARY", ROOT / "build" / "normlab"))

# Small enough for a step to take milliseconds.
TINY = ["model.n_layers=2", "model.n_heads=2", "model.d_model=16", "model.seq_len=16", "train.batch_size=4",
        "train.max_steps=20", "train.eval_every=10", "train.log_every=1", "optim.warmup_steps=2"]


def run(*arguments, check=None, **options):
    """Runs the program; with `check`, the exit code must be that."""
    # pytest's workers set COLUMNS, and output would be wrapped.
    environment = {**{name: value for name, value in os.environ.items() if name != "COLUMNS"}, **options.pop("env", {})}
    done = subprocess.run([str(BINARY), *map(str, arguments)], capture_output=True, text=True, timeout=600,
                          env=environment, **options)
    if check is not None:
        assert done.returncode == check, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def complaints(done):
    """Lines of standard error, without the one that says which text is read."""
    return [line for line in done.stderr.strip().splitlines() if not line.startswith("reading ")]


def train(text, out, *settings, check=0, extra=()):
    """A tiny training run; later settings override TINY."""
    done = run("train", "--data", text, "--out", out, "--json", "--threads", 1, *extra, "--set", *TINY, *settings,
               check=check)
    return json.loads(done.stdout) if check == 0 else done


def metrics(folder, timeless=True):
    """Rows of metrics.jsonl, without the values that are times."""
    times = {"train_seconds", "train_cpu_seconds", "tokens_per_second"} if timeless else set()
    with open(folder / "metrics.jsonl") as lines:
        return [{k: v for k, v in json.loads(line).items() if k not in times} for line in lines]


def weights(folder, file="model.safetensors"):
    """Tensors of the latest checkpoint, read by the original library."""
    from safetensors.numpy import load_file
    return load_file(folder / "checkpoints" / "latest" / file)


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    """Some text with structure to learn."""
    words = "the king spoke to his men and they went home in silence while night fell over a cold land".split()
    draw = random.Random(5)
    path = tmp_path_factory.mktemp("data") / "text.txt"
    path.write_text("\n".join(" ".join(draw.choices(words, k=9)).capitalize() + "." for _ in range(400)))
    return path
