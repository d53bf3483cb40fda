"""The encoder-decoder translator of a run, in plain PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from normlab.vocabulary import PairVocabulary
from normlab.models.attention import KeyValues
from normlab.models.block import Block
from normlab.models.embedding import Embedding, Positions, rope_of
from normlab.models.norms import Section, StreamNorm

SOURCE, TARGET = 0, 1  # rows of the language embedding


class Translator(nn.Module):
    """What ``normlab.load`` returns for a translator; its parameters have the names of the checkpoint.

    Tokens are padded at the end with ``PairVocabulary.padding``. The logits are those of ``model.outputs``, the
    subwords that the target language has.
    """

    outputs: Tensor

    def __init__(self, config: dict[str, Section], vocabulary: PairVocabulary):
        super().__init__()
        model, norm, translation = config["model"], config["norm"], config["translation"]
        self.config, self.vocabulary = config, vocabulary
        self.seq_len, self.dropout, self.cap = model["seq_len"], model["dropout"], norm["output_soft_cap"]
        self.embedding = Embedding(vocabulary.size, model["d_model"], norm["embedding"])
        self.input_scale = math.sqrt(model["d_model"])
        self.languages = nn.Embedding(2, model["d_model"])
        self.out_bias = nn.Parameter(torch.zeros(vocabulary.size)) if model["bias"] else None
        self.positions, self.rope = Positions(model), rope_of(model)
        shared = norm["gain"] == "model" and norm["learn_gain"]
        self.qk_gain = nn.Parameter(torch.ones(1)) if shared else None
        length = translation["length_p975"]
        self.encoder = nn.ModuleList(Block(model, norm, i, length) for i in range(translation["encoder_layers"]))
        self.decoder = nn.ModuleList(Block(model, norm, i, length, cross=True) for i in range(model["n_layers"]))
        post = norm["placement"] == "post"
        self.encoder_norm, self.decoder_norm = (
            nn.Identity() if post else StreamNorm(model["d_model"], model["bias"], norm) for _ in range(2)
        )
        self.register_buffer("outputs", torch.tensor(vocabulary.outputs()), persistent=False)

    def embed(self, tokens: Tensor, language: int, first: int = 0) -> Tensor:
        if first + tokens.size(1) > self.seq_len:
            raise ValueError(f"[tokens] got {first + tokens.size(1)}, expected at most model.seq_len = {self.seq_len}.")
        x = self.embedding(tokens, self.input_scale) + self.languages.weight[language]
        return F.dropout(self.positions(x, first), self.dropout, self.training)

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """The encoder's output for tokens [b, s], and the length of each sentence."""
        lengths = (source != PairVocabulary.padding).sum(-1)
        x = self.embed(source, SOURCE)
        for block in self.encoder:
            x = block(x, causal=False, key_lengths=lengths, model_gain=self.qk_gain, rope=self.rope)
        return self.encoder_norm(x), lengths

    def decode(
        self, target: Tensor, memory: Tensor, lengths: Tensor, caches: list[list[KeyValues]] | None = None
    ) -> Tensor:
        """Logits [b, t, outputs] of target tokens [b, t], which begin with ``PairVocabulary.begin``."""
        x = self.embed(target, TARGET, caches[0][0][0].size(1) if caches and caches[0] else 0)
        for i, block in enumerate(self.decoder):
            x = block(
                x,
                memory=memory,
                memory_lengths=lengths,
                model_gain=self.qk_gain,
                rope=self.rope,
                cache=caches[i] if caches else None,
            )
        bias = None if self.out_bias is None else self.out_bias[self.outputs]
        z = F.linear(self.decoder_norm(x), self.embedding.rows()[self.outputs], bias)
        return torch.tanh(z / self.cap) * self.cap if self.cap > 0.0 else z

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits [b, t, outputs] of the subword after each target token."""
        return self.decode(target, *self.encode(source))

    @torch.no_grad()
    def translate(self, lines: str | Sequence[str]) -> list[str]:
        """Greedy translations of lines of the source language: `normlab translate --beam 1`.

        Each ends at the mark of the end, or 50 subwords after the length of its source.
        """
        return [self._translate(line) for line in ([lines] if isinstance(lines, str) else lines)]

    def _translate(self, line: str) -> str:
        device = self.embedding.weight.device
        source = self.vocabulary.encode("source", line)[: self.seq_len - 1]
        if not source:
            return ""
        source.append(PairVocabulary.end)
        memory, lengths = self.encode(torch.tensor([source], device=device))
        caches: list[list[KeyValues]] = [[] for _ in self.decoder]
        target = [PairVocabulary.begin]
        for length in range(min(len(source) + 50, self.seq_len)):
            logits = self.decode(torch.tensor([target[-1:]], device=device), memory, lengths, caches)[0, -1]
            if length == 0:
                logits[self.outputs == PairVocabulary.end] = -math.inf  # a translation is not empty
            target.append(int(self.outputs[logits.argmax()]))
            if target[-1] == PairVocabulary.end:
                break
        return self.vocabulary.decode(target)
