"""normlab score against sacreBLEU 2.6.0 and the published outputs of the QKNorm paper."""
import gzip
import hashlib
import json
import os
import pathlib
import random

import pytest
from conftest import run
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

PUBLISHED = pathlib.Path(os.environ.get("NORMLAB_DATA", ".")) / "qknorm-en-vi-outputs"
needs_published = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="NORMLAB_DATA has no qknorm-en-vi-outputs")

SPACES = [" ", "  ", "\t", "\u00a0", "\u3000", "\u2009", "\x1f", "\x85", "\u2028", "\x0b", "\r"]
WORDS = "the cat sat on a mat The CAT dog of to and in is it was that for with as his they".split()
ODD = ["é", "İ", "ΌΣΟΣ", "Σ.", "½", "①", "Ⅷ", "٣", "。", "「", "—", "…", "“", "«", "€", "$", "+", "©", "😀", "👩‍👩‍👧", "e\u0301",
       "\ufeff", "\u200b", "\u202e", "한국어", "日本", "ไทย", "नमस्ते", "שלום", "ﬁ", "\u1b4e", "\U0001cc00", "\U00010d40",
       "\U0010ffff", "\x00", "\x7f", "&quot;", "&amp;lt;", "<skipped>", "1.5", "3,000", "1-2", "a-b", "5.", ".5", "don't",
       "(hi)", "...", "U.S.", "100%", "@-@", "http://a.b/c?d=e", "``", "1--2", ".9.", "x.1", ",,", "cat's", "IT'S", "'s",
       "猫坐在垫子上", "日本語、テスト。", "ひらがな", "カタカナ・", "㈱", "㍻", "﹁", "！？", "（，）", "\U00020000", "\uf900x", "→", "☃",
       "\u2000", "\u2001", "\u2a6d", "\u2a6e", "\u9fbb", "\u9fbc", "\u4dbf", "ⅰ", "ǅ", "ẞ", "ß", "\u0345", "Ω"]


def token(draw):
    kind = draw.random()
    if kind < 0.5:
        return draw.choice(WORDS)
    if kind < 0.7:
        return draw.choice(ODD)
    if kind < 0.85:
        code_points = [draw.choice([draw.randrange(0x20, 0x7F), draw.randrange(0x80, 0x3000), draw.randrange(0x110000)])
                       for _ in range(draw.randint(1, 4))]
        return "".join(chr(c) for c in code_points if not 0xD800 <= c < 0xE000)
    return draw.choice(WORDS + ODD) + draw.choice(WORDS + ODD)


def line(draw):
    if draw.random() < 0.1:
        return draw.choice(["", "  ", "\t", "\u00a0"])
    words = [token(draw) + draw.choice(SPACES if draw.random() < 0.15 else [" "]) for _ in range(draw.randint(1, 25))]
    return (draw.choice(SPACES) if draw.random() < 0.3 else "") + "".join(words)


def changed(draw, text):
    words = text.split(" ")
    for _ in range(draw.randint(0, 4)):
        at = draw.randrange(len(words) + 1)
        match draw.randrange(4):
            case 0:
                del words[at:at + 1]
            case 1:
                words.insert(at, token(draw))
            case 2:
                words[at:at + 1] = [word.swapcase() for word in words[at:at + 1]]
            case 3:
                block = words[at:at + 3]
                del words[at:at + 3]
                to = draw.randrange(len(words) + 1)
                words[to:to] = block
    return " ".join(words)


def write(path, lines):
    path.write_bytes("".join(text + "\n" for text in lines).encode())
    return path


def score(*arguments, references, check=0):
    files = [part for reference in references for part in ("--reference", reference)]
    return json.loads(run("score", "--json", *files, *arguments, check=check).stdout)


def scores_of(*arguments, references):
    return score(*arguments, references=references)["outputs"][0]["scores"]


def case(number):
    """A random output and its references."""
    draw = random.Random(number)
    first = [line(draw) for _ in range(draw.choice([1, 2, 5, 12]))]
    texts = [[changed(draw, text) if draw.random() < 0.8 else line(draw) for text in first]
             for _ in range(draw.choice([1, 1, 2, 3]))]
    return draw, texts[0], [first, *texts[1:]]


