"""read_run, read_study and compare."""
import os
import signal
import subprocess
import sys
import time

import pytest

pandas = pytest.importorskip("pandas", reason="data frames need pandas")

import normlab  # noqa: E402
from program_runs import LM, run  # noqa: E402

SMALL = dict(setting.split("=") for setting in LM) | {"data.fold": [0, 1], "norm.scheme": ["none", "qknorm"]}


@pytest.fixture(scope="session")
def recipe(tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "recipe.toml"
    path.write_text('[study]\ntitle = "two schemes"\n\n[norm]\nscheme = ["none", "qknorm"]\n')
    return path


@pytest.fixture(scope="session")
def study(text, recipe, tmp_path_factory):
    return normlab.compare(recipe, data=text, set=SMALL, out=tmp_path_factory.mktemp("study") / "study")


def test_metrics_of_a_run(lm_run):
    read = normlab.read_run(lm_run)
    assert read.config["model.n_layers"] == 2 and read.config["norm.scheme"] == "qknorm"
    assert read.metrics.index.tolist() == list(range(21))
    assert read.metrics["val_loss"].dropna().index.tolist() == [0, 10, 20]
    assert read.metrics.loc[1:, "loss"].notna().all() and "warning" not in read.metrics
    assert read.metrics.loc[20, "val_loss"] < read.metrics.loc[0, "val_loss"]


def test_probes_of_a_run(lm_run):
    probes = normlab.read_run(lm_run).probes
    assert set(probes["step"]) == {10, 20} and set(probes["group"]) == {"attn", "grad", "update", "stream", "output"}
    entropy = probes.query("quantity == 'entropy' and step == 20")
    assert len(entropy[entropy["head"].isna()]) == 2 and len(entropy[entropy["head"].notna()]) == 4
    layer = entropy[(entropy["layer"] == 0)]
    mean = layer[layer["head"].notna()]["value"].mean()
    assert mean == pytest.approx(layer[layer["head"].isna()]["value"].item(), abs=1e-5)


def test_a_run_that_is_being_written(copied_run):
    whole = normlab.read_run(copied_run).metrics
    with open(copied_run / "metrics.jsonl", "a") as file:
        file.write('{"step": 21, "lo')
    pandas.testing.assert_frame_equal(normlab.read_run(copied_run).metrics, whole)
    with open(copied_run / "metrics.jsonl", "a") as file:
        file.write("\n")
    with pytest.raises(ValueError, match="is damaged: line .* is not JSON"):
        normlab.read_run(copied_run)


def test_values_that_json_cannot_hold(copied_run):
    with open(copied_run / "metrics.jsonl", "a") as file:
        file.write('{"step": 21, "loss": "nan", "grad_norm": "inf", "diverged": true}\n')
    last = normlab.read_run(copied_run).metrics.loc[21]
    assert last["grad_norm"] == float("inf") and last["diverged"] and pandas.isna(last["loss"])


def test_trials_of_a_study(study):
    trials = study.trials
    assert sorted(zip(trials["variant"], trials["fold"])) == [("none", 0), ("none", 1), ("qknorm", 0), ("qknorm", 1)]
    assert (trials["status"] == "finished").all() and trials["final_loss"].between(1, 4).all()
    first = trials.iloc[0]
    last = normlab.read_run(study.folder / first["folder"]).metrics["val_loss"].dropna().iloc[-1]
    assert last == pytest.approx(first["final_loss"])
    assert study.variants.set_index("variant").loc["none", "finished"] == 2
    assert len(normlab.read_study(study.folder).trials) == 4


def test_the_report_is_shown_inline(study):
    page = study._repr_html_()
    assert page.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;') and page.count('"') == page.count('="') * 2
    assert study.verdict in repr(study)


def test_folders_that_are_neither(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a run"):
        normlab.read_run(tmp_path)
    with pytest.raises(FileNotFoundError, match="is not a study"):
        normlab.read_study(tmp_path)


def test_the_program_says_what_is_wrong(recipe, text, tmp_path):
    with pytest.raises(RuntimeError, match="there is no scheme 'qknrm'"):
        normlab.compare(recipe, data=text, set={"norm.scheme": ["none", "qknrm"]}, out=tmp_path / "study")
    with pytest.raises(ValueError, match="no folder for the study"):
        normlab.compare(recipe)


def test_a_program_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("NORMLAB_BINARY", str(tmp_path / "normlab"))
    with pytest.raises(FileNotFoundError, match="there is no program normlab in NORMLAB_BINARY="):
        normlab.compare(data="my.txt", budget="1m")


def test_without_pandas(lm_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        normlab.read_run(lm_run)


INTERRUPTED = """
import sys, normlab
try:
    normlab.compare(sys.argv[1], data=sys.argv[2], out=sys.argv[3], jobs=1,
                    set={"data.folds": 2, "train.max_steps": 2000, "train.eval_every": 2000, "model.n_layers": 2,
                         "model.n_heads": 2, "model.d_model": 32, "model.seq_len": 32})
except KeyboardInterrupt as stop:
    print(stop)
"""


def test_an_interrupt_saves(recipe, text, tmp_path):
    out = tmp_path / "study"
    child = subprocess.Popen([sys.executable, "-c", INTERRUPTED, recipe, text, out], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 60
    while not list(out.glob("trials/*/*/metrics.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does: everything that belongs to the call
    said, errors = child.communicate(timeout=60)
    assert f"resume with normlab.compare(out='{out}')" in said, errors
    run("check", out)
    saved = [folder for folder in out.glob("trials/*/*/checkpoints/latest")]
    assert saved and not list(out.glob("trials/*/*/trial.json"))
