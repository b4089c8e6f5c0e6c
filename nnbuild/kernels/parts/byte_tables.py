"""Bytes that become bytes one by one: a table of 256 results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import PORTABLE, Demand, Functions, K, Kernel, Names, OnEach, on_each, only_int8
from nnbuild.kernels.loops import lookup
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.numeric.rounding import Ints
from nnbuild.ops.site import Site

Entries = Callable[[Site[K]], Ints]
"""The results of -128 … 127."""


def demand(site: Site[K], entries: Ints) -> Demand:
    packed = {"table": lookup.table(entries).astype(np.int8)}
    return Demand(extent=prod(site.shape()), packed=packed, overlaps=IN_PLACE, rows=True)


def emit(w: Writer, site: Site[K], names: Names) -> None:
    """One after the other."""
    w(f"const int8_t *from = {names.inputs[0]} + begin;")
    w(f"int8_t *to = {names.outputs[0]} + begin;")
    w("int32_t left = end - begin;")
    lookup.lookups(w, names.packed["table"], ("from", "to", "left"), prod(site.shape()))


def portable(entries: Entries[K], name: str = "table") -> Kernel[K]:
    return Kernel(name, PORTABLE, only_int8, lambda site: demand(site, entries(site)), emit)


def _emit_vectors(v: Vectors, w: Writer, site: Site[K], names: Names) -> None:
    pointers = (f"{names.inputs[0]} + begin", f"{names.outputs[0]} + begin", "end - begin")
    lookup.look_up(w, v, names.packed["table"], pointers, prod(site.shape()))


def in_vectors(entries: Entries[K], refusal: Callable[[Site[K]], str | None] = only_int8) -> OnEach[K]:
    def body(v: Vectors) -> Functions[K]:
        return Functions(refusal, lambda site: demand(site, entries(site)), partial(_emit_vectors, v))

    return on_each("tables", body)
