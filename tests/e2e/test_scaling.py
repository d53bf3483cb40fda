"""Ladders, plans and scaling fits, as a user runs them."""
import json
import random
import re
import time

import pytest
from conftest import BINARY, ROOT, run

TRUE = {"floor": 1.82, "a_params": 482, "b_tokens": 2085, "exp_params": 0.348, "exp_tokens": 0.366}


def loss(n, d, law=TRUE):
    return law["floor"] + law["a_params"] / n ** law["exp_params"] + law["b_tokens"] / d ** law["exp_tokens"]


def write_points(path, count=60, noise=0.004, scheme=None, extra=()):
    draw = random.Random(7)
    rows = []
    for _ in range(count):
        n, d = 10 ** draw.uniform(7.6, 10.2), 10 ** draw.uniform(9, 11.4)
        rows.append(f"{n},{d},{loss(n, d) * (1 + draw.gauss(0, noise))}")
    path.write_text("\n".join(["n_params,n_tokens,loss", *rows, *extra]) + "\n")
    return path


def test_fit_recovers_the_published_coefficients(tmp_path):
    points = write_points(tmp_path / "points.csv", 200)
    start = time.monotonic()
    found = json.loads(run("fit", "--points", points, "--json", check=0).stdout)
    seconds = time.monotonic() - start
    for name, value in TRUE.items():
        low, high = found["intervals"][name]
        assert low <= value <= high and low <= found[name] <= high, name
    assert found["points"] == 200 and found["goodness"]["r_squared"] > 0.99
    assert seconds < 60, "200 points with 1,000 resamples take a few seconds on an idle machine"


def test_fit_writes_a_report_whose_points_read_back(tmp_path):
    points = write_points(tmp_path / "points.csv", 20, extra=["1e8,1e10,nan"])
    done = run("fit", "--points", points, "--resamples", 100, "--out", tmp_path / "fit", check=0)
    assert "left out: its loss is nan" in done.stdout and "exp_tokens" in done.stdout
    for name in ["scaling.html", "scaling.md", "fit.json", "points.csv", "charts/loss-compute.svg"]:
        assert (tmp_path / "fit" / name).stat().st_size > 0, name
    again = json.loads(run("fit", "--points", tmp_path / "fit/points.csv", "--resamples", 100, "--json", check=0).stdout)
    assert again["floor"] == pytest.approx(json.loads((tmp_path / "fit/fit.json").read_text())["floor"], rel=1e-9)


def test_the_page_starts_with_the_finding_in_two_sentences(tmp_path):
    """Runs of equal size and length decide the first sentence, the laws the second; the details come below."""
    draw, rows = random.Random(9), []
    for scheme, factor in [("gpt+", 1.0), ("angpt", 0.9)]:
        for n in (1e6, 3e6, 1e7, 3e7):
            for d in (2e7, 6e7, 2e8):
                rows.append(f"{n},{d},{factor * loss(n, d) * (1 + draw.gauss(0, 0.002))},{scheme}")
    points = tmp_path / "points.csv"
    points.write_text("\n".join(["n_params,n_tokens,loss,scheme", *rows]) + "\n")
    shown = run("fit", "--points", points, "--resamples", 100, "--out", tmp_path / "fit", check=0).stdout
    page = (tmp_path / "fit/scaling.html").read_text()
    [verdict] = re.findall(r'<p class="verdict">(.*?)</p>', page)
    first, second = re.split(r"(?<=[.]) (?=[A-Z])", verdict)
    assert re.match(r"angpt beats gpt\+ in 12 pairs of runs of equal size and length: its loss is lower than that of gpt\+ "
                    r"by 0\.\d{2,3} nats \(95 % interval 0\.\d{2,3} to 0\.\d{2,3}\)\.", first)
    assert second.startswith("Extrapolated to 100 times the compute of the largest run, ") and len(verdict) < 420
    assert '<p class="detail">' not in page
    assert page.index("Details</h2>") > page.index("<figure") and shown.split()[:2] == ["angpt", "beats"]
    assert "\n\n**angpt beats gpt+ in 12 pairs" in (tmp_path / "fit/scaling.md").read_text()


def test_log_axes_have_enough_ticks(tmp_path):
    points = write_points(tmp_path / "points.csv", 20)
    run("fit", "--points", points, "--resamples", 100, "--out", tmp_path / "fit", check=0)
    for chart in (tmp_path / "fit/charts").glob("*.svg"):
        labels = re.findall(r'<text class="middle" x="[\d.]+" y="([\d.]+)">', chart.read_text())
        assert max(labels.count(y) for y in labels) >= 4, chart.name


def test_fit_says_which_bootstrap_and_why(tmp_path):
    """Losses that scatter more with few tokens: intervals from pooled residuals are too short."""
    draw = random.Random(8)
    rows = []
    for _ in range(60):
        n, d = 10 ** draw.uniform(7.6, 10.2), 10 ** draw.uniform(9, 11.4)
        rows.append(f"{n},{d},{loss(n, d) * (1 + draw.gauss(0, 0.003 * (d / 2e10) ** -0.5))}")
    path = tmp_path / "points.csv"
    path.write_text("\n".join(["n_params,n_tokens,loss", *rows]) + "\n")
    found = {kind: json.loads(run("fit", "--points", path, "--bootstrap", kind, "--resamples", 200, "--json",
                                  check=0).stdout) for kind in ["auto", "residual", "wild", "case"]}
    width = {kind: each["intervals"]["exp_tokens"][1] - each["intervals"]["exp_tokens"][0]
             for kind, each in found.items()}
    assert {kind: each["bootstrap"]["kind"] for kind, each in found.items()} == {
        "auto": "case", "residual": "residual", "wild": "wild", "case": "case"}
    assert [each["bootstrap"]["chosen_by_test"] for each in found.values()] == [True, False, False, False]
    assert found["auto"]["bootstrap"]["variance_test"]["p_value"] < 0.01
    assert width["auto"] == width["case"] > 1.2 * width["residual"] and width["wild"] > 1.2 * width["residual"]
    shown = run("fit", "--points", path, "--resamples", 100, "--out", tmp_path / "fit", check=0).stdout
    assert "case bootstrap, because the size of the residuals may depend on N or D" in shown
    assert "case bootstrap, because" in (tmp_path / "fit/scaling.html").read_text()


