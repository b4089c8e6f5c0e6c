"""Maximum and average pooling in portable C."""

from __future__ import annotations

from nnbuild.isa import c99
from nnbuild.kernels.site import Demand, Names, Site, only_float
from nnbuild.kernels.window_loops import Axis, declare_taps, product, row_taps
from nnbuild.ops.pool2d import Pool2D
from nnbuild.writer import Row, Writer

needs: frozenset[str] = frozenset()
accepts = only_float

LARGER = Row("if ({1} > {0}) {0} = {1};", 3)
ADD = Row("{0} += {1};", 3)


def _pool(site: Site) -> Pool2D:
    attributes = site.op.attributes
    assert isinstance(attributes, Pool2D)
    return attributes


def _axes(site: Site) -> tuple[Axis, Axis]:
    pool, inputs, outputs = _pool(site), site.shape(), site.output_shape()
    rows, columns = (
        Axis(inputs[i], outputs[i], pool.window[i], pool.strides[i], 1, pool.padding[i][0]) for i in (0, 1)
    )
    return rows, columns


def demand(site: Site) -> Demand:
    """Windows that neither overlap nor reach before their place leave nothing unread behind the output."""
    pool = _pool(site)
    apart = all(s >= k for s, k in zip(pool.strides, pool.window, strict=True))
    unpadded = all(pad == (0, 0) for pad in pool.padding)
    return Demand(extent=site.output_shape()[0], in_place=((0, 0),) if apart and unpadded else ())


def emit(w: Writer, site: Site, names: Names) -> None:
    rows, columns = _axes(site)
    channels = site.shape()[2]
    with w.loop("y", "end", start="begin", trips=rows.places):
        w(f"const int32_t top = {rows.position('y')};")
        if not rows.always_inside:
            declare_taps(w, rows, "top", "ky_begin", "ky_end")
        with w.loop("x", columns.places):
            w(f"const int32_t left = {columns.position('x')};")
            if not columns.always_inside:
                declare_taps(w, columns, "left", "kx_begin", "kx_end")
            w(f"float *to = {names.outputs[0]} + ({product('y', columns.places)} + x) * {channels};")
            with w.loop("c", channels):
                _channel(w, site, names, rows, columns, channels)


def _channel(w: Writer, site: Site, names: Names, rows: Axis, columns: Axis, channels: int) -> None:
    pool = _pool(site)
    first_row = "top" if rows.always_inside else "top + ky_begin"
    first_column = "left" if columns.always_inside else "left + kx_begin"
    first = f"{names.inputs[0]}[({product(first_row, columns.size)} + {first_column}) * {channels} + c]"
    w(w.use(c99.LOAD_MUTABLE, "result", first if pool.function == "max" else "0.0f"))
    with row_taps(w, rows, "top"):
        start = f"{product('top + ky', columns.size)} + left"
        w(f"const float *row = {names.inputs[0]} + {product(start, channels)} + c;")
        bounds = ("0", columns.kernel) if columns.always_inside else ("kx_begin", "kx_end")
        with w.loop("kx", bounds[1], start=bounds[0], trips=columns.kernel):
            value = f"row[{product('kx', channels)}]"
            w(w.use(LARGER if pool.function == "max" else ADD, "result", value))
    if pool.function == "average":
        height = str(rows.kernel) if rows.always_inside else "(ky_end - ky_begin)"
        width = str(columns.kernel) if columns.always_inside else "(kx_end - kx_begin)"
        w(f"result /= (float)({height} * {width});")
        w.bill(14)
    c99.clamp(w, pool.clamp, "result")
    w(w.use(c99.STORE, "to[c]", "result"))
