"""Other cores compute correctly with encoded weights: emulators run the routines that read encodings, as built by their
compilers, on many random matrices. Those of single x86 sets are in `test_unpacking`."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.vendored import definitions
from nnbuild.base.writer import Instruction, Writer
from nnbuild.emit.instructions import called, instructions
from nnbuild.encodings.blocks import blocks
from nnbuild.encodings.halves import halves, wholes
from nnbuild.encodings.prefix import lookup, prefix
from nnbuild.kernels.compressed import narrow_dsp_rows, sparse_dsp_rows, unpacked, weight_buckets
from nnbuild.kernels.compressed.narrow_dsp_rows import Code
from nnbuild.kernels.compressed.sparse_dsp_rows import SHAPES, Shape
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import int32s
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site, site_of
from tests.encodings.test_encodings import drawn
from tests.support.bare import CORES, compiled, record, right
from tests.support.graphs import single
from tests.support.quantized import quantized

pytestmark = [pytest.mark.slow, pytest.mark.emulator]

FEW, MATRICES, AT_ONCE = 40, 100_000, 500
ROOM = 64 << 20
FURTHER = 64
"""Bytes behind an array that a routine may read."""
STORED = ("codes", "table", "others", "stretches")
HELD = 8
"""Outputs whose scaling is borrowed."""


class Routines:
    """All routines that read encodings, with their addresses in the program."""

    def __init__(self) -> None:
        self.w = Writer("p")
        self.places: dict[str, int] = {}
        self.site = _site()
        self.tabled = self.add(unpacked._build_table())
        unpacking = [(unpacked._decode_by_table(whole), 2) for whole in (False, True)]
        unpacking += [(unpacked._decode_prefix(), 3)]
        self.halves, self.words, self.prefixed = (self.add(unpacked._decode_stretches(*each)) for each in unpacking)
        self.buckets = self.add(weight_buckets.BUCKET_SUM)
        self.narrow = {
            (table, rows, turns): self.add(Code(table)._routine(rows, turns)[0])
            for table in (False, True)
            for rows in (narrow_dsp_rows.MOST_ROWS, *narrow_dsp_rows.ROWS)
            if table or rows != narrow_dsp_rows.MOST_ROWS
            for turns in (1, 2, 4)
        }
        self.sparse = {shape: self.add(self._sparse(shape)) for shape in SHAPES}

    def add(self, instruction: Instruction) -> int:
        self.w._add_instruction(instruction)
        return self.places.setdefault(f"p_{instruction.name}", len(self.places))

    def name(self, place: int) -> str:
        return list(self.places)[place]

    def _sparse(self, shape: Shape) -> Instruction:
        scaling = sparse_dsp_rows.scaling_of(shape.rows, self.site)
        assert not isinstance(scaling, str)
        return sparse_dsp_rows._routine(self.w, shape, scaling, "uint16_t", shape.rows, 1.0)[0]

    @property
    def text(self) -> str:
        used = self.w.instructions.values()
        return definitions(self.w.helpers | called(used), "p") + instructions(used, "p", "")


def _site() -> Site[Dense]:
    graph = quantized(single(Dense(), [(64,)], {"kernel": np.ones((64, HELD)), "bias": np.ones(HELD)}), "int8", seed=1)
    return site_of(graph, graph.ops[0]).of(Dense)


def roomy(values: Array) -> Array:
    return np.concatenate(
        [np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8), np.zeros(FURTHER, np.uint8)]
    )


def unpacking(routines: Routines, values: Array) -> Iterator[bytes]:
    wanted = np.ascontiguousarray(values).tobytes()
    to, made = np.zeros(len(wanted) + FURTHER, np.uint8), prefix(values)
    places, sizes = lookup(made.lengths)
    table = (made.table.astype(np.int64)[places] * 256 + sizes).astype(np.int16)
    shares = made.lengths / 2.0 ** np.arange(1, len(made.lengths) + 1)
    if shares.sum() == 1:  # every value begins with some code
        given = [np.zeros_like(table), roomy(made.lengths), roomy(made.table)]
        yield record(routines.tabled, [*given, len(made.lengths)], 0, table.tobytes())
    for routine, found in ((routines.halves, halves(values)), (routines.words, wholes(values))):
        yield record(
            routine, [to, *(roomy(getattr(found, part)) for part in STORED), len(found.stretches) // 2], 0, wanted
        )
    codes, _, others, stretches = (roomy(getattr(made, part)) for part in STORED)
    given = [to, codes, roomy(table), made.mask, others, stretches, len(made.stretches) // 3]
    yield record(routines.prefixed, given, 0, wanted)


def summing(routines: Routines, matrix: Array, chance: np.random.Generator) -> Iterator[bytes]:
    """Weights of four bits, and of few values."""
    few, columns = np.clip(matrix, -8, 7), matrix.shape[1]
    turns = narrow_dsp_rows.padded_to_eights(len(few))
    x = np.pad(chance.integers(-255, 256, len(few)).astype(np.int16), (0, 8 * turns - len(few)))
    start = chance.integers(-(2**20), 2**20, columns).astype(np.int32)
    wanted = (start + x[: len(few)].astype(np.int64) @ few.astype(np.int64)).astype(np.int32)
    for table in (False, True):
        rows = Code(table).block_of(columns)
        packed = Code(table).packed("k", few, rows)
        tables = [packed["k_table"]] if table else []
        at_once = next(size for size in (4, 2, 1) if turns % size == 0)
        given = [*map(roomy, (x, packed["k"], *tables, start)), np.zeros_like(start), turns, columns // rows]
        yield record(routines.narrow[table, rows, at_once], given, len(given) - 3, wanted.tobytes())


def adding(routines: Routines, chance: np.random.Generator) -> Iterator[bytes]:
    """Sums by weight."""
    count, size = int(chance.integers(2, 17)), int(chance.choice([1, 3, 16]))
    each = chance.integers(-(2**15), 2**15, (count, size)).astype(np.int32)
    values = chance.integers(-128, 128, count).astype(np.int8)
    left = each.copy()
    left[0] = each.sum(axis=0) if size > 1 else each[0]
    yield record(
        routines.buckets, [each, values, count, size], 0, left.tobytes(), int((each.sum(axis=1) * values).sum())
    )


def skipping(routines: Routines, here: ctypes.CDLL, matrix: Array, chance: np.random.Generator) -> Iterator[bytes]:
    """Blocks; the same C on this machine gives the expected results."""
    for shape, place in routines.sparse.items():
        found = blocks(matrix, shape.rows, shape.depth, shape.unit, shape.turn)
        groups = len(found.starts) - 1
        x = chance.integers(-128, 128, len(matrix)).astype(np.int16 if shape.depth == 2 else np.int8)
        scaling = sparse_dsp_rows.scaling_of(shape.rows, routines.site)
        assert not isinstance(scaling, str)
        start = chance.integers(-(2**14), 2**14, (groups, 1, shape.rows))
        columns = np.stack([np.resize(each, (groups, shape.rows)) for each in scaling.columns.values()], axis=1)
        told = int32s(np.concatenate([start, columns], axis=1)).reshape(-1)
        to = np.zeros(groups * shape.rows, np.int8)
        given = [roomy(x), found.steps, sparse_dsp_rows.pack(shape, found), found.starts.astype(np.uint16), told]
        held = [np.ascontiguousarray(each) for each in given]
        getattr(here, routines.name(place))(*(ctypes.c_void_p(each.ctypes.data) for each in (*held, to)), groups)
        yield record(place, [*given, to * 0, groups], 5, to.tobytes())


def check(folder: Path, begin: int, end: int) -> None:
    """Checks the same records on every core."""
    routines = Routines()
    text, names = routines.text, list(routines.places)
    (folder / "here.c").write_text(f"#include <stdint.h>\n{text}")
    flags = ["-O1", "-w", "-shared", "-fPIC", "-DNN_PORTABLE", "-Dstatic=", "-Dinline="]
    subprocess.run(["gcc", *flags, "here.c", "-o", "here.so"], cwd=folder, check=True)
    here = ctypes.CDLL(str(folder / "here.so"))
    programs = {name: compiled(text, names, core, folder, ROOM) for name, core in CORES.items()}
    for first in range(begin, end, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, end))
        records = b"".join(each for at in numbers for each in drawn_records(routines, here, at))
        assert len(records) < ROOM
        for name, program in programs.items():
            assert right(program, CORES[name], records), f"{name}, matrices from {first}"


def drawn_records(routines: Routines, here: ctypes.CDLL, number: int) -> Iterator[bytes]:
    chance = np.random.default_rng(number)
    matrix = drawn(chance)
    yield from unpacking(routines, matrix)
    yield from unpacking(routines, 256 * matrix[:, 1:].astype(np.int16) + matrix[:, :-1])
    yield from summing(routines, matrix, chance)
    yield from adding(routines, chance)
    yield from skipping(routines, here, matrix, chance)


def test_a_wrong_byte_is_seen(tmp_path: Path) -> None:
    routines, how = Routines(), CORES["cortex-m4"]
    program = compiled(routines.text, list(routines.places), how, tmp_path, ROOM)
    good = next(unpacking(routines, np.arange(60, dtype=np.int8)))
    assert right(program, how, good) and not right(program, how, good[:-64] + b"\xff" * 64)


@pytest.mark.turns(4)
def test_cores_compute_with_encoded_weights(tmp_path: Path) -> None:
    check(tmp_path, 0, FEW)


@pytest.mark.full
def test_very_many_matrices(tmp_path: Path) -> None:
    check(tmp_path, FEW, MATRICES)
