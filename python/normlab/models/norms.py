"""Norms and constants of the schemes, in plain PyTorch: what src/normlab/ops and norm compute.

A scheme is the mapping of the section ``[norm]`` of a run's config.toml: the row of the catalogue with all overrides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from normlab.draws import draw_uniform, stream_key

Section = Mapping[str, Any]  # a section of config.toml


def lp_normalise(x: Tensor, p: float | Tensor, eps: float) -> Tensor:
    """x / max(||x||_p, eps) over the last dimension; a tensor ``p`` broadcasts over the others.

    >>> lp_normalise(torch.tensor([3.0, 4.0]), 2.0, 1e-12)
    tensor([0.6000, 0.8000])
    """
    size = x.abs()
    largest = size.amax(-1, keepdim=True).detach()  # taken out, or |x|^p would overflow; it cancels in the gradient
    if isinstance(p, float) and math.isinf(p):
        norm = size.amax(-1, keepdim=True)
    else:
        safe = largest.masked_fill(largest == 0, 1.0)
        norm = safe * ((size / safe) ** p).sum(-1, keepdim=True) ** (1.0 / p)
    return x / norm.clamp_min(eps)


def unit(x: Tensor) -> Tensor:
    return lp_normalise(x, 2.0, 1e-12)


def normalise_rows(x: Tensor, norm: Section, p: Tensor | None) -> Tensor:
    """Queries or keys over the last dimension, without gains."""
    kind, eps = norm["qk"], norm["qk_eps"]
    if kind == "none":
        return x
    if kind == "lp":
        return lp_normalise(x, float(norm["p"]) if p is None else p.view(-1, 1), eps)
    if kind == "layer":
        x = x - x.mean(-1, keepdim=True)
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()


def normalise_heads(x: Tensor, norm: Section, p: Tensor | None = None) -> Tensor:
    """Queries or keys [b, t, h, d]: one norm per head, per group of its channels, or over all heads together."""
    if norm["qk_groups"] > 1:
        return normalise_rows(x.unflatten(-1, (norm["qk_groups"], -1)), norm, p).flatten(-2)
    if norm["scope"] == "all_heads":
        return normalise_rows(x.flatten(2).unsqueeze(2), norm, p).view_as(x)
    return normalise_rows(x, norm, p)


class StreamNorm(nn.Module):
    """The norm of the residual stream: LayerNorm, RMSNorm, ScaleNorm, DyT or none."""

    def __init__(self, d_model: int, bias: bool, norm: Section, layer: int = 0):
        super().__init__()
        self.kind, self.eps = norm["sublayer"], norm["sublayer_eps"]
        self.factor = 1.0 / math.sqrt(layer + 1) if norm["sublayer_scale"] == "1/sqrt(layer)" else 1.0
        if self.kind != "none":
            self.weight = nn.Parameter(torch.ones(1 if self.kind == "scale" else d_model))
        with_bias = self.kind == "dyt" or (self.kind == "layer" and bias)
        self.bias = nn.Parameter(torch.zeros(d_model)) if with_bias else None
        if self.kind == "dyt":
            self.slope = nn.Parameter(torch.full((1,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "layer":
            y = F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)
        elif self.kind == "rms":
            y = F.rms_norm(x, self.weight.shape, self.weight, self.eps)
        elif self.kind == "scale":
            y = lp_normalise(x, 2.0, self.eps) * self.weight
        elif self.kind == "dyt":
            y = torch.tanh(x * self.slope) * self.weight + self.bias
        else:
            y = x
        return y * self.factor


def factor_value(factor: str | float, **sizes: float) -> float:
    """A number, or the rule that gives one from d_head, d_model, n_layers, init, length or mean_square.

    >>> factor_value("1/sqrt(d_head)", d_head=64), factor_value(0.1)
    (0.125, 0.1)
    """
    rules: dict[str, Callable[[], float]] = {
        "sqrt(d_head)": lambda: math.sqrt(sizes["d_head"]),
        "1/sqrt(d_head)": lambda: 1.0 / math.sqrt(sizes["d_head"]),
        "1/sqrt(d_model)": lambda: 1.0 / math.sqrt(sizes["d_model"]),
        "1/n_layers": lambda: 1.0 / sizes["n_layers"],
        "log2(L^2-L)": lambda: log2_pairs(sizes["length"]),
        "matched": lambda: log2_pairs(sizes["length"]) / sizes["mean_square"],
        "init": lambda: sizes["init"],
    }
    return rules[factor]() if factor in rules else float(factor)


def log2_pairs(length: float) -> float:
    return math.log2(length * length - length) if length > 1 else 1.0


def initial_gain(norm: Section, *, d_head: int, n_heads: int, length: int) -> float:
    """Where the gain of the logits starts, for sequences of ``length`` tokens."""
    mean_square = 1.0
    if norm["gain_init"] == "matched":
        mean_square = mean_square_after_lp(float(norm["p"]), d_head if norm["scope"] == "head" else d_head * n_heads)
    return factor_value(norm["gain_init"], d_head=d_head, length=length, mean_square=mean_square)


def initial_raw_p(norm: Section) -> float:
    """Where r of a learned p = 1 + softplus(r) starts."""
    above = float(norm["p"]) - 1.0
    return above + math.log(-math.expm1(-above))


@cache
def mean_square_after_lp(p: float, d: int, draws: int = 4096) -> float:
    """E ||x_hat||_2^2 of a Gaussian x in R^d divided by its Lp norm, over the program's draws."""
    uniform = torch.tensor(
        [[draw_uniform(key, i) for i in range(2 * d)] for key in (stream_key(0x6C70, n) for n in range(draws))],
        dtype=torch.float64,
    )
    x = (-2.0 * torch.log1p(-uniform[:, 0::2])).sqrt() * torch.cos(2.0 * math.pi * uniform[:, 1::2])
    return lp_normalise(x, p, 0.0).square().sum(-1).mean().item()


def nu_of_activation(activation: Callable[[Tensor], Tensor], std: float, n: float) -> float:
    """1 / sqrt(n E f(std g)^2) for g ~ N(0, 1), by the trapezoidal rule."""
    g = torch.linspace(-12.0, 12.0, 240_001, dtype=torch.float64)
    density = torch.exp(-0.5 * g * g) / math.sqrt(2.0 * math.pi)
    return 1.0 / math.sqrt(n * torch.trapezoid(activation(std * g).square() * density, g).item())
