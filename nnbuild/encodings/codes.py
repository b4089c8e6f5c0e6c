"""Numbers of a few bits, packed in bytes, the first one lowest."""

from __future__ import annotations

import numpy as np

from nnbuild.encodings.encoded import Array


def packed(codes: Array, bits: int) -> Array:
    """Codes below 2**bits, as bytes."""
    each = (codes.reshape(-1, 1).astype(np.uint32) >> np.arange(bits, dtype=np.uint32) & 1).astype(np.uint8)
    return np.packbits(each.reshape(-1), bitorder="little")


def unpacked(data: Array, bits: int, count: int) -> Array:
    """The first `count` codes."""
    each = np.unpackbits(data, bitorder="little", count=count * bits).reshape(count, bits)
    result: Array = (each.astype(np.int64) << np.arange(bits)).sum(axis=1)
    return result


def bits_for(count: int) -> int:
    """Bits of a code for `count` values."""
    return max(1, (count - 1).bit_length())
