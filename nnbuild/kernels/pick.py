"""Elements at known indices along each axis; the indices of an axis are a table. What follows the last such axis is
copied as a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import prod

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import THUMB
from nnbuild.isa.riscv import WORDS
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import (
    PORTABLE,
    Demand,
    Kernel,
    Names,
    any_format,
    kernel_of,
    on_each,
    only_float,
    only_integer,
)
from nnbuild.kernels.loops.byte_moves import SHORTEST, move
from nnbuild.kernels.loops.strided import contiguous, item_bytes
from nnbuild.kernels.loops.word_moves import FOUR, WORD, moved_by_words
from nnbuild.model.graph import Array
from nnbuild.ops.pick import Pick
from nnbuild.ops.site import Site

ADDRESSES = 1
"""Cycles of the addresses of a vector."""


def _demand(site: Site[Pick]) -> Demand:
    own = contiguous(site.shape())
    packed: dict[str, Array] = {
        f"axis{axis}": (np.asarray(places) * own[axis]).astype(np.int32)
        for axis, places in enumerate(site.attributes.places)
        if places is not None
    }
    return Demand(extent=site.output_shape()[0], packed=packed)


def _picked(site: Site[Pick]) -> int:
    """The axes up to the last one with indices."""
    return max([axis + 1 for axis, places in enumerate(site.attributes.places) if places is not None], default=1)


def _run(site: Site[Pick]) -> int:
    return prod(site.output_shape()[_picked(site) :])


@contextmanager
def _runs(w: Writer, site: Site[Pick], names: Names) -> Iterator[None]:
    """A run is copied from `from` to `to`."""
    own, out, kind = contiguous(site.shape()), contiguous(site.output_shape()), C_TYPES[site.inputs[0].dtype]
    source, target = [names.inputs[0]], [names.outputs[0]]
    with ExitStack() as nested:
        for axis, size in enumerate(site.output_shape()[: _picked(site)]):
            loop = w.loop(f"i{axis}", size) if axis else w.loop("i0", "end", start="begin", trips=size)
            nested.enter_context(loop)
            table = names.packed.get(f"axis{axis}")
            source.append(f"{table}[i{axis}]" if table else f"i{axis} * {own[axis]}")
            target.append(f"i{axis} * {out[axis]}")
            w.bill(c99.LOAD.cycles if table else 0)
        w(f"const {kind} *from = {' + '.join(source)};")
        w(f"{kind} *to = {' + '.join(target)};")
        yield


def _emit(w: Writer, site: Site[Pick], names: Names) -> None:
    with _runs(w, site, names), w.loop("i", _run(site)):
        w.bill(c99.LOAD.cycles)
        w(w.use(c99.STORE, "to[i]", "from[i]"))


@dataclass(frozen=True)
class _Floats:
    v: Vectors

    def accepts(self, site: Site[Pick]) -> str | None:
        return only_float(site) or ("its runs are single elements" if _run(site) == 1 else None)

    def demand(self, site: Site[Pick]) -> Demand:
        return _demand(site)

    def emit(self, w: Writer, site: Site[Pick], names: Names) -> None:
        with _runs(w, site, names):
            for place, count in in_vectors(w, self.v.lanes, _run(site), "i"):
                w.bill(ADDRESSES)
                self.v.store(w, f"to + {place}", self.v.load(w, f"from + {place}", count), count)


@dataclass(frozen=True)
class _Bytes:
    """Integers of any size, as bytes."""

    v: Vectors

    def accepts(self, site: Site[Pick]) -> str | None:
        run = _run(site) * item_bytes(site)
        return only_integer(site) or (f"its runs of {run} bytes are short" if run < SHORTEST else None)

    def demand(self, site: Site[Pick]) -> Demand:
        return _demand(site)

    def emit(self, w: Writer, site: Site[Pick], names: Names) -> None:
        with _runs(w, site, names):
            to, source = _as_bytes(w, site)
            for place, count in in_vectors(w, 4 * self.v.lanes, _run(site) * item_bytes(site), "i"):
                w.bill(ADDRESSES)
                move(w, self.v, f"{to} + {place}", f"{source} + {place}", count)


@dataclass(frozen=True)
class _Words:
    """By words, on cores without vectors. `together`: an instruction moves four of them."""

    v: Vectors
    together: bool = False

    def accepts(self, site: Site[Pick]) -> str | None:
        run = _run(site) * item_bytes(site)
        if run % WORD:
            return "its runs do not begin at whole words"
        return any_format(site) or (f"its runs of {run} bytes are short" if run < FOUR else None)

    def demand(self, site: Site[Pick]) -> Demand:
        return _demand(site)

    def emit(self, w: Writer, site: Site[Pick], names: Names) -> None:
        run = _run(site) * item_bytes(site)
        with _runs(w, site, names):
            to, source = _as_bytes(w, site)
            moved_by_words(w, self.v, to, source, str(run), run, together=self.together)


def _as_bytes(w: Writer, site: Site[Pick]) -> tuple[str, str]:
    """The pointers `to` and `from`, to bytes."""
    if site.inputs[0].dtype == "int8":
        return "to", "from"
    w("int8_t *into = (int8_t *)to;")
    w("const int8_t *origin = (const int8_t *)from;")
    return "into", "origin"


VARIANTS = (
    Kernel("scalar", PORTABLE, any_format, _demand, _emit),
    on_each("float", _Floats),
    on_each("bytes", _Bytes),
    kernel_of("by_fours", frozenset({"armv7m"}), _Words(THUMB, together=True)),
    kernel_of("by_fours_short", frozenset({"armv6m"}), _Words(THUMB, together=True)),
    kernel_of("by_words", frozenset({"rv32im"}), _Words(WORDS)),
)
