"""N:M sparsity: in each stretch of M inputs a group of outputs keeps at most N weights, whose places are stored.

`rows` neighbouring outputs share the places; a place is a number below M, in as few bits as possible. The number of
places is known, so none is stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.encodings.codes import bits_for, packed, unpacked
from nnbuild.encodings.encoded import Array, Encoded


@dataclass(frozen=True, eq=False)
class NofM(Encoded):
    """`shape` is [inputs, outputs]; places: packed, of [groups of outputs][stretches][n]; values: the weights of `rows`
    outputs at every place."""

    shape: tuple[int, ...]
    m: int
    places: Array
    values: Array

    @property
    def parts(self) -> dict[str, Array]:
        return {"places": self.places, "values": self.values}

    @property
    def n(self) -> int:
        return int(self.values.shape[2])

    def every_place(self) -> Array:
        """[groups, stretches, n]"""
        shape = self.values.shape[:3]
        return unpacked(self.places, bits_for(self.m), int(np.prod(shape))).reshape(shape)

    def decode(self) -> Array:
        groups, stretches, _, rows = self.values.shape
        places = self.every_place()
        whole = np.zeros((groups, stretches, self.m, rows), self.values.dtype)
        group, stretch = np.ogrid[:groups, :stretches]
        np.add.at(whole, (group[..., None], stretch[..., None], places), self.values)
        inputs, outputs = self.shape
        return whole.transpose(1, 2, 0, 3).reshape(stretches * self.m, groups * rows)[:inputs, :outputs]


def _stretches(matrix: Array, m: int, rows: int) -> Array:
    """[groups, stretches, m, rows]"""
    whole = np.pad(matrix, ((0, -matrix.shape[0] % m), (0, -matrix.shape[1] % rows)))
    return whole.reshape(-1, m, whole.shape[1] // rows, rows).transpose(2, 0, 1, 3)


def places_needed(matrix: Array, m: int, rows: int = 1) -> int:
    """The smallest sufficient N, at least 1, as C has no empty arrays."""
    return max(1, int((_stretches(matrix, m, rows) != 0).any(axis=3).sum(axis=2).max(initial=0)))


def n_of_m(matrix: Array, n: int, m: int, rows: int = 1) -> NofM | None:
    """None if a stretch has more than N places that are not all zero."""
    each = _stretches(matrix, m, rows)
    there = (each != 0).any(axis=3)
    if there.sum(axis=2).max(initial=0) > n:
        return None
    order = np.argsort(~there, axis=2, kind="stable")[..., :n]
    places = np.sort(order, axis=2)
    values = np.take_along_axis(each, places[..., None], axis=2)
    return NofM(matrix.shape, m, packed(places.reshape(-1), bits_for(m)), values)