@pytest.mark.parametrize("rows, expected", [
    (["1e7,1e9,3"] * 5, "got 5, expected at least 8"),
    ([f"1e7,{i}e9,3" for i in range(1, 10)], "1 different n_params"),
    ([f"{i}e7,1e9,3" for i in range(1, 10)], "1 different n_tokens"),
    (["1e7,1e9,0"], "loss is '0'"),
    (["1e7,1e9,-1"], "loss is '-1'"),
    (["1e7,1e9"], "got 2 cells"),
    (["1e7,1e9,nan"] * 9, "no finished runs"),
])
def test_fit_says_why_it_refuses(tmp_path, rows, expected):
    path = tmp_path / "points.csv"
    path.write_text("\n".join(["n_params,n_tokens,loss", *rows]) + "\n")
    done = run("fit", "--points", path, "--out", tmp_path / "fit", check=3)
    assert expected in done.stderr and "[fit] [fit]" not in done.stderr
    assert not (tmp_path / "fit").exists()


def test_wrong_usage(tmp_path):
    assert "--points" in run("fit", check=2).stderr
    assert "not a study" in run("fit", tmp_path, check=3).stderr
    assert "auto, residual, wild or case" in run("fit", tmp_path, "--bootstrap", "pairs", check=2).stderr
    assert "total or body" in run("fit", tmp_path, "--params", "all", check=2).stderr
    assert "--flops" in run("plan", "--points", "x.csv", check=2).stderr
    assert "--config" in run("plan", check=2).stderr


LADDER = """
[study]
title = "A ladder"
[norm]
scheme = ["none", "qknorm"]
[ladder]
depth = [1, 2, 3]
tokens_per_param = [1, 2, 4]
width_per_layer = 8
head_width = 8
evaluations = 4
[model]
seq_len = 16
[data]
folds = 5
fold = 4
[train]
batch_size = 4
eval_windows = 8
"""


def test_a_ladder_from_plan_to_fit(text, tmp_path):
    config = tmp_path / "ladder.toml"
    config.write_text(LADDER)
    planned = json.loads(run("plan", "--config", config, "--data", text, "--machines", 3, "--speed", 1e9, "--json",
                             check=0).stdout)
    assert planned["trials"] == 18 and len(planned["sizes"]) == 18
    assert planned["seconds_on_all"] < planned["seconds_on_one"]
    largest = planned["sizes"][8]
    assert (largest["n_layers"], largest["d_model"], largest["n_heads"]) == (3, 24, 3)
    assert largest["n_body"] == 12 * 3 * 24 ** 2 + 7 * 24

    folder = tmp_path / "study"
    done = run("compare", "--config", config, "--data", text, "--out", folder, check=0)
    assert "without embeddings" in done.stderr and f"next: {BINARY} fit" in done.stderr
    found = json.loads(run("fit", folder, "--resamples", 100, "--json", check=0).stdout)
    assert [each["scheme"] for each in found["schemes"]] == ["none", "qknorm"]
    runs = found["schemes"][0]["runs"]
    assert [each["n_params"] for each in runs] == [each["n_params"] for each in planned["sizes"][:9]]
    assert [each["flops"] for each in runs] == [each["flops"] for each in planned["sizes"][:9]]
    assert 0 < found["shared_exponents"]["p_value"] <= 1 and found["projections"][1]["extrapolated"]
    body = json.loads(run("fit", folder, "--resamples", 100, "--params", "body", "--json", check=0).stdout)
    assert [each["n_params"] for each in body["schemes"][0]["runs"]] == [each["n_body"] for each in planned["sizes"][:9]]


def test_budgets_on_paper(tmp_path):
    points = write_points(tmp_path / "points.csv")
    found = json.loads(run("plan", "--points", points, "--flops", "1e21", "5.76e23", "--json", check=0).stdout)["budgets"]
    assert [row["flops"] for row in found] == [1e21, 5.76e23]
    assert found[1]["n_tokens"] * found[1]["n_params"] * 6 == pytest.approx(5.76e23)
    assert 10 < found[1]["n_tokens"] / found[1]["n_params"] < 40  # about 20 by the coefficients behind the points


def test_the_papers_ladder_needs_no_text(tmp_path):
    """With schemes that leave the MLP as it is, whose sizes are easily counted."""
    text = (ROOT / "recipes/scaling-paper.toml").read_text()
    config = tmp_path / "paper.toml"
    config.write_text(text.replace('scheme = "gpt+"', 'scheme = "none"').replace('scheme = "angpt"', 'scheme = "qknorm"'))
    found = json.loads(run("plan", "--config", config, "--vocab", 50257, "--speed", 1e14, "--json", check=0).stdout)
    sizes = [row["n_body"] for row in found["sizes"]]
    assert len(sizes) == 30 and sizes[0] == 12 * 8 * 512 ** 2 + 17 * 512
    assert max(sizes) == 12 * 25 * 1600 ** 2 + 51 * 1600 + 25  # qknorm's gains
