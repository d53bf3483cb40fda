"""Modules: attention with normalised queries and keys, and the constraint on weights of nGPT and anGPT."""
import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normlab import schemes
from normlab.ops import AttentionStats, Norm, attention, lp_normalize

__all__ = ["QKNormAttention", "constrain_"]


class QKNormAttention(nn.Module):
    """Multi-head attention with normalised queries and keys, a drop-in for :class:`torch.nn.MultiheadAttention`.

    Arguments, layouts, masks, results and the names of the weights are those of ``nn.MultiheadAttention``, so its
    ``state_dict`` loads with ``strict=False``; ``add_bias_kv`` and ``add_zero_attn`` do not exist. In addition:

    - ``norm``, ``p``, ``soft_cap``: as in :func:`normlab.attention`;
    - ``gain``: initial value of a learnable gain per head; default sqrt(d_head) for ``"lp"`` (the QKNorm paper starts
      from log2(L^2 - L) for sequences of L tokens), no gain for other norms;
    - ``is_causal=True`` needs no ``attn_mask``;
    - ``track_stats=True`` keeps what each forward pass in training did in ``stats``, and the largest logit of each head
      since the last :func:`normlab.optim.qk_clip_` in ``max_logit``.

    Without masks and with ``need_weights=False`` it runs on the fused kernel; else on PyTorch's operators.

    >>> layer = QKNormAttention(32, 4, p=2.5, batch_first=True)
    >>> x = torch.randn(2, 10, 32)
    >>> out, weights = layer(x, x, x)
    >>> out.shape, weights.shape
    (torch.Size([2, 10, 32]), torch.Size([2, 10, 10]))
    >>> layer(x, x, x, need_weights=False, is_causal=True)[1] is None
    True
    """

    # What nn.TransformerEncoderLayer asks before it bypasses forward() for its own kernel of plain attention.
    _qkv_same_embed_dim = False

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, kdim: int | None = None,
                 vdim: int | None = None, batch_first: bool = False, device=None, dtype=None, *, norm: Norm = "lp",
                 p: float = 3.0, gain: float | None = None, soft_cap: float = 0.0, track_stats: bool = False) -> None:
        super().__init__()
        if num_heads < 1 or embed_dim % num_heads:
            raise ValueError("[normlab.nn.QKNormAttention] embed_dim must be a multiple of num_heads; got "
                             f"{embed_dim} and {num_heads}.")
        made = {"device": device, "dtype": dtype}
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.batch_first = dropout, batch_first
        self.norm, self.p, self.soft_cap = norm, p, soft_cap
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        if self.kdim == self.vdim == embed_dim:
            self.in_proj_weight = nn.Parameter(torch.empty(3 * embed_dim, embed_dim, **made))
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.register_parameter("in_proj_weight", None)
            self.q_proj_weight = nn.Parameter(torch.empty(embed_dim, embed_dim, **made))
            self.k_proj_weight = nn.Parameter(torch.empty(embed_dim, self.kdim, **made))
            self.v_proj_weight = nn.Parameter(torch.empty(embed_dim, self.vdim, **made))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * embed_dim, **made)) if bias else None
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias, **made)
        start = math.sqrt(self.head_dim) if gain is None and norm == "lp" else gain
        self.gain = None if start is None else nn.Parameter(torch.full((num_heads,), float(start), **made))
        self.stats: AttentionStats | None = None
        self.max_logit: Tensor | None
        self.register_buffer("max_logit", torch.full((num_heads,), -math.inf, device=device) if track_stats else None,
                             persistent=False)
        for weight in self.projections():
            nn.init.xavier_uniform_(weight)
        if bias:
            nn.init.zeros_(self.out_proj.bias)

    def projections(self) -> Iterator[Tensor]:
        """The weights of queries, keys and values: one matrix of all three, or one each."""
        weights = (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        return (weight for weight in weights if weight is not None)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        alone = query.dim() == 2  # one sequence, without a batch dimension
        if alone:
            query, key, value = query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0)
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
        q, k, v = self._project(query, key, value)
        if is_causal and key_padding_mask is None and not need_weights:
            attn_mask = None  # as in nn.MultiheadAttention: the hint stands for the mask
        drop = self.dropout if self.training else 0.0
        if attn_mask is None and key_padding_mask is None and not need_weights:
            out, weights = self._fused(q, k, v, is_causal, drop), None
        else:
            causal = is_causal and attn_mask is None
            out, weights = self._masked(q, k, v, self._mask(q, k, attn_mask, key_padding_mask, causal), drop,
                                        need_weights)
        out = self.out_proj(out.transpose(1, 2).flatten(2))
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if alone:
            return out.squeeze(0), None if weights is None else weights.squeeze(0)
        return out if self.batch_first else out.transpose(0, 1), weights

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        """Queries, keys and values as [batch, heads, length, d_head]."""
        bias = self.in_proj_bias
        if self.in_proj_weight is not None and query is key and key is value:
            parts = F.linear(query, self.in_proj_weight, bias).chunk(3, -1)
        else:
            together = self.in_proj_weight is not None
            weights = self.in_proj_weight.chunk(3) if together else list(self.projections())
            biases = (None,) * 3 if bias is None else bias.chunk(3)
            parts = [F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]
        return [x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2) for x in parts]

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, causal: bool, drop: float) -> Tensor:
        settings = {"norm": self.norm, "p": self.p, "gain": self.gain, "causal": causal, "soft_cap": self.soft_cap,
                    "dropout_p": drop}
        if self.max_logit is None or not self.training:
            return attention(q, k, v, **settings)
        out, self.stats = attention(q, k, v, **settings, stats=True)
        with torch.no_grad():
            self.max_logit.copy_(torch.maximum(self.max_logit, self.stats.max_logit))
        return out

    def _normalise(self, x: Tensor) -> Tensor:
        if self.norm == "lp":
            return lp_normalize(x, self.p)
        if self.norm == "rms":
            return F.rms_norm(x, x.shape[-1:], eps=1e-6)
        return F.layer_norm(x, x.shape[-1:], eps=1e-6) if self.norm == "layer" else x

    def _masked(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, drop: float,
                need_weights: bool) -> tuple[Tensor, Tensor | None]:
        """``mask`` is added to the logits."""
        q, k = self._normalise(q), self._normalise(k)
        if self.gain is not None:
            q = q * self.gain[:, None, None]
        scale = 1.0 if self.norm == "lp" else 1.0 / math.sqrt(self.head_dim)
        if not need_weights and not self.soft_cap and self.max_logit is None:
            return F.scaled_dot_product_attention(q, k, v, mask, drop, scale=scale), None
        logits = scale * q @ k.mT
        if self.soft_cap:
            logits = self.soft_cap * torch.tanh(logits / self.soft_cap)
        logits = logits if mask is None else logits + mask
        if self.max_logit is not None and self.training:
            with torch.no_grad():
                self.max_logit.copy_(torch.maximum(self.max_logit, logits.amax((0, 2, 3)).float()))
        weights = F.dropout(logits.softmax(-1), drop, self.training)
        return weights @ v, weights if need_weights else None

    def _mask(self, q: Tensor, k: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None,
              causal: bool) -> Tensor | None:
        """All masks as one to add, broadcastable to [batch, heads, T, S]."""
        (b, h, t, _), s = q.shape, k.shape[2]

        def added(mask: Tensor, name: str, *shapes: tuple[int, ...]) -> Tensor:
            if tuple(mask.shape) not in shapes:
                wanted = " or ".join(str(list(shape)) for shape in shapes)
                raise ValueError(f"[normlab.nn.QKNormAttention] {name} must have shape {wanted}; got "
                                 f"{list(mask.shape)}.")
            if mask.dtype == torch.bool:
                return torch.zeros_like(mask, dtype=q.dtype).masked_fill(mask, -math.inf)
            if not mask.is_floating_point():
                raise TypeError(f"[normlab.nn.QKNormAttention] {name} must be bool or float; got {mask.dtype}.")
            return mask.to(q.dtype)

        total = None
        if attn_mask is not None:
            total = added(attn_mask, "attn_mask", (t, s), (b * h, t, s))
            total = total if total.dim() == 2 else total.view(b, h, t, s)
        elif causal:
            future = torch.ones(t, s, dtype=torch.bool, device=q.device).triu(s - t + 1)
            total = added(future, "causal", (t, s))
        if key_padding_mask is not None:
            padding = added(key_padding_mask, "key_padding_mask", (b, s))[:, None, None]
            total = padding if total is None else total + padding
        return total

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}, norm={self.norm!r}, p={self.p}"


