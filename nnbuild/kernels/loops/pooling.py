"""What every kernel of maximum and average pooling shares: the loops over windows, and an integer average."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names, Overlap
from nnbuild.kernels.loops.window import Window, window_of
from nnbuild.kernels.loops.window_loops import column_taps, each_position, each_row, row_taps, taps_count
from nnbuild.kernels.parts.overlaps import IN_PLACE, rows
from nnbuild.model.graph import Array
from nnbuild.numeric.mean import (
    FEW_WORDS,
    MEAN_BITS,
    MEAN_HALF,
    MEAN_LIFT,
    MOST_WORDS,
    RUN_BITS,
    WORD_LIFT,
    factor_above,
    mean_factor,
    word_factor,
)
from nnbuild.numeric.rounding import limits
from nnbuild.ops.integer import bounds
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site


def demand(site: Site[Pool2D]) -> Demand:
    return Demand(extent=site.output_shape()[0], packed=factors(site), overlaps=overlaps(site), rows=True)


def overlaps(site: Site[Pool2D]) -> tuple[Overlap, ...]:
    """Windows that neither overlap nor reach before their output leave no unread input behind the output."""
    pool = site.attributes
    apart = all(s >= k for s, k in zip(pool.strides, pool.window, strict=True))
    unpadded = all(pad == (0, 0) for pad in pool.padding)
    return IN_PLACE if apart and unpadded else rows(site, window_of(site).rows)


def takes_maximum(site: Site[Pool2D]) -> bool:
    return site.attributes.function == "max"


@contextmanager
def windows(w: Writer, site: Site[Pool2D], rows: tuple[str, str] = ("begin", "end")) -> Iterator[str]:
    """The loops over the outputs, with the real part of the window at (top, left); yields the output's offset."""
    window = window_of(site)
    with each_row(w, window.rows, bounds=rows), each_position(w, window.columns):
        yield f"(y * {window.columns.places} + x) * {window.channels}"


UNROLLED = 16
"""Inputs of a window up to which they are unrolled."""


def forms(w: Writer, window: Window) -> Iterator[bool]:
    """Yields True for code that unrolls a window inside the input, and False for loops over its real inputs."""
    axes = {"ky": window.rows, "kx": window.columns}
    inside = prod(len(axis.inside) / axis.places for axis in axes.values())
    if prod(axis.kernel for axis in axes.values()) > UNROLLED or inside == 0:
        yield False
        return
    if window.inside:
        yield True
        return
    whole = [f"{taps_count(axis, tap)} == {axis.kernel}" for tap, axis in axes.items() if not axis.always_inside]
    with w.block(f"if ({' && '.join(whole)})"), w.trips(inside):
        yield True
    with w.block("else"), w.trips(1 - inside):
        yield False


def taps(w: Writer, site: Site[Pool2D], names: Names, c: str, unrolled: bool) -> Iterator[str]:
    """The place of every input of a window, from channel `c` on, in code that is printed for each."""
    window = window_of(site)
    if not unrolled:
        with row_taps(w, window.rows):
            point(w, site, names, c)
            with column_taps(w, window.columns):
                yield f"row + kx * {window.channels}"
        return
    start = f"(top * {window.columns.size} + left) * {window.channels}"
    w(f"const {C_TYPES[site.inputs[0].dtype]} *from = {names.inputs[0]} + {start} + {c};")
    for ky in range(window.rows.kernel):
        for kx in range(window.columns.kernel):
            yield f"from + {(ky * window.columns.size + kx) * window.channels}"


def point(w: Writer, site: Site[Pool2D], names: Names, c: str) -> None:
    """Declares the pointer to a row of the window, from channel `c` on."""
    kind, window = C_TYPES[site.inputs[0].dtype], window_of(site)
    place = f"((top + ky) * {window.columns.size} + left) * {window.channels}"
    w(f"const {kind} *row = {names.inputs[0]} + {place} + {c};")


def real_inputs(window: Window) -> str:
    return f"{taps_count(window.rows, 'ky')} * {taps_count(window.columns, 'kx')}"


def factors(site: Site[Pool2D]) -> dict[str, Array]:
    """What divides by each number of real inputs, where that differs and an average of integers only multiplies."""
    if not _divides_by_count(site) or not (multiplies(site) or _lifts(site)):
        return {}
    bits = MEAN_BITS if multiplies(site) else RUN_BITS
    counts = range(1, prod(site.attributes.window) + 1)
    return {"factors": np.array([0, *(factor_above(count, bits) for count in counts)], np.int32)}


