"""Every encoding decodes to the original integers."""

from __future__ import annotations

import numpy as np
import pytest

from nnbuild.encodings.blocks import blocks
from nnbuild.encodings.codebook import codebook
from nnbuild.encodings.encoded import Array, Encoded, proved
from nnbuild.encodings.halves import halves, wholes
from nnbuild.encodings.narrow import narrow, ternary
from nnbuild.encodings.nm import n_of_m
from nnbuild.encodings.prefix import prefix
from nnbuild.encodings.sparse import sparse
from nnbuild.encodings.windows import windows

MATRICES = 100_000
FEW = 400


def test_long_runs_of_zeros_insert_entries() -> None:
    column = np.array([0, 0, 1, 2, *[0] * 18, 3], np.int8)[:, None]
    found = proved(sparse(column), column)
    values, zeros = found.entries(found.lanes[0])
    assert (values.tolist(), zeros.tolist()) == ([1, 2, 0, 3], [2, 0, 15, 2])


def drawn(chance: np.random.Generator) -> Array:
    shape = chance.integers(1, 60), chance.integers(1, 12)
    low, high = (-127, 127) if chance.random() < 0.5 else (-1, 1) if chance.random() < 0.3 else (-8, 7)
    kept = chance.random(shape) < chance.choice([0, 0.005, 0.1, 0.5, 1])
    kept[:, chance.integers(shape[1])] &= bool(chance.random() < 0.8)
    return (chance.integers(low, high, shape, endpoint=True) * kept).astype(np.int8)


def encoded(matrix: Array, chance: np.random.Generator) -> list[Encoded | None]:
    rows, m = int(chance.choice([1, 2, 4])), int(chance.choice([4, 5, 8, 10, 16]))
    there = np.pad(matrix, ((0, -len(matrix) % m), (0, -matrix.shape[1] % rows)))
    places = (there.reshape(-1, m, there.shape[1] // rows, rows) != 0).any(axis=3).sum(axis=1)
    width, lanes = int(chance.integers(1, 9)), int(chance.integers(1, 9))
    depth, unit = int(chance.integers(1, 5)), int(chance.choice([1, 2, 4]))
    return [
        sparse(matrix, width, lanes),
        codebook(matrix),
        codebook(matrix, by_channel=True),
        narrow(matrix, 8),
        narrow(matrix, 4),
        narrow(matrix, 2),
        ternary(matrix),
        n_of_m(matrix, max(1, int(places.max())), m, rows),
        blocks(matrix, rows, depth, unit, int(chance.choice([1, 2, 4]))),
        windows(matrix),
        halves(matrix),
        wholes(matrix),
        prefix(matrix),
        prefix(256 * matrix[:, 1:].astype(np.int16) + matrix[:, :-1]),
    ]


def check(begin: int, end: int) -> None:
    for number in range(begin, end):
        chance = np.random.default_rng(number)
        matrix = drawn(chance)
        found = encoded(matrix, chance)
        small = np.abs(matrix.astype(int)).max(initial=0)
        assert [one is None for one in found[4:7]] == [
            small > 8 or matrix.max() > 7,
            small > 2 or matrix.max() > 1,
            small > 1,
        ]
        for one in found:
            if one is not None:
                proved(one, matrix if one is not found[-1] else 256 * matrix[:, 1:].astype(np.int16) + matrix[:, :-1])


@pytest.mark.slow
def test_encodings_decode_to_their_input() -> None:
    check(0, FEW)


@pytest.mark.full
def test_encodings_of_very_many_matrices() -> None:
    check(FEW, MATRICES)


def test_rare_halves_stay_plain() -> None:
    chance = np.random.default_rng(1)
    for size in (0, 1, 5, 8, 500, 300_000):
        common = chance.integers(-8, 8, size).astype(np.int8)
        for dtype in (np.int8, np.int16, np.int64):
            rare = chance.integers(-100, 100, size // 30).astype(dtype)
            values = np.concatenate([common.astype(dtype), rare, common[: size // 2].astype(dtype), rare[:3]])
            proved(halves(values), values)
            proved(wholes(values), values)
    assert halves(np.tile(np.arange(-8, 8), 200).astype(np.int8)).nbytes < 0.6 * 3200
    assert wholes(chance.integers(-1, 2, 8192).astype(np.int8)).nbytes < 0.3 * 8192


def test_frequent_bytes_have_short_codes() -> None:
    chance = np.random.default_rng(2)
    values = np.clip(np.round(chance.normal(size=8192) * 1.2), -3, 3).astype(np.int8)
    pairs = 256 * values[1::2].astype(np.int16) + values[0::2]
    for each, carried in ((values, False), (pairs, True)):
        found = proved(prefix(each), each)
        assert found.carried == carried and found.nbytes < 0.31 * len(values)
    skewed = np.repeat(np.arange(40), np.maximum(1, 2 ** (13 - np.arange(40)).clip(0))).astype(np.int8)
    mixed = chance.permutation(skewed)
    assert proved(prefix(mixed), mixed).lengths[7] > 0  # longer codes are limited
    assert proved(prefix(skewed), skewed).nbytes < proved(prefix(mixed), mixed).nbytes  # rare words are stored plainly


def test_nothing_with_a_code_leaves_what_is_read_at_once() -> None:
    values = np.array([[1, 2, 3, 4, 5, 6, 7, 8]], np.int8)
    found = prefix(values)
    assert found.coded == 0
    assert found.codes.nbytes >= 4
    np.testing.assert_array_equal(found.decode(), values)


def test_similar_layers_share_a_code_table() -> None:
    chance = np.random.default_rng(3)
    found = [prefix(np.clip(np.round(chance.normal(size=n) * 1.6), -3, 3).astype(np.int8)) for n in (400, 900, 2000)]
    assert len({(each.lengths.tobytes(), each.table.tobytes()) for each in found}) == 1
    assert all("stretches" not in each.parts and each.nbytes < 0.36 * each.coded + 16 for each in found)
    skewed = prefix(np.where(np.arange(4000) % 16, 3, 1).astype(np.int8))
    assert skewed.lengths.tolist() == [2]  # a separate table, with one bit per code


def test_unencodable_values_give_none() -> None:
    many = np.arange(-128, 128).astype(np.int16)[:, None]
    assert codebook(many) is not None
    assert codebook(np.arange(300).astype(np.int16)[:, None]) is None
    assert n_of_m(np.ones((8, 2), np.int8), 1, 4) is None
    assert codebook(np.zeros((3, 3), np.int8)).bits == 1  # type: ignore[union-attr]


def test_bytes_are_those_of_all_parts() -> None:
    matrix = np.zeros((64, 8), np.int8)
    matrix[::4] = 5
    assert n_of_m(matrix, 1, 4).nbytes == 16 * 8 * 2 // 8 + 16 * 8  # type: ignore[union-attr]
    assert narrow(matrix, 4).nbytes == 256  # type: ignore[union-attr]
    assert sparse(matrix).nbytes == 1 + 9 * 2 + 16 * 8 // 8 + 16 * 8 // 2
