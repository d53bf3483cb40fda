"""Normalised attention for PyTorch, and the runs of the program normlab in Python.

>>> import torch, normlab
>>> q, k, v = torch.randn(3, 2, 4, 16, 8)  # [batch, heads, length, d_head] each
>>> normlab.attention(q, k, v, p=2.5, gain=torch.tensor([10.0])).shape
torch.Size([2, 4, 16, 8])
"""
from normlab import _library  # noqa: F401  first: it registers the operators
from normlab._build import version as __version__
from normlab.ops import AttentionStats, Rope, attention, lp_normalize, make_rope

__all__ = ["AttentionStats", "Rope", "__version__", "attention", "lp_normalize", "make_rope"]
