"""Folders of runs and checkpoints: which file is where, whether it is whole, and the model in it."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from pathlib import Path
from typing import Any

from normlab.models import DecoderLM, Translator
from normlab.vocabulary import PairVocabulary, Tokenizer

Folder = str | os.PathLike[str]
MODEL = "model.safetensors"


def read_config(folder: Path) -> dict[str, Any]:
    """The resolved configuration of a run or checkpoint, by section."""
    file = folder / "config.toml"
    if not file.is_file():
        raise FileNotFoundError(f"[{folder}] is not a run; expected a folder of `normlab train`, with config.toml.")
    try:
        return tomllib.loads(file.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"[{file}] is damaged: {error}.") from None


def checkpoint_folder(folder: Folder) -> Path:
    """The folder itself if it is a checkpoint, otherwise the run's best checkpoint, or its latest."""
    path = Path(folder)
    if (path / MODEL).is_file():
        return path
    read_config(path)
    for link in ("best", "latest"):
        if (path / "checkpoints" / link / MODEL).is_file():
            return (path / "checkpoints" / link).resolve()
    raise FileNotFoundError(f"[{path}] is a run without a checkpoint yet. Train it: normlab train {path} --resume")


def verify_checksums(folder: Path) -> None:
    """Raises ValueError unless every file has the SHA-256 that SHA256SUMS says."""
    sums = folder / "SHA256SUMS"
    if not sums.is_file():
        return  # written by an older version, or a model edited on purpose
    for line in sums.read_text(errors="replace").splitlines():
        expected, _, name = line.partition("  ")
        file = folder / name
        if not name or "/" in name:
            raise ValueError(f"[{sums}] has a line that is not a checksum: the checkpoint is damaged.")
        if file.is_file() and sha256(file) != expected:
            raise ValueError(
                f"[{folder}] the checkpoint is damaged: {name} has changed since it was written, its SHA-256 is not "
                "the one in SHA256SUMS. Use another checkpoint of the run."
            )


def sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def load(folder: Folder) -> DecoderLM | Translator:
    """The model of a run or checkpoint as an ``nn.Module`` in evaluation mode.

    Of a run it is the best checkpoint, or the latest if there is no best one. Works for every scheme, for language
    models (``.generate``) and translators (``.translate``).

    >>> model = normlab.load(RUN)
    >>> logits = model(torch.tensor([model.tokenizer.encode("the ")]))
    >>> logits.shape == (1, 4, model.tokenizer.vocab_size)
    True
    >>> model.generate("the ", tokens=3, temperature=0)[:4]
    'the '

    Raises FileNotFoundError for a folder that is no run, ValueError for a damaged checkpoint.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = checkpoint_folder(folder)
    verify_checksums(path)
    config = read_config(path)
    try:
        vocabulary = json.loads((path / "tokenizer.json").read_text())
        is_translator = bool(config["translation"]["source"])
        model: DecoderLM | Translator
        if is_translator:
            model = Translator(config, PairVocabulary(vocabulary))
        else:
            model = DecoderLM(config, Tokenizer(vocabulary))
        model.load_state_dict(load_file(path / MODEL))
    except (KeyError, json.JSONDecodeError, SafetensorError, RuntimeError, OSError) as error:
        raise ValueError(f"[{path}] cannot be read as a checkpoint: {error}") from error
    return model.eval()
