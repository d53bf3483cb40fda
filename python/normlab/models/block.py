"""One layer: attention, in a translator's decoder cross-attention, and MLP on the residual stream."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from normlab.models.attention import Attention, KeyValues, Linear, Rope
from normlab.models.norms import Section, StreamNorm, factor_value, nu_of_activation, unit

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
    "swiglu": F.silu,
    "geglu": lambda x: F.gelu(x, approximate="tanh"),
}


class Mlp(nn.Module):
    def __init__(self, model: Section, norm: Section):
        super().__init__()
        d_model, d_ff = model["d_model"], model["d_ff"]
        self.activation, self.dropout = ACTIVATIONS[model["activation"]], model["mlp_dropout"]
        self.gated = model["activation"] in ("swiglu", "geglu")
        hidden = (2 if self.gated else 1) * d_ff
        self.add_module("in", Linear(d_model, hidden, model["bias"], norm["sigma_reparam"]))  # a word of Python
        self.out = Linear(d_ff, d_model, model["bias"], norm["sigma_reparam"])
        self.s_uv = nn.Parameter(torch.ones(hidden)) if norm["map_scale"] == "s_uv" else None
        self.root = math.sqrt(d_model)
        # anGPT's constants nu, each of which brings the expected norm of a map's output back to 1.
        self.nu_in = self.nu_argument = self.nu_out = 1.0
        if norm["map_scale"] == "nu":
            self.nu_in, self.nu_argument = math.sqrt(d_model / d_ff), math.sqrt(d_model)
            self.nu_out = nu_of_activation(self.activation, self.nu_in, 1 if self.gated else d_ff)
            self.nu_out *= math.sqrt(d_ff / d_model)

    def forward(self, x: Tensor) -> Tensor:
        x = self.get_submodule("in")(x) * self.nu_in
        if self.s_uv is not None:
            x = x * (self.s_uv * self.root)
        if self.gated:
            up, gate = x.chunk(2, -1)
            x = up * self.nu_out * self.activation(gate * self.nu_argument)
            return self.out(F.dropout(x, self.dropout, self.training))
        x = self.activation(x * self.nu_argument)
        return self.out(F.dropout(x, self.dropout, self.training)) * self.nu_out


class Block(nn.Module):
    def __init__(self, model: Section, norm: Section, layer: int, length: int, cross: bool = False):
        super().__init__()
        self.residual, self.placement, self.dropout = norm["residual"], norm["placement"], model["dropout"]
        self.first = layer == 0
        self.attn_norm = StreamNorm(model["d_model"], model["bias"], norm, layer)
        self.attn = Attention(model, norm, length, layer)
        if cross:
            self.cross_norm = StreamNorm(model["d_model"], model["bias"], norm, layer)
            self.cross = Attention(model, norm, length, layer, cross=True)
        self.mlp_norm = StreamNorm(model["d_model"], model["bias"], norm, layer)
        self.mlp = Mlp(model, norm)
        if self.placement == "both":
            for name in ("attn", "mlp", *(["cross"] if cross else [])):
                self.add_module(f"{name}_branch_norm", StreamNorm(model["d_model"], model["bias"], norm, layer))
        if self.residual != "add":
            alpha = factor_value(norm["alpha_init"], n_layers=model["n_layers"])
            self.ratio = alpha / factor_value(norm["stored_scale"], d_model=model["d_model"], init=alpha)
            size = model["d_model"] if norm["alpha_sharing"] == "channel" else 1
            self.alpha_attn, self.alpha_mlp = nn.Parameter(torch.ones(size)), nn.Parameter(torch.ones(size))

    def lerp(self, h: Tensor, branch: Tensor, stored: Tensor, first: bool) -> Tensor:
        alpha = (stored * self.ratio).abs()  # the authors' code of nGPT takes |alpha|
        if self.residual == "lerp_unit":
            h = unit(h) if first else h
            return unit(h + alpha * (unit(branch) - h))
        step = (1.0 - alpha) * h + alpha * branch
        return step * (alpha**2 + (1.0 - alpha) ** 2).rsqrt() if self.residual == "lerp_nu" else step

    def add(self, x: Tensor, name: str, branch: Callable[[Tensor], Tensor]) -> Tensor:
        norm = self.get_submodule(f"{name}_norm")

        def dropped(y: Tensor) -> Tensor:
            return F.dropout(y, self.dropout, self.training)

        if self.placement == "pre":
            return x + dropped(branch(norm(x)))
        if self.placement == "post":
            return norm(x + dropped(branch(x)))
        if self.placement == "both":
            return x + dropped(self.get_submodule(f"{name}_branch_norm")(branch(norm(x))))
        return x + dropped(norm(branch(x)))

    def forward(
        self,
        x: Tensor,
        *,
        causal: bool = True,
        key_lengths: Tensor | None = None,
        memory: Tensor | None = None,
        memory_lengths: Tensor | None = None,
        model_gain: Tensor | None = None,
        rope: Rope | None = None,
        cache: list[KeyValues] | None = None,
    ) -> Tensor:
        def attend(y: Tensor) -> Tensor:
            return self.attn(
                y, causal=causal, key_lengths=key_lengths, model_gain=model_gain, rope=rope, cache=cache
            )

        def attend_memory(y: Tensor) -> Tensor:
            return self.cross(y, memory=memory, key_lengths=memory_lengths, model_gain=model_gain)

        if self.residual != "add":
            x = self.lerp(x, F.dropout(attend(x), self.dropout, self.training), self.alpha_attn, self.first)
            return self.lerp(x, F.dropout(self.mlp(x), self.dropout, self.training), self.alpha_mlp, False)
        x = self.add(x, "attn", attend)
        if memory is not None:
            x = self.add(x, "cross", attend_memory)
        return self.add(x, "mlp", self.mlp)
