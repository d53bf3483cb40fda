"""The command line: help, versions, machine-readable output, colours."""
import json
import os
import pty
import re
import subprocess

import numpy
import pytest
import safetensors
import safetensors.numpy
import tomllib
from conftest import BINARY, ROOT, run

VERBS = ["train", "generate", "translate", "eval", "inspect", "export", "import", "compare", "report", "serve",
         "plan", "fit", "merge", "trial", "schemes", "config", "theory", "score", "bpe", "check", "doctor", "verify", "bench",
         "completion", "manual"]
OVERRIDES = [
    [],
    ["norm.scheme=qknorm"],
    ["norm.scheme=lp", "norm.p=inf", "norm.gain_init=matched", "optim.lr=3e-5", "optim.min_lr=0"],
    ["norm.scheme=lp", "norm.learn_p=true", "norm.p=2.5", "model.positions=rope", "model.n_kv_heads=2"],
    ['data.source=a "quoted" \\ päth.txt', "train.max_steps=7"],
]


def test_help_lists_every_verb():
    text = run("--help", check=0).stdout
    listed = text.split("\nOptions:\n")[0]
    assert re.findall(r"^  (\w+) ", listed, re.MULTILINE) == VERBS
    assert "Exit codes" in text


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_has_an_example(verb):
    done = run(verb, "--help", check=0)
    example = re.search(r"^Examples?:\n((?:  .*\n?)+)", done.stdout, re.MULTILINE)
    assert example and f"normlab {verb}" in example[1]
    assert done.stderr == ""


def test_version():
    assert re.fullmatch(r"normlab \d+\.\d+\.\d+, libtorch \d+\.\d+\.\d+\S*\n", run("--version", check=0).stdout)


def test_schemes():
    rows = json.loads(run("schemes", "--json", check=0).stdout)
    names = [row["name"] for row in rows]
    assert names[:3] == ["none", "qknorm", "lp"]
    assert {"gpt+", "ngpt", "angpt", "rms", "rms-gainless", "olmo2", "layernorm", "cosine", "grouped", "softcap",
            "ssmax", "qk-clip", "sigma-reparam", "z-loss", "scalenorm", "fixnorm", "dyt", "ln-scaling"} <= set(names)
    norm_keys = tomllib.loads(run("config", "print", check=0).stdout)["norm"].keys()
    shown = run("schemes", check=0).stdout
    for row in rows:
        assert row["title"] and row["equation"] and row["source"]
        assert [key.removeprefix("norm.") for key in row["fields"]] == list(norm_keys)
        assert row["name"] in shown and row["equation"] in shown
        assert json.loads(run("schemes", row["name"], "--json", check=0).stdout) == row
        details = run("schemes", row["name"], check=0).stdout
        assert row["source"] in details
        assert all(part in details and served in details for part, served in row["kernels"].items())
        assert all(each["name"] in details for each in row["parameters"])
        assert all(f"{key} = {value}" in details for key, value in row["recommended"].items())
    assert "'lp'" in run("schemes", "lpp", check=2).stderr


@pytest.mark.parametrize("overrides", OVERRIDES, ids=lambda o: " ".join(o) or "defaults")
def test_config_print_round_trip(tmp_path, overrides):
    printed = run("config", "print", *(["--set", *overrides] if overrides else []), check=0).stdout
    config = tomllib.loads(printed)
    for override in overrides:
        key, value = override.split("=", 1)
        section, name = key.split(".")
        assert str(config[section][name]).lower() in (value, str(float(value)) if value[0].isdigit() else value)
    path = tmp_path / "config.toml"
    path.write_text(printed)
    assert run("config", "print", "--config", path, check=0).stdout == printed
    assert run("config", "check", "--config", path, check=0).stdout.strip().endswith("valid")


def test_config_explains_every_key():
    keys = re.findall(r"^(\w+\.\w+)$", run("config", "keys", check=0).stdout, re.MULTILINE)
    config = tomllib.loads(run("config", "print", check=0).stdout)
    assert keys == [f"{section}.{key}" for section, names in config.items() for key in names]
    explained = run("config", "explain", *keys, check=0).stdout
    assert explained.count("expected: ") == explained.count("default: ") == len(keys)
    assert "'norm.p'" in run("config", "explain", "norm.pp", check=2).stderr


