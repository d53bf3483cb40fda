"""A language model of a run as a model of transformers; `normlab export --to hf` puts it into modeling_normlab.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from normlab.models.decoder_lm import DecoderLM


class NormlabConfig(PretrainedConfig):
    """The sections [model] and [norm] of the run."""

    model_type = "normlab"

    def __init__(self, model: dict[str, Any] | None = None, norm: dict[str, Any] | None = None, **others: Any):
        self.model, self.norm = model or {}, norm or {}
        super().__init__(**others)
        sizes = {"hidden_size": "d_model", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"}
        for theirs, ours in sizes.items():
            setattr(self, theirs, self.model.get(ours))


class NormlabForCausalLM(PreTrainedModel, GenerationMixin):
    config_class = NormlabConfig
    base_model_prefix = "model"

    def __init__(self, config: NormlabConfig):
        super().__init__(config)
        # Not on the meta device: constants and tables of positions are computed here, not loaded.
        with torch.device("cpu"):
            sections = {"model": config.model, "norm": config.norm}
            self.model = DecoderLM(sections, SimpleNamespace(vocab_size=config.vocab_size))  # type: ignore[arg-type]
        self.post_init()

    def _init_weights(self, module: torch.nn.Module) -> None:
        """Weights are loaded, never drawn."""

    def get_input_embeddings(self) -> torch.nn.Module:
        return self.model.embedding

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None, **kwargs: Any
    ) -> CausalLMOutput:
        """Of texts without padding, or padded at the end."""
        if attention_mask is not None and not bool((attention_mask[:, :-1] >= attention_mask[:, 1:]).all()):
            raise ValueError("[attention_mask] padding before a text is not supported; pad at the end.")
        logits = self.model(input_ids)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        return CausalLMOutput(loss=loss, logits=logits)

    def prepare_inputs_for_generation(self, input_ids: Tensor, **kwargs: Any) -> dict[str, Any]:
        return {"input_ids": input_ids[:, -self.config.model["seq_len"] :]}
