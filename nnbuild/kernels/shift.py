"""A window of rows that advances in place or into another buffer; a work item is an index of the axes before.

It writes before the place that it reads, so an ascending copy loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import THUMB
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, any_format
from nnbuild.ops.base import around
from nnbuild.ops.shift import Shift
from nnbuild.ops.site import Site

WORD = c99.LOAD.cycles + c99.STORE.cycles
FOUR, LOOP_CYCLES = 16, 4
"""Bytes per iteration of the routine that moves four words, and its cycles."""


def _demand(site: Site[Shift]) -> Demand:
    return Demand(extent=_sizes(site)[0])


def _emit(w: Writer, site: Site[Shift], names: Names) -> None:
    """Within one array, so that compilers use memmove, which libraries do by words."""
    (out,), (pieces, whole, fresh) = names.outputs, _sizes(site)
    _to_other_buffer(w, site, names)
    for source, start, count in ((out, fresh * site.attributes.turns, whole - fresh), (names.inputs[1], 0, fresh)):
        if not count:
            continue
        with _unless_in_front(w, site, names, start > 0), w.loop("row", "end", start="begin", trips=pieces):
            shift = whole - fresh if start == 0 else 0
            w.bill(WORD * count * np.dtype(site.outputs[0].dtype).itemsize / 4)
            with w.loop("i", count), w.trips(0):
                at = f"row * {whole} + {shift} + i"
                taken = f"row * ({fresh if start == 0 else whole}) + {start} + i"
                w(w.use(c99.STORE, f"{out}[{at}]", f"{source}[{taken}]"))


def _sizes(site: Site[Shift]) -> tuple[int, int, int]:
    """Work items, elements of each, and the number of new elements."""
    before, size, after = around(site.output_shape(), site.attributes.axis)
    return before, size * after, site.shape(1)[site.attributes.axis] * after


@contextmanager
def _unless_in_front(w: Writer, site: Site[Shift], names: Names, moving: bool) -> Iterator[None]:
    """Prints the body, which moves the rows, unless they lie in front of the new rows' place already."""
    turns, (_, _, fresh) = site.attributes.turns, _sizes(site)
    if not moving or turns == 1:
        yield
        return
    with w.block(f"if ({names.outputs[0]} != {names.inputs[0]} + {fresh})"), w.trips(1 / turns):
        yield


def _to_other_buffer(w: Writer, site: Site[Shift], names: Names) -> None:
    """Prints the copy of the rows to another buffer."""
    (rows, _), (out,), (_, whole, _) = names.inputs, names.outputs, _sizes(site)
    if site.attributes.turns > 1:
        return
    with w.block(f"if ({out} != {rows})"), w.trips(0), w.loop("i", f"end * {whole}", start=f"begin * {whole}", trips=1):
        w(w.use(c99.STORE, f"{out}[i]", f"{rows}[i]"))


def _by_fours(w: Writer, site: Site[Shift], names: Names) -> None:
    """By a routine that moves four words at a time."""
    (out,), (pieces, whole, fresh), size = names.outputs, _sizes(site), np.dtype(site.outputs[0].dtype).itemsize
    from_ = str(fresh * site.attributes.turns)
    _to_other_buffer(w, site, names)
    with w.loop("row", "end", start="begin", trips=pieces):
        parts = (
            (f"row * {whole} + 0", f"{out} + row * {whole} + {from_}", whole - fresh),
            (f"row * {whole} + {whole - fresh}", f"{names.inputs[1]} + row * {fresh}", fresh),
        )
        for index, (at, source, count) in enumerate(parts):
            if not count:
                continue
            with _unless_in_front(w, site, names, index == 0):
                w.bill(LOOP_CYCLES * count * size / FOUR)
                to, taken = f"{out} + {at}", source
                if size > 1:
                    to, taken = f"(int8_t *)({to})", f"(const int8_t *)({taken})"
                w(f"{THUMB.call(w, 'move_down', to, taken, str(count * size))};")


VARIANTS = (
    Kernel("scalar", PORTABLE, any_format, _demand, _emit),
    Kernel("by_fours", frozenset({"armv7m"}), any_format, _demand, _by_fours),
    Kernel("by_fours_short", frozenset({"armv6m"}), any_format, _demand, _by_fours),
)
