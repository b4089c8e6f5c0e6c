"""The quantization of tensors in quantization-aware training: a range in so many bits, adjusted to contain zero."""

from __future__ import annotations

import numpy as np


def steps(low: float, high: float, bits: int, narrow: bool) -> tuple[float, float, float]:
    """(smallest, largest, step), in float32 like TensorFlow's FakeQuant; a step of 0 where there is no range."""
    first, last = np.float32(narrow), np.float32(2**bits - 1)
    scale = np.float32((np.float32(high) - np.float32(low)) / (last - first))
    if not scale > 0:
        return 0.0, 0.0, 0.0
    zero = np.float32(np.floor(np.clip(np.float32(first - np.float32(low) / scale), first, last) + np.float32(0.5)))
    return float((first - zero) * scale), float((last - zero) * scale), float(scale)
