"""The examples of docstrings and the notebook, executed."""
import doctest
import importlib
import json
import os
import pkgutil
import re

import pytest
import torch

import normlab
from program_runs import LM, ROOT, run

NOTEBOOK = ROOT / "examples" / "compare.ipynb"
MODULES = ["normlab", *(name for _, name, _ in pkgutil.walk_packages(normlab.__path__, "normlab.")
                         if not name.startswith(("normlab.lib", "normlab._")))]


@pytest.fixture(scope="session")
def names(text, lm_run, tmp_path_factory):
    """What the examples take as given."""
    folder = tmp_path_factory.mktemp("examples")
    recipe = folder / "recipe.toml"
    recipe.write_text('[norm]\nscheme = ["none", "qknorm"]\n')
    tiny = [*LM, "data.fold=[0,1]"]
    run("compare", "--config", recipe, "--data", text, "--out", folder / "study", "--quiet", "--set", *tiny)
    small = dict(each.split("=") for each in LM) | {"data.fold": [0]}
    return {"normlab": normlab, "torch": torch, "RUN": lm_run, "TEXT": text, "SMALL": small, "STUDY": folder / "study",
            "NEW": folder / "new"}


@pytest.mark.parametrize("module", MODULES)
def test_docstrings(module, names):
    if module in ("normlab.runs", "normlab.study"):
        pytest.importorskip("pandas", reason="data frames need pandas")
    if module == "normlab.transformers_model":
        pytest.importorskip("transformers", reason="it is a model of transformers")
    if module == "normlab.huggingface":
        transformers = pytest.importorskip("transformers", reason="replace_attention needs transformers")
        names = names | {"LlamaConfig": transformers.LlamaConfig, "LlamaForCausalLM": transformers.LlamaForCausalLM}
    module = importlib.import_module(module)
    result = doctest.testmod(module, extraglobs=names, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
    assert result.attempted or not getattr(module, "__all__", None), "no public module without an example"


def test_the_blocks_of_the_pages(lm_run, tmp_path, monkeypatch):
    transformers = pytest.importorskip("transformers", reason="replace_attention needs transformers")
    pytest.importorskip("pandas", reason="data frames need pandas")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "mine").symlink_to(lm_run)
    monkeypatch.chdir(tmp_path)
    llama = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, vocab_size=20))
    studies = []
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", lambda name: llama)  # no network
    monkeypatch.setattr(normlab, "compare", lambda **options: studies.append(options))  # 15 minutes
    names = {"llama": llama}
    for page in ("docs/python.md", "README.md"):
        for block in re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S):
            exec(compile(block, page, "exec"), names)
    assert studies == [{"data": "my.txt", "budget": "15m"}] * 2


def test_the_notebook(tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="the notebook needs nbclient and ipykernel")
    pytest.importorskip("ipykernel", reason="the notebook needs ipykernel")
    pytest.importorskip("pandas", reason="data frames need pandas")
    nbformat = importlib.import_module("nbformat")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": tmp_path}}).execute()
    outputs = {cell["source"].split("\n")[0]: cell["outputs"] for cell in notebook.cells if cell["cell_type"] == "code"}
    progress, report = outputs["study = normlab.compare("]
    assert "6 of 6 trials have ended" in progress["data"]["text/plain"]
    assert report["data"]["text/html"].startswith("<iframe srcdoc=")
    last = outputs['print(model.generate("the king", tokens=60, temperature=0.5))'][0]["text"]
    assert last.startswith("the king") and len(last) == len("the king") + 60 + 1


def test_the_notebook_is_stored_without_outputs():
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
    assert os.path.getsize(NOTEBOOK) < 8192