def drawn_metrics(draw, sentence=False, tokenizers=("13a", "intl", "char", "none", "zh")):
    """Random options of all metrics: as our arguments, and as sacreBLEU's objects."""
    tokenizer, smoothing = draw.choice(tokenizers), draw.choice(["exp", "floor", "add-k", "none"])
    value = draw.choice([None, 0.25, 2.0]) if smoothing in ("floor", "add-k") else None
    bleu = {"lowercase": draw.random() < 0.5}
    chrf = {"char_order": draw.choice([6, 6, 1, 3, 8]), "beta": draw.choice([2, 2, 0, 1, 3]),
            "lowercase": draw.random() < 0.5, "whitespace": draw.random() < 0.5, "eps_smoothing": draw.random() < 0.5}
    ter = {name: draw.random() < 0.5 for name in ["normalized", "no_punct", "case_sensitive"]}
    ter["asian_support"] = draw.random() < 0.5 and (ter["normalized"] or ter["no_punct"])
    arguments = ["--tokenize", tokenizer, "--smooth", smoothing, *(["--smooth-value", value] if value else [])]
    for prefix, options in [("", bleu), ("chrf-", chrf), ("ter-", ter)]:
        for name, option in options.items():
            flag = f"--{prefix}{name.replace('_', '-')}"
            arguments += [flag] if option is True else [] if option is False else [flag, option]
    return arguments, [BLEU(tokenize=tokenizer, smooth_method=smoothing, smooth_value=value, force=True,
                            effective_order=sentence, **bleu), CHRF(**chrf), CHRF(word_order=2, **chrf), TER(**ter)]


def stripped(texts):
    """As sacreBLEU's program reads them; only chrF with white space sees the difference."""
    return [[text.rstrip() for text in lines] for lines in texts]


def same(found, expected):
    return found == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("part", range(10))
def test_equals_sacrebleu_on_random_texts(tmp_path, part):
    """200 pairs of texts in all, half of them with random options; not a digit may differ."""
    for number in range(20 * part, 20 * part + 20):
        draw, output, references = case(number)
        arguments, metrics = [], [BLEU(force=True), CHRF(), CHRF(word_order=2), TER()]
        if number % 2:
            arguments, metrics = drawn_metrics(draw)
        files = [write(tmp_path / f"ref{i}", reference) for i, reference in enumerate(references)]
        got = scores_of(write(tmp_path / "output", output), *arguments, references=files)
        [output], references = stripped([output]), stripped(references)
        assert len(got) == len(metrics) + 1
        for metric in metrics:
            expected = metric.corpus_score(output, references)
            found = got[expected.name]
            assert same(found["score"], expected.score), (number, expected.name, arguments)
            assert found["signature"].split("|version")[0] == str(metric.get_signature()).split("|version")[0]
        assert got["BLEU"]["hyp_len"] == (bleu := metrics[0].corpus_score(output, references)).sys_len
        assert got["BLEU"]["ref_len"] == bleu.ref_len
        assert got["BLEU"]["correct"] == bleu.counts and got["BLEU"]["total"] == bleu.totals


@pytest.mark.parametrize("part", range(5))
def test_sentence_scores_equal_sacrebleus(tmp_path, part):
    for number in range(1000 + 10 * part, 1010 + 10 * part):
        draw, output, references = case(number)
        arguments, metrics = drawn_metrics(draw, sentence=True)
        files = [write(tmp_path / f"ref{i}", reference) for i, reference in enumerate(references)]
        file = write(tmp_path / "output", output)
        got = score(file, "--sentence", *arguments, references=files)
        assert "tests" not in got and got["segments"] == len(output)
        got = got["outputs"][0]["sentences"]
        [output], references = stripped([output]), stripped(references)
        for metric in metrics:
            scores = [metric.sentence_score(*pair) for pair in zip(output, [list(refs) for refs in zip(*references)])]
            found = got[scores[0].name]
            assert same(found["scores"], [each.score for each in scores]), (number, scores[0].name, arguments)
            assert found["signature"].split("|version")[0] == str(metric.get_signature()).split("|version")[0]
    text = run("score", "--sentence", *sum([["-r", each] for each in files], []), file, *arguments, check=0).stdout
    rows = [row.split("\t") for row in text.split("\n")[:-1] if not row.startswith("# ")]
    assert rows[0] == ["line", *got] and len(rows) == len(output) + 1
    assert rows[-1] == [str(len(output)), *(f"{each['scores'][-1]:.4f}" for each in got.values())]


