"""A plain PyTorch GPT trained with normlab.attention and with F.normalize + scaled_dot_product_attention.

Both start from the same weights and see the same batches. Reports the time of a training step, steps of both
interleaved, and the largest difference of their losses; writes one line of JSON.

    python bench/gpt_attention.py --length 256 --batch 16 --timed 7
    python bench/gpt_attention.py --length 2048 --batch 2 --timed 5
    python bench/gpt_attention.py --length 256 --batch 4 --losses 50
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

import normlab


def composed(q, k, v, gain, p):
    q, k = F.normalize(q, p=p, dim=-1) * gain, F.normalize(k, p=p, dim=-1)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)


def fused(q, k, v, gain, p):
    return normlab.attention(q, k, v, p=p, gain=gain)


class Block(nn.Module):
    def __init__(self, width, heads, p, attend):
        super().__init__()
        self.heads, self.p, self.attend = heads, p, attend
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.gain = nn.Parameter(torch.tensor([10.0]))

    def forward(self, x):
        b, t, width = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
        y = self.attend(q, k, v, self.gain, self.p)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, width))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    """Gives the loss."""

    def __init__(self, a, attend):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(a.vocab, a.width), nn.Embedding(a.length, a.width)
        self.blocks = nn.Sequential(*(Block(a.width, a.heads, a.p, attend) for _ in range(a.layers)))
        self.norm = nn.LayerNorm(a.width)
        for tensor in self.parameters():
            if tensor.dim() == 2:
                nn.init.normal_(tensor, std=0.02)

    def forward(self, tokens):
        x = self.embedding(tokens[:, :-1]) + self.positions.weight
        logits = F.linear(self.norm(self.blocks(x)), self.embedding.weight)
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


class Training:
    def __init__(self, a, attend):
        torch.manual_seed(1)
        self.model = Gpt(a, attend)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=a.lr, betas=(0.9, 0.95), weight_decay=0.1,
                                           fused=True)

    def step(self, tokens):
        start = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.model(tokens)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return time.perf_counter() - start, loss.item()


def batches(a):
    """Tokens with something to learn: each is one of two successors of the last."""
    draw = torch.Generator().manual_seed(2)
    while True:
        tokens = torch.zeros(a.batch, a.length + 1, dtype=torch.int64)
        coins = torch.randint(2, tokens.shape, generator=draw)
        tokens[:, 0] = torch.randint(a.vocab, (a.batch,), generator=draw)
        for t in range(a.length):
            tokens[:, t + 1] = (5 * tokens[:, t] + 7 * coins[:, t] + 1) % a.vocab
        yield tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in [("layers", 6), ("heads", 6), ("width", 384), ("vocab", 65), ("length", 256), ("batch", 16),
                          ("threads", 2), ("timed", 0), ("losses", 0)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--p", type=float, default=2.5)
    parser.add_argument("--lr", type=float, default=1e-3)
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    ways = {"normlab": Training(a, fused), "pytorch": Training(a, composed)}
    seconds, difference, source = {name: [] for name in ways}, 0.0, batches(a)
    for step in range(max(a.timed + 1, a.losses)):
        tokens, losses = next(source), {}
        for name, training in ways.items():
            spent, losses[name] = training.step(tokens)
            seconds[name].append(spent)
        difference = max(difference, abs(losses["normlab"] - losses["pytorch"]))
    medians = {name: statistics.median(times[1:]) for name, times in seconds.items()}  # the first step warms up
    print(json.dumps({"length": a.length, "batch": a.batch, "p": a.p, "steps": step + 1, "torch": torch.__version__,
                      "seconds": medians, "ratio": medians["pytorch"] / medians["normlab"],
                      "final_loss": losses, "largest_difference_of_losses": difference}))


if __name__ == "__main__":
    main()
