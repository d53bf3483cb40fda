"""Diagnostics: probes change nothing, watchdogs warn, a diverging run names its culprit, inspect makes a page."""
import json
import pathlib
import shutil
import struct

import pytest
from browser import Browser
from conftest import TINY, metrics, run, train, weights

DIVERGES = ["norm.sublayer=none", "optim.lr=1", "optim.min_lr=1", "optim.clip=0", "optim.warmup_steps=0",
            "optim.weight_decay=0", "train.max_steps=200", "train.eval_every=5"]


def probe_rows(folder):
    return [row for row in metrics(folder) if any("/" in key for key in row)]


def tags(folder):
    """Tags of the TensorBoard file, by its framing: length, checksum, event, checksum."""
    found = set()
    for file in folder.glob("events.out.tfevents.*"):
        data = file.read_bytes()
        while data:
            size = struct.unpack("<Q", data[:8])[0]
            event, data = data[12:12 + size], data[16 + size:]
            found |= {part for part in [b"attn/layer01/head1/entropy", b"attn/layer01/entropy", b"update/layer00/w_q",
                                        b"output/log_partition"] if part in event}
    return found


@pytest.mark.parametrize("kernels", ["fused", "composite"])
def test_probes_change_no_bit_of_the_training(text, tmp_path, kernels):
    settings = [f"model.kernels={kernels}", "norm.scheme=lp", "model.dropout=0.1", "train.accumulate=2"]
    train(text, tmp_path / "plain", *settings)
    train(text, tmp_path / "probed", *settings, "probe.every=3")
    plain, probed = weights(tmp_path / "plain"), weights(tmp_path / "probed")
    assert all(plain[name].tobytes() == probed[name].tobytes() for name in plain)
    assert metrics(tmp_path / "plain") == [row for row in metrics(tmp_path / "probed")
                                           if not any("/" in key for key in row) and "warning" not in row]
    rows = probe_rows(tmp_path / "probed")
    assert [row["step"] for row in rows] == [3, 6, 9, 12, 15, 18]
    names = {"attn/layer00/entropy", "attn/layer01/head1/max_logit", "grad/layer00/w_q", "grad/layer01/mlp_out",
             "update/layer01/w_o", "update/layer00/angle_w_q", "stream/layer02/norm", "output/log_partition",
             "attn/layer00/gain"}
    assert names <= rows[0].keys()
    assert all(isinstance(value, (int, float)) for value in rows[0].values())
    assert len(tags(tmp_path / "probed")) == 4 and not tags(tmp_path / "plain")


def test_a_stopped_run_goes_on_with_its_probes(text, tmp_path):
    train(text, tmp_path / "whole", "probe.every=2", "norm.scheme=qknorm")
    train(text, tmp_path / "parts", "probe.every=2", "norm.scheme=qknorm", "train.max_steps=10",
          "optim.decay_steps=20")
    run("train", "--resume", "--out", tmp_path / "parts", "--set", "train.max_steps=20", "--threads", 1, check=0)
    assert probe_rows(tmp_path / "whole") == probe_rows(tmp_path / "parts")


def test_a_diverging_run_names_the_culprit_and_keeps_its_checkpoint(text, tmp_path):
    folder = tmp_path / "run"
    done = train(text, folder, *DIVERGES, check=4)
    last = metrics(folder)[-1]
    assert last["diverged"] is True
    assert last["culprit"] in done.stderr and "layer " in last["culprit"]
    kept = run("eval", folder / "checkpoints" / "latest", "--json", check=0)
    assert json.loads(kept.stdout)["step"] < last["step"]


def test_the_same_run_with_normalised_queries_and_keys_goes_further_or_is_warned_of(text, tmp_path):
    """Rate 1 with LayerNorm: nothing overflows, and the watchdogs say what is wrong."""
    settings = ["optim.lr=1", "optim.min_lr=1", "optim.clip=0", "train.max_steps=30", "probe.every=1"]
    done = run("train", "--data", text, "--out", tmp_path / "plain", "--threads", 1, "--set", *TINY, *settings)
    assert done.returncode in (0, 4)
    assert "warning: logit growth" in done.stderr and "layer 0, head" in done.stderr
    assert "norm.scheme=qknorm" in done.stderr
    assert any("logit growth" in row.get("warning", "") for row in metrics(tmp_path / "plain"))
    calm = run("train", "--data", text, "--out", tmp_path / "normed", "--threads", 1, "--set", *TINY, *settings,
               "norm.scheme=qknorm", "norm.learn_gain=false", check=0)
    assert "logit growth" not in calm.stderr


