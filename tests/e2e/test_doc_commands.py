"""Every block of the documents: commands are run on a small scale, TOML is planned as a study, and a block of which
nothing is known fails, so that a new one cannot go untested. So are the examples of --help."""
import json
import os
import random
import re
import shutil
import stat
import subprocess
import sys
import tomllib

import pytest
from conftest import BINARY, ROOT, run
from doc_blocks import blocks_of
from test_scaling import write_points
from test_translate import write_pairs

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")),
         *sorted((ROOT / "docs/results").rglob("README.md"))]
GENERATED = {"docs/command-line.md", "docs/configuration.md"}  # test_docs.py compares them with the program

# Commands that are not run, and why. What stands for them in the sandbox is there before the first command.
NOT_RUN = {
    r"pip install \.": "builds the project",
    r"pip install --target .*": "downloads gigabytes",
    r"make (\w+)(?: TORCH_DIR=\S+)?": "builds the project; `make -n` says whether there is such a target",
    r"cmake --workflow --preset (\w+)": "builds the project; CMakePresets.json must name the preset",
    r"ctest --test-dir build -R \w+": "the unit tests have a target of their own",
    r"\S+=\S+ python3 -m pytest (tests/e2e/\w+\.py)": "would run the tests from within a test; the file must be there",
    r"(tools/generate_docs\.sh)": "test_docs.py runs it",
    r"(tools/fetch_enwik8\.sh) data \d+": "needs a network",
    r"normlab serve(?: .*)?": "runs until it is stopped; test_serve.py starts it",
    r"mpirun .*": "needs several processes; test_ranks.py starts them",
    r"apt install .*": "changes the machine",
    r"PYTHONPATH=build/python python (bench/\w+\.py) .*": "measures for minutes, with torch",
    r"normlab bench .*": "measures for minutes; test_bench.py has small ones",
    r"(tools/screenshot_page\.py) \S+ \S+": "needs a browser; test_browser.py has one",
}
# A checkpoint of Hugging Face's Qwen3, and a tokenizer.
QWEN3 = ["normlab train --set norm.scheme=qknorm norm.sublayer=rms model.positions=rope model.activation=swiglu "
         "--out runs/qk", "normlab export runs/qk --to hf --out Qwen3-0.6B"]
# Studies that nothing of has been run, and two parts of one.
PREPARED = [f"normlab compare -c recipes/lp-shakespeare-quick.toml {more} --prepare --out studies/{name}"
            for name, more in [("large", ""), ("folds-0-4", "--set data.fold=0"), ("folds-5-9", "--set data.fold=1")]]
# What a page takes for granted.
BEFORE = {
    "README.md": ["normlab train --data my.txt --out runs/other"],
    "docs/studies.md": ["normlab train --out runs/plain", "normlab train --set norm.scheme=lp --out runs/lp"],
    "docs/command-line.md": ["normlab compare -c recipes/lp-shakespeare-quick.toml --out runs/lp-quick",
                             "normlab compare -c recipes/scaling-small.toml --out studies/scaling",
                             "normlab train --set norm.scheme=angpt --out runs/angpt",
                             "normlab train -c recipes/gl-en-small.toml --out runs/gl-en", "normlab train --out runs/mine",
                             *QWEN3, *PREPARED,
                             "normlab compare -c recipes/lp-shakespeare-quick.toml --prepare --out studies/lp",
                             "normlab bpe learn --bytes --input my.txt --codes tokenizer.json",
                             "normlab bpe encode --tokenizer tokenizer.json --input my.txt --output my.ids"],
    "docs/clusters.md": PREPARED,
    "docs/huggingface.md": QWEN3,
    "docs/report.md": ["normlab compare -c recipes/lp-shakespeare-quick.toml --out runs/lp-quick"],
    "docs/runs.md": ["normlab train --out DIR"],
    "docs/schemes.md": ["normlab train --set norm.scheme=angpt --out runs/angpt"],
}
COMMAND = re.compile(r"(normlab|build/normlab|seq|sbatch) ")


def commands_of(text):
    """Lines without comments, with continued ones joined."""
    lines = re.sub(r"\\\n\s*", "", text).split("\n")
    return [line for line in (re.sub(r"\s+#.*", "", line).strip() for line in lines) if line and line[0] != "#"]


def not_run(command):
    return next((match for match in (re.fullmatch(rule, command) for rule in NOT_RUN) if match), None)


def kind_of(block):
    if block.language == "toml":
        return "toml"
    if block.language in ("c", "cpp", "python", "text"):  # tests/python runs what is Python
        return "text"
    if all(COMMAND.match(each) or not_run(each) for each in commands_of(block.text)):
        return "commands"
    return "unknown"


BLOCKS = [block for page in PAGES for block in blocks_of(page, ROOT) if block.page not in GENERATED]
PAGES_WITH_COMMANDS = sorted({block.page for block in BLOCKS if kind_of(block) == "commands"})


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def write_nanogpt(folder):
    """A checkpoint of nanoGPT, and a text with as many characters as its vocabulary has."""
    from safetensors import safe_open
    reference = ROOT / "tests/reference/nanogpt-bias.safetensors"
    shutil.copy(reference, folder / "model.safetensors")
    config = safe_open(reference, "np").metadata()["config"]
    (folder / "config.json").write_text(config)
    (folder / "input.txt").write_text("".join(chr(40 + i) for i in range(json.loads(config)["vocab_size"])) * 30)


