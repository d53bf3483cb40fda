"""The command line for newcomers: suggestions, commands that paste, width, forecasts, completion, the manual page."""
import json
import os
import pty
import re
import resource
import shutil
import struct
import subprocess
import termios
import fcntl

import pytest
from conftest import BINARY, ROOT, TINY, run, train
from test_cli import VERBS
from test_translate import pairs, train_pairs  # noqa: F401

USAGE, DATA = 2, 3


def test_a_call_without_a_verb_lists_the_verbs_in_groups():
    done = run(check=USAGE)
    assert done.stdout == "" and "error" not in done.stderr
    groups = re.findall(r"^(\w[\w ]+):\n  ", done.stderr, re.MULTILINE)
    assert groups[:2] == ["Train and use a model", "Compare models"] and len(groups) >= 5
    for verb in VERBS:
        assert re.search(rf"^  {verb} +\S", done.stderr, re.MULTILINE), verb
    assert len(re.findall(r"^  normlab ", done.stderr.split("Examples:")[1], re.MULTILINE)) == 3
    assert run("--help", check=0).stdout == done.stderr == run("help", check=0).stdout


@pytest.mark.parametrize("arguments, expected", [
    (["trian"], "Did you mean `normlab train`?"),
    (["Compare"], "Did you mean `normlab compare`?"),
    (["sample"], "Did you mean `normlab generate`?"),
    (["xylophone"], "`normlab --help` lists them all"),
    (["compare", "--dryrun"], "Did you mean --dry-run?"),
    (["compare", "--lr", "0.1"], "--set optim.lr=0.1"),
    (["compare", "--learning-rate=0.1"], "--set optim.lr=0.1"),
    (["train", "--epochs", "3"], "--set train.max_steps=3"),
    (["train", "--output", "x"], "Did you mean --out?"),
    (["train", "--device", "cuda"], "there is no such device here"),
    (["train", "--device=gpu"], "expected auto, cpu, cuda or cuda:N"),
    (["config", "print", "--set", "lr=1"], "Did you mean 'optim.lr'?"),
    (["config", "print", "--set", "Optim.LR=1"], "Did you mean 'optim.lr'?"),
    (["config", "print", "--set", "learning_rate=1"], "Did you mean 'optim.lr'?"),
    (["config", "print", "--set", "layers=1"], "Did you mean 'model.n_layers'?"),
    (["config", "print", "--set", "heads=1"], "Did you mean 'model.n_heads'?"),
    (["config", "print", "--set", "epochs=1"], "Did you mean 'train.max_steps'?"),
    (["config", "print", "--set", "norm.scheme=QKNorm"], "Did you mean 'qknorm'?"),
    (["schemes", "rmsnorm"], "Did you mean 'rms'?"),
    (["train", "--set", "train.max_steps=1", "runs/x"], "named before --set"),
])
def test_suggestions(arguments, expected):
    done = run(*arguments, check=USAGE)
    assert expected in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize("arguments, expected", [
    (["plan", "--speed", "-1"], "--speed: got '-1', expected a number above 0"),
    (["generate", "x", "--tokens", "-1"], "--tokens: got '-1', expected a whole number from 0"),
    (["generate", "x", "--top-p", "2"], "--top-p: got '2', expected a number from 0 to 1"),
    (["inspect", "x", "--windows", "0"], "--windows: got '0', expected a whole number from 1"),
    (["eval", "x", "--windows", "1.5"], "--windows: got '1.5', expected a whole number from 0"),
])
def test_ranges_are_readable(arguments, expected):
    done = run(*arguments, check=USAGE)
    assert expected in done.stderr and not re.search(r"\d{20}", done.stderr)