def test_equals_sacrebleu_with_pieces(tmp_path, monkeypatch):
    """sacreBLEU looks for its models in a folder; it finds one there that was trained here."""
    from sacrebleu.tokenizers import tokenizer_spm
    import sentencepiece
    draw = random.Random(7)
    text = write(tmp_path / "text", [line(draw).replace("\0", "") for _ in range(300)])
    (tmp_path / "models").mkdir()
    sentencepiece.SentencePieceTrainer.Train(input=str(text), model_prefix=str(tmp_path / "own"), vocab_size=2000,
                                             character_coverage=0.98, hard_vocab_limit=False, minloglevel=2)
    model = tmp_path / "own.model"
    for row in tokenizer_spm.SPM_MODELS.values():
        (tmp_path / "models" / os.path.basename(row["url"])).write_bytes(model.read_bytes())
    monkeypatch.setattr(tokenizer_spm, "SACREBLEU_DIR", str(tmp_path))
    for number in range(2000, 2040):
        draw, output, references = case(number)
        name = ["spm", "flores101", "flores200", "spBLEU-1K"][number % 4]
        arguments, [metric, *_] = drawn_metrics(draw, tokenizers=[name])
        files = [write(tmp_path / f"ref{i}", reference) for i, reference in enumerate(references)]
        got = score(write(tmp_path / "output", output), *arguments, "--spm-model", model, references=files)
        assert got["spm_model"]["sha256"] == hashlib.sha256(model.read_bytes()).hexdigest()
        found, expected = got["outputs"][0]["scores"]["BLEU"], metric.corpus_score(output, references)
        assert same(found["score"], expected.score), (number, arguments)
        assert found["correct"] == expected.counts and found["total"] == expected.totals
        assert found["signature"].split("|version")[0] == str(metric.get_signature()).split("|version")[0]


def test_word_order_of_chrf(tmp_path):
    draw, output, references = case(42)
    files = [write(tmp_path / f"ref{i}", reference) for i, reference in enumerate(references)]
    output_file = write(tmp_path / "output", output)
    for order in [0, 1, 2, 3]:
        got = scores_of(output_file, "--chrf-word-order", order, references=files)
        expected = CHRF(word_order=order).corpus_score(*stripped([output]), stripped(references))
        assert same(got[expected.name]["score"], expected.score)
        assert [*got] == ["BLEU", expected.name, "TER", "multi-bleu"]


@needs_published
@pytest.mark.parametrize("name, scores, multi_bleu", [
    ("baseline.vi", ["32.4832", "32.4859", "33.2067", "57.0557", "50.9935", "51.2662", "48.3997"],
     "BLEU = 32.49, 64.3/39.8/25.9/17.2 (BP=0.993, ratio=0.993, hyp_len=33459, ref_len=33682)\n"),
    ("qknorm.vi", ["33.2449", "33.2352", "33.9582", "57.6532", "51.5675", "51.8660", "47.8802"],
     "BLEU = 33.24, 64.9/40.5/26.6/17.8 (BP=0.995, ratio=0.995, hyp_len=33513, ref_len=33682)\n")])
def test_published_outputs(name, scores, multi_bleu):
    files = ["--reference", PUBLISHED / "reference.vi", PUBLISHED / name]
    got = []
    for tokenizer in ["13a", "none", "intl", "char"]:
        text = run("score", *files, "--metric", "bleu", "--tokenize", tokenizer, check=0).stdout
        got.append(text.split(" = ")[1].split()[0])
    for metric in ["chrf", "chrf++", "ter"]:
        got.append(run("score", *files, "-m", metric, check=0).stdout.split(" = ")[1].strip())
    assert got == scores
    assert run("score", *files, "-m", "multi-bleu", check=0).stdout == multi_bleu


@needs_published
def test_paired_tests_of_the_published_outputs():
    files = [PUBLISHED / "baseline.vi", PUBLISHED / "qknorm.vi", "--metric", "bleu"]
    reference = [PUBLISHED / "reference.vi"]
    bootstrap = score(*files, "--test", "bootstrap", references=reference)["tests"][0]
    assert bootstrap["test"] == "bootstrap" and bootstrap["trials"] == 1000
    found = bootstrap["metrics"]["BLEU"]
    assert round(found["p_sacrebleu"], 3) == 0.001 and found["p_value"] < 0.01
    assert found["difference"] == pytest.approx(33.2449 - 32.4832, abs=1e-4)
    assert found["interval"][0] < found["difference"] < found["interval"][1]
    assert found["signature"].startswith("nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|")
    randomised = score(*files, "--trials", 2000, references=reference)["tests"][0]
    assert randomised["test"] == "randomization" and randomised["metrics"]["BLEU"]["p_value"] < 0.01
    assert "|ar:2000|" in randomised["metrics"]["BLEU"]["signature"]


@pytest.fixture(scope="module")
def two_outputs(tmp_path_factory):
    """Two outputs with as many errors as each other, and their reference."""
    folder, draw = tmp_path_factory.mktemp("pair"), random.Random(1)
    reference = [" ".join(draw.choices(WORDS, k=12)) for _ in range(60)]
    outputs = [[changed(draw, text) for text in reference] for _ in range(2)]
    files = [write(folder / name, output) for name, output in zip("ab", outputs)]
    return files, [write(folder / "ref", reference)], outputs, reference


