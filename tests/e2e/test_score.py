"""normlab score against sacreBLEU 2.6.0 and the published outputs of the QKNorm paper."""
import gzip
import json
import os
import pathlib
import random

import pytest
from conftest import run
from sacrebleu.metrics import BLEU, CHRF, TER

PUBLISHED = pathlib.Path(os.environ.get("NORMLAB_DATA", ".")) / "qknorm-en-vi-outputs"
needs_published = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="NORMLAB_DATA has no qknorm-en-vi-outputs")

SPACES = [" ", "  ", "\t", "\u00a0", "\u3000", "\u2009", "\x1f", "\x85", "\u2028", "\x0b", "\r"]
WORDS = "the cat sat on a mat The CAT dog of to and in is it was that for with as his they".split()
ODD = ["é", "İ", "ΌΣΟΣ", "Σ.", "½", "①", "Ⅷ", "٣", "。", "「", "—", "…", "“", "«", "€", "$", "+", "©", "😀", "👩‍👩‍👧", "e\u0301",
       "\ufeff", "\u200b", "\u202e", "한국어", "日本", "ไทย", "नमस्ते", "שלום", "ﬁ", "\u1b4e", "\U0001cc00", "\U00010d40",
       "\U0010ffff", "\x00", "\x7f", "&quot;", "&amp;lt;", "<skipped>", "1.5", "3,000", "1-2", "a-b", "5.", ".5", "don't",
       "(hi)", "...", "U.S.", "100%", "@-@", "http://a.b/c?d=e", "``", "1--2", ".9.", "x.1", ",,"]


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


@pytest.mark.parametrize("part", range(10))
def test_equals_sacrebleu_on_random_texts(tmp_path, part):
    """200 pairs of texts in all; not a digit may differ."""
    for number in range(20 * part, 20 * part + 20):
        draw = random.Random(number)
        first = [line(draw) for _ in range(draw.choice([1, 2, 5, 12]))]
        texts = [[changed(draw, text) if draw.random() < 0.8 else line(draw) for text in first]
                 for _ in range(draw.choice([1, 1, 2, 3]))]
        output, references = texts[0], [first, *texts[1:]]
        tokenizer, smoothing = draw.choice(["13a", "intl", "char", "none"]), draw.choice(["exp", "floor", "add-k", "none"])
        value = draw.choice([None, 0.25, 2.0]) if smoothing in ("floor", "add-k") else None
        files = [write(tmp_path / f"ref{i}", reference) for i, reference in enumerate(references)]
        got = scores_of(write(tmp_path / "output", output), "--tokenize", tokenizer, "--smooth", smoothing,
                        *(["--smooth-value", value] if value else []), references=files)
        metrics = [BLEU(tokenize=tokenizer, smooth_method=smoothing, smooth_value=value, force=True), CHRF(),
                   CHRF(word_order=2), TER()]
        for metric in metrics:
            expected = metric.corpus_score(output, references)
            found = got[expected.name]
            assert found["score"] == pytest.approx(expected.score, rel=1e-12, abs=1e-12), (number, expected.name)
            assert found["signature"].split("|version")[0] == str(metric.get_signature()).split("|version")[0]
        assert got["BLEU"]["hyp_len"] == (bleu := metrics[0].corpus_score(output, references)).sys_len
        assert got["BLEU"]["ref_len"] == bleu.ref_len
        assert got["BLEU"]["correct"] == bleu.counts and got["BLEU"]["total"] == bleu.totals


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
    bootstrap = score(*files, references=reference)["tests"][0]
    assert bootstrap["test"] == "bootstrap" and bootstrap["trials"] == 1000
    found = bootstrap["metrics"]["BLEU"]
    assert round(found["p_value"], 3) == 0.001
    assert found["difference"] == pytest.approx(33.2449 - 32.4832, abs=1e-4)
    assert found["interval"][0] < found["difference"] < found["interval"][1]
    assert found["signature"].startswith("nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|")
    randomised = score(*files, "--test", "randomization", "--trials", 2000, references=reference)["tests"][0]
    assert randomised["metrics"]["BLEU"]["p_value"] < 0.01
    assert "|ar:2000|" in randomised["metrics"]["BLEU"]["signature"]


def test_tests_are_reproducible_and_seeded(tmp_path):
    draw = random.Random(1)
    reference = [" ".join(draw.choices(WORDS, k=12)) for _ in range(60)]
    files = [write(tmp_path / name, [changed(draw, text) for text in reference]) for name in "ab"]
    references = [write(tmp_path / "ref", reference)]

    def p_values(*options):
        return [row["p_value"] for row in score(*files, *options, references=references)["tests"][0]["metrics"].values()]

    assert p_values() == p_values()
    assert p_values() != p_values("--seed", 1)
    text = run("score", "-r", references[0], *files, check=0).stdout
    assert "paired bootstrap, 1000 trials, seed 12345" in text and text.count(" p = ") == 5


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
    assert "13a, intl, char or none" in refused(2, "-r", two, two, "--tokenize", "zh")
    assert "exp, floor, add-k, none" in refused(2, "-r", two, two, "--smooth", "more")
    assert "floor or add-k" in refused(2, "-r", two, two, "--smooth-value", "1")
    assert "multi-bleu" in refused(2, "-r", two, two, "-m", "meteor")
    assert "two or more" in refused(2, "-r", two, two, "--test", "bootstrap")
    assert "bootstrap, randomization" in refused(2, "-r", two, two, two, "--test", "t")
    assert "reference" in refused(2, two)
