"""Small runs of the program, for the Python side to read."""
import json
import os
import pathlib
import random
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The package finds it there too; an installed package has its own.
BINARY = pathlib.Path(os.environ.setdefault("NORMLAB_BINARY", str(ROOT / "build" / "normlab")))
LM = ["model.n_layers=2", "model.n_heads=2", "model.d_model=16", "model.seq_len=16", "train.batch_size=4",
      "train.max_steps=20", "train.eval_every=10", "train.log_every=1", "optim.lr=0.01", "optim.warmup_steps=2",
      "data.folds=20"]
TRANSLATOR = ["translation.source=gl", "translation.target=en", "translation.bpe_operations=12",
              "translation.batch_tokens=400", "translation.bleu=none", "translation.test=", "model.n_layers=2",
              "translation.encoder_layers=1", "model.n_heads=2", "model.d_model=16", "model.d_ff=32",
              "model.seq_len=32", "model.bias=true", "optim.lr=0.01", "optim.warmup_steps=2", "train.max_steps=20",
              "train.eval_every=20"]
WORDS = {"o": "the", "can": "dog", "gato": "cat", "ve": "sees", "come": "eats", "mar": "sea", "casa": "house"}


def run(*arguments, check=True, **options):
    done = subprocess.run([str(BINARY), *map(str, arguments)], capture_output=True, text=True, timeout=300, **options)
    assert not check or done.returncode == 0, done.stderr
    return done


def run_json(*arguments):
    return json.loads(run(*arguments, "--json").stdout)


def train(data, out, *settings):
    """A language model of a text, or a translator of a folder of pairs; later settings override earlier ones."""
    tiny = TRANSLATOR if data.is_dir() else LM
    run("train", "--data", data, "--out", out, "--threads", 1, "--set", *tiny, *settings)
    return out


def write_text(path):
    words = "the king spoke to his men and they went home in silence while night fell over a cold land".split()
    draw = random.Random(5)
    path.write_text("\n".join(" ".join(draw.choices(words, k=9)).capitalize() + "." for _ in range(200)))
    return path


def write_pairs(folder):
    for seed, (name, count) in enumerate([("train", 200), ("dev", 20)]):
        draw = random.Random(seed)
        sources = [draw.choices(list(WORDS), k=draw.randint(1, 6)) for _ in range(count)]
        (folder / f"{name}.gl").write_text("".join(" ".join(s) + "\n" for s in sources))
        (folder / f"{name}.en").write_text("".join(" ".join(WORDS[w] for w in s) + "\n" for s in sources))
    return folder
