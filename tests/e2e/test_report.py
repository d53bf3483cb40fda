"""normlab report: on made-up studies, whole and broken, and on a real one."""
import csv
import json
import re
import shutil
import xml.etree.ElementTree

import pytest
from conftest import TINY, metrics, run
from synthetic_study import SyntheticStudy

FILES = ["report.html", "report.md", "report.json", "summary.csv", "trials.csv"]
TIMES = {"summary.csv": "median_cpu_seconds", "trials.csv": "cpu_seconds"}  # the first column of times


def rows(file):
    with open(file, newline="") as lines:
        return list(csv.DictReader(lines))


def timeless(file):
    """A table without its columns of times."""
    with open(file, newline="") as lines:
        table = list(csv.reader(lines))
    end = table[0].index(TIMES[file.name])
    return [row[:end] for row in table]


@pytest.fixture
def study(tmp_path):
    return SyntheticStudy(tmp_path / "study", axes={"norm.p": [1, 2, 3]}, folds=6, steps=500)


def test_report_of_a_whole_study(study):
    done = run("report", study.folder, check=0)
    assert re.match(r"p = 3 beats p = 2: its final loss is 0\.0\d+ ± 0\.\d+ nats \(\d\.\d+ %\) lower over 6 folds \(adjusted "
                    r"95 % interval; adjusted p-value .*\)\.", done.stdout)
    assert str(study.folder / "report.html") in done.stdout
    assert all((study.folder / name).stat().st_size > 500 for name in FILES)
    assert done.stdout.split("\n")[0].replace("<", "\\<") in (study.folder / "report.md").read_text()
    charts = {"loss", "differences", "time", "folds", "gains"}
    assert {path.stem for path in (study.folder / "charts").iterdir()} == charts
    for path in (study.folder / "charts").iterdir():
        xml.etree.ElementTree.parse(path)
        assert f"charts/{path.name}" in (study.folder / "report.md").read_text()

    summary, trials = rows(study.folder / "summary.csv"), rows(study.folder / "trials.csv")
    assert [row["variant"] for row in summary] == ["p = 1", "p = 2", "p = 3"]
    assert len(trials) == 18 and {row["status"] for row in trials} == {"finished"}
    means = {row["variant"]: sum(float(t["final_loss"]) for t in trials if t["variant"] == row["variant"]) / 6
             for row in summary}
    for row in summary:
        assert float(row["final_loss"]) == pytest.approx(means[row["variant"]], abs=1e-12)
        difference = float(row["difference"] or 0)
        assert difference == pytest.approx(means[row["variant"]] - means["p = 2"], abs=1e-12)
    assert summary[1]["holm_p_value"] == "" and float(summary[0]["holm_p_value"]) < 0.05
    for row in [summary[0], summary[2]]:
        low, high = float(row["adjusted_low"]), float(row["adjusted_high"])
        assert (low > 0 or high < 0) == (float(row["holm_p_value"]) <= 0.05)
        assert low <= float(row["interval_low"]) <= float(row["interval_high"]) <= high
        assert int(row["reached_blocks"]) <= int(row["target_blocks"]) == 6
        assert (row["speed_up_steps_low"] == "") == (row["reached_blocks"] != "6")
    gains = [float(trials[0][f"gain_layer_{layer}"]) for layer in range(6)]
    assert gains == sorted(gains)


def test_json_is_printed_and_written(study):
    printed = json.loads(run("report", study.folder, "--json", check=0).stdout)
    assert printed == json.loads((study.folder / "report.json").read_text())
    assert printed["baseline"] == "p = 2" and len(printed["trials"]) == 18
    assert printed["test_train_ratio"] == pytest.approx(1 / 9)


def test_repeating_gives_the_same_bytes(study):
    run("report", study.folder, check=0)
    first = {name: (study.folder / name).read_bytes() for name in FILES}
    run("report", study.folder, check=0, env={"LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Kathmandu"})
    assert first == {name: (study.folder / name).read_bytes() for name in FILES}


def test_tables_of_equal_results_differ_in_times_only(study, tmp_path):
    run("report", study.folder, check=0)
    other = tmp_path / "other"
    shutil.copytree(study.folder, other)
    for path in other.glob("trials/*/*/metrics.jsonl"):
        slower = [{**row, "train_seconds": 3 * row["train_seconds"], "train_cpu_seconds": 2 * row["train_cpu_seconds"]}
                  for row in metrics(path.parent, timeless=False)]
        path.write_text("".join(json.dumps(row) + "\n" for row in slower))
    run("report", other, check=0)
    for name in TIMES:
        assert (study.folder / name).read_bytes() != (other / name).read_bytes()
        assert timeless(study.folder / name) == timeless(other / name)


def test_options(study):
    default = json.loads(run("report", study.folder, "--json", check=0).stdout)
    other = json.loads(run("report", study.folder, "--json", "--baseline", "p = 3", check=0).stdout)
    assert other["baseline"] == "p = 3" and other["variants"][2]["difference"] is None
    assert other["differences_by_block"]["p = 2"]["0"] == -default["differences_by_block"]["p = 3"]["0"]
    target = json.loads(run("report", study.folder, "--json", "--target", "2.5", check=0).stdout)
    assert target["target_loss"] == 2.5 and default["target_loss"] is None
    assert 0 < target["variants"][1]["steps_to_target"] < default["variants"][1]["steps_to_target"]
    assert "--target 2.5" in target["command"]


