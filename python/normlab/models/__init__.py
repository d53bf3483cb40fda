"""The models of runs in plain PyTorch, compared with the program by tests/python.

>>> isinstance(normlab.load(RUN), DecoderLM)
True
"""

from normlab.models.decoder_lm import DecoderLM
from normlab.models.translator import Translator

__all__ = ["DecoderLM", "Translator"]
