"""Few distinct numbers: a table of them, and for every number its index of 1 to 8 bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.encodings.codes import bits_for, packed, unpacked
from nnbuild.encodings.encoded import Array, Encoded

MOST = 256


@dataclass(frozen=True, eq=False)
class Codebook(Encoded):
    """tables: [channels, entries], one for all channels or one for each along the last axis; codes: packed, the last
    axis fastest."""

    shape: tuple[int, ...]
    bits: int
    tables: Array
    codes: Array

    @property
    def parts(self) -> dict[str, Array]:
        return {"tables": self.tables, "codes": self.codes}

    def decode(self) -> Array:
        count = int(np.prod(self.shape))
        codes = unpacked(self.codes, self.bits, count).reshape(-1, self.shape[-1])
        own = np.arange(self.shape[-1]) if len(self.tables) > 1 else np.zeros(self.shape[-1], np.int64)
        result: Array = self.tables[own, codes].reshape(self.shape)
        return result


def codebook(values: Array, by_channel: bool = False) -> Codebook | None:
    """None with more than 256 distinct values (in a channel)."""
    flat = values.reshape(-1, values.shape[-1])
    columns = [flat[:, i] for i in range(flat.shape[1])] if by_channel else [flat]
    found = [np.unique(column) for column in columns]
    most = max(len(distinct) for distinct in found)
    if most > MOST:
        return None
    tables = np.stack([np.pad(distinct, (0, most - len(distinct)), mode="edge") for distinct in found])
    codes = [np.searchsorted(distinct, column) for distinct, column in zip(found, columns, strict=True)]
    whole = np.stack(codes, axis=1) if by_channel else codes[0]
    bits = bits_for(most)
    return Codebook(values.shape, bits, tables, packed(whole, bits))
