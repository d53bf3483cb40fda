"""The installed copy: programs that find each other, a library that find_package and pkg-config find, and the examples."""
import os
import re
import shutil
import subprocess

import pytest

from conftest import BINARY, ROOT, run, train
from test_translate import pairs, train_pairs  # noqa: F401

BUILD = BINARY.resolve().parent


def sh(*command, **kwargs):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **kwargs)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefix")
    sh("cmake", "--install", BUILD, "--prefix", folder)
    return folder


def test_the_installed_program_finds_its_second_half(prefix):
    program = prefix / "bin" / "normlab"
    assert "libtorch" in sh(program, "doctor")
    assert "libtorch" not in sh("ldd", program)


def test_completions_and_the_manual_page_are_installed(prefix):
    script = "source {}; COMP_WORDS=(normlab compare --dry) COMP_CWORD=2; _normlab; echo ${{COMPREPLY[@]}}"
    completions = prefix / "share/bash-completion/completions/normlab"
    assert sh("bash", "-c", script.format(completions)) == "--dry-run\n"
    assert "#compdef normlab" in (prefix / "share/zsh/site-functions/_normlab").read_text()
    assert "complete -c normlab" in (prefix / "share/fish/vendor_completions.d/normlab.fish").read_text()
    assert ".TH NORMLAB 1" in (prefix / "share/man/man1/normlab.1").read_text()


def test_verbs_without_tensors_work_without_the_second_half(prefix, tmp_path):
    alone = tmp_path / "normlab"
    shutil.copy(prefix / "bin" / "normlab", alone)
    for verb in [["schemes"], ["schemes", "lp"], ["config", "print"], ["--help"], ["--version"]]:
        sh(alone, *verb)
    (tmp_path / "text").write_text("the cat sat on the mat\n")
    assert "100.0" in sh(alone, "score", tmp_path / "text", "--reference", tmp_path / "text")
    failed = subprocess.run([alone, "train", "--out", "x"], capture_output=True, text=True)
    assert failed.returncode == 1 and "normlab-torch" in failed.stderr and "make build" in failed.stderr
    study = tmp_path / "study"
    (tmp_path / "long").write_text("the cat sat on the mat. " * 400)
    failed = subprocess.run([alone, "compare", "--data", tmp_path / "long", "--out", study, "--set",
                             "norm.scheme=[none,qknorm]", "data.fold=[9]", "model.seq_len=16"],
                            capture_output=True, text=True)
    assert failed.returncode == 1 and "normlab-torch" in failed.stderr and not study.exists()


def test_pkg_config_names_the_core(prefix, tmp_path):
    source = tmp_path / "one.cpp"
    source.write_text('#include "normlab/norm/scheme.h"\n'
                      'int main() { return normlab::find_scheme("lp").p == 3.0 ? 0 : 1; }\n')
    [pc] = prefix.rglob("normlab.pc")
    env = {**os.environ, "PKG_CONFIG_PATH": str(pc.parent)}
    flags = sh("pkg-config", "--cflags", "--libs", "--static", "normlab", env=env).split()
    sh("c++", source, "-o", tmp_path / "one", *flags)
    sh(tmp_path / "one")


@pytest.fixture(scope="module")
def examples(prefix, tmp_path_factory):
    folder = tmp_path_factory.mktemp("consumer")
    shutil.copytree(ROOT / "examples", folder / "examples")
    sh("cmake", "-S", folder / "examples", "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}", "-G", "Ninja")
    sh("cmake", "--build", folder / "build", "-j2")
    return folder / "build"


def test_examples_build_outside_the_tree_and_run(examples):
    assert "p = 3" in sh(examples / "1_lp_normalize")
    assert "capped-rms" in sh(examples / "2_own_scheme")
    assert "not to be" in sh(examples / "3_train_and_sample")


def test_the_example_translates_as_the_program_does(examples, pairs, tmp_path):
    train_pairs(pairs, tmp_path / "run")
    lines = (pairs / "test.gl").read_text().splitlines()[:5]
    source = "\n".join(lines) + "\n"
    ours = run("translate", "--run", tmp_path / "run", "--threads", 1, input=source, check=0).stdout
    assert sh(examples / "4_translate", tmp_path / "run", input=source) == ours
    assert subprocess.run([examples / "4_translate", "nowhere"], input="", text=True, capture_output=True).returncode == 1


def test_the_example_in_c_does_as_the_program_does(prefix, examples, pairs, text, tmp_path):
    def from_c(*words):
        return subprocess.run([examples / "5_from_c", *words], text=True, capture_output=True)

    train(text, tmp_path / "model")
    train_pairs(pairs, tmp_path / "translator")
    ours = run("generate", tmp_path / "model", "--prompt", "The king", "--tokens", 40, check=0).stdout
    assert from_c("generate", tmp_path / "model", "The king").stdout == ours
    line = (pairs / "test.gl").read_text().splitlines()[0]
    ours = run("translate", tmp_path / "translator", "--threads", 1, input=line + "\n", check=0).stdout
    assert from_c("translate", tmp_path / "translator", line).stdout == ours
    for words, error in [(["generate", "nowhere", "x"], "[nowhere]"),
                         (["generate", tmp_path / "model", "\u20ac"], "[prompt]"),
                         (["generate", tmp_path / "model", ""], "[prompt] is empty"),
                         (["generate", tmp_path / "translator", "x"], "normlab_translate"),
                         (["translate", tmp_path / "model", "x"], "normlab_generate")]:
        failed = from_c(*words)
        assert failed.returncode == 1 and failed.stdout == "" and error in failed.stderr, failed


def test_the_library_for_c_shows_the_functions_of_its_header_only(prefix):
    [library] = prefix.rglob("libnormlab.so")
    shown = {line.split()[-1] for line in sh("nm", "-D", "--defined-only", library).splitlines()}
    header = (prefix / "include/normlab/normlab.h").read_text()
    assert shown == set(re.findall(r"(normlab_\w+)\(", header)) and len(shown) == 7
