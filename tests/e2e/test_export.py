"""normlab export: folded models compute what the trained ones do."""
import json

import pytest
from conftest import run, train, weights


@pytest.mark.parametrize("scheme", ["angpt", "ngpt", "qknorm", "cosine", "sigma-reparam"])
def test_a_folded_model_has_the_loss_of_the_trained_one(text, tmp_path, scheme):
    train(text, tmp_path / "run", f"norm.scheme={scheme}", "optim.lr=0.01")
    exported = json.loads(run("export", tmp_path / "run", "--absorb", "--out", tmp_path / "absorbed", "--json", check=0).stdout)
    assert exported["absorbed"]
    assert bool(exported["kept"]) == (scheme == "ngpt")
    losses = [json.loads(run("eval", tmp_path / name, "--json", check=0).stdout)["loss"] for name in ("run", "absorbed")]
    assert losses[0] == pytest.approx(losses[1], abs=2e-5)
    first = run("generate", tmp_path / "run", "--tokens", 30, "--temperature", 0, check=0).stdout
    assert run("generate", tmp_path / "absorbed", "--tokens", 30, "--temperature", 0, check=0).stdout == first


def test_a_folded_model_has_fewer_tensors(text, tmp_path):
    train(text, tmp_path / "run", "norm.scheme=angpt")
    run("export", tmp_path / "run", "--absorb", "--out", tmp_path / "absorbed", check=0)
    from safetensors.numpy import load_file
    names = set(load_file(tmp_path / "absorbed" / "model.safetensors"))
    assert {"s_z", "layers.0.alpha_attn"} <= set(weights(tmp_path / "run")) - names


def test_refusals(text, tmp_path):
    train(text, tmp_path / "run")
    assert "nothing that can be absorbed" in run("export", tmp_path / "run", "--absorb", "--out", tmp_path / "x", check=2).stderr
    assert not (tmp_path / "x").exists()
    run("export", tmp_path / "run", "--out", tmp_path / "plain", check=0)
    assert run("export", tmp_path / "run", "--out", tmp_path / "plain").returncode != 0  # there already
