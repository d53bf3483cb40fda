"""normlab bench: the rows of its output, how they are chosen, and the peer."""
import json
import os
import re
import signal
import subprocess
import time

import pytest
from conftest import BINARY, run

PEER = os.environ.get("NORMLAB_PEER", "")
KEYS = {"bench", "config", "scheme", "path", "threads", "repeats", "min_s", "median_s", "flops", "flops_per_s",
        "peak_flops_per_s", "share_of_peak", "ratio", "machine", "date"}
LAYERS, HEADS, WIDTH, LENGTH, BATCH, VOCABULARY = 2, 2, 16, 16, 4, 65


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    path.write_text(f"[model]\nn_layers = {LAYERS}\nn_heads = {HEADS}\nd_model = {WIDTH}\nseq_len = {LENGTH}\n"
                    f"[train]\nbatch_size = {BATCH}\n[norm]\nscheme = 'lp'\np = 1.5\n")
    return path


def bench(*arguments, repeat=2, threads=1):
    return json.loads(run("bench", *arguments, "--repeat", repeat, "--threads", threads, "--json", check=0).stdout)


def chosen(rows):
    return [(row["scheme"], row["path"]) for row in rows]


def check_rows(rows, repeat=2):
    for row in rows:
        assert KEYS <= row.keys()
        assert row["threads"] == 1 and row["repeats"] == repeat
        assert 0 < row["min_s"] <= row["median_s"]
        assert row["flops_per_s"] == pytest.approx(row["flops"] / row["min_s"])
        assert row["share_of_peak"] == pytest.approx(row["flops_per_s"] / row["peak_flops_per_s"])
        assert row["machine"].keys() == {"cpu", "isa", "cores"} and row["machine"]["cores"] >= 1
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row["date"])
        first = next(other for other in rows if other["config"] == row["config"])
        assert row["ratio"] == pytest.approx(row["min_s"] / first["min_s"])


def test_step(recipe):
    rows = bench("step", "--config", recipe)
    check_rows(rows)
    assert chosen(rows) == [("lp:1.5", "fused"), ("lp:1.5", "composite")]
    tokens = BATCH * LENGTH
    matrices = 6 * (12 * LAYERS * WIDTH**2 + VOCABULARY * WIDTH) * tokens
    attention = 3 * LAYERS * 2 * LENGTH * WIDTH * tokens
    assert {row["flops"] for row in rows} == {matrices + attention}
    assert {row["config"] for row in rows} == {str(recipe)}


def test_chosen_rows(recipe):
    rows = bench("step", "--config", recipe, "S", "--scheme", "none", "--scheme", "lp:inf", "qknorm", "--path",
                 "composite", repeat=1)
    check_rows(rows, repeat=1)
    assert chosen(rows) == [(scheme, "composite") for scheme in ["none", "lp:inf", "qknorm"]] * 2
    assert [row["config"] for row in rows] == [str(recipe)] * 3 + ["S"] * 3


def test_table(recipe):
    done = run("bench", "step", "--config", recipe, "--repeat", 1, "--threads", 1, check=0, env={"COLUMNS": "400"})
    head, *rows = done.stdout.split("\n\n")[0].splitlines()
    assert re.split(r"  +", head.strip()) == ["config", "scheme", "path", "min ms", "median ms", "FLOP/s", "of peak",
                                              "ratio"]
    assert len(rows) == 2 and {len(row) for row in rows} == {len(head)}
    assert "peak" in done.stdout.splitlines()[-1]
    assert "round 1/1" in done.stderr and done.stderr.splitlines()[-1].startswith(f"next: {BINARY} bench")


def test_a_wide_table_is_wrapped(recipe):
    """Columns that do not fit follow in a second block, which says again which row it is."""
    done = run("bench", "step", "--config", recipe.name, "--repeat", 1, "--threads", 1, check=0, cwd=recipe.parent,
               env={"COLUMNS": "60"})
    first, second, machine = done.stdout.split("\n\n")[:3]
    assert max(map(len, done.stdout.splitlines())) <= 60
    for block in (first, second):
        head, *rows = block.splitlines()
        assert head.split()[:3] == ["config", "scheme", "path"] and len(rows) == 2
    assert "median ms" in first and "ratio" in second and "peak" in machine


def test_threads(recipe):
    assert [row["threads"] for row in bench("step", "--config", recipe, "--path", "fused", threads=2)] == [2]


def test_memory(recipe):
    rows = bench("step", "--config", recipe, "--memory", repeat=1)
    assert all(0 < row["peak_bytes"] < 4e9 for row in rows)
    bigger = bench("step", "--config", "S", "--scheme", "none", "--memory", repeat=1)
    assert all(big["peak_bytes"] > small["peak_bytes"] for big, small in zip(bigger, rows))


