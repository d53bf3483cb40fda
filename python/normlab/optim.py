"""Muon with AdamW for what is no matrix, and QK-clip, as the program trains with them (docs/optimisers.md)."""
import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from normlab.nn import QKNormAttention

__all__ = ["Muon", "clip_heads_", "qk_clip_"]

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_NORM_FLOOR = 1e-7


def newton_schulz(matrix: Tensor) -> Tensor:
    """Nearly the orthogonal factor of a matrix, in its own precision; torch.optim.Muon uses bfloat16."""
    a, b, c = _COEFFICIENTS
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.mT if tall else matrix
    x = x / x.norm().clamp_min(_NORM_FLOOR)
    for _ in range(5):
        gram = x @ x.mT
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Muon (Jordan et al. 2024) for matrices, AdamW for everything else, in one optimiser.

    ``params`` is a module, or groups with the key ``muon`` (True or False) and, for matrices that hold several maps in
    their rows, ``maps``: into how many parts the rows are split. Of a module, Muon updates the weights of linear maps
    and of attention, and AdamW embeddings, gains, biases and the maps whose names end in ``head``. AdamW's learning rate
    is ``adamw_lr``, or ``lr``; a scheduler changes both by the same factor.

    >>> model = nn.Sequential(nn.Embedding(10, 8), nn.Linear(8, 8))
    >>> optimizer = Muon(model, lr=0.02)
    >>> model(torch.tensor([[1, 2]])).square().sum().backward()
    >>> optimizer.step()
    >>> [(group["muon"], len(group["params"])) for group in optimizer.param_groups]
    [(True, 1), (False, 2)]
    """

    def __init__(self, params: nn.Module | Iterable[dict[str, Any]], lr: float = 0.02, *, momentum: float = 0.95,
                 weight_decay: float = 0.0, scale: Literal["match_rms_adamw", "original"] = "match_rms_adamw",
                 adamw_lr: float | None = None, betas: tuple[float, float] = (0.9, 0.95), eps: float = 1e-8,
                 head: tuple[str, ...] = ("head",)) -> None:
        if lr <= 0 or not 0 <= momentum < 1 or weight_decay < 0:
            raise ValueError("[normlab.optim.Muon] lr must be above 0, momentum in [0, 1) and weight_decay at least 0; "
                             f"got {lr}, {momentum} and {weight_decay}.")
        if scale not in ("match_rms_adamw", "original"):
            raise ValueError(f"[normlab.optim.Muon] scale must be match_rms_adamw or original; got {scale!r}.")
        groups = _groups_of(params, head) if isinstance(params, nn.Module) else [dict(group) for group in params]
        for group in groups:
            group.setdefault("lr", lr if group.get("muon") else adamw_lr or lr)
        super().__init__(groups, {"lr": lr, "muon": False, "maps": 1, "momentum": momentum, "scale": scale,
                                  "weight_decay": weight_decay, "betas": betas, "eps": eps})
        for group in self.param_groups:
            for weight in group["params"] if group["muon"] else ():
                if weight.dim() != 2 or weight.shape[0] % group["maps"]:
                    raise ValueError("[normlab.optim.Muon] Muon updates matrices whose rows split into "
                                     f"{group['maps']} equal parts; got shape {list(weight.shape)}. Put others into a "
                                     "group with muon=False.")

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            update = self._muon if group["muon"] else self._adamw
            for weight in group["params"]:
                if weight.grad is not None:
                    update(weight, weight.grad, group)
        return loss

    def _muon(self, weight: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state, mu, lr = self.state[weight], group["momentum"], group["lr"]
        mean = state.setdefault("momentum", torch.zeros_like(weight))
        mean.lerp_(grad, 1 - mu)
        update = grad.lerp(mean, mu)
        weight.mul_(1 - lr * group["weight_decay"])
        for part, change in zip(weight.chunk(group["maps"]), update.chunk(group["maps"])):
            rows, cols = part.shape
            original = group["scale"] == "original"
            factor = math.sqrt(max(1.0, rows / cols)) if original else 0.2 * math.sqrt(max(rows, cols))
            part.add_(newton_schulz(change), alpha=-lr * factor)

    def _adamw(self, weight: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state, (beta1, beta2), lr = self.state[weight], group["betas"], group["lr"]
        state["step"] = step = state.get("step", 0) + 1
        mean = state.setdefault("exp_avg", torch.zeros_like(weight)).lerp_(grad, 1 - beta1)
        square = state.setdefault("exp_avg_sq", torch.zeros_like(weight))
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if weight.dim() >= 2:  # no decay of gains and biases
            weight.mul_(1 - lr * group["weight_decay"])
        denominator = (square / (1 - beta2**step)).sqrt_().add_(group["eps"])
        weight.addcdiv_(mean, denominator, value=-lr / (1 - beta1**step))


def _groups_of(model: nn.Module, head: tuple[str, ...]) -> list[dict[str, Any]]:
    one, three, others, seen = [], [], [], set()
    embeddings = {weight for module in model.modules() if isinstance(module, (nn.Embedding, nn.EmbeddingBag))
                  for weight in module.parameters(recurse=False)}
    for name, module in model.named_modules():
        attention = isinstance(module, (QKNormAttention, nn.MultiheadAttention))
        maps = (attention or isinstance(module, nn.Linear)) and not name.endswith(head)
        for key, weight in module.named_parameters(recurse=False):
            if weight in seen:
                continue
            seen.add(weight)
            if not maps or weight.dim() != 2 or weight in embeddings:
                others.append(weight)
            else:
                (three if attention and key == "in_proj_weight" else one).append(weight)
    groups = [{"params": one, "muon": True}, {"params": three, "muon": True, "maps": 3},
              {"params": others, "muon": False}]
    return [group for group in groups if group["params"]]


@torch.no_grad()
def clip_heads_(w_q: Tensor, w_k: Tensor, max_logit: Tensor, tau: float = 100.0, *, b_q: Tensor | None = None,
                b_k: Tensor | None = None) -> None:
    """QK-clip (Kimi K2): scales the rows of W_q and W_k of each head whose largest logit is above ``tau``.

    gamma = min(1, tau / max_logit); both get sqrt(gamma), or W_q alone gamma where query heads share keys.

    >>> w_q, w_k = torch.ones(4, 3), torch.ones(4, 3)  # two heads of two channels
    >>> clip_heads_(w_q, w_k, torch.tensor([50.0, 400.0]))
    >>> w_q[:, 0]
    tensor([1.0000, 1.0000, 0.5000, 0.5000])
    """
    heads = max_logit.numel()
    if tau <= 0 or w_q.shape[0] % heads:
        raise ValueError("[normlab.optim.clip_heads_] tau must be above 0 and max_logit have one entry per head; got "
                         f"{tau} and {heads} entries for {w_q.shape[0]} rows.")
    own_keys = w_q.shape[0] == w_k.shape[0]
    gamma = torch.where(max_logit > tau, tau / max_logit, 1.0).to(w_q.dtype)
    rows = (gamma.sqrt() if own_keys else gamma).repeat_interleave(w_q.shape[0] // heads)
    for weight, bias in ((w_q, b_q), (w_k, b_k))[: 2 if own_keys else 1]:
        weight.mul_(rows[:, None])
        if bias is not None:
            bias.mul_(rows)


@torch.no_grad()
def qk_clip_(module: nn.Module, tau: float = 100.0) -> None:
    """QK-clip of every :class:`normlab.nn.QKNormAttention` with ``track_stats=True``; call it after a step.

    Each head is clipped by its largest logit since the last call. Only ``norm="none"`` has logits that the weights can
    raise without limit.
    """
    found = False
    for layer in module.modules():
        if not isinstance(layer, QKNormAttention) or layer.max_logit is None:
            continue
        found = True
        weights = list(layer.projections())
        w_q, w_k = weights[0].chunk(3)[:2] if len(weights) == 1 else weights[:2]
        b_q, b_k = (None, None) if layer.in_proj_bias is None else layer.in_proj_bias.chunk(3)[:2]
        clip_heads_(w_q, w_k, layer.max_logit, tau, b_q=b_q, b_k=b_k)
        layer.max_logit.fill_(-math.inf)
    if not found:
        raise ValueError("[normlab.optim.qk_clip_] the module has no QKNormAttention with track_stats=True.")
