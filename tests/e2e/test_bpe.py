"""normlab bpe against subword-nmt 0.3.8."""
import io
import os
import pathlib
import random
import subprocess
import sys
import time
from contextlib import redirect_stderr

import pytest
from conftest import run
from subword_nmt.apply_bpe import BPE, read_vocabulary
from subword_nmt.learn_bpe import learn_bpe

TED = pathlib.Path(os.environ.get("NORMLAB_DATA", ".")) / "ted-gl-en"
needs_ted = pytest.mark.skipif(not TED.is_dir(), reason="NORMLAB_DATA has no ted-gl-en")


def learned(text, operations, min_frequency=2):
    codes = io.StringIO()
    with redirect_stderr(io.StringIO()):
        learn_bpe(io.StringIO(text), codes, operations, min_frequency)
    return codes.getvalue()


def segmented(text, codes, vocabulary=None):
    bpe = BPE(io.StringIO(codes), vocab=vocabulary)
    return "".join(bpe.process_line(line) for line in text.splitlines(keepends=True))


def vocabulary_of(text):
    counts = {}
    for line in text.split("\n"):
        for word in filter(None, line.strip("\r\n ").split(" ")):
            counts[word] = counts.get(word, 0) + 1
    return "".join(f"{word} {count}\n" for word, count in sorted(counts.items(), key=lambda row: -row[1]))


def write(path, text):
    path.write_bytes(text.encode())
    return path


def corpus(seed):
    """Lines over a small alphabet: many overlapping pairs, equal counts, spaces of other scripts inside words."""
    draw = random.Random(seed)
    alphabet = draw.choice(["ab", "abc", "abcdefgh", "ab\u00a0", "a\u00a0\u3000b", "abc<>/w", "xyñ日本😀", "ab\\.*+", "aA\u0301"])
    words = ["".join(draw.choices(alphabet, k=draw.choice([1, 2, 3, 5, 8, 14]))) for _ in range(draw.choice([5, 50, 300]))]
    lines = [" ".join(draw.choices(words, k=draw.randint(0, 12))) for _ in range(draw.choice([30, 200]))]
    return "".join((f"  {line.replace(' ', '  ')} " if draw.random() < 0.2 else line) + "\n" for line in lines)


