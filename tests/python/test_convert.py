"""Checkpoints of nanoGPT, as its train.py saves them, become models of normlab with nanoGPT's logits."""
import json
import os
import subprocess
import sys

import pytest
import torch

import normlab
from program_runs import ROOT, run
from safetensors import safe_open
from safetensors.torch import load_file


def convert(*arguments):
    return subprocess.run([sys.executable, "-m", "normlab.convert", *map(str, arguments)], capture_output=True,
                          text=True, env=os.environ)


def nanogpt_checkpoint(kind):
    """What train.py passes to torch.save, with the weights of the reference file; the file's tensors beside it."""
    path = ROOT / f"tests/reference/nanogpt-{kind}.safetensors"
    tensors = load_file(path)
    with safe_open(path, "pt") as file:
        config = json.loads(file.metadata()["config"])
    weights = {f"_orig_mod.{name.removeprefix('weights.')}": tensor
               for name, tensor in tensors.items() if name.startswith("weights.")}
    weights["_orig_mod.lm_head.weight"] = weights["_orig_mod.transformer.wte.weight"]
    weights["_orig_mod.transformer.h.0.attn.bias"] = torch.ones(1, 1, 16, 16).tril()  # without flash attention
    moments = {"state": {0: {"step": torch.tensor(3.0)}}, "param_groups": [{"lr": 1e-3, "params": [0]}]}
    return {"model": weights, "optimizer": moments, "model_args": config, "iter_num": 3,
            "best_val_loss": torch.tensor(1.5), "config": {"dataset": "shakespeare_char", "compile": True}}, tensors


@pytest.mark.parametrize("kind", ["bias", "nobias"])
def test_a_checkpoint_of_nanogpt_has_its_logits(kind, tmp_path):
    checkpoint, reference = nanogpt_checkpoint(kind)
    torch.save(checkpoint, tmp_path / "ckpt.pt")
    (tmp_path / "text.txt").write_text("".join(chr(ord("A") + i) for i in range(65)))
    done = convert(tmp_path / "ckpt.pt", "--out", tmp_path / "files")
    assert done.returncode == 0, done.stderr
    run("import", "--from", "nanogpt", tmp_path / "files/model.safetensors", "--data", tmp_path / "text.txt", "--out",
        tmp_path / "imported")
    with torch.no_grad():
        logits = normlab.load(tmp_path / "imported")(reference["inputs.tokens"])
    # Float32 sums in another order.
    torch.testing.assert_close(logits, reference["expect.logits"], rtol=0, atol=1e-5)


class Payload:
    def __reduce__(self):
        return (os.system, (f"touch {Payload.target}",))


def test_what_is_no_checkpoint_of_nanogpt_is_refused(tmp_path):
    checkpoint, _ = nanogpt_checkpoint("bias")
    target = Payload.target = tmp_path / "ran"
    short = {key: value for key, value in checkpoint["model_args"].items() if key != "n_head"}
    for content, words in [(Payload(), "cannot be read"), ([1], "expected a dict"),
                           ({"model": checkpoint["model"]}, "model_args"),
                           (checkpoint | {"model_args": short}, "model_args has no n_head")]:
        torch.save(content, tmp_path / "ckpt.pt")
        done = convert(tmp_path / "ckpt.pt", "--out", tmp_path / "files")
        assert done.returncode == 3 and words in done.stderr and done.stderr.count("\n") == 1, done.stderr
        assert not (tmp_path / "files").exists() and not target.exists()
    (tmp_path / "ckpt.pt").write_bytes(b"text")
    assert convert(tmp_path / "ckpt.pt", "--out", tmp_path / "files").returncode == 3
    assert "no such file" in convert(tmp_path / "nowhere.pt", "--out", tmp_path / "files").stderr
    torch.save(checkpoint, tmp_path / "ckpt.pt")
    assert "exists already" in convert(tmp_path / "ckpt.pt", "--out", tmp_path).stderr
