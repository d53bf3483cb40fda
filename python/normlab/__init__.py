"""Normalised attention for PyTorch, and the runs of the program normlab in Python.

>>> import torch, normlab
>>> q, k, v = torch.randn(3, 2, 4, 16, 8)  # [batch, heads, length, d_head] each
>>> normlab.attention(q, k, v, p=2.5, gain=torch.tensor([10.0])).shape
torch.Size([2, 4, 16, 8])
"""
from normlab import _library  # noqa: F401  first: it registers the operators
from normlab import nn, optim, schemes
from normlab._build import version as __version__
from normlab.checkpoint import load
from normlab.huggingface import replace_attention
from normlab.ops import AttentionStats, Rope, attention, lp_normalize, make_rope
from normlab.runs import Run, Study, read_run, read_study
from normlab.study import compare

__all__ = ["AttentionStats", "Rope", "Run", "Study", "__version__", "attention", "compare", "load", "lp_normalize",
           "make_rope", "nn", "optim", "read_run", "read_study", "replace_attention", "schemes"]