def test_config_explains_what_is_measured():
    everything = run("config", "explain", "metrics", check=0).stdout
    names = re.findall(r"^  ([a-z]+/\w+) {2,}\S", everything, re.MULTILINE)
    assert len(names) > 30 and {"attn/entropy", "grad/w_q", "update/angle_w_k", "stream/norm"} <= set(names)
    one = run("config", "explain", "attn/entropy", check=0).stdout
    assert "H_i = -sum_j A_ij ln A_ij" in one
    assert "as the softmax reads them" in everything
    assert "grad/w_q" not in one


def test_config_later_settings_win(tmp_path):
    for name, lr in [("a", 0.1), ("b", 0.2)]:
        (tmp_path / name).write_text(f"[optim]\nlr = {lr}\n")
    files = ["--config", tmp_path / "a", "--config", tmp_path / "b"]
    assert tomllib.loads(run("config", "print", *files, check=0).stdout)["optim"]["lr"] == 0.2
    assert tomllib.loads(run("config", "print", *files, "--set", "optim.lr=0.3", check=0).stdout)["optim"]["lr"] == 0.3


def test_doctor(tmp_path):
    found = json.loads(run("doctor", "--json", check=0).stdout)
    assert {"normlab", "libtorch", "blas", "cpu", "kernels", "torch_instruction_set", "cores", "threads", "memory",
            "cuda", "device", "data tinyshakespeare"} <= found.keys()
    assert found["cores"] >= 1 and found["threads"] >= 1
    shown = run("doctor", check=0).stdout
    assert all(key in shown for key in found)
    nowhere = {"NORMLAB_DATA": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    assert "not found" in json.loads(run("doctor", "--json", check=0, env=nowhere).stdout)["data tinyshakespeare"]


def test_a_missing_device_is_one_sentence(text, tmp_path):
    if "cuda:" in json.loads(run("doctor", "--json", check=0).stdout)["device"]:
        pytest.skip("this machine has CUDA")
    assert json.loads(run("doctor", "--json", check=0).stdout)["device"].startswith("cpu")
    tiny = ["model.n_layers=1", "model.n_heads=2", "model.d_model=8", "model.seq_len=8", "train.max_steps=1"]
    out = tmp_path / "run"
    failed = run("train", "--data", text, "--out", out, "--device", "cuda", "--set", *tiny, check=2).stderr
    assert failed.count("\n") == 1 and "got 'cuda', but there is no such device here" in failed
    assert not out.exists()
    assert "expected auto, cpu, cuda or cuda:N" in run("train", "--data", text, "--out", out, "--device", "gpu", check=2).stderr
    run("train", "--data", text, "--out", out, "--device", "auto", "--set", *tiny, check=0)
    assert tomllib.loads((out / "config.toml").read_text())["train"]["device"] == "cpu"
    for verb in ("eval", "generate", "inspect"):
        assert "[--device] got 'cuda:1'" in run(verb, out, "--device", "cuda:1", check=2).stderr
        run(verb, out, "--device", "cpu", check=0)
    assert "got 'cuda'" in run("train", out, "--resume", "--device", "cuda", check=2).stderr


def on_a_terminal(*arguments, **variables):
    """What a terminal gets from the program's standard error."""
    ours, its = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR")}
    subprocess.run([str(BINARY), *arguments], stdout=subprocess.DEVNULL, stderr=its,
                   env={**environment, "TERM": "xterm", **variables})
    os.close(its)
    return os.read(ours, 65536).decode()


def test_colours():
    assert "\033[31m" in on_a_terminal("schemes", "lpp")
    assert "\033" not in on_a_terminal("schemes", "lpp", NO_COLOR="1")
    assert "\033" not in run("schemes", "lpp", check=2).stderr


@pytest.mark.parametrize("threads", ["-1", "-2", "many", "1.5"])
def test_wrong_threads(threads):
    assert "threads" in run("config", "print", "--threads", threads, check=2).stderr


def test_a_scheme_that_no_fused_kernel_serves_says_so(tmp_path, text):
    settings = ["norm.scheme=olmo2", "model.n_layers=1", "model.n_heads=2", "model.d_model=16", "model.seq_len=16",
                "train.max_steps=1", "train.batch_size=2"]
    done = run("train", "--data", text, "--out", tmp_path / "run", "--set", *settings, check=0)
    assert "composite" in done.stderr and "norm.scope is all_heads" in done.stderr
    assert "model.positions = rope, as the scheme 'olmo2' recommends" in done.stderr


REFERENCES = ["nanogpt-bias", "nanogpt-nobias", "ngpt-baseline", "ngpt", "hf-llama", "hf-llama3", "hf-qwen3",
              "hf-olmo2", "hf-gemma2", "hf-gemma3"]


@pytest.mark.parametrize("kernels", ["best", "composite"])
def test_verify_passes_the_reference_files(kernels):
    files = [ROOT / f"tests/reference/{name}.safetensors" for name in REFERENCES]
    done = run("verify", "--kernels", kernels, *files)
    assert done.returncode == 0, "\n".join(line for line in done.stdout.splitlines() if "ok" not in line)
    assert f"{len(files)} passed, 0 failed" in done.stdout


def test_verify_and_import_list_the_sources_they_take(tmp_path):
    """One list in help, documents and messages, with a reference file for each source."""
    files = {path: safetensors.safe_open(path, "np").metadata()["source"]
             for path in (ROOT / "tests/reference").glob("*.safetensors") if path.stem != "torch-muon"}
    help_text = re.sub(r"\s+", " ", run("verify", "--help", check=0).stdout)
    listed = re.search(r"metadata `source`: ([^.]*)\.", help_text)[1].split(", ")
    assert set(listed) == {*files.values(), "gpt2"}  # gpt2 is compared with transformers in tests/python
    assert len(listed) == len(set(listed)) == 9
    documented = re.search(r"metadata `source` \| which implementation: (.*) \|", (ROOT / "docs/verify.md").read_text())[1]
    assert documented.replace("`", "") == ", ".join(listed)
    safetensors.numpy.save_file({"a": numpy.zeros(1)}, tmp_path / "file", metadata={"source": "keras"})
    assert f"'keras', expected one of {', '.join(listed)}." in run("verify", tmp_path / "file", check=3).stdout
    importable = [source for source in listed if source != "qknorm"]
    assert f"hf, or {', '.join(importable)}; required" in re.sub(r"\s+", " ", run("import", "--help", check=0).stdout)
    refused = run("import", "--from", "qknorm", tmp_path / "file", "--out", tmp_path / "other", check=2).stderr
    assert f"expected one of {', '.join(importable)}. Translators can be verified only." in refused


def test_import_makes_a_checkpoint_that_can_be_used(tmp_path):
    """The reference model has the 65 symbols of Tiny Shakespeare."""
    reference = ROOT / "tests/reference/nanogpt-bias.safetensors"
    done = run("import", "--from", "nanogpt", reference, "--out", tmp_path / "imported")
    if done.returncode == 1 and "tinyshakespeare" in done.stderr:
        pytest.skip(f"Tiny Shakespeare cannot be had here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    report = json.loads(run("eval", tmp_path / "imported", "--windows", 20, "--json", check=0).stdout)
    assert 4 < report["loss"] < 5  # random weights over 65 symbols: about ln 65
    assert len(run("generate", tmp_path / "imported", "--tokens", 5, check=0).stdout) == 7
    other = ROOT / "tests/reference/hf-llama.safetensors"
    assert "n_layer" in run("import", "--from", "nanogpt", other, "--out", tmp_path / "other", check=3).stderr
    assert not (tmp_path / "other").exists()
    assert "nanogpt, ngpt, gpt2, llama, qwen3, olmo2" in run("import", "--from", "keras", other, "--out", tmp_path / "other", check=2).stderr