@pytest.fixture(scope="module")
def trained(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspect") / "run"
    train(text, folder, "norm.scheme=qknorm", "train.max_steps=40")
    return folder


def test_inspect_writes_page_and_data(trained, tmp_path):
    out = tmp_path / "page.html"
    done = run("inspect", trained, "--out", out, "--head", "1.0", "--windows", 3, "--tokens", 10, check=0)
    assert str(out) in done.stdout
    data = json.loads(out.with_suffix(".json").read_text())
    assert data["windows"] == 3 and data["tokens"] == 16 and len(data["map_tokens"]) == 10
    assert data["readings"]["attn/layer01/head0/entropy"] > 0
    [chosen] = data["maps"]
    assert (chosen["layer"], chosen["head"]) == (1, 0)
    for i, row in enumerate(chosen["weights"]):
        assert abs(sum(row[:i + 1]) - 1) < 1e-9 and all(value is None for value in row[i + 1:])
        assert all(value is None for value in chosen["logits"][i][i + 1:])
    assert len(data["spectra"]) == 4 and len(data["entropy_floors"]) == 4
    assert json.loads(run("inspect", trained, "--out", out, "--json", check=0).stdout)["step"] == 40


def test_inspect_of_another_text(trained, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("The king spoke\nThe king spoke t")  # a whole window, and a shorter one
    data = json.loads(run("inspect", trained / "checkpoints" / "latest", "--text", other, "--out",
                          tmp_path / "o.html", "--json", check=0).stdout)
    assert data["windows"] == 1 and str(other) in data["text"]


@pytest.mark.parametrize("arguments, code, said", [
    (["--head", "9.0"], 2, "from 0.0 to 1.1"),
    (["--head", "1"], 2, "LAYER.HEAD"),
    (["--windows", "0"], 2, "--windows"),
    (["--tokens", "1"], 2, "--tokens"),
    (["--text", "no/such/file.txt"], 2, "file.txt"),
])
def test_inspect_refuses(trained, tmp_path, arguments, code, said):
    out = tmp_path / "x.html"
    done = run("inspect", trained, "--out", out, *arguments)
    assert done.returncode in (code, 3) and said in done.stderr and not out.exists()


def test_inspect_refuses_a_text_without_tokens_to_attend_to(trained, tmp_path):
    (tmp_path / "short.txt").write_text("Th")
    assert "fewer than three" in run("inspect", trained, "--text", tmp_path / "short.txt", check=3).stderr


def test_the_page_in_a_browser(trained, tmp_path):
    if not shutil.which("chromium"):
        pytest.fail("chromium is not installed: tools/install_packages.sh test")
    run("inspect", trained, "--out", tmp_path / "page.html", check=0)
    browser = Browser()
    try:
        browser.open(tmp_path / "page.html")
        ids = browser.evaluate("[...document.querySelectorAll('figure')].map(f => f.id)")
        assert {"largest-layer", "relative-entropy-by-position-layer", "largest-logit-by-position-layer", "spectra",
                *(f"{chart}-layer0{layer}-{head}" for chart in ("attention", "logits", "histogram")
                  for layer in range(2) for head in range(2))} == set(ids)
        assert browser.evaluate("document.querySelector('.verdict').innerText").startswith("The sharpest head is layer")
        assert browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert browser.log == []
        page = (pathlib.Path(tmp_path) / "page.html").resolve().as_uri()
        assert [url for url in browser.requests if not url.startswith("data:")] == [page]
    finally:
        browser.close()


def test_a_study_of_rates_draws_loss_logits_and_entropy(text, tmp_path):
    run("compare", "--data", text, "--out", tmp_path / "study", "--nice", 0, "--set", *TINY,
        "norm.scheme=[none,qknorm]", "optim.lr=[0.001,0.1]", "optim.min_lr=0", "data.fold=[9]",
        "train.seed=[1,2]", "train.max_steps=10", "train.eval_every=5", "probe.every=5", "probe.heads=false", check=0)
    found = json.loads(run("report", tmp_path / "study", "--json", check=0).stdout)["learning_rate_sensitivity"]
    assert {name: len(values) for name, values in found.items()} == {"none": 2, "qknorm": 2}
    for scheme, values in found.items():
        for seed, value in zip([1, 2], values):
            losses, start = [], None
            for rate in ["0.001", "0.1"]:
                rows = [row for row in metrics(tmp_path / "study" / "trials" / f"{scheme},lr={rate}" /
                                            f"fold09-seed{seed}") if "val_loss" in row]
                start = rows[0]["val_loss"]
                losses.append(min(rows[-1]["val_loss"], start))
            assert value == pytest.approx(sum(losses) / 2 - min(losses), abs=1e-12)
    charts = {path.stem for path in (tmp_path / "study" / "charts").iterdir()}
    assert {"rates", "logits", "entropy", "logits-end"} <= charts
    assert "How stable is it?" in (tmp_path / "study" / "report.md").read_text()


def test_theory_draws_its_charts(tmp_path):
    rows = json.loads(run("theory", "--json", "--out", tmp_path / "charts", check=0).stdout)
    assert {path.name for path in (tmp_path / "charts").iterdir()} == {
        "theory-spread.svg", "theory-frobenius.svg", "theory-entropy.svg", "theory-gradient.svg"}
    scaled = [row for row in rows if row["logits"] == "q.k / sqrt(d)"]
    assert all(0.9 < row["logit_std"] < 1.1 for row in scaled)
    assert run("theory", "--json", "--seed", 2, check=0).stdout != run("theory", "--json", check=0).stdout
    assert "q.k / sqrt(d)" in run("theory", check=0).stdout