def test_statistics_are_a_path_of_their_own(recipe):
    rows = bench("step", "--config", recipe, "--path", "fused", "fused-stats")
    check_rows(rows)
    assert chosen(rows) == [("lp:1.5", "fused"), ("lp:1.5", "fused-stats")]


def test_muon_is_a_path_of_its_own(recipe):
    rows = bench("step", "--config", recipe, "--path", "fused", "fused-muon", "--memory")
    check_rows(rows)
    assert chosen(rows) == [("lp:1.5", "fused"), ("lp:1.5", "fused-muon")]
    assert rows[1]["peak_bytes"] > 0


def test_ops(recipe):
    rows = bench("ops", "--config", recipe)
    ops = ["linear", "linear_in", "linear_out", "add_norm", "gelu", "cross_entropy", "embedding", "adamw"]
    assert chosen(rows) == [(op, path) for op in ops for path in ["fused", "composite"]]
    assert all(row["min_s"] > 0 and row["threads"] == 1 for row in rows)
    assert rows[0]["flops"] == rows[1]["flops"] == 16 * 6 * 1024 * WIDTH**2 == rows[2]["flops"] / 4


def test_study(recipe):
    rows = bench("study", "--config", recipe, "--scheme", "none", threads=2)
    assert chosen(rows) == [("none", "fused"), ("none", "composite")]
    step = bench("step", "--config", recipe, "--scheme", "none", "--path", "fused", repeat=1)[0]["flops"]
    for row in rows:
        assert row["threads"] == 2 and row["min_s"] > 0
        assert row["flops"] >= 2 * step and row["flops"] % step == 0


def test_attention():
    rows = bench("attention", "--lengths", 32, 64, "--scheme", "none", "lp:3", "--path", "fused", "composite", "sdpa")
    check_rows(rows)
    assert chosen(rows[:6]) == [(s, p) for s in ["none", "lp:3"] for p in ["fused", "composite", "sdpa"]]
    assert [row["config"] for row in rows] == ["T=32"] * 6 + ["T=64"] * 6
    assert rows[6]["flops"] == 4 * rows[0]["flops"] == 6 * 12 * 64 * 64**2
    for row in rows:
        assert row["extra_bytes"] >= 4 * 12 * int(row["config"][2:]), "at least the log-sum-exp of each row"
    extra = {row["path"]: row["extra_bytes"] for row in rows[3:6]}
    assert len(set(extra.values())) == 3, "each path is what it says"


def test_attention_in_a_window():
    rows = bench("attention", "--lengths", 64, "--window", 16)
    assert chosen(rows) == [("lp:2.5", "fused"), ("lp:2.5", "composite")]
    assert {row["config"] for row in rows} == {"T=64 window=16"}
    assert {row["flops"] for row in rows} == {6 * 12 * 64 * (64**2 - 48**2)}
    refused = run("bench", "attention", "--window", 16, "--path", "sdpa", check=2)
    assert "sdpa has no window" in refused.stderr


def test_path_chooses_the_kernels(tmp_path):
    """The fused kernels refuse this model; on the other path it runs."""
    path = tmp_path / "all_heads.toml"
    path.write_text("[model]\nn_layers = 1\nn_heads = 2\nd_model = 8\nseq_len = 8\n[train]\nbatch_size = 2\n"
                    "[norm]\nscheme = 'lp'\nscope = 'all_heads'\n")
    assert "norm.scope" in run("bench", "step", "--config", path, "--path", "fused", check=2).stderr
    assert chosen(bench("step", "--config", path, "--path", "composite", repeat=1)) == [("lp", "composite")]


def test_decode(recipe):
    rows = bench("decode", "--config", recipe, repeat=1)
    check_rows(rows, repeat=1)
    assert chosen(rows) == [(s, p) for s in ["none", "lp:2.5"] for p in ["fused", "composite"]]
    assert all(row["tokens_per_s"] == pytest.approx(200 / row["min_s"]) for row in rows)
    for row in rows:
        assert row["weight_bytes"] == 4 * (12 * LAYERS * WIDTH**2 + VOCABULARY * WIDTH)
        assert row["read_bytes_per_s"] == pytest.approx(200 * row["weight_bytes"] / row["min_s"])
        assert row["share_of_read"] == pytest.approx(row["read_bytes_per_s"] / row["peak_read_bytes_per_s"])
    (batch,) = bench("decode", "--config", recipe, "--scheme", "none", "--path", "fused", "--batch", 3, repeat=1)
    assert batch["tokens_per_s"] == pytest.approx(600 / batch["min_s"])


