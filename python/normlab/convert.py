"""Checkpoints of nanoGPT as files that ``normlab import`` reads: ``python -m normlab.convert ckpt.pt --out DIR``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch

CONFIG = ["block_size", "vocab_size", "n_layer", "n_head", "n_embd", "bias"]
COMPILED = "_orig_mod."  # what torch.compile puts before every name


def read_checkpoint(path: str | Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Weights and configuration; ValueError for a file that is not a checkpoint of nanoGPT.

    Only tensors and plain values are unpickled: a file cannot run code.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise ValueError(f"[{path}] no such file.") from None
    except Exception as error:  # torch raises many kinds, with many lines
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"[{path}] cannot be read as tensors and plain values: {reason}") from None
    if not isinstance(content, dict) or not all(isinstance(content.get(key), dict) for key in ("model", "model_args")):
        raise ValueError(f"[{path}] is not a checkpoint of nanoGPT; expected a dict with 'model' and 'model_args'.")
    config = content["model_args"]
    missing = [key for key in CONFIG if key not in config]
    if missing:
        raise ValueError(f"[{path}] model_args has no {', '.join(missing)}.")
    weights = {}
    for name, tensor in content["model"].items():
        name = name.removeprefix(COMPILED)
        # The head is the embedding, and old versions keep their causal masks.
        if name == "lm_head.weight" or name.endswith((".attn.bias", ".attn.masked_bias")):
            continue
        weights[name] = tensor.detach().to(torch.float32).contiguous()
    return weights, {key: config[key] for key in [*CONFIG, "dropout"] if key in config}


def convert(path: str | Path, out: str | Path) -> Path:
    """Writes model.safetensors and config.json into the new folder `out`."""
    from safetensors.torch import save_file

    weights, config = read_checkpoint(path)
    folder = Path(out)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise ValueError(f"[{folder}] exists already. Choose another --out.") from None
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    return folder


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m normlab.convert", description=__doc__)
    parser.add_argument("checkpoint", help="ckpt.pt of nanoGPT")
    parser.add_argument("-o", "--out", required=True, help="new folder", metavar="DIR")
    options = parser.parse_args(arguments)
    try:
        folder = convert(options.checkpoint, options.out)
    except (ValueError, OSError) as error:
        print(f"error {error}", file=sys.stderr)
        return 3
    print(f"weights in {folder}\nnext: normlab import --from nanogpt {folder}/model.safetensors --out CHECKPOINT")
    return 0


if __name__ == "__main__":
    sys.exit(main())
