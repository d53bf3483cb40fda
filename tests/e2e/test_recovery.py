"""Lost and damaged files of a run, and signals at bad moments: nothing is lost without a word."""
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import time

import pytest
from conftest import BINARY, TINY, metrics, run, train, weights

FAILED, DATA, STOPPED = 1, 3, 75
SETTINGS = ["train.max_steps=30", "train.keep_last=9", "model.dropout=0.1"]  # checkpoints at 0, 10, 20 and 30


@pytest.fixture(scope="module")
def whole(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recovery") / "whole"
    train(text, folder, *SETTINGS)
    return folder


@pytest.fixture
def copy(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "run", symlinks=True)


def expect_same(a, b):
    assert metrics(a) == metrics(b)
    for file in ("model.safetensors", "optimizer.safetensors"):
        x, y = weights(a, file), weights(b, file)
        assert x.keys() == y.keys() and all((x[k] == y[k]).all() for k in x)


def content(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != "run.lock"}


def flip(path):
    changed = bytearray(path.read_bytes())
    changed[-2] ^= 1
    path.write_bytes(changed)


# Permissions do not bind root unless it gives up the right to ignore them.
UNPRIVILEGED = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


@pytest.mark.parametrize("how", ["moved", "empty", "a file", "not mounted", "unreadable"])
def test_a_run_without_its_checkpoints_is_not_restarted(whole, copy, how):
    checkpoints, before = copy / "checkpoints", (copy / "metrics.jsonl").read_bytes()
    if how == "unreadable":
        checkpoints.chmod(0)
    else:
        checkpoints.rename(copy.parent / "moved")
    if how == "empty":
        checkpoints.mkdir()
    elif how == "a file":
        checkpoints.write_text("")
    elif how == "not mounted":
        checkpoints.symlink_to("/not/mounted")
    done = subprocess.run([*UNPRIVILEGED, str(BINARY), "train", str(copy), "--resume"], capture_output=True, text=True)
    assert done.returncode == (FAILED if how == "unreadable" else DATA), done.stderr
    words = {"moved": "is missing, though metrics.jsonl has rows", "empty": "holds no checkpoint", "a file": "is not a folder",
             "not mounted": "is missing", "unreadable": "cannot be listed: Permission denied"}
    assert f"[{checkpoints}] " in done.stderr and words[how] in done.stderr
    assert (copy / "metrics.jsonl").read_bytes() == before

    if how == "unreadable":
        checkpoints.chmod(0o755)
    else:
        assert run("check", copy, check=DATA)
        checkpoints.rmdir() if how == "empty" else how == "moved" or checkpoints.unlink()
        (copy.parent / "moved").rename(checkpoints)
    run("train", copy, "--resume", check=0)
    expect_same(whole, copy)


def test_a_run_killed_before_its_first_row_starts_again(whole, copy):
    shutil.rmtree(copy / "checkpoints")
    (copy / "metrics.jsonl").write_text("")
    run("train", copy, "--resume", check=0)
    expect_same(whole, copy)


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.safetensors", "state.json", "tokenizer.json", "config.toml"])
@pytest.mark.parametrize("damage", [flip, os.unlink])
def test_a_damaged_checkpoint_is_set_aside(whole, copy, file, damage):
    damage(copy / "checkpoints" / "step-000030" / file)
    done = run("train", copy, "--resume", check=0)
    assert "is set aside as damaged-step-000030" in done.stderr and "resumes from step 20" in done.stderr
    assert file in done.stderr
    expect_same(whole, copy)
    assert (copy / "checkpoints" / "damaged-step-000030").is_dir()
    assert "1 set aside" in run("check", copy, check=0).stdout


def test_without_a_whole_checkpoint_nothing_is_changed(copy):
    for checkpoint in (copy / "checkpoints").glob("step-*"):
        flip(checkpoint / "model.safetensors")
    before = content(copy)
    done = run("train", copy, "--resume", check=DATA)
    assert "no checkpoint to resume from" in done.stderr and done.stderr.count("model.safetensors has changed") == 4
    assert content(copy) == before


@pytest.mark.parametrize("lost", ["the last evaluation", "half of the last row", "ten rows"])
def test_lost_rows_are_written_again(whole, copy, lost):
    log = copy / "metrics.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    assert "val_loss" in lines[-1]
    kept = {"the last evaluation": lines[:-1], "half of the last row": lines[:-1] + [lines[-1][:20]], "ten rows": lines[:-10]}
    log.write_text("".join(kept[lost]))
    assert "rows that it had when the checkpoint of step 30 was written" in run("check", copy, check=DATA).stdout
    done = run("train", copy, "--resume", check=0)
    assert "is set aside as unlogged-step-000030" in done.stderr and "resumes from step 20" in done.stderr
    expect_same(whole, copy)
    run("check", copy, check=0)


def test_rows_that_no_checkpoint_can_write_again(copy):
    log = copy / "metrics.jsonl"
    log.write_text("")
    before = content(copy)
    done = run("train", copy, "--resume", check=DATA)
    assert "has 0 of the" in done.stderr and "move it away" in done.stderr and content(copy) == before
    log.unlink()  # as the message says
    done = run("train", copy, "--resume", "--set", "train.max_steps=40", check=0)
    assert "the rows up to step 30 will not be written again" in done.stderr
    assert [row["step"] for row in metrics(copy)][:2] == [31, 32]


# Notes which files are synced, written, renamed and linked.
RECORDER = r"""
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <string>
#include <unistd.h>
static void note(const char* what, const std::string& path) {
  if (path.find("metrics.jsonl") == std::string::npos && path.find("checkpoints/") == std::string::npos) return;
  const int log = open(getenv("RECORD"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string line = std::string(what) + " " + path + "\n";
  if (syscall(1, log, line.data(), line.size()) < 0) abort();
  close(log);
}
static std::string name_of(int file) {
  char path[PATH_MAX];
  const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path, sizeof path);
  return size < 0 ? "" : std::string(path, size);
}
extern "C" int fsync(int file) {
  note("sync", name_of(file));
  return reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, "fsync"))(file);
}
extern "C" ssize_t write(int file, const void* bytes, size_t size) {
  note("write", name_of(file));
  return reinterpret_cast<ssize_t (*)(int, const void*, size_t)>(dlsym(RTLD_NEXT, "write"))(file, bytes, size);
}
extern "C" int renameat2(int a, const char* from, int b, const char* to, unsigned flags) {
  note("rename", to);
  return reinterpret_cast<int (*)(int, const char*, int, const char*, unsigned)>(dlsym(RTLD_NEXT, "renameat2"))(a, from, b, to,
                                                                                                        flags);
}
extern "C" int rename(const char* from, const char* to) noexcept {
  note("rename", to);
  return reinterpret_cast<int (*)(const char*, const char*)>(dlsym(RTLD_NEXT, "rename"))(from, to);
}
"""


def test_rows_are_on_the_disk_before_a_checkpoint_is_there(text, tmp_path):
    (tmp_path / "recorder.cpp").write_text(RECORDER)
    library = tmp_path / "recorder.so"
    subprocess.run(["g++", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "recorder.cpp")], check=True)
    record = tmp_path / "record"
    run("train", "--data", text, "--out", tmp_path / "run", "--set", *TINY, *SETTINGS, check=0,
        env={"LD_PRELOAD": str(library), "RECORD": str(record)})
    unsynced, placed, linked = False, 0, 0
    for line in record.read_text().splitlines():
        action, path = line.split(" ", 1)
        if path.endswith("metrics.jsonl"):
            unsynced = action == "write" or (unsynced and action != "sync")
        elif action == "rename" and path.rsplit("/", 1)[1].startswith("step-"):
            placed += 1
            assert not unsynced, line
        elif action == "rename" and path.endswith("/latest"):
            linked += 1
            assert not unsynced, line
    assert placed == 4 and linked >= 4