@torch.no_grad()
def constrain_(module: nn.Module, scheme: str = "ngpt", *, start: bool = False,
               residual: tuple[str, ...] = ("out_proj", "o_proj", "c_proj", "down_proj", "linear2", "fc2")) -> nn.Module:
    """Puts the weight vectors of a module where nGPT or anGPT keeps them; call it after each step of the optimiser.

    ``ngpt`` gives the vectors along the embedding dimension norm 1: the rows of embeddings and of maps that read the
    residual stream, the columns of maps that write to it, which ``residual`` lists by the last part of their names.
    ``angpt`` shrinks the rows of every matrix to a norm of at most 1. With ``start=True``, before training, both give
    norm 1. Parameters that are not matrices are left alone, and a zero vector stays zero.

    >>> layer = constrain_(nn.Linear(8, 4), "ngpt")
    >>> layer.weight.detach().norm(dim=1).round(decimals=3)
    tensor([1., 1., 1., 1.])
    """
    row = schemes.find(scheme)
    if row.constraint == "none":
        known = [name for name, each in schemes.catalogue.items() if each.constraint != "none"]
        raise ValueError(f"[normlab.nn.constrain_] scheme '{scheme}' has no constraint on weights; expected one of "
                         f"{', '.join(known)}.")
    for name, owner in module.named_modules():
        writes = name.rpartition(".")[2] in residual and row.constraint_axis == "embedding"
        for weight in owner.parameters(recurse=False):
            if weight.dim() != 2:
                continue
            norm = weight.norm(dim=0 if writes else 1, keepdim=True)
            unit = row.constraint == "unit" or start
            weight.div_(torch.where(norm == 0, 1.0, norm) if unit else norm.clamp_min(1.0))
    return module
