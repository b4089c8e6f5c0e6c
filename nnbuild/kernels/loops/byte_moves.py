"""Bytes in vectors: copies of runs of integers, and runs of one value."""

from __future__ import annotations

from collections.abc import Iterator

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors

SHORTEST = 8
"""Bytes of a run for which vectors pay."""


def move(w: Writer, v: Vectors, to: str, source: str, count: int) -> None:
    """Copies `count` bytes, a vector's at most, in their order."""
    for place, size in _pieces(v, count):
        target, origin = (f"{pointer} + {place}" for pointer in (to, source))
        if size > 1:
            _store(w, v, target, v.call(w, "b_load", origin, of=(size,)), size)
        else:
            w.bill(c99.LOAD.cycles)
            w(w.use(c99.STORE, c99.at(target), c99.at(origin)))


def fill(w: Writer, v: Vectors, to: str, value: str, count: int) -> None:
    """Stores one value in `count` bytes, a vector's at most."""
    for place, size in _pieces(v, count):
        target = f"{to} + {place}"
        if size > 1:
            _store(w, v, target, v.call(w, "b_each", value), size)
        else:
            w(w.use(c99.STORE, c99.at(target), value))


def _store(w: Writer, v: Vectors, target: str, value: str, size: int) -> None:
    w(f"{v.call(w, 'b_store', target, value, of=(size,))};")


def _pieces(v: Vectors, count: int) -> Iterator[tuple[int, int]]:
    """(offset, size): of sizes that the set loads at once, the rest byte by byte."""
    if v.price("b_load", count) <= v.price("b_load", SHORTEST):
        yield 0, count
        return
    done, size = 0, 4 * v.lanes
    while size >= SHORTEST:
        if count - done >= size:
            yield done, size
            done += size
        size //= 2
    yield from ((place, 1) for place in range(done, count))