@pytest.mark.parametrize("options, words", [
    (["--baseline", "p = 22"], "Did you mean 'p = 2'?"),
    (["--baseline", "none at all"], "There are: p = 1; p = 2; p = 3."),
    (["--target", "1,6"], "expected a loss, such as 1.6"),
    (["--target", "nan"], "expected a loss"),
    (["--target", "-1"], "expected a loss"),
    (["--target", "9"], "starts at this loss"),
])
def test_wrong_options(study, options, words):
    assert words in run("report", study.folder, *options, check=2).stderr
    assert not (study.folder / "report.html").exists()


def test_unfinished_study(study):
    for p, fold in [(1, 0), (3, 5)]:
        shutil.rmtree(study.trial_folder({"norm.p": p}, fold))
    for status, p, fold in [("diverged", 1, 1), ("crashed", 3, 2), ("started", 2, 3)]:
        shutil.rmtree(study.trial_folder({"norm.p": p}, fold))
        study.write_trial({"norm.p": p}, fold, status, last=250)
    (study.trial_folder({"norm.p": 3}, 4) / "metrics.jsonl").write_text("garbage\n")
    shown = run("report", study.folder, check=0).stdout
    assert "12 of 18 trials finished, 1 diverged, 1 started, 2 missing, 1 crashed, 1 damaged" in shown
    assert "p = 3, fold 2 crashed: it was <killed> & gone" in shown
    assert "p = 1 diverged in 1 of 6 trials" in shown
    page = (study.folder / "report.html").read_text()
    assert "it was &lt;killed&gt; &amp; gone" in page and "<killed>" not in page
    trials = {(row["variant"], row["fold"]): row for row in rows(study.folder / "trials.csv")}
    assert trials["p = 1", "1"]["status"] == "diverged" and trials["p = 1", "1"]["final_loss"] == ""
    assert trials["p = 2", "3"]["step"] == "250" and trials["p = 1", "0"]["step"] == ""
    summary = {row["variant"]: row for row in rows(study.folder / "summary.csv")}
    assert summary["p = 1"]["finished"] == "4" and summary["p = 1"]["diverged"] == "1"
    assert summary["p = 1"]["paired_blocks"] == "3" and summary["p = 3"]["paired_blocks"] == "2"


def test_nothing_finished(study):
    shutil.rmtree(study.folder / "trials")
    shown = run("report", study.folder, check=0).stdout
    assert shown.startswith("No trial has finished yet: 0 of 18 trials.")
    assert "No trial has finished yet" in (study.folder / "report.html").read_text()


def test_one_fold(tmp_path):
    study = SyntheticStudy(tmp_path / "study", axes={"norm.p": [2, 3]}, folds=1, steps=500)
    shown = run("report", study.folder, check=0).stdout
    assert "one fold" in shown and "interval" not in shown.split("\n")[0]
    assert rows(study.folder / "summary.csv")[1]["p_value"] == ""


def test_grid_of_two_axes(tmp_path):
    study = SyntheticStudy(tmp_path / "study", folds=3, steps=500,
                           axes={"norm.p": [1, 2, 3], "norm.gain_init": ["1", "matched"]},
                           study={"study.baseline": "p = 2, gain_init = 1"})
    report = json.loads(run("report", study.folder, "--json", check=0).stdout)
    assert [group["group"] for group in report["groups"]] == ["gain_init = 1", "gain_init = matched"]
    charts = {path.stem for path in (study.folder / "charts").iterdir()}
    assert {"grid", "gains-1", "gains-2", "differences-1", "differences-2"} <= charts


def test_what_is_no_study(tmp_path, study):
    assert "is not a study" in run("report", tmp_path, check=3).stderr
    assert "is not a study" in run("report", tmp_path / "nowhere", check=3).stderr
    file = study.folder / "study.toml"
    text = file.read_text()
    file.write_text(text.replace('"0.1.0"', '"99.0.0"') + "\n[future]\nkey = 1\n")
    assert "99.0.0" in run("report", study.folder, check=3).stderr
    file.write_text("nonsense = [")
    assert run("report", study.folder).returncode in (2, 3)


def test_folder_that_cannot_be_written(study):
    (study.folder / "charts").write_text("in the way")
    done = run("report", study.folder, check=1)
    assert "charts" in done.stderr and not (study.folder / "report.html").exists()


def test_a_real_study(tmp_path, text):
    """The trials of `normlab compare` themselves."""
    folder = tmp_path / "study"
    run("compare", "--data", text, "--out", folder, "--set", *TINY, "norm.scheme=lp", "norm.p=[2,3]",
        "data.fold=[0,1,2]", check=0)
    report = json.loads(run("report", folder, "--json", check=0).stdout)
    assert report["progress"] == "6 of 6 trials finished" and report["baseline"] == "p = 2"
    for trial in report["trials"]:
        last = [row for row in metrics(folder / trial["folder"]) if "val_loss" in row][-1]
        assert trial["final_loss"] == last["val_loss"] and trial["step"] == last["step"] == 20
        assert trial["gain_layer_0"] > 0 and trial["gain_layer_1"] > 0 and trial["cpu_seconds"] > 0