@pytest.mark.parametrize("seed", range(30))
def test_equals_subword_nmt_on_generated_text(tmp_path, seed):
    text, operations, min_frequency = corpus(seed), [10, 150, 600][seed % 3], [2, 1, 5][seed // 3 % 3]
    file = write(tmp_path / "text", text)
    run("bpe", "learn", "--input", file, "--codes", tmp_path / "codes", "--operations", operations, "--min-frequency",
        min_frequency, "--write-vocabulary", tmp_path / "vocabulary", check=0)
    codes = (tmp_path / "codes").read_bytes().decode()
    assert codes == learned(text, operations, min_frequency)
    expected = segmented(text, codes)
    assert run("bpe", "apply", "--codes", tmp_path / "codes", "-i", file, check=0).stdout == expected
    vocabulary = vocabulary_of(expected)
    assert (tmp_path / "vocabulary").read_bytes().decode() == vocabulary
    for threshold in [2, 8]:
        filtered = segmented(text, codes, read_vocabulary(io.StringIO(vocabulary), threshold))
        run("bpe", "apply", "-c", tmp_path / "codes", "-i", file, "--vocabulary", tmp_path / "vocabulary", "--threshold",
            threshold, "-o", tmp_path / "out", check=0)
        assert (tmp_path / "out").read_bytes().decode() == filtered


def subword_nmt(*arguments, stdin=None):
    """The command itself, which reads text by other rules than Python's open."""
    program = pathlib.Path(sys.executable).parent / "subword-nmt"
    done = subprocess.run([program, *map(str, arguments)], input=stdin, capture_output=True, check=True)
    return done.stdout


LINE_ENDS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("seed", range(6))
def test_lines_end_where_subword_nmts_do(tmp_path, seed):
    draw = random.Random(seed)
    words = ["".join(draw.choices("abcé", k=draw.randint(1, 6))) for _ in range(40)]
    ends = LINE_ENDS + ["\x1f", "\u00a0", "\t", ""]  # the last four end no line
    text = "".join("".join(draw.choices([" ", *ends], k=draw.choice([0, 0, 1]))) +
                   " ".join(draw.choices(words, k=draw.randint(0, 30))) + draw.choice(["", " "]) + draw.choice(ends)
                   for _ in range(200))
    file = write(tmp_path / "text", text + draw.choice(["", "\n", "\r", "\x85"]))
    run("bpe", "learn", "-i", file, "-o", tmp_path / "codes", "-s", 60, "--write-vocabulary", tmp_path / "vocabulary", check=0)
    subword_nmt("learn-bpe", "-i", file, "-o", tmp_path / "their codes", "-s", 60)
    assert (tmp_path / "codes").read_bytes() == (tmp_path / "their codes").read_bytes()
    expected = subword_nmt("apply-bpe", "-i", file, "-c", tmp_path / "codes")
    assert expected == subword_nmt("apply-bpe", "-c", tmp_path / "codes", stdin=file.read_bytes())
    run("bpe", "apply", "-i", file, "-c", tmp_path / "codes", "-o", tmp_path / "output", check=0)
    assert (tmp_path / "output").read_bytes() == expected
    assert (tmp_path / "vocabulary").read_bytes() == subword_nmt("get-vocab", "-i", tmp_path / "output")


@needs_ted
def test_equals_subword_nmt_on_ted_and_is_ten_times_as_fast(tmp_path):
    texts = {language: (TED / f"train.{language}").read_text(encoding="utf-8") for language in ["gl", "en"]}
    begin = time.process_time()
    expected = learned(texts["gl"] + texts["en"], 8000)
    theirs = time.process_time() - begin

    begin = os.times()
    run("bpe", "learn", "-i", TED / "train.gl", TED / "train.en", "--operations", 8000, "-o", tmp_path / "codes", check=0)
    ours = os.times().children_user - begin.children_user + os.times().children_system - begin.children_system
    assert (tmp_path / "codes").read_bytes().decode() == expected
    assert ours < theirs / 10, f"{ours:.2f} s against {theirs:.2f} s"

    for language, text in texts.items():
        vocabulary = vocabulary_of(segmented(text, expected))
        write(tmp_path / "vocabulary", vocabulary)
        dev = (TED / f"dev.{language}").read_text(encoding="utf-8")
        for threshold in [1, 5, 50]:
            done = run("bpe", "apply", "-c", tmp_path / "codes", "-i", TED / f"dev.{language}", "--vocabulary",
                       tmp_path / "vocabulary", "--threshold", threshold, check=0)
            assert done.stdout == segmented(dev, expected, read_vocabulary(io.StringIO(vocabulary), threshold))


def test_joint_codes_and_a_vocabulary_for_each_text(tmp_path):
    first, second = write(tmp_path / "a", "low lower\n" * 3), write(tmp_path / "b", "lowest\n" * 3)
    run("bpe", "learn", "-i", first, second, "-s", 50, "-o", tmp_path / "codes", "--write-vocabulary", tmp_path / "va",
        tmp_path / "vb", check=0)
    assert (tmp_path / "codes").read_text() == learned("low lower\n" * 3 + "lowest\n" * 3, 50)
    assert (tmp_path / "va").read_text() == "low 3\nlower 3\n"
    assert (tmp_path / "vb").read_text() == "lowest 3\n"


def test_dropout(tmp_path):
    text = "".join(f"lower lowest {word}\n" for word in ["slow", "slower", "slowest"] * 5)
    file = write(tmp_path / "text", text)
    run("bpe", "learn", "-i", file, "-s", 50, "-o", tmp_path / "codes", check=0)

    def apply(*options):
        return run("bpe", "apply", "-c", tmp_path / "codes", "-i", file, *options, check=0).stdout

    assert apply("--dropout", 0.3) == apply("--dropout", 0.3, "--seed", 0) != apply("--dropout", 0.3, "--seed", 1)
    assert apply("--dropout", 0) == apply() == text
    assert apply("--dropout", 0.3).replace("@@ ", "") == text
    lines = apply("--dropout", 1).split("\n")
    assert lines[0] == "l@@ o@@ w@@ e@@ r l@@ o@@ w@@ e@@ s@@ t s@@ l@@ o@@ w"


def test_reads_standard_input_and_keeps_every_line(tmp_path):
    write(tmp_path / "codes", "#version: 0.2\na b</w>\n")
    with open(write(tmp_path / "text", "ab abc\n\n  \nab"), encoding="utf-8") as text:
        assert run("bpe", "apply", "-c", tmp_path / "codes", check=0, stdin=text).stdout == "ab a@@ b@@ c\n\n  \nab"


def test_wrong_input(tmp_path):
    text, codes = write(tmp_path / "text", "ab ab\n"), write(tmp_path / "codes", "#version: 0.2\na b</w>\n")
    before = sorted(tmp_path.iterdir())

    def refused(code, *arguments):
        done = run("bpe", *arguments, check=code)
        assert done.stdout == "" and sorted(tmp_path.iterdir()) == before
        return done.stderr

    for content, message in [("a b</w>\n", "version 0.2"), ("#version: 0.1\na b\n", "#version: 0.1"),
                             ("#version: 0.2\na b c\n", "line 2"), ("", "empty")]:
        other = write(tmp_path / "text", content)
        assert message in refused(3, "apply", "-c", other, "-i", codes)
    write(text, "ab ab\n")
    assert "line 1" in refused(3, "apply", "-c", codes, "-i", text, "--vocabulary", codes)
    assert "missing" in refused(3, "apply", "-c", tmp_path / "missing", "-i", text)
    assert "expected one for each" in refused(2, "learn", "-i", text, "-o", tmp_path / "new", "--write-vocabulary",
                                              tmp_path / "v", tmp_path / "w")
    assert "occurs 9 times" in refused(3, "learn", "-i", text, "-o", tmp_path / "new", "--min-frequency", 9)
    assert "missing" in refused(3, "learn", "-i", tmp_path / "missing", "-o", tmp_path / "new")
    assert "operations" in refused(2, "learn", "-i", text, "-o", tmp_path / "new", "--operations", 0)
    text.write_bytes(b"ab\nab \xff\n")
    assert "line 2" in refused(3, "learn", "-i", text, "-o", tmp_path / "new")
