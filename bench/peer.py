"""The peer of `normlab bench step` and `normlab bench decode`: the same decoder in PyTorch, eager or compiled.

Answers each line of JSON on standard input with one on standard output:
  {"cmd": "build", "n_layers": 4, ...}  ->  {"torch": "2.15.0"}
  {"cmd": "step", "count": 1}           ->  {"seconds": 0.045}      forward, backward, clip, AdamW
  {"cmd": "generate", "prompt": 16, "tokens": 200, "texts": 1}  ->  {"seconds": 0.15}    static KV cache
  {"cmd": "memory"}                     ->  {"bytes": 123456789}    at most so far, beyond the size before the model
or with {"error": "..."}, and ends with its input.
"""
import json
import logging
import os
import sys
import time
import warnings


def process_bytes(key):
    """VmRSS: now; VmHWM: at most so far."""
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(key))


def make_model(c):
    import torch
    from torch import nn
    from torch.nn import functional as F

    normalised = "p" in c

    def linear(d_in, d_out):
        return nn.Linear(d_in, d_out, bias=False)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = linear(c["d_model"], 3 * c["d_model"])
            self.out = linear(c["d_model"], c["d_model"])
            if normalised:
                self.gain = nn.Parameter(torch.tensor([c["gain"]]))

        def forward(self, x, cache=None):
            b, t, width = x.shape
            q, k, v = (y.view(b, t, c["n_heads"], -1).transpose(1, 2) for y in self.qkv(x).split(width, dim=2))
            scale = None  # 1 / sqrt(d_head)
            if normalised:
                q = F.normalize(q, p=float(c["p"]), dim=-1, eps=c["qk_eps"]) * self.gain
                k = F.normalize(k, p=float(c["p"]), dim=-1, eps=c["qk_eps"])
                scale = 1.0
            dropout = c["dropout"]
            if cache is not None:
                k, v = cache.append(self, k, v)
                dropout = 0.0
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=t > 1, scale=scale)
            return self.out(y.transpose(1, 2).reshape(b, t, width))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attn_norm = nn.LayerNorm(c["d_model"], bias=False)
            self.attn = Attention()
            self.mlp_norm = nn.LayerNorm(c["d_model"], bias=False)
            self.mlp = nn.Sequential(linear(c["d_model"], c["d_ff"]), nn.GELU(), linear(c["d_ff"], c["d_model"]))

        def forward(self, x):
            x = x + F.dropout(self.attn(self.attn_norm(x)), c["dropout"])
            return x + F.dropout(self.mlp(self.mlp_norm(x)), c["dropout"])

        def decode(self, x, cache):
            x = x + self.attn(self.attn_norm(x), cache)
            return x + self.mlp(self.mlp_norm(x))

    class StaticCache:
        """Keys and values of texts of one length, in tensors as long as the window."""

        def __init__(self, blocks, texts):
            shape = texts, c["n_heads"], c["seq_len"], c["d_model"] // c["n_heads"]
            self.kept = {block.attn: (torch.zeros(shape), torch.zeros(shape)) for block in blocks}
            self.length = 0

        def append(self, layer, k, v):
            end = self.length + k.shape[2]
            for kept, fresh in zip(self.kept[layer], (k, v)):
                kept[:, :, self.length:end] = fresh
            return (kept[:, :, :end] for kept in self.kept[layer])

    class Decoder(nn.Module):
        """Gives the loss."""

        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(c["vocab_size"], c["d_model"])
            self.positions = nn.Embedding(c["seq_len"], c["d_model"])
            self.blocks = nn.Sequential(*(Block() for _ in range(c["n_layers"])))
            self.final_norm = nn.LayerNorm(c["d_model"], bias=False)
            for tensor in self.parameters():
                if tensor.dim() == 2:
                    nn.init.normal_(tensor, std=0.02)

        def forward(self, tokens, targets):
            x = F.dropout(self.embedding(tokens) + self.positions.weight[: tokens.shape[1]], c["dropout"])
            logits = F.linear(self.final_norm(self.blocks(x)), self.embedding.weight)
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

        def generate(self, tokens, count):
            """The most probable continuation of tokens [b, t], `count` tokens long."""
            cache = StaticCache(self.blocks, tokens.shape[0])
            for _ in range(count):
                end = cache.length + tokens.shape[1]
                x = self.embedding(tokens) + self.positions.weight[cache.length:end]
                for block in self.blocks:
                    x = block.decode(x, cache)
                cache.length = end
                tokens = F.linear(self.final_norm(x[:, -1:]), self.embedding.weight).argmax(-1)
                tokens.tolist()  # the text is wanted token by token

    return Decoder()


class Peer:
    def build(self, c):
        # Before torch reads them. No pool of compiler processes: they would outlive a killed peer.
        os.environ["OMP_NUM_THREADS"] = str(c["threads"])
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        import torch

        torch.set_num_threads(c["threads"])
        torch.manual_seed(1)
        self.compiled = c["compile"]
        self.bytes_before = process_bytes("VmRSS")
        self.clip = c["clip"]
        model = make_model(c)
        self.parameters = list(model.parameters())
        groups = [{"params": [p for p in self.parameters if p.dim() >= 2], "weight_decay": c["weight_decay"]},
                  {"params": [p for p in self.parameters if p.dim() < 2], "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=c["lr"], betas=tuple(c["betas"]), eps=c["eps"], fused=True)
        self.model = torch.compile(model) if self.compiled else model
        self.tokens, self.targets = torch.randint(c["vocab_size"], (2, c["batch_size"], c["seq_len"]))
        return {"torch": torch.__version__}

    def step(self, question):
        from torch.nn.utils import clip_grad_norm_

        start = time.perf_counter()
        for _ in range(question.get("count", 1)):
            self.optimizer.zero_grad(set_to_none=True)
            self.model(self.tokens, self.targets).backward()
            if self.clip > 0:
                clip_grad_norm_(self.parameters, self.clip)
            self.optimizer.step()
        return {"seconds": time.perf_counter() - start}

    def generate(self, question):
        import torch

        prompt = self.tokens.flatten()[:question["prompt"]].expand(question["texts"], -1)
        start = time.perf_counter()
        with torch.inference_mode():
            self.model.generate(prompt, question["tokens"])
        return {"seconds": time.perf_counter() - start}

    def memory(self, _):
        # A compiled model's process holds the compiler as well, which is no memory of the step.
        return {"bytes": None if self.compiled else process_bytes("VmHWM") - self.bytes_before}


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    # Whatever libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    peer = Peer()
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = getattr(peer, question["cmd"])(question)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)


main()
