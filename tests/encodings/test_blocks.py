"""Blocks decode to their matrix, whatever lies between them."""

from __future__ import annotations

import numpy as np
import pytest

from nnbuild.encodings.blocks import blocks
from nnbuild.encodings.encoded import proved

FORMS = [(1, 1, 1, 1), (4, 2, 4, 4), (2, 2, 4, 1), (3, 1, 2, 4), (8, 4, 4, 1)]


@pytest.mark.parametrize("form", FORMS)
def test_blocks_decode_to_their_matrix(form: tuple[int, int, int, int]) -> None:
    chance, turn = np.random.default_rng(FORMS.index(form)), form[3]
    for share in (0.0, 0.005, 0.1, 0.5, 1.0) * 8:
        shape = chance.integers(1, 600), chance.integers(1, 12)
        matrix = (chance.integers(-127, 128, shape) * (chance.random(shape) < share)).astype(np.int8)
        found = proved(blocks(matrix, *form), matrix)
        assert found.steps.size and not (np.diff(found.starts.astype(np.int64)) % turn).any()


def test_large_distances_insert_blocks_of_zeros() -> None:
    matrix = np.zeros((600, 1), np.int8)
    matrix[[3, 560]] = 7
    found = proved(blocks(matrix, 1, 1), matrix)
    assert found.steps.tolist() == [3, 255, 255, 47]
    assert found.values.reshape(-1).tolist() == [7, 0, 0, 7]
