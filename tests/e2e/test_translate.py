"""Translators: training, going on, translating, and input that nobody expects."""
import json
import random
import shutil
import subprocess

import pytest
from conftest import BINARY, complaints, metrics, run, weights

USAGE, DATA = 2, 3
WORDS = {"o": "the", "can": "dog", "gato": "cat", "ve": "sees", "come": "eats", "mar": "sea", "casa": "house", "e": "and"}
TINY = ["translation.source=gl", "translation.target=en", "translation.bpe_operations=30", "translation.batch_tokens=400",
        "translation.bleu=none", "model.n_layers=1", "model.n_heads=2", "model.d_model=32", "model.d_ff=64",
        "model.seq_len=64", "model.positions=sinusoidal", "model.activation=relu", "model.bias=true", "model.init=small",
        "optim.lr=0.01", "optim.warmup_steps=10", "optim.weight_decay=0", "train.max_steps=40", "train.eval_every=20",
        "train.log_every=1", "norm.scheme=qknorm", "norm.embedding=fixnorm"]


PLATEAU = ["optim.schedule=plateau", "optim.plateau_patience=1", "optim.warmup_steps=0", "optim.lr=0.05", "optim.min_lr=0",
           "train.max_steps=12", "train.eval_every=1", "translation.bleu=char", "translation.test="]


def write_pairs(folder, name, count, seed):
    draw = random.Random(seed)
    sources = [draw.choices(list(WORDS), k=draw.randint(1, 6)) for _ in range(count)]
    (folder / f"{name}.gl").write_text("".join(" ".join(s) + "\n" for s in sources))
    (folder / f"{name}.en").write_text("".join(" ".join(WORDS[w] for w in s) + "\n" for s in sources))


@pytest.fixture(scope="session")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    for seed, (name, count) in enumerate([("train", 400), ("dev", 30), ("test", 20)]):
        write_pairs(folder, name, count, seed)
    return folder


def train_pairs(pairs, out, *settings, check=0, extra=()):
    replaced = "translation.bpe_operations" if any("sentencepiece=" in each for each in settings) else "-"
    tiny = [each for each in TINY if not each.startswith(replaced)]
    done = run("train", "--data", pairs, "--out", out, "--json", "--threads", 1, *extra, "--set", *tiny, *settings,
               check=check)
    return json.loads(done.stdout) if check == 0 else done


