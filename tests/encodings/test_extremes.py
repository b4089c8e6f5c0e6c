"""Extreme weights for encodings: no zeros or only zeros, or fewer distinct values than in a table."""

from __future__ import annotations

import numpy as np
import pytest

from nnbuild.encodings.encoded import Array, proved
from nnbuild.encodings.windows import WINDOW, windows
from tests.encodings.test_encodings import encoded

COLUMNS = np.ones((70, 6), np.int8)
COLUMNS[:, ::2] = 0
EXTREMES = {
    "all zero": np.zeros((70, 6), np.int8),
    "none zero": np.tile(np.arange(1, 8, dtype=np.int8), (70, 1)),
    "one value": np.full((33, 5), -3, np.int8),
    "the largest": np.full((17, 4), -127, np.int8),
    "columns of zeros": COLUMNS,
    "fewer weights than a table's": np.array([[5]], np.int8),
    "one at the end": np.pad(np.ones((1, 1), np.int8), ((599, 0), (8, 0))),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_extremes_decode(name: str) -> None:
    matrix = EXTREMES[name]
    for one in encoded(matrix, np.random.default_rng(1))[:-1]:
        if one is not None:
            proved(one, matrix)


def test_windows_with_too_many_entries_are_refused() -> None:
    def full(inputs: int) -> Array:
        return np.ones((inputs, 2), np.int8)

    assert windows(full(WINDOW)) is None
    found = windows(full(WINDOW - 1))
    assert found is not None and proved(found, full(WINDOW - 1)).counts.tolist() == [255, 255]
