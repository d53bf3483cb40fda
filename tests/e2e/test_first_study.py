"""docs/first-study.md as a newcomer follows it: a text, a budget, a verdict."""
import re
import time

from conftest import run

BUDGET = 60  # seconds; two schemes instead of four keep the models large enough to be trained at all


def test_a_study_of_ones_own_text_keeps_to_its_budget(text, tmp_path):
    start = time.monotonic()
    done = run("compare", "--data", text, "--budget", f"{BUDGET}s", "--schemes", "none,qknorm", "--nice", 0,
               cwd=tmp_path, check=0)
    seconds = time.monotonic() - start
    study = tmp_path / "studies" / text.stem
    assert seconds < 1.2 * BUDGET + 5, done.stderr  # 5 s: measuring the machine
    assert re.search(r"model: \d layers, .* parameters, \d+ steps", done.stderr)
    assert "12 trainings" in done.stderr
    assert f"file://{study}/report.html" in done.stdout
    page = (study / "report.html").read_text()
    assert "qknorm" in page and "optim.lr" in page
    again = run("compare", "--out", study, check=0)  # nothing is left to do
    assert "6 of 6 trials have ended" in again.stderr


def test_a_plan_is_shown_without_running(text, tmp_path):
    done = run("compare", "--data", text, "--budget", "10m", "--dry-run", cwd=tmp_path, check=0)
    assert "lp, p = 3, matched gain" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_what_is_wrong_with_a_budget_is_said(text, tmp_path):
    for arguments, words in [
            (["--data", text, "--budget", "15"], "such as 15m"),
            (["--budget", "15m"], "no text given"),
            (["--data", text, "--budget", "2s"], "too short"),
            (["--data", text, "--budget", "5m", "--set", "model.d_model=64"], "Leave out --config and --set"),
            (["--data", text, "--budget", "5m", "--schemes", "qknrom"], "qknorm"),
            (["--data", text, "--schemes", "none", "--out", tmp_path / "x"], "goes with --budget"),
            (["--data", tmp_path / "nothing.txt", "--budget", "5m"], "nothing.txt")]:
        done = run("compare", *arguments, cwd=tmp_path)
        assert done.returncode in (1, 2, 3) and words in done.stderr, (arguments, done.stderr)
        assert not (tmp_path / "studies").exists()
