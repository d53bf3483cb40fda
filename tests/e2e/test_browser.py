"""The report in a real browser: nothing is fetched, nothing complains, the charts answer, it fits every window."""
import csv
import math
import re
import shutil

import pytest
from browser import Browser
from conftest import run
from synthetic_study import SyntheticStudy

CURVES = ["loss", "folds"]
CHARTS = [*CURVES, "differences", "time", "gains"]
SHOWN = "[...document.querySelectorAll(`{}`)].filter(e => e.getClientRects().length)"

# Pairs of texts of one chart that cover each other, and texts that leave their chart.
CROWDED = """(() => {
  const bad = [];
  for (const svg of document.querySelectorAll('svg.chart')) {
    if (!svg.getClientRects().length) continue;
    const texts = [...svg.querySelectorAll('text')].filter(e => e.getClientRects().length && e.textContent);
    const boxes = texts.map(e => e.getBoundingClientRect()), frame = svg.getBoundingClientRect();
    texts.forEach((text, i) => {
      const a = boxes[i], where = svg.closest('figure').id + ': ' + text.textContent;
      if (a.left < frame.left - 3 || a.right > frame.right + 3) bad.push(where + ' leaves the chart');
      for (let j = 0; j < i; ++j) {
        const b = boxes[j];
        if (a.left < b.right - 1 && b.left < a.right - 1 && a.top + 3 < b.bottom - 3 && b.top + 3 < a.bottom - 3)
          bad.push(where + ' covers ' + texts[j].textContent);
      }
    });
  }
  return bad;
})()"""


