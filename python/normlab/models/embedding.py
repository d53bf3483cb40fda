"""Token embeddings and positions, which both models share."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from normlab.models.attention import Rope
from normlab.models.norms import Section, unit


class Embedding(nn.Module):
    """Rows of tokens: unit rows with FixNorm, with a learnable scale where the scheme has one."""

    def __init__(self, vocab_size: int, d_model: int, kind: str):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(vocab_size, d_model))
        self.scale = nn.Parameter(torch.ones(1)) if kind == "scaled" else None
        self.fixnorm = kind == "fixnorm"

    def rows(self, table: Tensor | None = None) -> Tensor:
        """The table as it is used, at the input and as the head."""
        table = self.weight if table is None else table
        return unit(table) if self.fixnorm else table

    def forward(self, tokens: Tensor, scale: float) -> Tensor:
        """The rows of ``tokens``, times the learned scale or else ``scale``."""
        return self.rows()[tokens] * (scale if self.scale is None else self.scale)


class Positions(nn.Module):
    """Positions added to the embeddings, learned or sines; none of them with RoPE."""

    def __init__(self, model: Section):
        super().__init__()
        kind, length, width = model["positions"], model["seq_len"], model["d_model"]
        if kind == "learned":
            self.weight = nn.Parameter(torch.zeros(length, width))
        else:
            table = None if kind == "rope" else sinusoids(kind, length, width)
            self.register_buffer("weight", table, persistent=False)

    def forward(self, x: Tensor, first: int) -> Tensor:
        return x if self.weight is None else x + self.weight[first : first + x.size(1)]


def sinusoids(kind: str, length: int, width: int) -> Tensor:
    """[length, width]: sines in even columns and cosines in odd ones, or for the kind "sine" sines in all."""
    column = torch.arange(width, dtype=torch.float64)
    odd = column % 2
    angle = torch.arange(length, dtype=torch.float64).unsqueeze(1) * 10000.0 ** ((odd - column) / width)
    return torch.sin(angle + odd * (math.pi / 2 if kind == "sinusoidal" else 0.0)).float()


def rope_of(model: Section, local: bool = False) -> Rope | None:
    """Rotary positions, ``local`` of the layers with a window; runs of earlier versions know neither these nor scaling."""
    if model["positions"] != "rope":
        return None
    own = local and model.get("rope_base_local", 0.0) > 0.0
    base = model["rope_base_local"] if own else model["rope_base"]
    frequency = base ** (-torch.arange(0, model["d_head"], 2, dtype=torch.float64) / model["d_head"])
    if not own:
        frequency = scaled_frequency(model, frequency)
    return Rope(model["seq_len"], frequency, model["rope_pairing"])


def scaled_frequency(model: Section, frequency: Tensor) -> Tensor:
    """Divided by the factor: all, or as in Llama 3.1 those of waves that are long for the original length."""
    kind = model.get("rope_scaling", "none")
    if kind == "none":
        return frequency
    turns = frequency * (model["rope_original_len"] / (2.0 * math.pi))
    kept = ((turns - 1.0) / 3.0).clamp(0.0, 1.0) if kind == "llama3" else 0.0
    return frequency * (kept + (1.0 - kept) / model["rope_factor"])
