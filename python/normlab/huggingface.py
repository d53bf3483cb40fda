"""``normlab.replace_attention``: normalised attention in models of Hugging Face transformers."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from normlab.models.attention import NormalisedAttention, visible_keys
from normlab.ops import attention
from normlab.program import run, setting
from normlab.schemes import Scheme, find

Model = TypeVar("Model", bound=Any)
NAME = "normlab"  # of the attention implementation, in transformers' table
SUPPORTED = ("llama", "qwen3", "olmo2", "gpt2")  # config.model_type
# Fields of a row that attention alone can follow; the others must have the value of the scheme `none`.
OF_ATTENTION = (
    "scheme qk p learn_p p_sharing qk_groups scope order qk_eps qk_affine gain gain_init learn_gain gain_on gain_form "
    "gain_max logit_scale row_scale soft_cap stored_scale"
).split()


def replace_attention(
    model: Model, scheme: str | Scheme = "qknorm", *, length: int | None = None, **fields: Any
) -> Model:
    """Makes every self-attention of a Llama, Qwen3, OLMo 2 or GPT-2 model that of a scheme, in place.

    The norm acts on the queries and keys that the model's own code computes, that is after RoPE, and after the
    model's own QK norm where it has one (Qwen3, OLMo 2). With ``none`` the model computes what it did before. Gains
    and other learned values become parameters ``...normlab.*`` of the attention modules: call this before the
    optimiser is made. ``length`` is L of the initial gain log2(L^2 - L), by default the longest sequence of the model;
    ``fields`` override those of the scheme, such as ``p=2.5``. Without a mask, and for norms of single heads,
    attention is :func:`normlab.attention`.

    >>> config = LlamaConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
    ...                      vocab_size=50, max_position_embeddings=64)
    >>> model = normlab.replace_attention(LlamaForCausalLM(config), scheme="lp", p=2.5)
    >>> [name for name, _ in model.named_parameters() if "normlab" in name]
    ['model.layers.0.self_attn.normlab.qk_gain']

    Raises ValueError for an unknown scheme or field, for a scheme that changes more than attention, and for another
    architecture.
    """
    kind = getattr(getattr(model, "config", None), "model_type", type(model).__name__)
    if kind not in SUPPORTED:
        raise ValueError(f"[normlab.replace_attention] got a model of type {kind!r}, expected {', '.join(SUPPORTED)}.")
    register()
    attentions = self_attentions(model)
    norm = scheme_fields(scheme, fields, sizes_of(attentions[0]))
    longest = length or model.config.max_position_embeddings
    for module in attentions:
        weight = next(module.parameters())
        module.normlab = HuggingFaceAttention(norm, module, longest).to(weight.device, weight.dtype)
    model.set_attn_implementation(NAME)
    return model


def self_attentions(model: nn.Module) -> list[nn.Module]:
    return [m for m in model.modules() if hasattr(m, "layer_idx") and hasattr(m, "is_causal") and m.is_causal]


def sizes_of(module: Any) -> dict[str, int]:
    heads, groups = module.config.num_attention_heads, getattr(module, "num_key_value_groups", 1)
    sizes = {"n_heads": heads, "n_kv_heads": heads // groups, "d_head": module.head_dim}
    return sizes | {"d_model": module.config.hidden_size}


def scheme_fields(scheme: str | Scheme, fields: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """The row of a scheme with some fields replaced, checked by the program; ValueError if attention cannot be it."""
    if isinstance(scheme, Scheme):
        listed, own = vars(find(scheme.name)), vars(scheme)
        fields = {key: own[key] for key in listed if own[key] != listed[key]} | dict(fields)
        scheme = scheme.name
    settings = {"norm.scheme": scheme} | {f"norm.{key}": value for key, value in fields.items()}
    settings |= {f"model.{key}": value for key, value in sizes.items()}
    row, none = resolved_norm(settings), resolved_norm({"norm.scheme": "none"})
    beyond = [key for key in row if key not in OF_ATTENTION and row[key] != none[key]]
    if beyond:
        raise ValueError(
            f"[normlab.replace_attention] the scheme {scheme!r} changes more than attention ({', '.join(beyond)}); "
            "expected one that does not, or scheme='none' with fields such as soft_cap=50."
        )
    if row["gain"] == "model":
        raise ValueError(
            "[normlab.replace_attention] gain is 'model', expected 'none', 'layer', 'head' or 'channel': layers have "
            "gains of their own."
        )
    return row


def resolved_norm(settings: Mapping[str, Any]) -> dict[str, Any]:
    try:
        text = run(["config", "print", "--set", *(f"{key}={setting(value)}" for key, value in settings.items())])
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    return tomllib.loads(text)["norm"]


class HuggingFaceAttention(NormalisedAttention):
    """What ``replace_attention`` adds to an attention module of transformers."""

    def __init__(self, norm: Mapping[str, Any], module: Any, length: int):
        super().__init__(sizes_of(module), norm, length, with_bias=True)
        if norm["logit_scale"] == "1/sqrt(d_head)":  # what a model has in that place
            self.scale = module.scaling
        whole_heads = norm["scope"] == "head" and norm["qk_groups"] == 1
        self.has_operator = whole_heads and norm["qk_affine"] == "none" and norm["row_scale"] == "1"

    def operator(self, q: Tensor, k: Tensor, v: Tensor, causal: bool, dropout: float) -> Tensor:
        gain = self.used_gain(None)
        mixed = attention(
            q,
            k,
            v,
            norm=self.norm["qk"],
            p=float(self.norm["p"]) if self.qk_p is None else F.softplus(self.qk_p) + 1.0,
            gain=None if gain is None else gain.flatten().to(q),
            scale=self.scale,
            causal=causal,
            soft_cap=float(self.norm["soft_cap"]),
            dropout_p=dropout,
            eps=self.norm["qk_eps"],
        )
        return mixed.transpose(1, 2)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, dropout: float) -> Tensor:
        """[b, t, h, d] of q [b, h, t, d], k and v [b, h_kv, s, d]; a mask is True where a key is visible."""
        if mask is None and causal and k.size(2) > q.size(2):  # a static cache, of which the rest is not filled yet
            k, v = k[:, :, : q.size(2)], v[:, :, : q.size(2)]
        if mask is None and self.has_operator:
            return self.operator(q, k, v, causal, dropout)
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        t, s = q.size(1), k.size(1)
        if mask is None:
            visible = visible_keys(t, s, causal, None, q.device)
        elif mask.dtype == torch.bool:
            visible = mask[..., :s]
        else:
            raise ValueError(f"[attention_mask] got the type {mask.dtype}, expected torch.bool, True where visible.")
        return self.attend(self.queries(q), self.keys(k), v, visible, dropout)


def attention_forward(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """The function that transformers calls; a cross-attention, which has no scheme, stays PyTorch's."""
    if not hasattr(module, NAME):
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, is_causal=is_causal
        )
    causal = (module.is_causal if is_causal is None else is_causal) and query.size(2) > 1
    return module.normlab(query, key, value, attention_mask, causal, dropout), None


def register() -> None:
    """Enters the function and its masks, those of PyTorch's attention, into transformers' tables."""
    try:
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import sdpa_mask
    except ImportError:
        raise ImportError("[normlab.replace_attention] needs transformers 5: pip install transformers.") from None
    AttentionInterface.register(NAME, attention_forward)
    AttentionMaskInterface.register(NAME, sdpa_mask)