@pytest.fixture(scope="session")
def stand(tmp_path_factory):
    """What every sandbox starts from: short programs, the recipes, texts, and files under the names of placeholders."""
    folder = tmp_path_factory.mktemp("stand")
    shorter = f'exec {sys.executable} {ROOT}/tests/e2e/short_normlab.py {BINARY} "$@"\n'
    for name in ("bin/normlab", "build/normlab"):
        script(folder / name, "#!/bin/sh\n" + shorter)
    # Two of the jobs in place of all of them.
    script(folder / "bin/parallel", '#!/bin/sh\nshift 2\nhead -n 2 | while read job; do "$@" "$job" || exit; done\n')
    script(folder / "bin/sbatch", '#!/bin/sh\nSLURM_ARRAY_TASK_ID=3 sh -ec "$3"\n')
    for name in ("recipes", "tools"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "tests").mkdir()
    (folder / "tests/reference").symlink_to(ROOT / "tests/reference")
    (folder / "FILE...").symlink_to(ROOT / "tests/reference/nanogpt-bias.safetensors")
    (folder / "data").mkdir()
    draw = random.Random(5)
    words = "the king spoke to his men and they went home in silence while night fell over a cold land".split()
    text = "\n".join(" ".join(draw.choices(words, k=9)).capitalize() + ": ROMEO." for _ in range(300))
    for name in ("my.txt", "my-text.txt", "play.txt", "data/enwik8.txt"):
        (folder / name).write_text(text)
    write_nanogpt(folder)
    (folder / "FOLDER").mkdir()
    for seed, (name, count) in enumerate([("train", 60), ("dev", 6), ("test", 20)]):
        write_pairs(folder / "FOLDER", name, count, seed)
        for language in ("gl", "en"):
            shutil.copy(folder / f"FOLDER/{name}.{language}", folder)
    for name in ("REF", "HYP", "BASELINE", "OURS", "translated.en", "baseline.en", "ours.en", "test.zh",
                 "translated.zh"):
        shutil.copy(folder / "test.en", folder / name)
    write_points(folder / "losses.csv")
    return folder


class Sandbox:
    def __init__(self, stand, folder):
        shutil.copytree(stand, folder, symlinks=True)
        self.folder = folder
        # One thread: steps this small are faster without waiting for a second one.
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", "PATH": f"{folder}/bin:{os.environ['PATH']}",
                            "SHORT_TEXT": "my.txt", "SHORT_PAIRS": "FOLDER"}

    def run(self, command, where):
        if match := not_run(command):
            return self.check_named(match, where)
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=self.folder, capture_output=True,
                              text=True, timeout=600, env=self.environment, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{where}: {command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"

    def check_named(self, match, where):
        """What a command that is not run names must be there."""
        if match[0].startswith("make "):
            subprocess.run(["make", "-n", match[1]], cwd=ROOT, check=True, capture_output=True)
        elif match[0].startswith("cmake "):
            assert f'"{match[1]}"' in (ROOT / "CMakePresets.json").read_text(), where
        elif match.lastindex:
            assert (ROOT / match[1]).exists(), where


@pytest.fixture
def sandbox(stand, tmp_path):
    return Sandbox(stand, tmp_path / "sandbox")


def test_no_block_is_unknown():
    unknown = [f"{block}\n{block.text}" for block in BLOCKS if kind_of(block) == "unknown"]
    assert not unknown, "neither commands nor text: add to NOT_RUN, or mark the fence as text:\n" + \
        "\n".join(unknown)


@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS)
def test_commands_run(page, sandbox):
    for command in BEFORE.get(page, []):
        sandbox.run(command, page)
    for block in BLOCKS:
        if block.page == page and kind_of(block) == "commands":
            for command in commands_of(block.text):
                sandbox.run(command, block)


def test_examples_of_help_run(sandbox):
    """Some of them stand in the help of several verbs."""
    page = "docs/command-line.md"
    whole_lines = re.sub(r" \\\n +", " ", (ROOT / page).read_text())
    examples = re.findall(r"^  ((?:normlab|seq|sbatch) .*)$", whole_lines, re.MULTILINE)
    assert len(examples) > 30
    for command in [*BEFORE[page], *dict.fromkeys(examples)]:
        sandbox.run(command, page)


@pytest.mark.parametrize("block", [block for block in BLOCKS if kind_of(block) == "toml"], ids=str)
def test_toml_is_a_study(block, sandbox):
    (sandbox.folder / "block.toml").write_text(block.text)
    sandbox.run("normlab compare --config block.toml --dry-run", block)


def is_study(recipe):
    keys = tomllib.loads(recipe.read_text())
    return "variant" in keys or any(isinstance(value, list) for section in keys.values() for value in section.values())


@pytest.mark.parametrize("recipe", sorted((ROOT / "recipes").glob("*.toml")), ids=lambda recipe: recipe.name)
def test_recipes_are_valid(recipe):
    """In full size, without their text: a study is planned, a run's configuration resolved."""
    if is_study(recipe):
        run("plan", "--config", recipe, "--vocab", 65, "--speed", 1e14, check=0)
    else:
        run("config", "print", "--config", recipe, check=0)
