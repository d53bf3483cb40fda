"""Multi-head attention with normalised queries and keys: what src/normlab/nn/attention.cpp computes.

softmax(cap(scale gain q_hat k_hat^T) + mask) v, with shapes b batch, t queries, s keys, h head, d head channel.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from normlab.models.norms import Section, factor_value, initial_gain, initial_raw_p, normalise_heads

KeyValues = tuple[Tensor, Tensor]  # normalised keys and values [b, s, h, d]


class Linear(nn.Linear):
    """y = x W^T + b, or with sigma-Reparam y = (gamma / sigma(W)) x W^T + b, sigma = u^T W v."""

    u: Tensor
    v: Tensor

    def __init__(self, d_in: int, d_out: int, bias: bool, sigma_reparam: bool):
        super().__init__(d_in, d_out, bias)
        self.sigma_reparam = sigma_reparam
        if sigma_reparam:
            self.gamma = nn.Parameter(torch.ones(1))
            self.register_buffer("u", torch.ones(d_out))
            self.register_buffer("v", torch.ones(d_in))

    def forward(self, x: Tensor) -> Tensor:
        if not self.sigma_reparam:
            return super().forward(x)
        y = F.linear(x, self.weight) * (self.gamma / (self.u @ self.weight @ self.v))
        return y if self.bias is None else y + self.bias


class Affine(nn.Module):
    """Channel gains of an rms or layer norm of q or k, shared by the heads [d] or one vector for each [h * d]."""

    def __init__(self, size: int, bias: bool):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        x = x * self.weight.view(-1, x.size(-1))
        return x if self.bias is None else x + self.bias.view(-1, x.size(-1))


class Rope:
    """Rotary positions, for pairs of channels (2i, 2i + 1), "interleaved", or (i, i + d/2), "half"."""

    def __init__(self, length: int, frequency: Tensor, pairing: str):
        angle = torch.arange(length, dtype=torch.float64).unsqueeze(1) * frequency
        self.cos, self.sin, self.pairing = angle.cos().float(), angle.sin().float(), pairing

    def __call__(self, x: Tensor, first: int) -> Tensor:
        at = slice(first, first + x.size(1))
        cos, sin = (table[at].unsqueeze(1).to(x) for table in (self.cos, self.sin))
        if self.pairing == "half":
            a, b = x.chunk(2, -1)
            return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)


class Gain:
    """The gain of the logits: where it starts, and what is used of what is stored, as in nn/scaled_parameter.h."""

    def __init__(self, norm: Section, model: Section, length: int):
        init = initial_gain(norm, d_head=model["d_head"], n_heads=model["n_heads"], length=length)
        self.exp, self.max = norm["gain_form"] == "exp", float(norm["gain_max"])
        scale = factor_value(norm["stored_scale"], d_model=model["d_model"], init=init)
        self.start, self.ratio = (math.log(init), 1.0) if self.exp else (scale, init / scale)

    def used(self, stored: Tensor) -> Tensor:
        return stored.clamp_max(math.log(self.max)).exp() if self.exp else stored * self.ratio


class NormalisedAttention(nn.Module):
    """Attention of projected queries, keys and values, with the learned values of one layer."""

    def __init__(self, model: Section, norm: Section, length: int, with_bias: bool):
        super().__init__()
        self.norm = norm
        self.h, self.h_kv, self.d = model["n_heads"], model["n_kv_heads"], model["d_head"]
        self.scale = factor_value(norm["logit_scale"], d_head=self.d, d_model=model["d_model"])
        if norm["map_scale"] == "nu" and norm["qk"] == "none":
            self.scale *= model["d_model"] / self.d  # nu of the q and k maps, where no norm takes it out
        self.q_norm = self.k_norm = None
        if norm["qk_affine"] != "none":
            own, with_bias = norm["qk_affine"] == "own", with_bias and norm["qk"] == "layer"
            self.q_norm, self.k_norm = (
                Affine(self.d * (heads if own else 1), with_bias) for heads in (self.h, self.h_kv)
            )
        self.gain = None if norm["gain"] == "none" else Gain(norm, model, length)
        self.qk_gain = None  # also where the model shares one
        if self.gain and norm["gain"] != "model" and norm["learn_gain"]:
            size = {"layer": 1, "head": self.h, "channel": self.h * self.d}[norm["gain"]]
            self.qk_gain = nn.Parameter(torch.full((size,), self.gain.start))
        self.qk_p = None
        if norm["learn_p"]:
            self.qk_p = nn.Parameter(torch.full((self.h if norm["p_sharing"] == "head" else 1,), initial_raw_p(norm)))

    def used_gain(self, shared: Tensor | None) -> Tensor | None:
        """To be multiplied with the queries, [1], [h, 1] or [h, d]."""
        if self.gain is None:
            return None
        stored = self.qk_gain if shared is None else shared
        gain = self.gain.used(torch.tensor([self.gain.start]) if stored is None else stored)
        gain = gain.view(self.h, self.d) if gain.numel() == self.h * self.d else gain.view(-1, 1)
        # <g o q, g o k> = <g^2 o q, k>: the keys stay as they are.
        return gain * gain if self.norm["gain_on"] == "both" else gain

    def hat(self, x: Tensor, affine: Affine | None, gain: Tensor | None, rope: Rope | None, first: int) -> Tensor:
        """Queries or keys [b, t, h, d] before their product; ``first`` is the position of the first of them."""
        after = self.norm["order"] == "after_rope"
        if rope and after:
            x = rope(x, first)
        p = None if self.qk_p is None else F.softplus(self.qk_p) + 1.0
        x = normalise_heads(x, self.norm, p)
        if affine is not None:
            x = affine(x)
        if gain is not None:
            x = x * gain.to(x)
        return rope(x, first) if rope and not after else x

    def queries(self, q: Tensor, model_gain: Tensor | None = None, rope: Rope | None = None, first: int = 0) -> Tensor:
        return self.hat(q, self.q_norm, self.used_gain(model_gain), rope, first)

    def keys(self, k: Tensor, rope: Rope | None = None, first: int = 0) -> Tensor:
        return self.hat(k, self.k_norm, None, rope, first)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, visible: Tensor, dropout: float = 0.0) -> Tensor:
        """[b, t, h, d] of normalised queries and keys; ``visible`` broadcasts to [b, h, t, s]."""
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        k, v = (each.repeat_interleave(self.h // self.h_kv, 1) for each in (k, v))
        if self.norm["row_scale"] == "log(n)":
            q = q * visible.sum(-1, keepdim=True).clamp_min(1).double().log().to(q.dtype)
        logits = q @ k.transpose(2, 3) * self.scale
        cap = self.norm["soft_cap"]
        if cap > 0.0:
            logits = torch.tanh(logits / cap) * cap
        # Not -inf: a query that sees no key, which is padding, would become NaN.
        weights = logits.masked_fill(~visible, torch.finfo(logits.dtype).min).softmax(-1)
        return (F.dropout(weights, dropout) @ v).transpose(1, 2)


def visible_keys(
    t: int, s: int, causal: bool, key_lengths: Tensor | None, device: torch.device, window: int = 0
) -> Tensor:
    """[1 or b, 1, t, s]: key j is visible to query i if j <= i + s - t, and if it is not padding.

    Of these a causal query sees the last ``window``, or with 0 all.

    >>> visible_keys(2, 3, True, None, torch.device("cpu")).int().tolist()
    [[[[1, 1, 0], [1, 1, 1]]]]
    """
    visible = torch.ones(1, 1, t, s, dtype=torch.bool, device=device)
    if causal:
        visible = visible.tril(s - t)
        if window:
            visible = visible.triu(s - t - window + 1)
    if key_lengths is not None:
        visible = visible & (torch.arange(s, device=device) < key_lengths.view(-1, 1, 1, 1))
    return visible


class Attention(NormalisedAttention):
    """With its projections: self-attention, or with ``cross`` attention of the stream to the encoder's output."""

    def __init__(self, model: Section, norm: Section, length: int, layer: int, cross: bool = False):
        super().__init__(model, norm, length, with_bias=model["bias"])
        self.cross, self.dropout = cross, model["dropout"]
        every = model.get("global_every", 0)  # runs of earlier versions have neither key
        self.window = 0 if every and (layer + 1) % every == 0 else model.get("window", 0)

        def linear(d_in: int, d_out: int) -> Linear:
            return Linear(d_in, d_out, model["bias"], norm["sigma_reparam"])

        if cross:
            self.q = linear(model["d_model"], self.h * self.d)
            self.kv = linear(model["d_model"], 2 * self.h_kv * self.d)
        else:
            self.qkv = linear(model["d_model"], (self.h + 2 * self.h_kv) * self.d)
        self.out = linear(self.h * self.d, model["d_model"])

    def forward(
        self,
        x: Tensor,
        *,
        memory: Tensor | None = None,
        causal: bool = True,
        key_lengths: Tensor | None = None,
        model_gain: Tensor | None = None,
        rope: Rope | None = None,
        cache: list[KeyValues] | None = None,
    ) -> Tensor:
        """``cache`` is a list with the keys and values of earlier tokens, or empty; those of x are added to it."""
        if self.cross:
            q = self.q(x).unflatten(-1, (self.h, self.d))
            k, v = self.kv(memory).unflatten(-1, (2 * self.h_kv, self.d)).chunk(2, 2)
        else:
            q, k, v = self.qkv(x).unflatten(-1, (-1, self.d)).split((self.h, self.h_kv, self.h_kv), 2)
        first = cache[0][0].size(1) if cache else 0
        q, k = self.queries(q, model_gain, rope, first), self.keys(k, rope, first)
        if cache is not None:
            if cache:
                k, v = torch.cat((cache[0][0], k), 1), torch.cat((cache[0][1], v), 1)
            cache[:] = [(k, v)]
        visible = visible_keys(q.size(1), k.size(1), causal and not self.cross, key_lengths, x.device, self.window)
        return self.out(self.attend(q, k, v, visible, self.dropout if self.training else 0.0).flatten(2))
