"""Maximum and average pooling in portable C, in floats and in integers of one scale."""

from __future__ import annotations

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names, Overlap
from nnbuild.kernels.overlaps import IN_PLACE, rows
from nnbuild.kernels.window import Axis
from nnbuild.kernels.window_loops import declare_taps, product, row_taps
from nnbuild.ops.integer import bounds
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = c99.any_format


def axes(site: Site[Pool2D]) -> tuple[Axis, Axis]:
    pool, inputs, outputs = site.attributes, site.shape(), site.output_shape()
    rows, columns = (
        Axis(inputs[i], outputs[i], pool.window[i], pool.strides[i], 1, pool.padding[i][0]) for i in (0, 1)
    )
    return rows, columns


def demand(site: Site[Pool2D]) -> Demand:
    return Demand(extent=site.output_shape()[0], overlaps=overlaps(site), rows=True)


def overlaps(site: Site[Pool2D]) -> tuple[Overlap, ...]:
    """Windows that neither overlap nor reach before their place leave nothing unread behind the output."""
    pool = site.attributes
    apart = all(s >= k for s, k in zip(pool.strides, pool.window, strict=True))
    unpadded = all(pad == (0, 0) for pad in pool.padding)
    return IN_PLACE if apart and unpadded else rows(site, axes(site)[0])


def emit(w: Writer, site: Site[Pool2D], names: Names) -> None:
    rows, columns = axes(site)
    channels = site.shape()[2]
    with w.loop("y", "end", start="begin", trips=rows.places):
        w(f"const int32_t top = {rows.position('y')};")
        if not rows.always_inside:
            declare_taps(w, rows, "top", "ky_begin", "ky_end")
        with w.loop("x", columns.places):
            w(f"const int32_t left = {columns.position('x')};")
            if not columns.always_inside:
                declare_taps(w, columns, "left", "kx_begin", "kx_end")
            place = f"({product('y', columns.places)} + x) * {channels}"
            w(f"{C_TYPES[site.outputs[0].dtype]} *to = {names.outputs[0]} + {place};")
            with w.loop("c", channels):
                _channel(w, site, names, rows, columns)


def _channel(w: Writer, site: Site[Pool2D], names: Names, rows: Axis, columns: Axis) -> None:
    pool, kind, channels = site.attributes, C_TYPES[site.inputs[0].dtype], site.shape()[2]
    is_float, is_max = kind == "float", pool.function == "max"
    first_row = "top" if rows.always_inside else "top + ky_begin"
    first_column = "left" if columns.always_inside else "left + kx_begin"
    first = f"{names.inputs[0]}[({product(first_row, columns.size)} + {first_column}) * {channels} + c]"
    zero = "0.0f" if is_float else "0"
    w(w.use(c99.LOAD_AS, "float" if is_float else "int32_t", "result", first if is_max else zero))
    with row_taps(w, rows):
        start = f"{product('top + ky', columns.size)} + left"
        w(f"const {kind} *row = {names.inputs[0]} + {product(start, channels)} + c;")
        bounds_x = ("0", columns.kernel) if columns.always_inside else ("kx_begin", "kx_end")
        with w.loop("kx", bounds_x[1], start=bounds_x[0], trips=columns.kernel):
            w(w.use(c99.LARGER if is_max else c99.ADD, "result", f"row[{product('kx', channels)}]"))
    if not is_max:
        _divide(w, rows, columns, is_float)
    if is_float:
        c99.clamp(w, pool.clamp, "result")
    else:
        c99.bound(w, bounds(pool.clamp, site.outputs[0]), "result")
    w(w.use(c99.STORE, "to[c]", "result" if is_float else f"({kind})result"))


def _divide(w: Writer, rows: Axis, columns: Axis, is_float: bool) -> None:
    """By the number of inputs really in the window; integers to nearest, halves away from zero."""
    height = str(rows.kernel) if rows.always_inside else "(ky_end - ky_begin)"
    width = str(columns.kernel) if columns.always_inside else "(kx_end - kx_begin)"
    w.bill(14)
    if is_float:
        w(f"result /= (float)({height} * {width});")
    else:
        w(f"const int32_t count = {height} * {width};")
        w("result = (result > 0 ? result + count / 2 : result - count / 2) / count;")
