"""Bytes that become bytes one by one: a table of 256 results, looked up singly or in vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import PORTABLE, Demand, Functions, K, Kernel, Names, OnEach, on_each, only_int8
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import Ints
from nnbuild.ops.site import Site

FEWEST, MOST = 8, 16
"""Elements per iteration of the loop."""
LOOKUP = Row("{0} = {1}[(uint8_t){2}];", 3)
COPY = Row("{0} = {1};", 2)
Entries = Callable[[Site[K]], Ints]
"""The results of -128 … 127."""


def table(entries: Array) -> Array:
    """The results of -128 … 127 along the first axis, ordered by these numbers' unsigned values."""
    return np.roll(entries, len(entries) // 2, axis=0)


def lookups(w: Writer, name: str | None, pointers: tuple[str, str, str], count: int, step: int = 1) -> None:
    """Maps elements `step` bytes apart, one at a time; `pointers` are variables: from, to, number of elements left.

    Changes all three; `count` is the usual number. Without a table the bytes are only copied.
    """
    source, target, left = pointers

    def element(to: str, value: str) -> None:
        w(w.use(LOOKUP, to, name, value) if name else w.use(COPY, to, value))

    together = min(range(MOST, FEWEST - 1, -1), key=lambda each: count // each + count % each)
    with w.block(f"for (; {left} >= {together}; {left} -= {together})"), w.trips(count // together):
        w.bill(4)
        for i in range(together):
            element(f"{target}[{i * step}]", f"{source}[{i * step}]")
        for pointer in (source, target):
            w(f"{pointer} += {together * step};")
    with w.block(f"for (; {left} > 0; --{left})"), w.trips(count % together):
        w.bill(4)
        element(f"*{target}", f"*{source}")
        for pointer in (source, target):
            w(f"{pointer} += {step};")


def look_up(w: Writer, v: Vectors, name: str | None, pointers: tuple[str, str, str], count: int) -> None:
    """The same in vectors, for neighbouring elements; `pointers` may be expressions."""
    source, target, left = pointers
    w.bill(v.price("look_up") * count / 16 if name else v.moving(count) if v.in_order else count / 8)
    if name:
        w(f"{v.call(w, 'look_up', target, source, name, left)};")
    else:
        w(f"{v.call(w, 'lift', target, source, left, of=(0,))};")


def demand(site: Site[K], entries: Ints) -> Demand:
    packed = {"table": table(entries).astype(np.int8)}
    return Demand(extent=prod(site.shape()), packed=packed, overlaps=IN_PLACE, rows=True)


def emit(w: Writer, site: Site[K], names: Names) -> None:
    """One after the other."""
    w(f"const int8_t *from = {names.inputs[0]} + begin;")
    w(f"int8_t *to = {names.outputs[0]} + begin;")
    w("int32_t left = end - begin;")
    lookups(w, names.packed["table"], ("from", "to", "left"), prod(site.shape()))


def portable(entries: Entries[K], name: str = "table") -> Kernel[K]:
    return Kernel(name, PORTABLE, only_int8, lambda site: demand(site, entries(site)), emit)


def _emit_vectors(v: Vectors, w: Writer, site: Site[K], names: Names) -> None:
    pointers = (f"{names.inputs[0]} + begin", f"{names.outputs[0]} + begin", "end - begin")
    look_up(w, v, names.packed["table"], pointers, prod(site.shape()))


def in_vectors(entries: Entries[K], refusal: Callable[[Site[K]], str | None] = only_int8) -> OnEach[K]:
    def body(v: Vectors) -> Functions[K]:
        return Functions(refusal, lambda site: demand(site, entries(site)), partial(_emit_vectors, v))

    return on_each("tables", body)
