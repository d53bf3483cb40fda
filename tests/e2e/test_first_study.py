"""docs/first-study.md as a newcomer follows it: a text, a budget, a verdict."""
import re
import shutil
import signal
import subprocess
import time

import pytest
from browser import Browser
from conftest import BINARY, ROOT, run
from test_browser import SHOWN

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
    again = run("compare", study.relative_to(tmp_path), cwd=tmp_path, check=0)  # nothing is left to do; it ends as the first run did
    assert "6 of 6 trials have ended" in again.stderr
    assert again.stdout == done.stdout


def commands_of_the_page():
    """What docs/first-study.md tells a newcomer to type, in order."""
    page = (ROOT / "docs/first-study.md").read_text()
    return re.findall(r"^build/normlab .*$", page, re.MULTILINE) + re.findall(r"`(build/normlab [^`]+)`", page)


def test_the_page_as_it_stands(tmp_path):
    """Three minutes on a text of one's own, with Ctrl-C in the middle; the report opens in a browser."""
    if not shutil.which("chromium"):
        pytest.fail("chromium is not installed: tools/install_packages.sh test")
    (tmp_path / "build").mkdir()
    (tmp_path / "build/normlab").symlink_to(BINARY)
    words = "the king spoke to his men and they went home in silence while night fell over a cold land".split()
    lines = [" ".join(words[(i * i + j * (i % 5 + 1)) % len(words)] for j in range(9)) for i in range(6000)]
    (tmp_path / "my.txt").write_text("\n".join(lines) + "\n")
    ask, = [command for command in commands_of_the_page() if command.endswith("--budget 3m")]
    resume, = [command for command in commands_of_the_page() if command == "build/normlab compare studies/my"]
    budget = 180

    def ended():
        return sorted((tmp_path / "studies/my").glob("**/trial.json"))

    start = time.monotonic()
    process = subprocess.Popen(ask.split(), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while len(ended()) < 6 and time.monotonic() < start + budget:  # a quarter of the trainings
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    shown, said = process.communicate(timeout=60)
    assert process.returncode == 75 and shown == "" and "resume with: build/normlab compare" in said, said
    assert re.search(r"model: \d layers, .* parameters, \d+ steps", said) and "24 trainings" in said
    first = time.monotonic() - start
    trials = ended()
    assert len(trials) >= 6, said
    before = [trial.stat().st_mtime_ns for trial in trials]

    start = time.monotonic()
    done = subprocess.run(resume.split(), cwd=tmp_path, capture_output=True, text=True, timeout=600)
    seconds = first + time.monotonic() - start
    assert done.returncode == 0, done.stderr
    assert [trial.stat().st_mtime_ns for trial in trials] == before  # what had ended was not trained again
    assert seconds < 1.2 * budget + 10, done.stderr  # 10 s: measuring the machine, stopping and starting again
    page = tmp_path / "studies/my/report.html"
    assert f"file://{page}" in done.stdout
    assert re.search(r"none|qknorm|rms|lp", done.stdout.splitlines()[0])

    browser = Browser()
    try:
        browser.open(page)
        assert browser.log == [] and browser.requests == [page.as_uri()]
        assert browser.evaluate("document.querySelectorAll('figure svg.chart').length") > 3
        assert 0 < browser.evaluate("document.querySelector('.verdict').getBoundingClientRect().bottom") < 900
        # The first chart has a curve of each scheme over the whole run.
        assert browser.evaluate("document.querySelector('figure').id") == "loss"
        lines = browser.evaluate(SHOWN.format("#loss .plot .line") + ".map(line => line.getBBox().width)")
        plot = browser.evaluate(SHOWN.format("#loss .plot .hit") + "[0].getBBox().width")
        assert len(lines) == 4 and min(lines) > 0.95 * plot
        shown = browser.evaluate("document.body.innerText")
        verdict = browser.evaluate("document.querySelector('.verdict').innerText")
    finally:
        browser.close()
    assert "lp, p = 3, matched gain" in shown and "my.txt" in shown
    said = " ".join(done.stdout.split())
    assert len(verdict) > 40 and said.startswith(" ".join(verdict.replace("\u00a0", " ").split())), (verdict, said)


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