def test_a_study_is_for_compare(tmp_path):
    for recipe in ["lp-shakespeare-quick", "angpt-ablation"]:
        done = run("train", "-c", ROOT / f"recipes/{recipe}.toml", "--out", tmp_path / "run", check=USAGE)
        assert "use `normlab compare`" in done.stderr and f"{recipe}.toml:" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_folder_of_text_hints_at_translation(tmp_path):
    done = run("train", "--data", tmp_path, "--out", tmp_path / "run", check=DATA)
    assert "is a folder" in done.stderr and "translation.source" in done.stderr


def test_the_run_is_an_argument_or_an_option(text, tmp_path):
    settings = ["--data", text, "--set", *TINY, "train.max_steps=2"]
    run("train", tmp_path / "a", *settings, check=0)
    run("train", "--out", tmp_path / "b", *settings, check=0)
    run("train", tmp_path / "a", "--resume", "--set", "train.max_steps=3", check=0)
    run("train", "--resume", "--out", tmp_path / "b", "--set", "train.max_steps=3", check=0)
    for verb, rest in [("eval", []), ("generate", ["--tokens", 3]), ("inspect", ["--windows", 1]),
                       ("export", ["--out", tmp_path / "exported"])]:
        by_place = run(verb, tmp_path / "a", *rest, check=0).stdout
        shutil.rmtree(tmp_path / "exported", ignore_errors=True)
        assert run(verb, "--run", tmp_path / "a", *rest, check=0).stdout == by_place
        shutil.rmtree(tmp_path / "exported", ignore_errors=True)


@pytest.fixture(scope="module")
def translator(pairs, tmp_path_factory):  # noqa: F811
    folder = tmp_path_factory.mktemp("translator") / "run"
    return folder, train_pairs(pairs, folder, "train.max_steps=60", "train.eval_every=20")


def test_translators_are_evaluated_and_inspected(translator):
    folder, summary = translator
    report = json.loads(run("eval", folder, "--json", check=0).stdout)
    assert report["bleu"] == pytest.approx(summary["best_bleu"], abs=1e-9)
    assert report["loss"] > 0 and report["pairs"] > 0
    assert "BLEU" in run("eval", folder, "--windows", 2, check=0).stdout
    shown = run("inspect", folder, check=0).stdout
    assert all(place in shown for place in ("encoder layer 0", "decoder layer 0", "cross-attention layer 0"))
    readings = json.loads((folder / "inspect.json").read_text())["readings"]
    assert 0 <= readings["attn/cross00/relative_entropy"] <= 1
    assert run("translate", folder, input="", check=0).stdout == ""


def test_the_best_bleu_has_a_step_and_the_lowest_loss_has_not(translator):
    folder, summary = translator
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    best = max((row for row in rows if "val_bleu" in row), key=lambda row: row["val_bleu"])
    assert "best_step" not in summary and summary["best_bleu_step"] == best["step"]
    assert summary["best_loss"] == min(row["val_loss"] for row in rows if "val_loss" in row)


def test_export_leaves_the_optimiser_out_unless_asked(text, tmp_path):
    train(text, tmp_path / "run")
    run("export", tmp_path / "run", "--out", tmp_path / "small", check=0)
    assert not (tmp_path / "small/optimizer.safetensors").exists()
    run("export", tmp_path / "run", "--out", tmp_path / "full", "--optimizer", check=0)
    moments = (tmp_path / "run/checkpoints/best/optimizer.safetensors").read_bytes()
    assert (tmp_path / "full/optimizer.safetensors").read_bytes() == moments
    assert run("eval", tmp_path / "small", check=0).stdout.split("\n")[1:] == \
        run("eval", tmp_path / "full", check=0).stdout.split("\n")[1:]
    run("export", tmp_path / "run", "--out", tmp_path / "none", "--optimizer", "--absorb", check=USAGE)


