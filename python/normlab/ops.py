"""Attention with normalised queries and keys, and the Lp norm itself, as functions of tensors.

The operators ``torch.ops.normlab.*`` are compiled from the sources of the program. This module gives them their
autograd formulas, shapes for fake tensors and batching rules, and Python signatures.
"""
import math
from typing import Literal, NamedTuple, overload

import torch
from torch import Tensor

__all__ = ["AttentionStats", "Norm", "Rope", "attention", "lp_normalize", "make_rope"]

Norm = Literal["none", "lp", "rms", "layer"]
_DEFAULT_EPS = {"none": 1e-12, "lp": 1e-12, "rms": 1e-6, "layer": 1e-6}  # those of normlab.schemes

_ops = torch.ops.normlab


class Rope(NamedTuple):
    """Rotary positions: row i of cos and sin belongs to position i."""

    cos: Tensor  # [positions, d_head / 2]
    sin: Tensor
    interleaved: bool = False  # pairs (2i, 2i + 1) instead of (i, i + d_head / 2)
    before_norm: bool = False  # rotate, then normalise; the two commute for p = 2


class AttentionStats(NamedTuple):
    """What attention did, per head: over the batch and all rows, before dropout and after the soft-cap."""

    max_logit: Tensor  #: [heads], the largest logit of a visible key
    entropy: Tensor  #: [heads], mean entropy in nats of the rows that see at least two keys
    frobenius_norm: Tensor  #: [heads], of the logits of one sequence; root mean square over the batch
    saturated: Tensor  #: [heads], share of those rows with a weight above 0.99


def make_rope(length: int, d_head: int, base: float = 10000.0, *, interleaved: bool = False,
              before_norm: bool = False, dtype: torch.dtype = torch.float32, device: str | torch.device = "cpu") -> Rope:
    """Tables of rotary positions 0 .. length - 1.

    >>> rope = make_rope(16, 8)
    >>> rope.cos.shape
    torch.Size([16, 4])
    """
    if d_head % 2:
        raise ValueError(f"[normlab.make_rope] d_head must be even; got {d_head}.")
    frequency = base ** (-torch.arange(0, d_head, 2, dtype=torch.float64, device=device) / d_head)
    angle = torch.arange(length, dtype=torch.float64, device=device)[:, None] * frequency
    return Rope(angle.cos().to(dtype), angle.sin().to(dtype), interleaved, before_norm)


def _check(name: str, **tensors: Tensor | None) -> None:
    """What the operator cannot say itself: its schema and the choice of a device come first."""
    device = None
    for key, value in tensors.items():
        if value is None:
            continue
        if not isinstance(value, Tensor):
            raise TypeError(f"[{name}] {key} must be a tensor; got {type(value).__name__}.")
        device = device or value.device
        if value.device != device:
            raise ValueError(f"[{name}] all tensors must be on one device; got {device} and, for {key}, "
                             f"{value.device}.")


def _number(name: str, key: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"[{name}] {key} must be a number; got {type(value).__name__}.")
    return float(value)


@overload
def attention(q: Tensor, k: Tensor, v: Tensor, *, norm: Norm = ..., p: float | Tensor = ...,
              gain: float | Tensor | None = ..., scale: float | None = ..., causal: bool = ...,
              rope: Rope | tuple[Tensor, Tensor] | None = ..., soft_cap: float = ..., dropout_p: float = ...,
              stats: Literal[False] = ..., eps: float | None = ...) -> Tensor: ...


@overload
def attention(q: Tensor, k: Tensor, v: Tensor, *, norm: Norm = ..., p: float | Tensor = ...,
              gain: float | Tensor | None = ..., scale: float | None = ..., causal: bool = ...,
              rope: Rope | tuple[Tensor, Tensor] | None = ..., soft_cap: float = ..., dropout_p: float = ...,
              stats: Literal[True], eps: float | None = ...) -> tuple[Tensor, AttentionStats]: ...


