"""Memory of long runs: flat from the 100th step on."""
import json
import pathlib
import re
import subprocess
import time

import pytest

from conftest import BINARY, TINY, run

# A leak of 1 KB per step would be 600 KB.
SLACK_KB = 512


def resident_kb(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:  # ended
        return 0
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) if found else 0


def last_step(metrics):
    rows = metrics.read_text().split("\n")[:-1] if metrics.exists() else []
    return json.loads(rows[-1])["step"] if rows else 0


@pytest.mark.parametrize("threads", [1, 2])
def test_memory_is_flat_over_a_thousand_steps(text, tmp_path, threads):
    """With evaluations, checkpoints and probes on the way."""
    out = tmp_path / "run"
    settings = [*TINY, "train.max_steps=1000", "train.eval_every=50", "train.save_every=50", "probe.every=50",
                "norm.scheme=lp", "model.dropout=0.1"]
    process = subprocess.Popen([str(BINARY), "train", "--data", str(text), "--out", str(out), "--quiet", "--threads",
                                str(threads), "--set", *settings], stdout=subprocess.DEVNULL)
    seen = []  # (step, resident set)
    while process.poll() is None:
        step, size = last_step(out / "metrics.jsonl"), resident_kb(process.pid)
        if size:
            seen.append((step, size))
        time.sleep(0.01)
    assert process.returncode == 0
    early = [size for step, size in seen if 100 <= step < 300]
    late = [size for step, size in seen if 900 <= step < 1000]  # what ends a run takes memory of its own
    assert early and late, f"too few samples: {len(seen)}"
    growth = max(late) - max(early)
    print(f"{threads} threads: {max(early)} KB by step 300, {max(late)} KB by step 1000")
    assert growth < SLACK_KB, f"the resident set grew by {growth} KB from step 300 to step 1000"


def test_a_training_run_leaks_nothing(text, tmp_path):
    """All that is allocated is freed or still reachable at the end, by the leak sanitizer of the compiler's package."""
    library = subprocess.run(["gcc", "-print-file-name=liblsan.so"], capture_output=True, text=True).stdout.strip()
    if not pathlib.Path(library).is_file():
        pytest.skip("the leak sanitizer is not installed")
    done = run("train", "--data", text, "--out", tmp_path / "run", "--quiet", "--threads", 2, "--set", *TINY,
               "train.max_steps=100", "train.save_every=50", "probe.every=50", "norm.scheme=lp",
               env={"LD_PRELOAD": library})
    assert done.returncode == 0, done.stderr[-2000:]
    assert "LeakSanitizer" not in done.stderr