@pytest.mark.parametrize("folder", ["runs/plain", "runs/it's mine"])
def test_next_commands_paste(text, tmp_path, folder):
    """As the program was called, with quotes where they are needed."""
    (tmp_path / "build").mkdir()
    (tmp_path / "build/normlab").symlink_to(BINARY)
    done = subprocess.run(["build/normlab", "train", folder, "--data", str(text), "--set", *TINY, "train.max_steps=1"],
                          cwd=tmp_path, capture_output=True, text=True)
    command = re.search(r"^next: (build/normlab generate .*)$", done.stderr, re.MULTILINE)[1]
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True, capture_output=True)


def on_a_terminal(columns, *arguments):
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    process = subprocess.Popen([str(BINARY), *map(str, arguments)], stdout=its, stderr=subprocess.DEVNULL,
                               env={**environment, "TERM": "xterm"})
    os.close(its)
    text = b""
    try:
        while part := os.read(ours, 65536):
            text += part
    except OSError:  # the other end is closed
        pass
    process.wait()
    return text.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("verb", VERBS)
def test_help_fits_a_terminal(verb):
    for lines in (on_a_terminal(80, verb, "--help"), run(verb, "--help", env={"COLUMNS": "80"}, check=0).stdout):
        assert len(lines) > 100 and max(map(len, lines.splitlines())) <= 80
        assert len(lines.splitlines()) <= 50  # a screen
    assert max(map(len, on_a_terminal(60, verb, "--help").splitlines())) <= 66  # a long word is not broken


@pytest.mark.parametrize("arguments", [
    ["plan", "-c", ROOT / "recipes/scaling-paper.toml", "--vocab", 50257, "--speed", "1e14", "--machines", 64],
    ["schemes", "lp"], ["schemes"], ["doctor"], ["config", "explain", "norm.gain_init", "matched", "metrics"]],
    ids=lambda arguments: arguments[0])
def test_output_fits_a_terminal(arguments):
    lines = on_a_terminal(80, *arguments).splitlines()
    assert lines and [line for line in lines if len(line) > 80 and " " in line.strip()] == []


def test_long_durations_are_in_days():
    done = run("plan", "-c", ROOT / "recipes/scaling-paper.toml", "--vocab", 50257, "--speed", "1e12", check=0)
    assert re.search(r"^one machine: \d+ d \d+ h$", done.stdout, re.MULTILINE)


