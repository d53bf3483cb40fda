"""A short training with a fault at one call after the other: it fails, the program is killed before it, or the power is
cut there. What follows is always the same: resuming gives the bits of an undisturbed run.

`make torture` tries every call, `make test` some."""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
from errno import EIO, EMFILE, ENOMEM, ENOSPC

import pytest
from conftest import BINARY, metrics, run, weights
from disk import Disk, digest, read_tree, write_tree

PROGRAM, LIBRARY = BINARY.parent / "normlab-torch", BINARY.parent / "libnormlab_faults.so"
SETTINGS = ["model.n_layers=1", "model.n_heads=1", "model.d_model=8", "model.seq_len=8", "model.dropout=0.1",
            "train.batch_size=2", "train.eval_every=2", "train.eval_windows=4", "train.log_every=1",
            "train.keep_last=1", "train.keep_best=1", "optim.warmup_steps=2", "optim.decay_steps=4"]
ALL = "NORMLAB_TORTURE" in os.environ
# Parts of the calls, so that they can be shared between processes; a sample is one part of many.
PARTS, TRIED = (16, range(16)) if ALL else (60, [7])
# The usual error of a call that fails, and the calls that a full disk does not admit.
CODES = {"open": EMFILE, "mmap": ENOMEM, "write": ENOSPC, "create": ENOSPC, "mkdir": ENOSPC}
WRITING = {"create", "write", "mkdir", "symlink", "fsync", "rename"}


class Training:
    """The training in `disk / "run"`, from wherever it is; it is started once for many runs, see interpose.cpp."""

    def __init__(self, text, disk, steps):
        self.disk, self.out, self.errors = disk, disk / "run", disk.parent / "errors"
        command = [PROGRAM, "train", "--data", text, "--out", self.out, "--resume", "-q", "--threads", "1", "--set",
                   *SETTINGS, f"train.max_steps={steps}"]
        self.server = subprocess.Popen([*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       env={**os.environ, "LD_PRELOAD": str(LIBRARY), "NORMLAB_FAULT_FOLDER": str(disk)})

    def run(self, *, log="-", call=0, action="none"):
        """The exit code and what it said; with a call that fails, or before which it is killed."""
        self.errors.unlink(missing_ok=True)
        self.server.stdin.write(f"{call} {action} {log} {self.errors}\n")
        self.server.stdin.flush()
        return os.waitstatus_to_exitcode(int(self.server.stdout.readline())), self.errors.read_text()

    def place(self, tree):
        """What the next run finds."""
        shutil.rmtree(self.disk, ignore_errors=True)
        write_tree(tree, self.disk)

    def close(self):
        self.server.stdin.close()
        self.server.wait()


class Scenario:
    """A training without a fault: what was there before it, its calls and its results."""

    def __init__(self, text, folder, is_new):
        self.disk = folder / "disk"
        self.before = {pathlib.Path(): None}
        if not is_new:
            first = Training(text, self.disk, 2)
            first.place(self.before)
            assert first.run()[0] == 0
            first.close()
            self.before = read_tree(self.disk)
        self.training = Training(text, self.disk, 2 if is_new else 4)
        self.training.place(self.before)
        code, errors = self.training.run(log=folder / "calls")
        assert code == 0, errors
        self.calls = (folder / "calls").read_text().splitlines()
        self.after, self.results = read_tree(self.disk), results(self.training.out)

    def expect_resumed(self, what):
        code, errors = self.training.run()
        assert code == 0, f"{what}\n{errors}"
        assert results(self.training.out) == self.results, what
        checked = run("check", self.training.out)
        assert checked.returncode == 0, f"{what}\n{checked.stdout}"
        assert not [path for path in self.disk.rglob("*") if "staging" in path.name], what

    def expect_explained(self, code, errors, what):
        """A failure is one line; a call without which everything is well may fail unnoticed."""
        if code == 0:
            assert results(self.training.out) == self.results, what
            return
        said = [line for line in errors.splitlines() if line.startswith("error ")]
        assert code in (1, 3) and len(said) == 1 and errors.endswith(said[0] + "\n") and "[internal]" not in errors, what


def results(out):
    tensors = {file: weights(out, file) for file in ["model.safetensors", "optimizer.safetensors"]}
    return metrics(out), {(file, name): value.tobytes() for file, t in tensors.items() for name, value in t.items()}


@pytest.fixture(scope="module", params=["new", "resumed"])
def scenario(request, text):
    # In memory where possible: what is synced here need not reach a disk.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        found = Scenario(text, pathlib.Path(folder), request.param == "new")
        yield found
        found.training.close()


def test_the_calls_are_all_written_down(scenario):
    """What the calls amount to is what is on the disk, so none is missed."""
    disk = Disk(scenario.disk, scenario.before)
    for line in scenario.calls:
        disk.apply(line)
    assert disk.view(lambda: True, lambda: True) == scenario.after
    names = {"open", "create", "write", "fsync", "rename", "mkdir", "symlink"}
    if len(scenario.before) > 1:
        names |= {"mmap", "remove"}
    assert {line.split(" ")[0] for line in scenario.calls} >= names


@pytest.mark.parametrize("part", TRIED)
@pytest.mark.parametrize("fault", ["fails", "disk full", "killed"])
def test_a_fault_at_every_call(scenario, fault, part):
    for number, line in enumerate(scenario.calls, 1):
        call = line.split(" ")[0]
        if number % PARTS != part or fault == "disk full" and call not in WRITING:
            continue
        action = {"fails": CODES.get(call, EIO), "disk full": f"{ENOSPC}+", "killed": "kill"}[fault]
        scenario.training.place(scenario.before)
        code, errors = scenario.training.run(call=number, action=action)
        what = f"{fault} at call {number}, {line[:200]}\n{errors}"
        if fault == "killed":
            assert code == -signal.SIGKILL, what
        else:
            scenario.expect_explained(code, errors, what)
        scenario.expect_resumed(what)


# What a power cut leaves of changes that were not synced: nothing; names but no data, as a file system with delayed
# allocation may do; data but no names; or any of them.
LEFT = {
    "nothing": lambda draw: (lambda: False, lambda: False),
    "names": lambda draw: (lambda: True, lambda: False),
    "data": lambda draw: (lambda: False, lambda: True),
    "some": lambda draw: (lambda: draw.random() < 0.5, lambda: draw.random() < 0.5),
}


@pytest.mark.parametrize("part", TRIED)
@pytest.mark.parametrize("left", LEFT)
def test_a_power_cut_after_every_call(scenario, left, part):
    disk, draw, tried, safe = Disk(scenario.disk, scenario.before), random.Random(part), set(), set()
    checkpoints = scenario.training.out / "checkpoints"
    for number, line in enumerate(scenario.calls, 1):
        disk.apply(line)
        if line == f"fsync 0 {checkpoints}":
            safe = {max(name for name in disk.names(checkpoints) if name.startswith("step-"))}
        tree = disk.view(*LEFT[left](draw))
        if number % PARTS == part and digest(tree) not in tried:
            tried.add(digest(tree))
            what = f"power cut after call {number}, {line[:200]}; left: {left}"
            assert all(checkpoints.relative_to(scenario.disk) / name in tree for name in safe), what
            scenario.training.place(tree)
            scenario.expect_resumed(what)
