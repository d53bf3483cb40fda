"""Weights that are not finite, files that hold what nobody expects, and too little memory."""
import json
import resource
import shutil
import subprocess

import numpy as np
import pytest
from conftest import BINARY, ROOT, TINY, run, train
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from test_translate import pairs, train_pairs, translate  # noqa: F401 (pairs is a fixture)

FAILED, USAGE, DATA = 1, 2, 3
REFERENCE = ROOT / "tests" / "reference"


def spoil(folder, value):
    """Puts the value into the weights of every checkpoint, as a diverged training of others might."""
    for checkpoint in (folder / "checkpoints").glob("step-*"):
        tensors = load_file(checkpoint / "model.safetensors")
        tensors["embedding.weight"].flat[3] = value
        save_file(tensors, checkpoint / "model.safetensors")
        (checkpoint / "SHA256SUMS").unlink()


@pytest.fixture(scope="module", params=["nan", "-inf"])
def spoiled(request, text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("spoiled") / "run"
    train(text, folder)
    spoil(folder, float(request.param))
    return folder


@pytest.mark.parametrize("verb", ["eval", "generate", "inspect", "export"])
def test_weights_that_are_not_finite_are_refused(spoiled, tmp_path, verb):
    out = tmp_path / "out"
    more = {"inspect": ["--out", out], "export": ["--out", out], "generate": ["--tokens", 3], "eval": []}[verb]
    done = run(verb, spoiled, *more, check=DATA)
    assert "tensor 'embedding.weight' has 1 of " in done.stderr and "--allow-nonfinite" in done.stderr
    assert not done.stdout and not out.exists()
    run(verb, spoiled, *more, "--allow-nonfinite", check=0)
    assert "not finite" in run("check", spoiled, check=DATA).stdout


def test_translators_too(pairs, tmp_path):  # noqa: F811
    train_pairs(pairs, tmp_path / "run", "train.keep_last=2")
    assert translate(tmp_path / "run", "o can\n").returncode == 0
    spoil(tmp_path / "run", float("nan"))
    for more in ([], ["--average", "2"]):
        done = translate(tmp_path / "run", "o can\n", *more)
        assert done.returncode == DATA and b"NaN or infinite" in done.stderr and not done.stdout
        assert translate(tmp_path / "run", "o can\n", *more, "--allow-nonfinite").returncode == 0
    for verb in ("eval", "inspect"):
        assert "NaN or infinite" in run(verb, tmp_path / "run", check=DATA).stderr


def test_they_are_not_imported(text, tmp_path):
    def imported(value, *more):
        change(REFERENCE / "nanogpt-bias.safetensors", tmp_path / "weights.safetensors", {},
               lambda tensors: tensors["weights.transformer.wte.weight"].flat.__setitem__(0, value))
        return run("import", "--from", "nanogpt", tmp_path / "weights.safetensors", "--data", alphabet, "--out",
                   tmp_path / "imported", *more)

    with safe_open(REFERENCE / "nanogpt-bias.safetensors", "numpy") as file:
        size = json.loads(file.metadata()["config"])["vocab_size"]
    alphabet = tmp_path / "alphabet.txt"
    alphabet.write_text("".join(chr(0x100 + i) for i in range(size)) * 20)
    done = imported(float("inf"))
    assert done.returncode == DATA and "NaN or infinite" in done.stderr and not (tmp_path / "imported").exists()
    assert imported(float("inf"), "--allow-nonfinite").returncode == 0
    shutil.rmtree(tmp_path / "imported")
    assert imported(0.5).returncode == 0


def change(source, target, metadata, edit=lambda tensors: None):
    with safe_open(source, "numpy") as file:
        old = file.metadata()
    tensors = {name: tensor.copy() for name, tensor in load_file(source).items()}
    edit(tensors)
    save_file(tensors, target, {**old, **metadata})


def replace(name, value):
    def edit(tensors):
        tensors[name] = value(tensors[name])
    return edit


def configured(source, **values):
    with safe_open(source, "numpy") as file:
        return {"config": json.dumps({**json.loads(file.metadata()["config"]), **values})}


LANGUAGE_MODEL, TRANSLATOR = REFERENCE / "nanogpt-bias.safetensors", REFERENCE / "qknorm-mt.safetensors"
BAD_TENSORS = {
    LANGUAGE_MODEL: {
        "shape of the loss": replace("expect.loss", lambda t: np.zeros(2, np.float32)),
        "shape of the logits": replace("expect.logits", lambda t: t[:, :-1].copy()),
        "no logits": lambda tensors: tensors.pop("expect.logits"),
        "empty logits": replace("expect.logits", lambda t: t[:0].copy()),
        "tokens as fractions": replace("inputs.tokens", lambda t: t.astype(np.float32)),
        "a row of tokens": replace("inputs.tokens", lambda t: t[0].copy()),
        "no tokens": replace("inputs.tokens", lambda t: t[:, :0].copy()),
        "tokens beyond the vocabulary": replace("inputs.tokens", lambda t: t + 10**6),
        "tokens below 0": replace("inputs.tokens", lambda t: t - 10**6),
        "more tokens than positions": replace("inputs.tokens", lambda t: np.tile(t, (1, 5000))),
        "weights that are NaN": replace("weights.transformer.wte.weight", lambda t: t * np.float32("nan")),
        "weights of another shape": replace("weights.transformer.wte.weight", lambda t: t.T.copy()),
        "gradients of another shape": replace("expect.grads.transformer.wte.weight", lambda t: t[:3].copy()),
    },
    TRANSLATOR: {
        "symbols beyond the vocabulary": replace("inputs.src", lambda t: t + 10**6),
        "another number of sentences": replace("inputs.tgt", lambda t: t[:1].copy()),
        "a language that is not there": replace("inputs.src_lang", lambda t: t + 10**6),
        "several languages": replace("inputs.tgt_lang", lambda t: np.zeros(3, np.int64)),
        "another number of words": replace("expect.num_words", lambda t: np.zeros((2, 2), np.float32)),
        "logits of another shape": replace("expect.logits", lambda t: t[:2].copy()),
        "hypotheses of another shape": replace("expect.beam.0.symbols", lambda t: t[0].copy()),
        "fewer hypotheses": replace("expect.beam.0.symbols", lambda t: t[:1].copy()),
    },
}


def test_verify_names_bad_files_and_checks_the_rest(tmp_path):
    bad = []
    for source, edits in BAD_TENSORS.items():
        for name, edit in edits.items():
            bad.append(tmp_path / f"{name}.safetensors")
            change(source, bad[-1], {}, edit)
    for name, metadata in {"heads 0": configured(LANGUAGE_MODEL, n_head=0), "heads -1": configured(LANGUAGE_MODEL, n_head=-1),
                           "heads 2^63": configured(LANGUAGE_MODEL, n_head=2**63),
                           "dropout 3": configured(LANGUAGE_MODEL, dropout=3),
                           "dropout nan": configured(LANGUAGE_MODEL, dropout=float("nan")),
                           "width in words": configured(LANGUAGE_MODEL, n_embd="wide"),
                           "no configuration": {"config": "[" * 300_000}, "another source": {"source": "nobody"},
                           "no optimiser": {"optimizer": "null"}, "endless steps": {"optimizer": "{\"steps\": 1e300}"}}.items():
        bad.append(tmp_path / f"{name}.safetensors")
        change(LANGUAGE_MODEL, bad[-1], metadata)
    for name, content in {"empty": b"", "short": b"\x08", "words": b"not a model" * 100}.items():
        bad.append(tmp_path / f"{name}.safetensors")
        bad[-1].write_bytes(content)
    bad.append(tmp_path / "missing.safetensors")
    done = run("verify", *bad, LANGUAGE_MODEL, check=DATA)
    assert "[internal]" not in done.stdout + done.stderr
    lines = done.stdout.splitlines()
    for path in bad:
        assert any(line.startswith(f"FAILED {path}") for line in lines), f"{path}\n{done.stdout}"
    assert lines[-2:] == [f"passed {LANGUAGE_MODEL}", f"1 passed, {len(bad)} failed"]
    out = json.loads(run("verify", "--json", bad[0], LANGUAGE_MODEL, check=DATA).stdout)
    assert [each["passed"] for each in out["files"]] == [False, True]
    assert "expects [2] values of 'loss'" in out["files"][0]["message"]


HOSTILE_JSON = ["", "null", "[]", "7", "{}", "{\"kind\": 3}", "[" * 300_000, "{\"type\": \"char\", \"characters\": [1, 2]}"]


@pytest.mark.parametrize("file", ["tokenizer.json", "state.json", "config.toml"])
def test_nothing_inside_a_checkpoint_is_an_internal_error(text, tmp_path, file):
    train(text, tmp_path / "run")
    checkpoint = (tmp_path / "run" / "checkpoints" / "latest").resolve()
    (checkpoint / "SHA256SUMS").unlink()
    good = (checkpoint / file).read_text()
    contents = HOSTILE_JSON + [good[:len(good) // 2], good.replace("1", "-1"), good.replace(":", ","),
                               good.replace("[", "[[").replace("]", "]]"), good.replace("= 2", "= 9223372036854775807"),
                               good.replace("\"", "")]
    for content in contents:
        (checkpoint / file).write_text(content)
        done = run("generate", checkpoint, "--tokens", 1)
        same = content == good  # a replacement may have found nothing
        assert done.returncode == 0 if same else done.returncode in (0, USAGE, DATA), (content[:300], done.stderr)
        assert "[internal]" not in done.stderr, (content[:300], done.stderr)


def with_little_memory(*words):
    limit = 6 << 30
    return subprocess.run([str(BINARY), *map(str, words)], capture_output=True, text=True, timeout=120,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))


@pytest.mark.parametrize("settings, purpose", [
    (["model.d_model=32768"], "the model (model.d_model = 32768"),
    (["train.batch_size=1048576", "model.seq_len=1024", "train.eval_every=0"], "a training step (train.batch_size = 1048576)")])
def test_out_of_memory_says_how_much_was_wanted_for_what(text, tmp_path, settings, purpose):
    done = with_little_memory("train", "--data", text, "--out", tmp_path / "run", "-q", "--set", *TINY, *settings)
    assert done.returncode == FAILED, done.stderr
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("error [memory] out of memory: ") and purpose in message and " GB more were wanted" in message


@pytest.mark.parametrize("words", [
    "generate RUN --temperature nan", "generate RUN --top-p nan", "translate RUN --length-penalty nan",
    "translate RUN --temperature nan", "train --set optim.lr=nan", "train --set model.dropout=nan",
    "train --set model.dropout=3", "train --set model.n_heads=0", "train --set model.n_heads=-1", "train --data ",
    "train --set data.source=", "train --set norm.p=nan", "train --set norm.scheme=lp norm.p=nan", "train --set optim.clip=nan",
    "train --set optim.weight_decay=nan", "compare --set optim.lr=[0.1,nan]"])
def test_numbers_that_are_none_are_refused_at_once(tmp_path, words):
    done = run(*[word.replace("RUN", str(tmp_path)) for word in words.split(" ")], cwd=tmp_path)
    assert done.returncode == USAGE and done.stderr.count("\n") == 1 and "[internal]" not in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())