def cpu_seconds():
    """Of the programs run so far: other work on the machine does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_large_study_is_planned_within_seconds(text, tmp_path):
    """3,000 variants in ten folds: what is compared pairwise takes minutes."""
    p = [round(0.5 + 0.01 * i, 2) for i in range(300)]
    start = cpu_seconds()
    done = run("compare", "--data", text, "--dry-run", "--json", "--set", "norm.scheme=lp", f"norm.p={p}",
               f"optim.lr={[i * 1e-4 for i in range(1, 11)]}", "optim.min_lr=0", *TINY, check=0)
    assert json.loads(done.stdout)["trials"] == 30000
    assert cpu_seconds() - start < 10  # of two threads: five seconds


def test_a_text_of_a_gigabyte_is_planned_within_seconds(text, tmp_path):
    """Its beginning is read; the rest is a hole that would be refused as binary."""
    large = tmp_path / "large.txt"
    content = text.read_text() + "\n"
    large.write_text(content * (17 * 2**20 // len(content) + 1))
    os.truncate(large, 2**30)
    for unit in ("char", "byte"):
        start = cpu_seconds()
        done = run("compare", "--data", large, "--dry-run", "--json", "--set", "norm.scheme=[none,qknorm]",
                   f"data.tokenizer={unit}", "train.eval_every=10", *TINY, check=0)
        assert cpu_seconds() - start < 10
        plan = json.loads(done.stdout)
        assert plan["estimated"] is True
        # Ten evaluations of a tenth of the text cost more than the training: the size was not taken from the beginning.
        assert plan["plan"][0]["flops"] > 1e10
    start = cpu_seconds()
    done = run("compare", "--data", large, "--budget", "30m", "--dry-run", cwd=tmp_path, check=0)
    assert cpu_seconds() - start < 25  # it measures the machine up to four times
    assert "estimated from its beginning" in done.stdout


def test_the_speed_of_a_large_model_is_measured_within_seconds(text):
    start = cpu_seconds()
    run("compare", "--data", text, "--dry-run", "--set", "norm.scheme=[none,qknorm]", "model.d_model=768",
        "model.n_heads=12", "model.n_layers=12", "model.seq_len=128", "train.batch_size=64", "data.fold=[0]", check=0)
    assert cpu_seconds() - start < 10  # of two threads; ten steps would take ten minutes


def test_a_long_training_says_so_and_shows_progress_at_once(text, tmp_path):
    process = subprocess.Popen([str(BINARY), "train", "--data", str(text), "--out", str(tmp_path / "run")],
                               stderr=subprocess.PIPE, text=True)
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "first evaluation" in line:
            break
    process.terminate()
    process.wait(120)
    assert re.fullmatch(r"about (\d+ d )?\d+ (h|min)\b.* for \d+ steps on this machine; a smaller model takes minutes: "
                        r"-c recipes/shakespeare-cpu.toml\n", lines[-2]), lines
    assert lines[0].startswith("reading ")


def complete(*words):
    """What bash offers for the last word."""
    script = """
        source <("$1" completion bash); shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _normlab
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(["bash", "-c", script, "bash", str(BINARY), "normlab", *words], capture_output=True, text=True,
                          check=True, cwd=ROOT)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes():
    assert set(complete("")) >= set(VERBS)
    assert complete("tra") == ["train", "translate"]
    assert complete("config", "ex") == ["explain"]
    assert "--temperature" in complete("generate", "--") and "--temperature" not in complete("train", "--")
    assert complete("train", "--res") == ["--resume"]
    assert complete("train", "--set", "optim.l") == ["optim.lr="]
    assert complete("train", "--set", "norm.p=3", "optim.l") == ["optim.lr="]
    assert complete("train", "--set", "norm.scheme", "=", "qk") == ["qknorm", "qk-clip"]
    assert complete("train", "--set", "model.activation", "=") == ["gelu", "gelu_tanh", "relu", "swiglu", "geglu"]
    assert complete("schemes", "angp") == ["angpt"]
    assert complete("config", "explain", "norm.gain_") == [key for key in complete("config", "explain", "norm.")
                                                           if key.startswith("norm.gain_")] != []
    assert sorted(complete("train", "-c", "recipes/shakes")) == ["recipes/shakespeare-cpu.toml", "recipes/shakespeare.toml"]


@pytest.mark.parametrize("shell, check", [("bash", ["-n"]), ("zsh", ["-n"]), ("fish", ["--no-execute"])])
def test_completion_scripts_are_valid(shell, check, tmp_path):
    script = run("completion", shell, check=0).stdout
    for word in ("train", "resume", "norm.scheme", "ngpt", "explain"):
        assert word in script
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(script)
    subprocess.run([shell, *check, tmp_path / "script"], check=True)
    if shell == "fish":
        offered = subprocess.run(["fish", "-c", f"source {tmp_path}/script; complete -C 'normlab train --res'"],
                                 capture_output=True, text=True, check=True).stdout
        assert offered.startswith("--resume")


def test_the_manual_page_names_every_verb_and_option(tmp_path):
    page = tmp_path / "normlab.1"
    page.write_text(run("manual", check=0).stdout)
    if not shutil.which("man"):
        pytest.skip("man is not installed")
    done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, check=True,
                          env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""})
    assert done.stderr == ""
    shown = re.sub(".\b", "", done.stdout)
    for verb in VERBS:
        assert f"normlab {verb} " in shown
    for option in ("--resume", "--temperature", "--dry-run", "--threads-per-trial"):
        assert option in shown
    assert re.search(r"Exit\s+codes", shown)  # lines are justified
