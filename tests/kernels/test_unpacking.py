"""The C that unpacks weights, or sums them as they are stored, for many random matrices, native and portable.

Routines for other cores are the same C, compiled for them.
"""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.writer import Instruction, Writer
from nnbuild.emit.instructions import instructions
from nnbuild.encodings import codes
from nnbuild.encodings.halves import halves, wholes
from nnbuild.encodings.prefix import LONGEST, prefix
from nnbuild.encodings.sparse import sparse
from nnbuild.encodings.windows import WINDOW, windows
from nnbuild.isa.registry import cpu_flags, find, vector_sets
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.compressed.unpacked import _build_table, _decode_by_table, _decode_prefix, _decode_stretches
from nnbuild.model.graph import Array
from tests.encodings.test_encodings import drawn

FEW, MATRICES = 200, 100_000
ROOM = 512
"""Bytes behind an array that a set may read."""
HEAD = """\
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
"""


def unpacked_by() -> dict[str, Instruction]:
    return {
        "halves": _decode_by_table(False),
        "words": _decode_by_table(True),
        "prefix": _decode_prefix(),
    }


def sets(name: str) -> list[Vectors]:
    return [v for v in vector_sets() if name in v.spellings]


@pytest.fixture(scope="module", params=["native", "portable"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp(request.param)
    w, text = Writer("p"), HEAD
    routines = {
        "tabled": w.call(_build_table(), "all", "lengths", "table", "longest"),
    }
    for name, routine in unpacked_by().items():
        each, given = (3, ["mask"]) if name == "prefix" else (2, [])
        routines[name] = w.call(routine, "to", "codes", "table", *given, "at", "count")
        between = _decode_stretches(routine, each)
        routines[f"{name}_between"] = w.call(between, "to", "codes", "table", *given, "others", "stretches", "count")
    text += instructions(w.instructions.values(), "p", "")
    given, others = (
        "int8_t *to, const uint8_t *codes, const void *table",
        "const int32_t *others, const void *stretches",
    )
    for name, call in routines.items():
        if name == "tabled":
            own = "int16_t *all, const uint8_t *lengths, const int8_t *table, uint32_t longest"
            text += f"void tabled({own}) {{ {call}; }}\n"
        else:
            more = others if "between" in name else "uint32_t at"
            more = f"int32_t mask, {more}" if "prefix" in name else more
            text += f"void {name}({given}, {more}, int32_t count) {{ {call}; }}\n"
    for v in [*sets("sum_of_runs"), *sets("sum_of_windows")]:
        isa, each = find(v.name, "x86_64"), Writer("p")
        if request.param == "native" and not cpu_flags() >= set(isa.cpu_flags):
            continue
        head = f'__attribute__((target("{isa.target}"))) ' if request.param == "native" else ""
        if "sum_of_runs" in v.spellings:
            call = v.call(each, "sum_of_runs", "k", "count", "values", "x", "sum")
            own = "int32_t {}(const uint8_t *k, int32_t count, const int8_t *values, const int8_t *x, int32_t sum)"
            body = f"return {call};"
        else:
            call = v.call(each, "sum_of_windows", "k", "counts", "values", "x", "count", "to")
            own = (
                "void {}(const uint8_t *k, const uint8_t *counts, const int8_t *values, const uint8_t *x, "
                "int32_t count, int32_t *to)"
            )
            body = f"{call};"
        text += instructions(each.instructions.values(), "p", head) + own.format(v.name) + f" {{ {body} }}\n"
        text = text.replace(own.format(v.name), head + own.format(v.name))
    (folder / "unpacking.c").write_text(text)
    flags = ["-DNN_PORTABLE"] if request.param == "portable" else []
    command = ["gcc", "-O1", "-w", "-shared", "-fPIC", *flags, "unpacking.c", "-o", "unpacking.so"]
    subprocess.run(command, cwd=folder, check=True)
    found = ctypes.CDLL(str(folder / "unpacking.so"))
    assert request.param == "native" or all(hasattr(found, v.name) for v in sets("sum_of_windows"))
    return found


def pointer(values: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(values.ctypes.data)


def roomy(values: Array) -> Array:
    return np.ascontiguousarray(np.pad(values.reshape(-1), (0, ROOM)))


def check(library: ctypes.CDLL, begin: int, end: int) -> None:
    for number in range(begin, end):
        chance = np.random.default_rng(number)
        matrix = drawn(chance)
        x = chance.integers(-128, 128, matrix.shape[0]).astype(np.int8)
        carried = 256 * matrix[:, 1:].astype(np.int16) + matrix[:, :-1]
        check_unpacked(library, matrix)
        check_unpacked(library, carried)
        few = (matrix // 17 * 17).astype(np.int8) if len(np.unique(matrix)) > 15 else matrix
        if len(np.union1d(few, 0)) <= 16:
            check_summed(library, few, x)


def check_unpacked(library: ctypes.CDLL, values: Array) -> None:
    wanted = np.ascontiguousarray(values).tobytes()
    size = len(wanted) + -len(wanted) % 32 + 64
    made = prefix(values)
    every = (halves(values), "halves"), (wholes(values), "words"), (made, "prefix")
    for found, name in every:
        codes, table, lengths = roomy(found.codes), roomy(found.table), roomy(made.lengths)
        others, stretches = roomy(found.others), roomy(found.stretches)
        if found is made:
            own, table = table, np.zeros(1 << LONGEST, np.int16)
            library.tabled(pointer(table), pointer(lengths), pointer(own), len(made.lengths))
        to, given = np.zeros(size, np.int8), [pointer(codes), pointer(table)]
        given += [made.mask] if found is made else []
        turns = len(found.stretches) // (3 if found is made else 2)
        getattr(library, f"{name}_between")(pointer(to), *given, pointer(others), pointer(stretches), turns)
        assert to.tobytes()[: len(wanted)] == wanted
        if "stretches" not in found.parts:
            to[:] = 0
            getattr(library, name)(pointer(to), *given, 0, int(found.turns.sum()))
            assert to.tobytes()[: len(wanted)] == wanted


def check_summed(library: ctypes.CDLL, matrix: Array, x: Array) -> None:
    wanted = x.astype(np.int64) @ matrix.astype(np.int64)
    found = sparse(matrix)
    (lane,) = found.lanes
    count = int(lane.pointers[-1])
    zeros, places = (codes.unpacked(each, bits, count) for each, bits in ((lane.zeros, 4), (lane.codes, found.bits)))
    k, values, inputs = roomy((zeros | places << 4).astype(np.uint8)), roomy(found.table), roomy(x)
    for v in sets("sum_of_runs"):
        if not hasattr(library, v.name):
            continue
        for output, (start, end) in enumerate(zip(lane.pointers[:-1], lane.pointers[1:], strict=True)):
            own = np.ascontiguousarray(k[int(start) :])
            got = getattr(library, v.name)(pointer(own), int(end) - int(start), pointer(values), pointer(inputs), 0)
            assert got == wanted[output]
    in_windows = windows(matrix)
    lifted = roomy(np.pad(x.astype(np.int16) + 128, (0, -len(x) % WINDOW)).astype(np.uint8))
    for v in sets("sum_of_windows"):
        if in_windows is None or not hasattr(library, v.name):
            continue
        count, table = -(-len(x) // WINDOW), roomy(in_windows.table)
        for pair, start in enumerate(in_windows.starts[:-1]):
            to = np.zeros(2, np.int32)
            own, counts = roomy(in_windows.entries[int(start) :]), roomy(in_windows.counts[2 * count * pair :])
            getattr(library, v.name)(pointer(own), pointer(counts), pointer(table), pointer(lifted), count, pointer(to))
            both = matrix[:, 2 * pair : 2 * pair + 2].astype(np.int64)
            assert (to[: both.shape[1]] == (x.astype(np.int64) + 128) @ both).all()


@pytest.mark.slow
def test_encoded_weights_compute_exactly(library: ctypes.CDLL) -> None:
    check(library, 0, FEW)


@pytest.mark.full
def test_very_many_matrices(library: ctypes.CDLL) -> None:
    check(library, FEW, MATRICES)
