"""Signed numbers of 4 or 2 bits, several in a byte, and numbers of -1, 0 and 1, five in a byte."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.encodings.codes import packed, unpacked
from nnbuild.encodings.encoded import Array, Encoded

TRITS = 5
"""Ternary digits in a byte: 3**5 is 243."""


@dataclass(frozen=True, eq=False)
class Narrow(Encoded):
    """Two's complement of `bits` bits."""

    shape: tuple[int, ...]
    bits: int
    dtype: np.dtype[np.signedinteger]
    data: Array

    @property
    def parts(self) -> dict[str, Array]:
        return {"data": self.data}

    def decode(self) -> Array:
        half = 1 << (self.bits - 1)
        values = (unpacked(self.data, self.bits, int(np.prod(self.shape))) ^ half) - half
        result: Array = values.astype(self.dtype).reshape(self.shape)
        return result


def narrow(values: Array, bits: int) -> Narrow | None:
    """None if a value does not fit."""
    half = 1 << (bits - 1)
    if values.size and (values.min() < -half or values.max() >= half):
        return None
    return Narrow(values.shape, bits, values.dtype, packed(values.astype(np.int64) & (2 * half - 1), bits))


@dataclass(frozen=True, eq=False)
class Ternary(Encoded):
    shape: tuple[int, ...]
    dtype: np.dtype[np.signedinteger]
    data: Array

    @property
    def parts(self) -> dict[str, Array]:
        return {"data": self.data}

    def decode(self) -> Array:
        digits = self.data[:, None].astype(np.int64) // 3 ** np.arange(TRITS) % 3 - 1
        result: Array = digits.reshape(-1)[: int(np.prod(self.shape))].astype(self.dtype).reshape(self.shape)
        return result


def ternary(values: Array) -> Ternary | None:
    if values.size and np.abs(values.astype(np.int64)).max() > 1:
        return None
    digits = np.pad(values.reshape(-1).astype(np.int64) + 1, (0, -values.size % TRITS)).reshape(-1, TRITS)
    return Ternary(values.shape, values.dtype, (digits * 3 ** np.arange(TRITS)).sum(axis=1).astype(np.uint8))