WATCHED = ["probe.every=1", "train.max_steps=70", "train.save_every=10", "train.keep_last=1", "optim.lr=0.3",
           "optim.warmup_steps=0", "train.eval_every=35"]


def wait_for_rows(out, count):
    end = time.time() + 60
    while not (out / "metrics.jsonl").exists() or (out / "metrics.jsonl").read_bytes().count(b"\n") < count:
        assert time.time() < end
        time.sleep(0.002)


def start(text, out, *settings, before=()):
    command = [*before, str(BINARY), "train", "--data", str(text), "--out", str(out), "--resume", "--threads", "1", "-q",
               "--set", *TINY, *settings]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def test_a_killed_run_warns_as_an_undisturbed_one(text, tmp_path):
    train(text, tmp_path / "whole", *WATCHED)
    warnings = [row for row in metrics(tmp_path / "whole") if "warning" in row]
    assert warnings[0]["step"] < 10  # so that a resumed run might say it again
    out = tmp_path / "killed"
    for rows in (30, 70, 110):
        process = start(text, out, *WATCHED)
        wait_for_rows(out, rows)
        process.kill()
        process.wait()
    assert start(text, out, *WATCHED).wait(60) == 0
    expect_same(tmp_path / "whole", out)


def wait_until_it_loads(process):
    """`normlab` has become normlab-torch, which needs half a second to load."""
    while not os.readlink(f"/proc/{process.pid}/exe").endswith("normlab-torch"):
        assert process.poll() is None
        time.sleep(0.0005)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"])
