"""Depthwise convolution in portable C: all channels of one position, tap by tap for each channel."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot
from nnbuild.kernels.overlaps import rows
from nnbuild.kernels.window_loops import Axis, declare_taps, product, row_taps, total
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = c99.any_format


def _axes(site: Site[DepthwiseConv2D]) -> tuple[Axis, Axis]:
    attributes = site.attributes
    kernel, inputs, outputs = site.constant("kernel").shape, site.shape(), site.output_shape()
    rows, columns = (
        Axis(inputs[i], outputs[i], kernel[i], attributes.strides[i], attributes.dilation[i], attributes.padding[i][0])
        for i in (0, 1)
    )
    return rows, columns


def _lanes(site: Site[DepthwiseConv2D]) -> c99.ScalarLanes:
    attributes = site.attributes
    return c99.lanes_for(site, attributes.clamp)


def demand(site: Site[DepthwiseConv2D]) -> Demand:
    packed = {"kernel": site.constant("kernel").reshape(-1), **_lanes(site).channels}
    return Demand(extent=site.output_shape()[0], packed=packed, overlaps=rows(site, _axes(site)[0]), rows=True)


def emit(w: Writer, site: Site[DepthwiseConv2D], names: Names) -> None:
    rows, columns = _axes(site)
    filters, lanes = site.output_shape()[2], _lanes(site)
    dot.declare_channels(w, lanes, names.packed)
    with w.loop("y", "end", start="begin", trips=rows.places):
        w(f"const int32_t top = {rows.position('y')};")
        if not rows.always_inside:
            declare_taps(w, rows, "top", "ky_begin", "ky_end")
        with w.loop("x", columns.places):
            w(f"const int32_t left = {columns.position('x')};")
            if not columns.always_inside:
                declare_taps(w, columns, "left", "kx_begin", "kx_end")
            w(f"{lanes.output_type} *to = {names.outputs[0]} + ({product('y', columns.places)} + x) * {filters};")
            _position(w, site, names, rows, columns, lanes)


def _position(
    w: Writer, site: Site[DepthwiseConv2D], names: Names, rows: Axis, columns: Axis, lanes: c99.ScalarLanes
) -> None:
    channels, filters = site.shape()[2], site.output_shape()[2]
    multiplier = filters // channels
    with w.loop("c", filters):
        source = "c" if multiplier == 1 else f"c / {multiplier}"
        lanes.start(w, "sum", "c")
        with row_taps(w, rows, "top"):
            line = product("ky", rows.dilation)
            start = f"{product(f'top + {line}', columns.size)} + left"
            w(f"const {lanes.input_type} *row = {names.inputs[0]} + {product(start, channels)} + {source};")
            taps = total(product("ky", columns.kernel * filters), "c")
            w(f"const {lanes.weight_type} *k = {names.packed['kernel']} + {taps};")
            bounds = ("0", columns.kernel) if columns.always_inside else ("kx_begin", "kx_end")
            with w.loop("kx", bounds[1], start=bounds[0], trips=columns.kernel):
                lanes.inputs(w, "x0", f"row + {product('kx', columns.dilation * channels)}")
                lanes.weights(w, "w0", f"k + {product('kx', filters)}")
                lanes.multiply(w, "sum", "x0", "w0")
        lanes.store(w, "sum", "to + c", "c", 1)