def _divides_by_count(site: Site[Pool2D]) -> bool:
    return site.inputs[0].dtype != "float32" and not takes_maximum(site) and not window_of(site).inside


def declare_count(w: Writer, site: Site[Pool2D]) -> None:
    """Declares the divisor of an integer average at one position."""
    if _divides_by_count(site):
        w(f"const int32_t count = {real_inputs(window_of(site))};")


def declare_divisor(w: Writer, site: Site[Pool2D], names: Names) -> None:
    """Declares what `average` divides by at one position."""
    declare_count(w, site)
    if "factors" in names.packed:
        w(w.use(c99.READ, "factor", f"{names.packed['factors']}[count]"))
        if not multiplies(site):
            w(f"const int32_t lift = {WORD_LIFT} * count + count / 2, halves = count % 2 - 1;")


def average(w: Writer, site: Site[Pool2D], total: str, inside: bool) -> str:
    """The average of a window whose inputs sum to the variable `total`, without a branch."""
    size, upward = prod(site.attributes.window), site.attributes.upward
    if multiplies(site):
        w.bill(5)
        scaled = f"{total} * {mean_factor(size, upward) if inside else 'factor'}"
        return f"({scaled} + {addend(site, inside) if upward else f'{MEAN_HALF} + ({total} >> 31)'}) >> {MEAN_BITS}"
    if _lifts(site):
        if inside:
            return _of_words(w, total, size)
        return _lifted(w, f"{total} + ({total} >> 31 & halves) + lift", "(uint32_t)factor", RUN_BITS)
    w.bill(14)
    count, half = (str(size), str(size // 2)) if inside else ("count", "count / 2")
    if upward:
        lift = str(MEAN_LIFT * size + size // 2) if inside else f"{MEAN_LIFT} * count + count / 2"
        return f"({total} + {lift}) / {count} - {MEAN_LIFT}"
    return f"({total} > 0 ? {total} + {half} : {total} - {half}) / {count}"


def addend(site: Site[Pool2D], inside: bool) -> str:
    """What rounds a product upward."""
    return str(MEAN_HALF + MEAN_LIFT * prod(site.attributes.window)) if inside else f"{MEAN_HALF} + {MEAN_LIFT} * count"


def _of_words(w: Writer, total: str, size: int) -> str:
    """Only an even number of words has an average halfway between two numbers."""
    factor, shift = word_factor(size)
    below = f" + ({total} >> 31)" if size % 2 == 0 else ""
    if size == 1 << shift:
        w.bill(3)
        return f"({total}{below} + {size // 2}) >> {shift}" if size > 1 else total
    return _lifted(w, f"{total}{below} + {WORD_LIFT * size + size // 2}", f"{factor}U", shift + 30)


def _lifted(w: Writer, sum: str, factor: str, bits: int) -> str:
    w.bill(6, products=1, wides=1)
    return f"(int32_t)((uint64_t)(uint32_t)({sum}) * {factor} >> {bits}) - {WORD_LIFT}"


def _lifts(site: Site[Pool2D]) -> bool:
    """Whether sums of words are divided by one multiplication, lifted to at least 0."""
    most = MOST_WORDS if window_of(site).inside else FEW_WORDS
    return site.inputs[0].dtype == "int16" and prod(site.attributes.window) <= most


def multiplies(site: Site[Pool2D]) -> bool:
    """Whether sums of bytes are divided by one multiplication, for any number of real inputs."""
    if site.inputs[0].dtype != "int8":
        return False
    upward = site.attributes.upward
    if window_of(site).inside:
        return mean_factor(prod(site.attributes.window), upward) is not None
    real = [range(1, size + 1) for size in site.attributes.window]
    counts = {a * b for a in real[0] for b in real[1]}
    return all(mean_factor(count, upward) == factor_above(count, MEAN_BITS) for count in counts)


def finish_average(w: Writer, site: Site[Pool2D], result: str, target: str, inside: bool) -> None:
    """Stores the average of a sum of integers."""
    kind = C_TYPES[site.outputs[0].dtype]
    if (value := average(w, site, result, inside)) != result:
        w(f"{result} = {value};")
    if (held := bounds(site.attributes.clamp, site.outputs[0])) != limits(site.outputs[0].dtype):
        c99.bound(w, held, result)
    w(w.use(c99.STORE, target, f"({kind}){result}"))