def attention(q, k, v, *, norm="lp", p=3.0, gain=None, scale=None, causal=True, rope=None, soft_cap=0.0, dropout_p=0.0,
              stats=False, eps=None):
    """softmax(scale gain q_hat k_hat^T) v with normalised queries and keys.

    Differences from :func:`torch.nn.functional.scaled_dot_product_attention`, whose layout [batch, heads, length,
    d_head] q, k, v and the result have, in any memory order:

    - queries and keys are normalised over d_head: ``norm`` is ``"lp"`` (x / ||x||_p), ``"rms"``, ``"layer"`` or
      ``"none"``. ``p`` is a number above 0, ``inf``, or a tensor of one entry or one per key head that is learned;
    - ``gain`` multiplies the normalised queries: a number, or a tensor of 1, heads or heads x d_head entries;
    - ``scale`` defaults to 1 for ``"lp"``, where the gain sets the temperature, and to 1 / sqrt(d_head) otherwise;
    - ``causal`` is True by default, and aligns the last query with the last key: query i of T sees key j of S when
      j <= i + S - T (SDPA aligns the first ones);
    - fewer heads of keys than of queries are allowed without a flag; there is no mask: for masks see
      :class:`normlab.nn.QKNormAttention`;
    - ``rope`` rotates queries and keys: :func:`make_rope`, or a pair (cos, sin). With T < S the queries stand at the
      last positions, so a cache of keys that are not rotated works;
    - ``soft_cap`` c > 0 replaces the logits S by c tanh(S / c);
    - ``stats=True`` also returns :class:`AttentionStats`, counted in the same pass.

    On the CPU in float32, with d_head up to 256, this is the program's fused kernel; elsewhere it is composed of
    PyTorch's operators. There are no second derivatives.

    >>> q = torch.randn(1, 4, 16, 8, requires_grad=True)
    >>> k, v = torch.randn(2, 1, 2, 16, 8)
    >>> out, stats = attention(q, k, v, p=2.5, gain=8.0, stats=True)
    >>> out.sum().backward()
    >>> q.grad.shape, stats.max_logit.shape
    (torch.Size([1, 4, 16, 8]), torch.Size([4]))
    """
    name = "normlab.attention"
    if norm not in _DEFAULT_EPS:
        raise ValueError(f"[{name}] norm must be one of {', '.join(_DEFAULT_EPS)}; got {norm!r}.")
    scale = (1.0 if norm == "lp" else 1.0 / math.sqrt(max(q.shape[-1], 1))) if scale is None else scale
    if gain is not None and not isinstance(gain, Tensor):
        scale, gain = _number(name, "scale", scale) * _number(name, "gain", gain), None
    learned_p, p = (p, 2.0) if isinstance(p, Tensor) else (None, _number(name, "p", p))
    rope = None if rope is None else Rope(*rope)
    cos, sin = (rope.cos, rope.sin) if rope else (None, None)
    _check(name, q=q, k=k, v=v, gain=gain, p=learned_p, cos=cos, sin=sin)
    if rope and not causal and q.shape[-2] != k.shape[-2]:
        raise ValueError(f"[{name}] rope without a causal mask needs as many queries as keys; got {q.shape[-2]} and "
                         f"{k.shape[-2]}.")
    seed = torch.randint(2**62, (1,), dtype=torch.int64) if dropout_p > 0 else None
    out, _, columns = _ops.attention(
        q, k, v, gain, learned_p, cos, sin, seed, norm, p, _number(name, "eps", _DEFAULT_EPS[norm] if eps is None else eps),
        _number(name, "scale", scale), causal, rope.interleaved if rope else False, rope.before_norm if rope else False,
        _number(name, "soft_cap", soft_cap), _number(name, "dropout_p", dropout_p), stats)
    return (out, _stats(columns)) if stats else out


def _stats(columns: Tensor) -> AttentionStats:
    """From [batch, heads, fields of AttentionStats in kernels/attention_stats.h]."""
    if columns.shape[0] == 0:  # no sequence: no logit, no row
        columns = columns.new_zeros(1, *columns.shape[1:])
    rows = columns[..., 9].sum(0).clamp_min(1.0)
    return AttentionStats(columns[..., 0].amax(0).float(), (columns[..., 4].sum(0) / rows).float(),
                          columns[..., 2].mean(0).sqrt().float(), (columns[..., 8].sum(0) / rows).float())