def test_decode_skips_peers_that_are_missing(recipe, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nwhile read line; do echo '{\"error\": \"ModuleNotFoundError: no such\"}'; done\n")
    python.chmod(0o755)
    arguments = ["bench", "decode", "--config", recipe, "--scheme", "none", "--repeat", 1, "--json", "--peer", python]
    done = run(*arguments, check=0)
    assert [row["path"] for row in json.loads(done.stdout)] == ["fused", "composite"]
    for path in ["torch-eager", "ctranslate2"]:
        assert re.search(f"skipped {path} at .* none: .*ModuleNotFoundError", done.stderr)
    assert "ModuleNotFoundError" in run(*arguments, "--path", "torch-eager", check=1).stderr


@pytest.mark.parametrize("arguments, message", [
    (["step", "--config", "M"], "expected L, S or an existing recipe file"),
    (["step", "--scheme", "lpp"], "'lp'"),
    (["step", "--scheme", "none:2"], "has no p"),
    (["step", "--scheme", "lp:two"], "norm.p"),
    (["step", "--scheme", "lp:0"], "norm.p"),
    (["step", "--path", "fusd"], "fusd"),
    (["step", "--path", "torch-eager"], "--peer"),
    (["step", "--repeat", "0"], "--repeat"),
    (["step", "--threads", "-1"], "--threads"),
    (["step", "--peer", "/nonexistent/python", "--path", "torch-eager"], "cannot be started"),
    (["decode", "--path", "sdpa"], "sdpa"),
    (["decode", "--path", "torch-eager"], "--peer"),
    (["attention", "--lengths", "0"], "--lengths"),
    (["study", "--path", "torch-eager"], "--peer"),
    (["ops", "--path", "sdpa"], "sdpa"),
    ([], "subcommand"),
], ids=str)
def test_wrong_usage(arguments, message):
    done = run("bench", *arguments, check=2)
    assert message in done.stderr and done.stdout == ""


def test_a_peer_that_is_no_python(recipe):
    done = run("bench", "step", "--config", recipe, "--path", "torch-eager", "--peer", "/bin/true", check=1)
    assert "/bin/true" in done.stderr and done.stdout == ""


def test_interrupted(recipe):
    process = subprocess.Popen([BINARY, "bench", "step", "--config", recipe, "--repeat", "1000000", "--json"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while "round" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 75
    assert all(row["repeats"] >= 1 for row in json.loads(output))


@pytest.mark.skipif(not PEER, reason="NORMLAB_PEER names no Python with torch")
class TestPeer:
    def test_rows(self, recipe):
        rows = bench("step", "--config", recipe, "--peer", PEER, "--memory")
        check_rows(rows)
        assert [row["path"] for row in rows] == ["fused", "composite", "torch-eager", "torch-compile"]
        assert rows[2]["peak_bytes"] > 0 and "peak_bytes" not in rows[3]

    def test_plain(self, recipe):
        assert chosen(bench("step", "--config", recipe, "--scheme", "none", "--path", "torch-eager", "--peer", PEER)) == [
            ("none", "torch-eager")]

    def test_decode(self, recipe):
        rows = bench("decode", "--config", recipe, "--scheme", "none", "lp:2.5", "--peer", PEER)
        assert [row for row in chosen(rows) if row[1] != "ctranslate2"] == [
            (s, p) for s in ["none", "lp:2.5"] for p in ["fused", "composite", "torch-eager"]]
        assert all(row["tokens_per_s"] == pytest.approx(200 / row["min_s"]) for row in rows)

    def test_a_model_it_does_not_know(self, tmp_path):
        path = tmp_path / "rope.toml"
        path.write_text("[model]\npositions = 'rope'\n")
        done = run("bench", "step", "--config", path, "--path", "torch-eager", "--peer", PEER, check=2)
        assert "model.positions" in done.stderr


def test_scaling():
    rows = bench("scaling", "--axis", "depth", "trials", "--scheme", "none", repeat=1)
    assert [row["config"] for row in rows] == [f"depth={n}" for n in (1, 2, 4, 8)] + [f"trials={n}" for n in (1, 2, 4, 8)]
    assert all("growth" not in row for i, row in enumerate(rows) if i not in (3, 7))
    depth, trials = rows[3]["growth"], rows[7]["growth"]
    assert trials["flops"] == pytest.approx(1) and "memory" not in trials
    assert 0.9 < depth["flops"] < 1 and depth["time"] > 0.3 and depth["memory"] > 0.1
    assert rows[3]["peak_bytes"] > rows[0]["peak_bytes"] > 0
