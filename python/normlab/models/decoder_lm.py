"""The decoder-only language model of a run, in plain PyTorch."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from normlab.draws import draw_uniform, stream_key
from normlab.vocabulary import Tokenizer
from normlab.models.attention import KeyValues
from normlab.models.block import Block
from normlab.models.embedding import Embedding, Positions, rope_of
from normlab.models.norms import Section, StreamNorm, factor_value


class DecoderLM(nn.Module):
    """What ``normlab.load`` returns for a language model; its parameters have the names of the checkpoint.

    ``model.config`` is the configuration of the run, ``model.tokenizer`` its vocabulary.
    """

    def __init__(self, config: dict[str, Section], tokenizer: Tokenizer):
        super().__init__()
        model, norm = config["model"], config["norm"]
        self.config, self.tokenizer = config, tokenizer
        self.seq_len, self.dropout, self.cap = model["seq_len"], model["dropout"], norm["output_soft_cap"]
        self.embedding = Embedding(tokenizer.vocab_size, model["d_model"], norm["embedding"])
        self.input_scale = math.sqrt(model["d_model"]) if norm["embedding"] in ("fixnorm", "sqrt_d") else 1.0
        self.positions = Positions(model)
        shared = norm["gain"] == "model" and norm["learn_gain"]
        self.qk_gain = nn.Parameter(torch.ones(1)) if shared else None
        self.layers = nn.ModuleList(Block(model, norm, layer, self.seq_len) for layer in range(model["n_layers"]))
        ropes = {local: rope_of(model, local) for local in (False, True)}
        self.ropes = [ropes[layer.attn.window > 0] for layer in self.layers]
        post = norm["placement"] == "post"
        self.final_norm = nn.Identity() if post else StreamNorm(model["d_model"], model["bias"], norm)
        self.head = None if model["tied_head"] else nn.Linear(model["d_model"], tokenizer.vocab_size, bias=False)
        self.s_z = None
        if norm["output_scale"] == "s_z":
            self.s_z = nn.Parameter(torch.ones(tokenizer.vocab_size))
            self.s_z_ratio = 1.0 / factor_value(norm["stored_scale"], d_model=model["d_model"], init=1.0)

    def forward(self, tokens: Tensor, caches: list[list[KeyValues]] | None = None) -> Tensor:
        """Logits [b, t, vocab] of tokens [b, t]; ``caches``, one list per layer, keeps the keys of earlier tokens."""
        first = caches[0][0][0].size(1) if caches and caches[0] else 0
        if first + tokens.size(1) > self.seq_len:
            raise ValueError(f"[tokens] got {first + tokens.size(1)}, expected at most model.seq_len = {self.seq_len}.")
        x = self.positions(self.embedding(tokens, self.input_scale), first)
        x = F.dropout(x, self.dropout, self.training)
        for i, layer in enumerate(self.layers):
            x = layer(x, model_gain=self.qk_gain, rope=self.ropes[i], cache=caches[i] if caches else None)
        table = self.embedding.weight if self.head is None else self.head.weight
        z = F.linear(self.final_norm(x), self.embedding.rows(table))
        if self.s_z is not None:
            z = z * (self.s_z * self.s_z_ratio)
        return torch.tanh(z / self.cap) * self.cap if self.cap > 0.0 else z

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy in nats per token."""
        return F.cross_entropy(self(tokens).flatten(0, 1), targets.flatten())

    @torch.no_grad()
    def generate(
        self,
        prompt: str,
        tokens: int = 200,
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 1337,
    ) -> str:
        """``prompt`` and its continuation, with a key-value cache; the draws are those of ``normlab generate``.

        A text longer than ``model.seq_len`` is continued from its second half. A temperature of 0 takes the most
        likely token.
        """
        text = self.tokenizer.encode(prompt)
        if not text:
            raise ValueError("[prompt] is empty; expected at least one character.")
        device = self.embedding.weight.device
        caches: list[list[KeyValues]] = []
        made: list[int] = []
        for index in range(tokens):
            fresh = text[-1:]
            if not caches or len(text) > self.seq_len:
                if len(text) > self.seq_len:
                    text = text[-((self.seq_len + 1) // 2) :]
                caches, fresh = [[] for _ in self.layers], text
            logits = self(torch.tensor([fresh], device=device), caches)[0, -1]
            text.append(choose_token(logits, temperature, top_k, top_p, draw_uniform(stream_key(seed), index)))
            made.append(text[-1])
        return prompt + self.tokenizer.decode(made)


def choose_token(logits: Tensor, temperature: float, top_k: int, top_p: float, draw: float) -> int:
    """The token at ``draw`` in [0, 1) of the cumulative probabilities, most likely first."""
    if temperature == 0.0:
        return int(logits.argmax())
    values, order = (logits.double() / temperature).sort(stable=True, descending=True)
    weights = values[: top_k or None].softmax(0)
    if top_p < 1.0:
        weights = weights[: int((weights.cumsum(0) < top_p).sum()) + 1]
    sums = weights.cumsum(0)
    place = min(int((sums <= draw * sums[-1]).sum()), len(weights) - 1)
    return int(order[place])