def lp_normalize(x: Tensor, p: float, dim: int = -1, *, eps: float = 1e-12) -> Tensor:
    """x / max(||x||_p, eps) along ``dim``, for any p > 0 and inf.

    As :func:`torch.nn.functional.normalize`, but values and gradients stay finite for zero vectors, denormals and
    entries of 1e30.

    >>> lp_normalize(torch.tensor([3.0, 4.0]), 2)
    tensor([0.6000, 0.8000])
    >>> lp_normalize(torch.tensor([1e30, -1e30]), 3).norm(3)
    tensor(1.)
    """
    _check("normlab.lp_normalize", x=x)
    return _ops.lp_normalize(x, _number("normlab.lp_normalize", "p", p), dim, eps)


# Shapes, for fake and meta tensors.


@torch.library.register_fake("normlab::attention")
def _(q, k, v, *arguments):
    b, h, t, d = q.shape
    stats = q.new_empty((b, h, 10) if arguments[-1] else (0,), dtype=torch.float64)
    return q.new_empty((b, t, h, d)).transpose(1, 2), q.new_empty((b, h, t), dtype=torch.float32), stats


@torch.library.register_fake("normlab::attention_backward")
def _(grad, q, k, v, o, lse, gain, learned_p, *arguments):
    def like(x):
        return q.new_empty(0) if x is None else torch.empty_like(x)

    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v), like(gain), like(learned_p)


@torch.library.register_fake("normlab::lp_normalize")
def _(x, p, dim, eps):
    return torch.empty_like(x)


@torch.library.register_fake("normlab::lp_normalize_backward")
def _(grad, x, p, dim, eps):
    return torch.empty_like(x)


# Gradients. The backward passes are operators of their own, so that torch.compile sees them.


def _save_attention(ctx, inputs, output):
    *tensors, norm, p, eps, scale, causal, interleaved, rope_first, soft_cap, dropout_p, _ = inputs
    out, lse, stats = output
    ctx.save_for_backward(*tensors, out, lse)
    ctx.settings = (norm, p, eps, scale, causal, interleaved, rope_first, soft_cap, dropout_p)
    ctx.mark_non_differentiable(lse, stats)


def _attention_backward(ctx, d_out, *_):
    q, k, v, gain, learned_p, cos, sin, seed, out, lse = ctx.saved_tensors
    d_q, d_k, d_v, d_gain, d_p = _ops.attention_backward(d_out, q, k, v, out, lse, gain, learned_p, cos, sin, seed,
                                                         *ctx.settings)
    return (d_q, d_k, d_v, None if gain is None else d_gain, None if learned_p is None else d_p, *[None] * 13)


def _save_lp(ctx, inputs, output):
    x, *ctx.settings = inputs
    ctx.save_for_backward(x)


def _lp_backward(ctx, d_y):
    return _ops.lp_normalize_backward(d_y, *ctx.saved_tensors, *ctx.settings), None, None, None


def _no_second_derivative(ctx, *_):
    raise NotImplementedError("[normlab] the fused backward pass has no derivative of its own; got a second derivative "
                              "(create_graph=True). Use PyTorch's operators where you need one.")


torch.library.register_autograd("normlab::attention", _attention_backward, setup_context=_save_attention)
torch.library.register_autograd("normlab::lp_normalize", _lp_backward, setup_context=_save_lp)
torch.library.register_autograd("normlab::attention_backward", _no_second_derivative)
torch.library.register_autograd("normlab::lp_normalize_backward", _no_second_derivative)


# vmap: one call per sample, because the gradients of a shared gain differ from sample to sample.


def _one_by_one(op, several: bool):
    def batched(info, in_dims, *arguments):
        results = []
        for i in range(info.batch_size):
            sample = [x if dim is None else x.select(dim, i) for x, dim in zip(arguments, in_dims)]
            results.append(op(*sample))
        if not several:
            return torch.stack(results), 0
        return tuple(torch.stack(each) for each in zip(*results)), (0,) * len(results[0])

    return batched


for _op, _several in [("attention", True), ("attention_backward", True), ("lp_normalize", False),
                      ("lp_normalize_backward", False)]:
    torch.library.register_vmap(f"normlab::{_op}", _one_by_one(getattr(_ops, _op), _several))