def test_tests_are_reproducible_and_seeded(two_outputs):
    files, references, *_ = two_outputs

    def p_values(*options):
        test = score(*files, *options, references=references)["tests"][0]
        return [row["p_value"] for row in test["metrics"].values()]

    assert p_values() == p_values()
    assert p_values() != p_values("--seed", 1)
    text = run("score", "-r", references[0], *files, check=0).stdout
    assert "paired randomization, 10000 trials, seed 12345" in text and text.count(" p = ") == 5
    text = run("score", "-r", references[0], *files, "--test", "bootstrap", check=0).stdout
    assert "paired bootstrap, 1000 trials, seed 12345" in text and text.count("sacreBLEU's") == 5


@pytest.mark.parametrize("test, kind, trials", [("bootstrap", "bs", 4000), ("randomization", "ar", 4000)])
def test_sacrebleus_p_values(two_outputs, monkeypatch, test, kind, trials):
    """The draws differ, the formula does not: equal within four standard errors of the trials."""
    files, references, outputs, reference = two_outputs
    found = score(*files, "--test", test, "--trials", trials, references=references)["tests"][0]["metrics"]
    systems = [("a", outputs[0]), ("b", outputs[1])]
    metrics = {"BLEU": BLEU(force=True, references=[reference]), "chrF2": CHRF(references=[reference])}
    _, expected = PairedTest(systems, metrics, None, test_type=kind, n_samples=trials)()
    for name in metrics:
        p = expected[name][1].p_value
        assert abs(found[name]["p_sacrebleu"] - p) < 4 * (2 * p * (1 - p) / trials) ** 0.5
        if kind == "bs":  # sacreBLEU's counts one tail
            assert found[name]["p_value"] > 1.5 * found[name]["p_sacrebleu"]


def test_reads_gzip_and_standard_input(tmp_path):
    reference = tmp_path / "ref.gz"
    reference.write_bytes(gzip.compress("a b c d e\nun été\n".encode()))
    output = write(tmp_path / "output", ["a b c d e", "un été"])
    assert scores_of(output, references=[reference])["BLEU"]["score"] == pytest.approx(100)
    with open(output) as lines:
        assert "= 100.0000 " in run("score", "-r", reference, "-", check=0, stdin=lines).stdout


def test_wrong_input(tmp_path):
    two, three = write(tmp_path / "two", ["a", "b"]), write(tmp_path / "three", ["a", "b", "c"])
    bad = tmp_path / "bad"
    bad.write_bytes(b"a\n\xff\n")

    def refused(code, *arguments):
        done = run("score", *arguments, check=code)
        assert done.stdout == ""
        return done.stderr

    message = refused(3, "-r", two, three)
    assert "3 lines" in message and "2" in message and "line 2" in message
    assert "3 lines" in refused(3, "-r", two, "-r", three, two)
    assert "line 2" in refused(3, "-r", two, bad)
    assert "missing" in refused(3, "-r", two, tmp_path / "missing")
    assert "is empty" in refused(3, "-r", write(tmp_path / "empty", []), two)
    for unknown in ["ja-mecab", "zhh"]:
        assert "13a, intl, char, none, zh, spm, flores101, flores200, spBLEU-1K" in refused(
            2, "-r", two, two, "--tokenize", unknown)
    assert "--spm-model" in refused(2, "-r", two, two, "--tokenize", "flores200")
    assert "--tokenize 13a" in refused(2, "-r", two, two, "--spm-model", two)
    assert "not a model" in refused(3, "-r", two, two, "--tokenize", "spm", "--spm-model", two)
    assert "missing" in refused(3, "-r", two, two, "--tokenize", "spm", "--spm-model", tmp_path / "missing")
    assert "--metric chrf" in refused(2, "-r", two, two, "-m", "bleu", "--chrf-beta", 3)
    assert "--metric bleu" in refused(2, "-r", two, two, "-m", "ter", "--lowercase")
    assert "--metric ter" in refused(2, "-r", two, two, "-m", "chrf++", "--ter-no-punct")
    assert "--ter-normalized" in refused(2, "-r", two, two, "--ter-asian-support")
    assert "at least 1" in refused(2, "-r", two, two, "--chrf-char-order", 0)
    assert "whole texts" in refused(2, "-r", two, two, "-m", "multi-bleu", "--sentence")
    assert "whole texts" in refused(2, "-r", two, two, two, "--test", "bootstrap", "--sentence")
    assert "exp, floor, add-k, none" in refused(2, "-r", two, two, "--smooth", "more")
    assert "floor or add-k" in refused(2, "-r", two, two, "--smooth-value", "1")
    assert "multi-bleu" in refused(2, "-r", two, two, "-m", "meteor")
    for option in (["--test", "bootstrap"], ["--trials", 5], ["--seed", 3]):
        assert "two or more" in refused(2, "-r", two, two, *option)
    assert "randomization, bootstrap" in refused(2, "-r", two, two, two, "--test", "t")
    assert "reference" in refused(2, two)