def test_a_signal_while_libtorch_loads_is_a_request(whole, text, tmp_path, name):
    for delay in (0.0, 0.05, 0.15):
        out = tmp_path / f"run-{delay}"
        process = start(text, out, *SETTINGS)
        wait_until_it_loads(process)
        time.sleep(delay)
        process.send_signal(getattr(signal, name))
        assert process.wait(60) == (0 if name == "SIGUSR2" else STOPPED), process.stderr.read()
        run("train", out, "--resume", check=0)
        expect_same(whole, out)


def wait_until_signals_are_held(process):
    """The first thing that `normlab` does."""
    bit = 1 << (signal.SIGTERM - 1)
    while process.poll() is None:
        lines = pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines()
        if any(line.startswith("SigBlk:") and int(line.split()[1], 16) & bit for line in lines):
            return
        time.sleep(0.0002)
    assert False, "never"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_before_normlab_has_become_normlab_torch(text, tmp_path, name):
    for i in range(3):
        process = start(text, tmp_path / f"run-{i}", *SETTINGS)
        wait_until_signals_are_held(process)
        process.send_signal(getattr(signal, name))
        assert process.wait(60) == STOPPED, process.stderr.read()


def test_a_closed_terminal_saves(text, tmp_path):
    out = tmp_path / "run"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(BINARY, [str(BINARY), "train", "--data", str(text), "--out", str(out), "--set", *TINY,
                          "train.max_steps=100000", "train.eval_every=0"])
    wait_for_rows(out, 20)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == STOPPED
    state = json.loads((out / "checkpoints" / "latest" / "state.json").read_text())
    assert state["step"] >= 20


def test_nohup_is_respected(text, tmp_path):
    process = start(text, tmp_path / "run", "train.max_steps=300", before=["nohup"])
    wait_for_rows(tmp_path / "run", 20)
    process.send_signal(signal.SIGHUP)
    assert process.wait(60) == 0


def test_changed_log_every_is_no_fault(text, tmp_path):
    out = tmp_path / "run"
    train(text, out, "train.log_every=1")
    run("train", out, "--resume", "--set", "train.max_steps=52", "train.log_every=7", check=0)
    run("train", out, "--resume", "--set", "train.max_steps=60", "train.log_every=2", check=0)
    assert "nothing wrong" in run("check", out, check=0).stdout
    lines = (out / "metrics.jsonl").read_text().splitlines(keepends=True)
    (out / "metrics.jsonl").write_text("".join(line for line in lines if not line.startswith('{"step":42,')))
    assert "lacks rows between the steps 35 and 49" in run("check", out, check=DATA).stdout
