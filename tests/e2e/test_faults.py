"""Output that cannot be written, hostile files, and what is refused at once."""
import gzip
import json
import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import BINARY, TINY, run, train
from synthetic_study import SyntheticStudy

FAILED, USAGE, DATA = 1, 2, 3


@pytest.fixture(scope="module")
def trained(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults") / "run"
    train(text, folder)
    return folder


@pytest.fixture(scope="module")
def codes(text, tmp_path_factory):
    path = tmp_path_factory.mktemp("codes") / "codes"
    run("bpe", "learn", "--input", text, "--operations", 20, "--codes", path, check=0)
    return path


def commands(text, codes):
    return {"--help": [], "--version": [], "schemes": [], "schemes lp": [], "config keys": [], "config print": [],
            "config explain norm.p": [], "score": ["--reference", text, text], "bpe apply": ["-c", codes, "-i", text]}


def launch(words, more, **options):
    return subprocess.run([str(BINARY), *words.split(), *map(str, more)], stderr=subprocess.PIPE, text=True, timeout=120,
                          **options)


def test_output_that_cannot_be_written_is_a_failure(text, codes):
    for words, more in commands(text, codes).items():
        with open("/dev/full", "w") as full:
            done = launch(words, more, stdout=full)
        assert done.returncode == FAILED, words
        assert done.stderr == "error [standard output] cannot write: No space left on device. Free some space, then retry.\n"


def test_verbs_that_run_a_model_check_their_output(trained):
    for words in ("eval", "eval --json", "generate --tokens 3", "generate --tokens 3 --json"):
        verb, *options = words.split()
        with open("/dev/full", "w") as full:
            done = launch(verb, [trained, *options], stdout=full)
        assert done.returncode == FAILED and "standard output" in done.stderr, words


def test_a_closed_pipe_ends_quietly(text, codes):
    for words, more in commands(text, codes).items():
        reader, writer = os.pipe()
        os.close(reader)
        done = launch(words, more, stdout=writer)
        os.close(writer)
        assert (done.returncode, done.stderr) == (0, ""), words


def bomb(path):
    with gzip.open(path, "wb") as out:
        for _ in range(300):
            out.write(bytes(1 << 20))
    return path


def write(path, content):
    path.write_text(content)
    return path

#One line, an exit code of the user's fault, and soon: no crash, no hang, no message of a megabyte.
@pytest.mark.parametrize("case", [
    "negative variant", "huge variant", "long key", "long key in a file", "key of many parts", "deep values",
    "codes that refer to themselves", "gzip bomb", "a pipe as configuration", "a pipe as text", "a pipe as codes",
    "a device as text", "empty data", "data not in UTF-8", "nan for a rate"])
def test_hostile_input_is_refused(case, text, codes, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    deep = write(tmp_path / "deep.toml", ".".join(["a"] * 50_000) + " = 1\n")
    values = write(tmp_path / "values.toml", "a = " + "[" * 100_000)
    long = write(tmp_path / "long.toml", "[model]\n" + "x" * 1_000_000 + " = 1\n")
    looping = write(tmp_path / "looping", "#version: 0.2\nx </w>\n< /w>\n")
    vocabulary = write(tmp_path / "vocabulary", "never 9\n")
    words = write(tmp_path / "words", "yx\n")
    compare = ["compare", "--dry-run", "--set"]
    command, code = {
        "negative variant": (compare + ["variant.-1.label=x"], USAGE),
        "huge variant": (compare + ["variant.4000000000.label=x"], USAGE),
        "long key": (["config", "check", "--set", "model." + "x" * 100_000 + "=1"], USAGE),
        "long key in a file": (["config", "check", "--config", long], USAGE),
        "key of many parts": (["config", "check", "--config", deep], USAGE),
        "deep values": (["config", "check", "--config", values], USAGE),
        "codes that refer to themselves": (["bpe", "apply", "-c", looping, "--vocabulary", vocabulary, "-i", words], 0),
        "gzip bomb": (["bpe", "apply", "-c", codes, "-i", bomb(tmp_path / "bomb.gz")], DATA),
        "a pipe as configuration": (["config", "check", "--config", pipe], DATA),
        "a pipe as text": (["score", "--reference", pipe, text], DATA),
        "a pipe as codes": (["bpe", "apply", "-c", pipe, "-i", text], DATA),
        "a device as text": (["bpe", "apply", "-c", codes, "-i", "/dev/zero"], DATA),
        "empty data": (["config", "check", "--data", ""], USAGE),
        "data not in UTF-8": (["config", "check", "--data", b"/tmp/\xff.txt"], USAGE),
        "nan for a rate": (["bpe", "apply", "-c", codes, "-i", text, "--dropout", "nan"], USAGE),
    }[case]
    done = subprocess.run([str(BINARY)] + [w if isinstance(w, bytes) else str(w) for w in command], capture_output=True,
                          timeout=20)
    assert done.returncode == code, done.stderr[:500]
    assert len(done.stderr) < 5000 and done.stderr.count(b"\n") == (code != 0) and b"[internal]" not in done.stderr


def test_standard_input_may_be_a_pipe(text, codes):
    for source in ("-", "/dev/stdin"):
        done = run("bpe", "apply", "-c", codes, "-i", source, input="the king spoke", check=0)
        assert done.stdout.replace("@@ ", "") == "the king spoke"
    assert "BLEU" in run("score", "--reference", text, "-", input=text.read_text(), check=0).stdout


@pytest.mark.parametrize("option", ["--flops", "--speed"])
def test_plan_takes_no_nan(option):
    assert "expected a number above 0" in run("plan", option, "nan", check=USAGE).stderr


def test_terminal_escapes_are_shown_escaped(tmp_path):
    done = run("config", "check", "--set", "model.\x1b[2J=1", check=USAGE)
    assert "\x1b" not in done.stderr and "\\x1b[2J" in done.stderr
    path = write(tmp_path / "codes", "#version: \x1b]0;title\x07\n")
    done = run("bpe", "apply", "-c", path, "-i", path, check=DATA)
    assert "\x1b" not in done.stderr and "\\x1b]0;title\\x07" in done.stderr


def test_a_report_survives_one_hostile_trial(tmp_path):
    study = SyntheticStudy(tmp_path / "study", {"norm.p": [2, 3]}, folds=2, steps=200)
    trial = study.trial_folder({"norm.p": 3}, 0)
    deep = '{"step": 1, "a": ' + "[" * 300_000 + "]" * 300_000 + "}\n"
    for name in ("manifest.json", "metrics.jsonl", "trial.json"):
        before = (trial / name).read_text()
        (trial / name).write_text(deep)
        run("report", tmp_path / "study", check=0)
        (trial / name).unlink()
        os.mkfifo(trial / name)
        run("report", tmp_path / "study", check=0)
        (trial / name).unlink()
        (trial / name).write_text(before)


def test_impossible_states_are_refused(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run", symlinks=True)
    state = tmp_path / "run" / "checkpoints" / "latest" / "state.json"
    good = state.read_text()
    for old, new in [('"step": 20', '"step": -1'), ('"step": 20', '"step": 10'),
                     ('"last_eval": 20', f'"last_eval": {2**62}'), ('"last_eval": 20', '"last_eval": -5')]:
        assert old in good
        state.write_text(good.replace(old, new))
        done = run("eval", tmp_path / "run", check=DATA)
        assert "cannot be" in done.stderr or "damaged" in done.stderr
    for content in ("[" * 300_000, "[" * 300_000 + "]" * 300_000):
        state.write_text(content)
        run("eval", tmp_path / "run", check=DATA)


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.safetensors"])
def test_a_flipped_bit_is_noticed(trained, tmp_path, file):
    shutil.copytree(trained, tmp_path / "run", symlinks=True)
    assert "nothing wrong" in run("check", tmp_path / "run", check=0).stdout
    flip(tmp_path / "run" / "checkpoints" / "latest" / file)
    words = f"{file} has changed"
    assert words in run("check", tmp_path / "run", check=DATA).stdout
    assert words in run("eval", tmp_path / "run" / "checkpoints" / "latest", check=DATA).stderr
    assert words in run("train", "--resume", "--out", tmp_path / "run", "--set", "train.max_steps=30").stderr


def test_check_explains(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run", symlinks=True)
    rows = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "run" / "metrics.jsonl").write_text("".join(row for row in rows if not row.startswith('{"step":7,')))
    (tmp_path / "run" / "checkpoints" / "best").unlink()
    (tmp_path / "run" / "checkpoints" / "best").symlink_to("step-000015")
    done = run("check", tmp_path / "run", trained, tmp_path / "none", check=DATA)
    for words in ("lacks rows between the steps 6 and 8", "rows that", "points to step-000015", f"{trained}: nothing wrong",
                  "no such file or folder"):
        assert words in done.stdout
    out = json.loads(run("check", "--json", tmp_path / "run", check=DATA).stdout)
    assert len(out[0]["faults"]) == 3 and "checkpoint" in out[0]["seen"][0]


def test_data_must_be_utf8_before_anything_is_written(text, tmp_path):
    data = os.fsencode(tmp_path) + b"/\xff.txt"
    pathlib.Path(os.fsdecode(data)).write_bytes(text.read_bytes())
    command = [str(BINARY), "train", "--data", data, "--out", str(tmp_path / "run"), "--set", *TINY]
    done = subprocess.run(command, capture_output=True, timeout=120)
    assert done.returncode == USAGE and b"UTF-8" in done.stderr and not (tmp_path / "run").exists()


def test_pip_of_the_current_folder_is_not_run(tmp_path):
    (tmp_path / "pip.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (tmp_path / "zipfile.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    environment = {"NORMLAB_DATA": "", "XDG_CACHE_HOME": str(tmp_path / "cache"), "PIP_INDEX_URL": "http://127.0.0.1:9",
                   "PIP_FIND_LINKS": "", "PIP_RETRIES": "0", "PIP_DEFAULT_TIMEOUT": "1"}
    done = run("compare", "--dry-run", "--data", "tinyshakespeare", "--set", "norm.p=[1,2]", "norm.scheme=lp",
               cwd=tmp_path, env=environment)
    assert done.returncode == FAILED and "could not be fetched" in done.stderr
    assert not (tmp_path / "ran").exists()
