"""normlab compare RUN RUN...: finished runs beside each other, and nothing that single runs cannot show."""
import json
import pathlib
import shutil

import pytest
from conftest import run, train

USAGE, DATA = 2, 3


@pytest.fixture(scope="module")
def folder(text, tmp_path_factory):
    made = tmp_path_factory.mktemp("runs")
    train(text, made / "plain")
    train(text, made / "lp", "norm.scheme=lp")
    train(text, made / "seed", "train.seed=7")
    train(text, made / "fold", "data.fold=0")
    train(text, made / "bytes", "data.tokenizer=byte")
    other = made / "other.txt"
    other.write_text(text.read_text().upper())
    train(other, made / "upper")
    return made


def compare(folder, *runs, check=0, out=None):
    """The analysis; the report goes to a folder of its own."""
    done = run("compare", *runs, "--json", "--out", out or "report", cwd=folder, check=check)
    return json.loads(done.stdout)


def test_runs_beside_each_other(folder):
    done = run("compare", "plain", "lp/", cwd=folder, check=0)  # relative paths, as the shell completes them
    lines = done.stdout.splitlines()
    assert lines[0].split()[:3] == ["run", "scheme", "final"]
    assert [line.split()[:2] for line in lines[1:3]] == [["plain", "none"], ["lp", "lp"]]
    assert any(line.split() == ["norm.scheme", "none", "lp"] for line in lines)
    assert any(line.split() == ["norm.p", "–", "3"] for line in lines)
    assert not any(line.split()[:1] == ["train.seed"] for line in lines)
    assert "has the lowest final validation loss" in done.stdout
    assert "Single runs do not show" in done.stdout
    page = folder / "comparisons/plain-lp/report.html"
    assert f"file://{page}" in done.stdout
    # No claim that the design does not support.
    for file in ("report.html", "report.md", "report.json"):
        written = (page.parent / file).read_text()
        assert not any(word in written for word in ("p-value", "significant", " beats ")), file
    assert (page.parent / "charts/loss.svg").exists()


def test_the_figures_are_those_of_the_runs(folder):
    found = compare(folder, "plain", "lp")
    assert found["comparable"] and found["incomparable"] == []
    for name in ("plain", "lp"):
        rows = [json.loads(line) for line in (folder / name / "metrics.jsonl").read_text().splitlines()]
        curve = [[row["step"], row["val_loss"]] for row in rows if "val_loss" in row]
        assert found["curves"][name] == curve
        row = next(row for row in found["runs"] if row["run"] == name)
        assert row["final_loss"] == curve[-1][1] and row["best_loss"] == min(loss for _, loss in curve)
        assert row["state"] == "finished" and row["step"] == 20


@pytest.mark.parametrize("other, reason", [("fold", "data.fold differs (plain: 9; fold: 0)"),
                                           ("bytes", "data.tokenizer differs"), ("bytes", "vocabularies"),
                                           ("upper", "different texts")])
def test_what_makes_them_incomparable_is_said(folder, other, reason):
    found = compare(folder, "plain", other)
    assert not found["comparable"]
    assert any(reason in each for each in found["incomparable"]), found["incomparable"]
    assert found["sentence"].startswith("The losses of these runs cannot be compared: ")
    assert "lowest" not in found["sentence"]


def test_a_copy_of_the_text_is_the_same_text(text, folder, tmp_path):
    copy = tmp_path / "copy.txt"
    shutil.copy(text, copy)
    train(copy, tmp_path / "copied")
    assert compare(folder, "plain", tmp_path / "copied", out=tmp_path / "report")["comparable"]


def test_seeds_show_chance_only(folder):
    sentence = compare(folder, "plain", "seed")["sentence"]
    assert "differ in their seed only" in sentence and "chance" in sentence and "lowest" not in sentence


def test_an_unfinished_run_is_shown_and_not_ranked(folder, tmp_path):
    started = tmp_path / "started"
    shutil.copytree(folder / "lp", started, symlinks=True)
    config = started / "config.toml"
    config.write_text(config.read_text().replace("max_steps = 20", "max_steps = 40"))
    found = compare(folder, "plain", started, out=tmp_path / "report")
    assert found["unfinished"] == [f"{started} is at step 20 of 40: its last loss is not a final one."]
    row = next(row for row in found["runs"] if row["run"] == str(started))
    assert row["final_loss"] is None and row["state"] == "unfinished" and row["best_loss"] > 0
    assert "nothing to compare yet" in found["sentence"]
    ranked = compare(folder, "plain", "seed", "lp", started, out=tmp_path / "report")
    assert "lowest" in ranked["sentence"] and str(started) not in ranked["sentence"]


def test_a_damaged_run_is_named_and_the_others_are_shown(folder, tmp_path):
    damaged = tmp_path / "damaged"
    shutil.copytree(folder / "lp", damaged, symlinks=True)
    log = damaged / "metrics.jsonl"
    log.write_text(log.read_text().replace('{"step"', "step", 1))
    found = compare(folder, "plain", "lp", damaged, out=tmp_path / "report", check=DATA)
    assert [row["run"] for row in found["runs"]] == ["plain", "lp"]
    assert len(found["unreadable"]) == 1 and "metrics.jsonl" in found["unreadable"][0]
    page = (tmp_path / "report/report.html").read_text()
    assert "metrics.jsonl" in page


def test_what_is_no_run_is_refused(text, folder, tmp_path):
    study = tmp_path / "study"
    run("compare", "--data", text, "--out", study, "--prepare", "--set", "norm.scheme=[none,lp]", check=0)
    for arguments, words in [(["plain"], "expected a study to resume, or two or more runs"),
                             (["plain", "plain/"], "named twice"),
                             (["plain", "plian"], "there is no such folder"),
                             (["plain", study], "is a study, not a run"),
                             (["plain", "lp/checkpoints/latest"], "is a checkpoint, not a run"),
                             (["plain", tmp_path], "is not a run"),
                             (["plain", "lp", "--set", "norm.p=3"], "options of a study"),
                             (["plain", "lp", "--out", "seed"], "which is a run")]:
        done = run("compare", *arguments, cwd=folder, check=USAGE)
        assert words in done.stderr and done.stdout == "", (arguments, done.stderr)


def test_translators_are_ranked_by_bleu(tmp_path):
    sources = [f"o rei falou {i % 7} aos homes" for i in range(60)]
    targets = [f"the king spoke {i % 7} to the men" for i in range(60)]
    for part in ("train", "dev", "test"):
        (tmp_path / f"{part}.gl").write_text("\n".join(sources) + "\n")
        (tmp_path / f"{part}.en").write_text("\n".join(targets) + "\n")
    for scheme in ("none", "qknorm"):
        run("train", tmp_path / scheme, "--data", tmp_path, "--threads", 1, "--set", f"norm.scheme={scheme}",
            "translation.source=gl", "translation.target=en", "translation.bpe_operations=20", "model.n_layers=1",
            "model.n_heads=2", "model.d_model=16", "model.seq_len=32", "translation.batch_tokens=200",
            "train.max_steps=6", "train.eval_every=3", check=0)
    found = compare(tmp_path, "none", "qknorm")
    assert found["comparable"] and "BLEU of the test text" in found["sentence"]
    assert all(row["test_bleu"] >= 0 for row in found["runs"])
    assert pathlib.Path(tmp_path / "report/charts/bleu.svg").exists()
