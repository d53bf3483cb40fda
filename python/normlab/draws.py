"""Counter-based random numbers, bit-identical to those of the program (src/normlab/base/random.h)."""

from __future__ import annotations

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _mix64(x: int) -> int:
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & _MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


def stream_key(*parts: int) -> int:
    """The key of the stream named by its parts, such as a seed and a step."""
    key = _GOLDEN
    for part in parts:
        key = _mix64((key ^ (part & _MASK)) + _GOLDEN & _MASK)
    return key


def draw_uniform(key: int, index: int) -> float:
    """Draw number ``index`` of the stream, in [0, 1).

    >>> 0.0 <= draw_uniform(stream_key(1337), 0) < 1.0
    True
    """
    return (_mix64(key + (index + 1) * _GOLDEN & _MASK) >> 11) * 2.0**-53