@pytest.fixture(scope="module")
def browser():
    if not shutil.which("chromium"):
        pytest.fail("chromium is not installed: tools/install_packages.sh test")
    made = Browser()
    yield made
    made.close()


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Two trials are missing, one has diverged: a report with everything in it."""
    made = SyntheticStudy(tmp_path_factory.mktemp("browser") / "study")
    shutil.rmtree(made.trial_folder({"norm.p": 4}, 9))
    shutil.rmtree(made.trial_folder({"norm.p": 1}, 0))
    made.write_trial({"norm.p": 1}, 0, "diverged", last=600)
    run("report", made.folder, check=0)
    return made


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    made = SyntheticStudy(
        tmp_path_factory.mktemp("browser") / "grid", folds=3,
        axes={"norm.p": [1, 1.5, 2, 2.5, 3, 3.5, 4],
              "norm.gain_init": ["1", "sqrt(d_head)", "log2(L^2-L)", "matched"]},
        study={"study.baseline": "p = 2, gain_init = log2(L^2-L)"})
    run("report", made.folder, check=0)
    return made


@pytest.fixture
def page(browser, study):
    browser.log.clear(), browser.requests.clear()
    browser.open(study.folder / "report.html")
    yield browser
    assert browser.log == []
    assert {url.split("://")[0] for url in browser.requests} <= {"file", "blob"}
    assert [url for url in browser.requests if url.startswith("file:")] == [
        (study.folder / "report.html").resolve().as_uri()]


def count(page, selector):
    return page.evaluate(SHOWN.format(selector) + ".length")


def tip(page):
    return page.evaluate("document.querySelector('.tip').style.visibility === 'visible' ? "
                         "document.querySelector('.tip').innerText : ''")


def test_every_chart_has_its_marks(page):
    assert page.evaluate("[...document.querySelectorAll('figure')].map(f => f.id)") == [
        "loss", "differences", "time", "folds", "gains"]
    assert count(page, "#loss .plot .line") == 7 and count(page, "#loss .band") == 7
    assert count(page, "#folds .plot") == 10
    # One trial is missing.
    assert page.evaluate(SHOWN.format("#folds .plot .line") + ".filter(e => e.getBBox().width > 0).length") == 69
    assert count(page, "#differences .interval") == 6 and count(page, "#differences .dot") == 58
    assert count(page, "#time .box") == 7 and count(page, "#time .mean") == 7
    assert count(page, "#gains .interval") == 42 and count(page, "#gains .series") == 7


def test_the_verdict_is_seen_first(page):
    box = page.evaluate("(b => [b.top, b.bottom])(document.querySelector('.verdict').getBoundingClientRect())")
    assert 0 < box[0] < box[1] < 400
    assert page.evaluate("document.querySelectorAll('.notice').length") == 2


@pytest.mark.parametrize("chart", CURVES)
def test_hover_shows_the_values_of_all_series(page, chart):
    box = page.centre(f"#{chart} .plot .hit")
    page.move(box["x"] + 0.7 * box["width"], box["y"] + 0.5 * box["height"])
    lines = tip(page).split("\n")
    assert lines[0].startswith("training step: 1,") and sum(line.startswith("p = ") for line in lines) >= 6
    assert all(re.search(r"\d\.\d{3}", line) for line in lines[1:] if line.startswith("p"))
    assert count(page, f"#{chart} .cursor-dot") >= 6
    page.move(5, 5)
    assert tip(page) == "" and count(page, f"#{chart} .cursor-dot") == 0


@pytest.mark.parametrize("mark, words", [("#differences .mark", r"p = 1: \+0\.0\d{3}, interval \+"),
                                         ("#time .mean", r"p = 1: mean \d"), ("#gains .mark", r"layer 0, 1: \d")])
def test_hover_over_a_mark(page, mark, words):
    box = page.centre(f"{mark}[data-tip]")
    page.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert re.match(words, tip(page))


@pytest.mark.parametrize("chart", CHARTS)
def test_a_click_hides_a_series_and_a_double_click_isolates_it(page, chart):
    key = f"#{chart} .key[data-series='0'] .hit"  # not the line that leads to it
    drawn = count(page, f"#{chart} .series[data-series='0']")
    others = count(page, f"#{chart} .series:not([data-series='0'])")
    assert drawn > 0 and others > 0
    page.click(key)
    assert count(page, f"#{chart} .series[data-series='0']") == 0
    assert count(page, f"#{chart} .series:not([data-series='0'])") == others
    page.click(key)
    assert count(page, f"#{chart} .series[data-series='0']") == drawn
    page.click(key, times=2)
    assert count(page, f"#{chart} .series[data-series='0']") == drawn
    assert count(page, f"#{chart} .series:not([data-series='0'])") == 0


def test_axes_can_be_switched(page):
    views = SHOWN.format("#loss .view") + ".map(v => v.dataset.x + v.dataset.y)"
    assert page.evaluate(views) == ["00"]
    for axis, value, expected in [("x", 3, "30"), ("y", 1, "31"), ("x", 1, "11"), ("x", 2, "21")]:
        page.evaluate(f"document.querySelector('#loss input[data-axis={axis}][value=\"{value}\"]').click()")
        assert page.evaluate(views) == [expected]
        assert count(page, "#loss .plot .line") == 7


def test_a_chart_is_saved_as_shown(page, tmp_path):
    page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.click("#loss .key[data-series='1']")
    page.evaluate("document.querySelector('#loss .save').click()")
    saved = tmp_path / "loss.svg"
    page.evaluate("new Promise(done => setTimeout(done, 1000))")
    text = saved.read_text()
    assert text.startswith("<svg") and text.count('class="line"') >= 6 and "cursor" not in text.split("</style>")[1]
    assert 'class="tone series off"' not in text


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [320, 375, 760, 1040, 1600])
@pytest.mark.parametrize("kind", ["study", "grid"])
def test_it_fits_every_window(browser, request, kind, width, dark):
    browser.log.clear()
    browser.open(request.getfixturevalue(kind).folder / "report.html", width=width, dark=dark)
    assert not browser.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert browser.evaluate(CROWDED) == []
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(20, 23, 28)" if dark else "rgb(255, 255, 255)")
    drawn = browser.evaluate(SHOWN.format("svg.chart[role]") + ".map(s => s.classList.contains('narrow'))")
    assert set(drawn) == {width <= 720}
    assert browser.log == []


def test_heat_map_answers(browser, grid):
    browser.open(grid.folder / "report.html")
    box = browser.centre("#grid .cell")
    browser.move(box["x"] + 20, box["y"] + 20)
    assert re.match(r"\S+ → \d.*: \d\.\d{4}", tip(browser)) and count(browser, "#grid .cursor-cell") == 1


def test_without_scripts_everything_is_there(browser, study):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(study.folder / "report.html")
        assert count(browser, "#loss .plot .line") == 7 and count(browser, "#gains .series") == 7
        assert count(browser, ".tip") == 0 and count(browser, ".save") == 0
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_it_prints_without_cut_charts(browser, study):
    browser.open(study.folder / "report.html")
    pdf = browser.call("Page.printToPDF", preferCSSPageSize=True)["data"]
    assert len(pdf) > 50_000
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert count(browser, ".tools") == 0
    assert browser.evaluate("getComputedStyle(document.querySelector('figure')).breakInside") == "avoid"


def test_what_was_trained_is_seen_at_once_and_in_print(browser, study):
    """Model size, steps, data and machine, without a click; every tile says what it rests on."""
    for media in ["", "print"]:
        browser.open(study.folder / "report.html")
        browser.call("Emulation.setEmulatedMedia", media=media)
        [setup] = browser.evaluate(SHOWN.format(".setup") + ".map(e => e.innerText)")
        assert re.match(r"scheme lp; 6 layers of width 96.*; 2000 steps of 768 tokens; .+", setup)
        assert browser.evaluate("document.querySelector('.setup').getBoundingClientRect().bottom") < 300
        tiles = browser.evaluate(SHOWN.format(".figures dt") + ".map(e => e.innerText)")
        assert len(tiles) >= 2 and all(re.search(r"\d+ folds?", tile) for tile in tiles)
    browser.call("Emulation.setEmulatedMedia", media="")


def test_the_first_chart_shows_the_whole_run(page):
    assert page.evaluate(SHOWN.format("#loss .view .plot") + ".map(p => p.dataset.domain.split(' ')[0])") == ["0"]
    assert page.evaluate("document.querySelector('figure').id") == "loss"


def test_few_points_are_drawn_as_points(browser, grid):
    """Three folds: every trial is a dot, and there is no box."""
    browser.open(grid.folder / "report.html")
    assert count(browser, "#time .box") == 0 and count(browser, "#time .dot") == 28 * 3


def test_the_chart_of_differences_has_no_more_digits_than_its_intervals(page, study):
    with open(study.folder / "summary.csv") as lines:
        rows = [row for row in csv.DictReader(lines) if row["adjusted_low"]]
    narrowest = min((float(row["adjusted_high"]) - float(row["adjusted_low"])) / 2 for row in rows)
    notes = page.evaluate(SHOWN.format("#differences text.end.value") + ".map(t => t.textContent)")
    shown = [text for text in notes if re.fullmatch(r"[+\u2212]0\.\d+", text)]
    assert len(shown) == 6
    assert {len(text.split(".")[1]) for text in shown} == {1 - math.floor(math.log10(narrowest))}
