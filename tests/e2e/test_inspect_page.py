"""The page of `normlab inspect` in a real browser: a head picker with maps and histogram, for both kinds of models."""
import io
import json
import re

import numpy
import pytest
from browser import Browser
from conftest import run, train
from PIL import Image
from test_browser import CROWDED, SHOWN, count, tip
from test_translate import pairs, train_pairs  # noqa: F401

# Every character is a token, and these are what a page must not run or show as markup.
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & \"quoted\" 'single' \\ \u202e \t{}\n"
PANEL = "#heads > .panel"


@pytest.fixture(scope="module")
def browser():
    made = Browser()
    yield made
    made.close()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of hostile text, inspected: its page and its data."""
    folder = tmp_path_factory.mktemp("inspect")
    (folder / "text.txt").write_text(HOSTILE * 60)
    train(folder / "text.txt", folder / "run", "norm.scheme=qknorm", "train.max_steps=40", "model.n_heads=4",
          "model.seq_len=48")
    run("inspect", folder / "run", "--out", folder / "page.html", "--head", "1.2", "--windows", 3, check=0)
    return folder / "page.html", json.loads((folder / "page.json").read_text())


@pytest.fixture(scope="module")
def translator_page(pairs, tmp_path_factory):  # noqa: F811
    folder = tmp_path_factory.mktemp("inspect-translator")
    train_pairs(pairs, folder / "run", "translation.encoder_layers=2")
    shown = run("inspect", folder / "run", "--head", "cross.0.1", check=0).stdout
    return folder / "run" / "inspect.html", json.loads((folder / "run" / "inspect.json").read_text()), shown


@pytest.fixture
def page(browser, model):
    browser.log.clear(), browser.requests.clear()
    browser.open(model[0], width=1280)
    yield browser
    assert browser.log == []
    assert {url.split(":")[0] for url in browser.requests} <= {"file", "data"}


def figures(browser):
    return browser.evaluate(SHOWN.format(f"{PANEL} figure") + ".map(f => f.id)")


def press(browser, key):
    for kind in ["keyDown", "keyUp"]:
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=40)


def test_it_opens_with_the_head_that_was_asked_for(page, model):
    assert figures(page) == ["attention-layer01-2", "logits-layer01-2", "histogram-layer01-2"]
    assert page.evaluate("document.querySelectorAll('#heads .choices [type=radio]').length") == 8
    assert [(each["layer"], each["head"]) for each in model[1]["maps"]] == [(1, 2)]


def test_a_click_and_the_arrow_keys_pick_a_head(page):
    page.click("#heads [value='1']")
    assert figures(page) == ["attention-layer00-1", "logits-layer00-1", "histogram-layer00-1"]
    press(page, "ArrowDown")
    assert figures(page)[0] == "attention-layer00-2"
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("layer 0, head 2: 0.")


def test_hover_over_an_image_gives_the_value_of_the_cell(page, model):
    [chosen] = model[1]["maps"]
    for kind, key in [("attention", "weights"), ("logits", "logits")]:
        values = numpy.array(chosen[key], dtype=float)
        step = (numpy.nanmax(values) - min(0, numpy.nanmin(values))) / 254
        box = page.centre(f"#{kind}-layer01-2 .levels")
        cell = box["width"] / values.shape[1]
        for row, column in [(5, 2), (20, 20), (31, 0)]:
            page.move(box["x"] + (column + 0.5) * cell, box["y"] + (row + 0.5) * box["height"] / values.shape[0])
            shown = float(tip(page).rsplit(": ", 1)[1].replace("\u2212", "-"))
            assert shown == pytest.approx(values[row, column], abs=1.1 * step)
        page.move(box["x"] + 30.5 * cell, box["y"] + 2.5 * cell)  # a key that the query does not see
        assert tip(page) == ""


@pytest.mark.parametrize("dark", [False, True])
def test_the_colours_of_a_map_follow_the_setting(browser, model, dark):
    """The largest weight has the end of the ramp, a masked cell the colour of the paper."""
    browser.open(model[0], width=1280, dark=dark)
    values = numpy.array(model[1]["maps"][0]["weights"], dtype=float)
    box = browser.centre("#attention-layer01-2 .levels")
    browser.screenshot(path := model[0].parent / "shot.png")
    pixels = numpy.asarray(Image.open(io.BytesIO(path.read_bytes())).convert("RGB"), dtype=float)

    def colour(row, column):
        return pixels[int(box["y"] + (row + 0.5) * box["height"] / 32), int(box["x"] + (column + 0.5) * box["width"] / 32)]

    row, column = numpy.unravel_index(numpy.nanargmax(values), values.shape)
    strong, masked = colour(row, column), colour(0, 31)
    assert numpy.allclose(masked, (20, 23, 28) if dark else (255, 255, 255), atol=1)
    assert strong.mean() > 180 if dark else strong.mean() < 90
    assert strong[2] > strong[0] + 10  # a blue


def test_colour_scales_start_at_zero_or_say_that_they_do_not(page):
    titles = page.evaluate(SHOWN.format("svg .heat .axis-title") + ".map(t => t.textContent).join(' ')")
    assert re.search(r"logit; colours start at \u2212?\d", titles) and titles.count("not at 0") == 1
    ends = page.evaluate(SHOWN.format("[id^=attention] .heat > .value:not(.end)") + ".map(t => t.textContent)")
    assert "0" in ends


def test_the_histogram_counts_all_windows_on_both_axes(page, model):
    [found] = [each for each in model[1]["logit_histograms"] if (each["layer"], each["head"]) == (1, 2)]
    assert sum(found["counts"]) == 3 * 48 * 49 / 2
    views = SHOWN.format("#histogram-layer01-2 .view") + ".map(v => v.dataset.y)"
    assert page.evaluate(views) == ["0"]
    page.evaluate("document.querySelector('#histogram-layer01-2 input[value=\"1\"]').click()")
    assert page.evaluate(views) == ["1"]
    page.centre("#histogram-layer01-2 .view .bars")
    peak = max(range(40), key=lambda i: found["counts"][i])
    box = page.evaluate(f"(b => [b.x + b.width / 2, b.y + b.height / 2])("
                        f"document.querySelectorAll('#histogram-layer01-2 rect.hit')[{peak}].getBoundingClientRect())")
    page.move(*box)
    assert float(tip(page).split(": ")[1].rstrip(" %")) == pytest.approx(
        100 * found["counts"][peak] / sum(found["counts"]), rel=0.01)


def test_the_table_has_every_head(page):
    rows = page.evaluate("[...document.querySelectorAll('section > .scroll tbody tr')].map(r => r.cells[0].textContent)")
    assert rows == [f"layer {layer}, head {head}" for layer in range(2) for head in range(4)]


def test_hostile_tokens_are_text(page):
    assert page.evaluate("document.querySelectorAll('script:not([type])').length") == 1
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    names = "".join(page.evaluate("JSON.parse(document.querySelector('#attention-layer01-2 > script').textContent).rows"))
    visible = HOSTILE.replace(" ", "\u2423").replace("\n", "\u21b5").replace("\t", "\u21e5")
    assert len(names) == 32 and names in visible * 2
    shown = page.evaluate(SHOWN.format("#attention-layer01-2 .heat text") + ".map(t => t.textContent)")
    assert set(shown) & set("<>&\"'")


def test_it_uses_the_width(page):
    boxes = page.evaluate(SHOWN.format(f"#heads fieldset.choices, {PANEL} figure") + """.map(e => {
        const b = e.getBoundingClientRect(); return [b.left, b.right, b.top]; })""")
    assert max(right for _, right, _ in boxes) - min(left for left, _, _ in boxes) > 1200
    pick, attention, logits, histogram = boxes
    assert pick[1] < attention[0] < attention[1] < logits[0] and abs(attention[2] - logits[2]) < 2
    assert abs(histogram[0] - pick[0]) < 2 and histogram[2] > pick[2]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [320, 390, 760, 1280])
@pytest.mark.parametrize("kind", ["model", "translator_page"])
def test_it_fits_every_window(browser, request, kind, width, dark):
    browser.log.clear()
    browser.open(request.getfixturevalue(kind)[0], width=width, dark=dark)
    assert not browser.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert browser.evaluate(CROWDED) == []
    assert count(browser, f"{PANEL} figure") == 3 and browser.log == []


def test_without_scripts_every_head_can_be_reached(browser, model):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(model[0], width=1280)
        assert figures(browser)[0] == "attention-layer01-2" and count(browser, ".save") == 0
        browser.click("#heads [value='0']")
        assert figures(browser)[0] == "attention-layer00-0"
        # Browsers without :has show all panels.
        browser.evaluate("1")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_it_prints_the_chosen_head(browser, model):
    browser.open(model[0], width=1280)
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert count(browser, ".tools") == 0 and count(browser, f"{PANEL} figure") == 3
        assert browser.evaluate("getComputedStyle(document.querySelector('figure')).breakInside") == "avoid"
        assert len(browser.call("Page.printToPDF", preferCSSPageSize=True)["data"]) > 50_000
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")


def test_a_translator_has_encoder_decoder_and_cross_attention(browser, translator_page):
    path, data, shown = translator_page
    assert all(place in shown for place in ("encoder layer 1", "decoder layer 0", "cross-attention layer 0", str(path)))
    browser.open(path, width=1280)
    assert browser.evaluate("[...document.querySelectorAll('#heads .choices caption')].map(c => c.textContent)") == [
        "Encoder", "Decoder", "Cross-attention"]
    assert figures(browser)[0] == "attention-cross00-1"
    assert browser.evaluate("document.querySelectorAll('#heads .choices [type=radio]').length") == 8
    [chosen] = data["maps"]
    assert len(chosen["weights"]) == len(data["map_tokens"]) and len(chosen["weights"][0]) == len(data["source_tokens"])
    assert all(sum(row) == pytest.approx(1) for row in chosen["weights"])
    assert data["map_tokens"][0] == "<s>" and data["source_tokens"][-1] == "</s>" and data["pairs"] == 8
    names = browser.evaluate(SHOWN.format("#attention-cross00-1 .heat text") + ".map(t => t.textContent)")
    assert "</s>" in names and "<s>" in names


def test_a_large_model_gives_a_page_of_bounded_size(browser, text, tmp_path):
    """6 layers of 6 heads over 256 tokens, untrained: noise, the worst case for the images."""
    train(text, tmp_path / "run", "model.n_layers=6", "model.n_heads=6", "model.d_model=48", "model.seq_len=256",
          "train.max_steps=1", "train.batch_size=1", "train.eval_windows=1")
    run("inspect", tmp_path / "run", "--windows", 1, "--tokens", 256, check=0)
    assert (tmp_path / "run/inspect.html").stat().st_size < 8_000_000
    browser.open(tmp_path / "run/inspect.html", width=390)
    assert count(browser, f"{PANEL} figure") == 3 and browser.evaluate(CROWDED) == []


@pytest.mark.parametrize("head", ["cross.9.0", "0.0", "layers.0.0", "cross.0"])
def test_a_translator_refuses_heads_that_it_has_not(translator_page, head, tmp_path):
    done = run("inspect", translator_page[0].parent, "--head", head, "--out", tmp_path / "x.html", check=2)
    assert "cross.0.1" in done.stderr and not (tmp_path / "x.html").exists()
