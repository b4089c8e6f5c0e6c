"""Maximum and average pooling in vectors of channels, a few at a time."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa.vector_functions import SPECIAL
from nnbuild.isa.vector_sets import SETS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Names, Variant, only_float
from nnbuild.kernels.loops.dot import offset
from nnbuild.kernels.pool2d import scalar
from nnbuild.kernels.window import Axis
from nnbuild.kernels.window_loops import declare_taps, product, row_taps, total
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site

TOGETHER = 4
"""Vectors of channels that go through a window together, so that none waits for the one before it."""


def _variant(floats: Vectors) -> Variant:
    def emit(w: Writer, site: Site[Pool2D], names: Names) -> None:
        rows, columns = scalar.axes(site)
        channels = site.shape()[2]
        width = floats.lanes * TOGETHER
        with w.loop("y", "end", start="begin", trips=rows.places):
            w(f"const int32_t top = {rows.position('y')};")
            if not rows.always_inside:
                declare_taps(w, rows, "top", "ky_begin", "ky_end")
            with w.loop("x", columns.places):
                w(f"const int32_t left = {columns.position('x')};")
                if not columns.always_inside:
                    declare_taps(w, columns, "left", "kx_begin", "kx_end")
                place = f"({product('y', columns.places)} + x) * {channels}"
                whole = channels // width * width
                if whole:
                    with w.loop("c", whole, step=width):
                        _channels(w, site, names, floats, ("c", place), width)
                if whole < channels:
                    with w.block(""):
                        _channels(w, site, names, floats, (str(whole), place), channels - whole)

    return Variant(floats.name, frozenset({floats.name}), only_float, _demand, emit)


def _demand(site: Site[Pool2D]) -> Demand:
    return scalar.demand(site)


def _channels(w: Writer, site: Site[Pool2D], names: Names, floats: Vectors, at: tuple[str, str], count: int) -> None:
    """`count` channels, from the first one on, of the output at a place."""
    pool, (rows, columns), channels = site.attributes, scalar.axes(site), site.shape()[2]
    assert isinstance(pool, Pool2D)
    channel, place = at
    parts = [(i, min(floats.lanes, count - i)) for i in range(0, count, floats.lanes)]
    for i, _ in parts:
        floats.declare(w, f"result{i}", _beginning(w, floats, pool.function))
    with row_taps(w, rows):
        start = f"{product('top + ky', columns.size)} + left"
        w(f"const float *row = {names.inputs[0]};")
        first = ("0", columns.kernel) if columns.always_inside else ("kx_begin", "kx_end")
        with w.loop("kx", first[1], start=first[0], trips=columns.kernel):
            w(f"const float *from = row + {total(product(f'{start} + kx', channels), channel)};")
            for i, lanes in parts:
                value = floats.load(w, offset("from", i), lanes)
                w(f"result{i} = {floats.use(w, 'max' if pool.function == 'max' else 'add', f'result{i}', value)};")
    w(f"float *to = {names.outputs[0]} + {total(place, channel)};")
    if pool.function == "average":
        floats.declare(w, "count", floats.each(w, f"(float)({_count(rows, columns)})"))
    for i, lanes in parts:
        if pool.function == "average":
            w(f"result{i} = {floats.use(w, 'div', f'result{i}', 'count')};")
        floats.bound(w, pool.clamp, f"result{i}")
        floats.store(w, offset("to", i), f"result{i}", lanes)


def _beginning(w: Writer, floats: Vectors, function: str) -> str:
    if function == "average":
        return floats.each(w, 0.0)
    return floats.call(w, "f_of_bits", floats.call(w, "each", SPECIAL["-infinity"]))


def _count(rows: Axis, columns: Axis) -> str:
    """How many inputs are really in the window."""
    height = str(rows.kernel) if rows.always_inside else "(ky_end - ky_begin)"
    width = str(columns.kernel) if columns.always_inside else "(kx_end - kx_begin)"
    return f"{height} * {width}"


VARIANTS = tuple(_variant(floats) for floats in SETS)