@pytest.fixture(scope="session")
def translator(pairs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    summary = train_pairs(pairs, folder, "train.max_steps=160", "train.eval_every=80")
    return folder, summary


def translate(folder, text, *options):
    data = text if isinstance(text, bytes) else text.encode()
    return subprocess.run([str(BINARY), "translate", "--run", str(folder), "--threads", "1", *map(str, options)],
                          input=data, capture_output=True, timeout=300)


def test_it_learns_a_language(translator, pairs):
    folder, summary = translator
    assert summary["outcome"] == "finished"
    assert summary["best_bleu"] > 60 and summary["test_bleu"] > 60  # word for word: easy
    rows = metrics(folder)
    assert [r["step"] for r in rows if "val_bleu" in r] == [80, 160]
    assert rows[-1]["test_bleu"] == summary["test_bleu"]
    kept = (folder / "translations" / "test.en").read_text()
    done = translate(folder, (pairs / "test.gl").read_text())
    assert done.stdout.decode() == kept
    scored = run("score", "--reference", pairs / "test.en", folder / "translations" / "test.en", "--json", check=0,
                 )
    assert json.loads(scored.stdout)


@pytest.mark.parametrize("kernels", ["fused", "composite"])
def test_probes_change_no_bit_of_the_training(pairs, tmp_path, kernels):
    settings = [f"model.kernels={kernels}", "model.dropout=0.1", "train.accumulate=2", "train.max_steps=8",
                "train.eval_every=8"]
    train_pairs(pairs, tmp_path / "plain", *settings)
    train_pairs(pairs, tmp_path / "probed", *settings, "probe.every=3")
    plain, probed = weights(tmp_path / "plain"), weights(tmp_path / "probed")
    assert all(plain[name].tobytes() == probed[name].tobytes() for name in plain)
    rows = metrics(tmp_path / "probed")
    readings = [row for row in rows if any("/" in key for key in row)]
    assert metrics(tmp_path / "plain") == [row for row in rows if row not in readings and "warning" not in row]
    assert [row["step"] for row in readings] == [3, 6]
    names = {f"attn/{place}00/{what}" for place in ("encoder", "decoder", "cross") for what in ("entropy", "head1/gain")}
    names |= {"grad/cross00/w_k", "update/cross00/angle_w_q", "stream/encoder01/norm", "stream/decoder01/norm",
              "output/log_partition"}
    assert names <= readings[0].keys() and not any("layer" in name for name in readings[0])


def test_a_rate_too_high_is_warned_of_and_a_diverging_run_names_its_culprit(pairs, tmp_path):
    settings = ["norm.scheme=none", "norm.embedding=none", "optim.lr=1", "optim.min_lr=1", "optim.clip=0",
                "optim.warmup_steps=0", "train.eval_every=0", "translation.test=", "probe.every=1"]
    done = run("train", "--data", pairs, "--out", tmp_path / "warned", "--threads", 1, "--set", *TINY, *settings,
               "train.max_steps=5", check=0)
    assert "warning: logit growth" in done.stderr and "coder layer 0, head" in done.stderr
    assert any("logit growth" in row.get("warning", "") for row in metrics(tmp_path / "warned"))
    done = train_pairs(pairs, tmp_path / "run", *settings, "norm.sublayer=none", "train.max_steps=200", check=4)
    last = metrics(tmp_path / "run")[-1]
    assert last["diverged"] is True and last["culprit"] in done.stderr and "layer " in last["culprit"]


def test_going_on_gives_the_same_bits(pairs, tmp_path):
    settings = ["translation.word_dropout=0.1", "translation.bpe_dropout=0.1", "translation.batching=bucketed",
                "model.dropout=0.1", "optim.schedule=plateau", "optim.plateau_patience=1"]
    train_pairs(pairs, tmp_path / "whole", *settings)
    train_pairs(pairs, tmp_path / "parts", *settings, "train.max_steps=20")
    train_pairs(pairs, tmp_path / "parts", *settings, extra=["--resume"])
    whole, parts = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert all((whole[name] == parts[name]).all() for name in whole)
    losses = [[r["loss"] for r in metrics(tmp_path / name) if "loss" in r] for name in ("whole", "parts")]
    assert losses[0] == losses[1]


# What a setting must change, and what it needs beside it.
SETTINGS = [
    ("translation.bpe_operations=10", "shapes"), ("translation.min_frequency=250", "shapes"),
    ("translation.encoder_layers=2", "shapes"), ("translation.word_dropout=0.5", "loss"),
    ("translation.label_smoothing=0.4", "loss"), ("translation.batch_tokens=200", "loss"),
    ("translation.bpe_dropout=0.5", "loss"), ("translation.batching=bucketed", "loss"),
    ("translation.length_p975=50", "loss"), ("translation.dev=test", "translations"), ("translation.test=", "test"),
    ("translation.dev=", "translations"), ("translation.train=dev", "loss"), ("translation.bleu=char", "bleu"),
    ("translation.beam=1", "translations"), ("translation.length_penalty=3", "translations"),
    ("optim.plateau_decay=0.1", "rates", *PLATEAU), ("optim.plateau_patience=5", "rates", *PLATEAU),
    ("optim.schedule=inverse_sqrt", "loss", "optim.warmup_steps=0"), ("model.positions=sine", "loss"), ("model.mlp_dropout=0.5", "loss"),
    ("norm.scheme=lp", "loss"), ("norm.sublayer=scale", "shapes"), ("norm.embedding=none", "loss"),
    ("model.init=nanogpt", "loss"),
]
@pytest.fixture(scope="session")
def pieces(pairs, tmp_path_factory):
    import sentencepiece
    folder = tmp_path_factory.mktemp("pieces")
    sentencepiece.SentencePieceTrainer.train(
        input=[str(pairs / "train.gl"), str(pairs / "train.en")], model_prefix=str(folder / "joint"), vocab_size=45,
        hard_vocab_limit=False, minloglevel=2)
    return folder / "joint.model"


def test_sentencepiece_models_are_subwords(pairs, pieces, tmp_path):
    import sentencepiece
    summary = train_pairs(pairs, tmp_path / "run", f"translation.sentencepiece={pieces}", "train.max_steps=160",
                          "train.eval_every=80")
    assert summary["test_bleu"] > 60
    vocabulary = json.loads((tmp_path / "run" / "checkpoints" / "latest" / "tokenizer.json").read_text())
    model = sentencepiece.SentencePieceProcessor(model_file=str(pieces))
    own = {vocabulary["subwords"][i - 4] for i in vocabulary["source"]}
    lines = (pairs / "train.gl").read_text().splitlines()
    assert own == {piece for line in lines for piece in model.encode(line, out_type=str)}
    pieces_moved = pieces.rename(pieces.with_suffix(".moved"))  # the checkpoint has all it needs
    kept = (tmp_path / "run" / "translations" / "test.en").read_text()
    assert translate(tmp_path / "run", (pairs / "test.gl").read_text()).stdout.decode() == kept
    pieces_moved.rename(pieces)


@pytest.mark.parametrize("content, expected", [(None, "no such file"), (b"not a model", "SentencePiece")])
def test_what_is_no_sentencepiece_model(pairs, tmp_path, content, expected):
    file = tmp_path / "joint.model"
    if content is not None:
        file.write_bytes(content)
    done = train_pairs(pairs, tmp_path / "run", f"translation.sentencepiece={file}", check=DATA)
    assert expected.lower() in done.stderr.lower() and "joint.model" in done.stderr
    assert not (tmp_path / "run").exists()


KEYS = {row[0].split("=")[0] for row in SETTINGS if row[0].startswith(("translation", "optim.plateau"))} | {
    "translation.source", "translation.target",  # TINY itself: without them there is no translator
    "translation.sentencepiece"}  # a test of its own


@pytest.mark.parametrize("row", SETTINGS, ids=lambda row: row[0])
def test_settings_change_what_they_say(observe, row):
    setting, observed, *given = row
    assert observe(*given, setting)[observed] != observe(*given)[observed]


def look(folder, summary):
    rows = metrics(folder)
    return {"loss": [r["loss"] for r in rows if "loss" in r], "shapes": {n: t.shape for n, t in weights(folder).items()},
            "rates": [r["lr"] for r in rows if "lr" in r], "bleu": [r["val_bleu"] for r in rows if "val_bleu" in r],
            "test": "test_bleu" in summary, "translations": (folder / "translations" / "dev.en").read_text()}


@pytest.fixture(scope="module")
def observe(pairs, tmp_path_factory):
    """What a short training with these settings does; the same settings run once."""
    known = {}

    def get(*settings):
        if settings not in known:
            folder = tmp_path_factory.mktemp("short") / "run"
            known[settings] = look(folder, train_pairs(pairs, folder, "train.max_steps=6", "train.eval_every=0", *settings))
        return known[settings]
    return get


BAD_INPUT = {
    "invalid UTF-8": b"o can \xff\xfe ve\n",
    "long line": b"o" * 100_000 + b"\n",
    "long line of words": b"o can " * 20_000 + b"\n",
    "control characters": b"o\tcan\x00\x07\x1b[31m ve\r\n",
    "other line breaks": "o can\u2028ve\x0bo\x85gato\n".encode(),
    "no final newline": b"o can ve\no gato",
    "unknown script": "ᚠᛇᚻ 𝔘𝔫𝔦 漢字 😀\n".encode(),
    "empty lines": b"\n\no can\n\n",
    "only spaces": b"   \n",
    "nothing": b"",
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_a_line_for_a_line(translator, name):
    text = BAD_INPUT[name]
    done = translate(translator[0], text)
    assert done.returncode == 0, done.stderr
    lines = text.count(b"\n") + (not text.endswith(b"\n") and text != b"")
    assert done.stdout.count(b"\n") == lines
    done.stdout.decode()  # UTF-8
    if name == "empty lines":
        assert [bool(line) for line in done.stdout.split(b"\n")] == [False, False, True, False, False]
    if name.startswith("long line"):
        assert b"line 1 is too long" in done.stderr


def test_a_closed_pipe_ends_it(translator):
    process = subprocess.Popen([str(BINARY), "translate", "--run", str(translator[0])], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    process.stdin.write(b"o can ve\n" * 50)
    process.stdin.close()
    assert process.wait(timeout=60) in (0, 1)
    assert b"internal" not in process.stderr.read()


def test_it_answers_line_by_line(translator):
    process = subprocess.Popen([str(BINARY), "translate", "--run", str(translator[0])], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    for _ in range(2):
        process.stdin.write(b"o can ve\n")
        process.stdin.flush()
        assert process.stdout.readline().endswith(b"\n")  # before the input ends
    process.stdin.close()
    assert process.wait(timeout=60) == 0


def test_the_batch_changes_nothing(translator, pairs):
    text = (pairs / "test.gl").read_text()
    outputs = {translate(translator[0], text, "--n-best", 3, "--batch", size).stdout for size in (1, 7, 64)}
    assert len(outputs) == 1
    rows = [line.split("\t") for line in outputs.pop().decode().splitlines()]
    assert [int(row[0]) for row in rows] == [n for n in range(1, 21) for _ in range(3)]
    scores = [float(row[1]) for row in rows]
    assert all(scores[i] >= scores[i + 1] for i in range(len(scores) - 1) if (i + 1) % 3)


def test_beam_greedy_and_draws(translator):
    text = "o can ve o gato\ne o mar\n" * 4
    drawn = [translate(translator[0], text, "--temperature", 2, "--seed", seed).stdout for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2] and drawn[0].count(b"\n") == 8
    assert translate(translator[0], text, "--beam", 1).returncode == 0
    assert translate(translator[0], text, "--n-best", 9).returncode == USAGE


def test_the_mean_of_checkpoints(pairs, tmp_path):
    import numpy
    from safetensors.numpy import load_file, save_file
    folder = tmp_path / "run"
    train_pairs(pairs, folder, "train.keep_last=2", "translation.test=")
    text = (pairs / "test.gl").read_text()
    mean = translate(folder, text, "--average", 2, "--n-best", 2).stdout
    files = sorted(folder.glob("checkpoints/step-*/model.safetensors"))
    first, last = map(load_file, files)
    by_hand = {n: ((first[n].astype(numpy.float64) + last[n]) / 2).astype(numpy.float32) for n in last}
    save_file(by_hand, files[-1], {"format": "pt"})
    (files[-1].parent / "SHA256SUMS").unlink()  # of the file as it was
    assert mean == translate(files[-1].parent, text, "--n-best", 2).stdout
    assert b"keep_last" in translate(folder, text, "--average", 3).stderr


@pytest.mark.parametrize("change, expected, code", [
    (lambda f: (f / "train.en").write_text("a\nb\n"), "differ from line 3", DATA),
    (lambda f: (f / "dev.gl").unlink(), "no such file", DATA),
    (lambda f: (f / "train.gl").write_bytes(b"\xff\n" * 400), "UTF-8", DATA),
    (lambda f: (f / "train.gl").write_text("\n" * 400), "empty source", DATA),
])
def test_wrong_files(pairs, tmp_path, change, expected, code):
    folder = tmp_path / "pairs"
    folder.mkdir()
    for file in pairs.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    change(folder)
    done = train_pairs(folder, tmp_path / "run", check=code)
    assert expected in done.stderr and len(complaints(done)) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("settings, expected", [
    (["translation.target="], "both languages"), (["translation.target=gl"], "both languages"),
    (["translation.source=", "translation.target=", "optim.schedule=plateau"], "BLEU"),
    (["translation.sentencepiece=x.model", "translation.bpe_dropout=0.1"], "no merges to skip"),
])
def test_wrong_settings(pairs, tmp_path, settings, expected):
    assert expected in train_pairs(pairs, tmp_path / "run", *settings, check=USAGE).stderr
    assert not (tmp_path / "run").exists()


def test_wrong_model(translator, text, tmp_path):
    assert "normlab translate" in run("generate", translator[0], check=USAGE).stderr
    from conftest import train
    train(text, tmp_path / "lm")
    assert "normlab generate" in run("translate", "--run", tmp_path / "lm", check=USAGE, input="").stderr


def test_a_damaged_vocabulary_is_refused(translator, tmp_path):
    shutil.copytree(translator[0], tmp_path / "run", symlinks=True)
    for file in (tmp_path / "run" / "checkpoints").glob("step-*/tokenizer.json"):
        file.write_text(file.read_text().replace('"bpe pair"', '"char"'))
    assert "not the model of a translator" in run("translate", "--run", tmp_path / "run", check=DATA, input="").stderr


def test_compare_reports_bleu(pairs, tmp_path):
    settings = [s for s in TINY if not s.startswith("norm.scheme")]
    run("compare", "--data", pairs, "--out", tmp_path / "study", "--set", "train.threads=1", *settings,
        "train.max_steps=24", "train.eval_every=12", "norm.scheme=[none, qknorm]", "train.seed=[1, 2]", check=0)
    run("report", tmp_path / "study", check=0)
    page = (tmp_path / "study" / "report.md").read_text()
    assert "Which translates best?" in page and "1000 paired resamples, p-value of 10000 randomisations" in page
    of_bleu = page.split("## Which translates best?")[1].split("\n## ")[0]
    assert of_bleu.count("| adjusted p-value |") == 2  # of means over trials, and of outputs
    outputs = [tmp_path / f"study/trials/{name}/fold09-seed2/translations/test.en" for name in ["none", "qknorm"]]
    scored = run("score", "-r", pairs / "test.en", *outputs, "-m", "bleu", "--tokenize", "none", "--seed", 0, "--json",
                 check=0)
    tested = json.loads(scored.stdout)["tests"][0]["metrics"]["BLEU"]
    row = next(row for row in page.split("\n") if "fold 9, seed 2 |" in row)
    difference, _, _, p = row.replace("−", "-").strip("| ").split(" | ")[-4:]
    assert float(difference) == pytest.approx(tested["difference"], abs=0.006)
    assert float(p) == pytest.approx(tested["p_value"], rel=0.06)  # two digits of the same trials
    assert (tmp_path / "study" / "charts" / "bleu.svg").exists()


def test_compare_reports_bleu_of_detokenised_text(pairs, tmp_path):
    sacrebleu = pytest.importorskip("sacrebleu")
    data, study = tmp_path / "data", tmp_path / "study"
    shutil.copytree(pairs, data)
    tokens, text = "It doesn 't rain , it pours : the ( dog ) sees .", "It doesn't rain, it pours: the (dog) sees."
    (data / "test.gl").write_text("o can\n" * 4)
    (data / "test.en").write_text(f"{tokens}\n" * 4)
    settings = [s for s in TINY if not s.startswith("norm.scheme")]
    run("compare", "--data", data, "--out", study, "--set", "train.threads=1", *settings, "train.max_steps=1",
        "train.eval_every=1", "norm.scheme=[none, qknorm]", "train.seed=1", check=0)
    translated = study / "trials/qknorm/fold09-seed1/translations/test.en"
    translated.write_text(f"{tokens}\n" * 3 + "It doesn 't rain , the dog sees .\n")
    run("report", study, check=0)
    page = (study / "report.md").read_text().split("## Which translates best?")[1]
    header, _, _, row = [line.strip("| ").split(" | ") for line in page.split("\n") if line.startswith("|")][:4]
    assert header[-1] == "test text, detokenised"
    expected = sacrebleu.corpus_bleu([text] * 3 + ["It doesn't rain, the dog sees."], [[text] * 4]).score
    assert float(row[-1].replace("*", "")) == pytest.approx(expected, abs=0.006)
