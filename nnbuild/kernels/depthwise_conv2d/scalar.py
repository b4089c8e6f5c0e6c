"""Depthwise convolution in portable C: all channels of one position, tap by tap for each channel."""

from __future__ import annotations

from nnbuild.isa import c99
from nnbuild.kernels.site import Demand, Names, Site, only_float
from nnbuild.kernels.window_loops import Axis, declare_taps, product, row_taps, total
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.writer import Writer

needs: frozenset[str] = frozenset()
accepts = only_float


def _axes(site: Site) -> tuple[Axis, Axis]:
    attributes = site.op.attributes
    assert isinstance(attributes, DepthwiseConv2D)
    kernel, inputs, outputs = site.constant("kernel").shape, site.shape(), site.output_shape()
    rows, columns = (
        Axis(inputs[i], outputs[i], kernel[i], attributes.strides[i], attributes.dilation[i], attributes.padding[i][0])
        for i in (0, 1)
    )
    return rows, columns


def demand(site: Site) -> Demand:
    kernel = site.constant("kernel")
    kh, kw, channels, multiplier = kernel.shape
    packed = {"kernel": kernel.reshape(kh * kw * channels * multiplier)}
    if "bias" in site.constants:
        packed["bias"] = site.constant("bias")
    return Demand(extent=site.output_shape()[0], packed=packed)


def emit(w: Writer, site: Site, names: Names) -> None:
    rows, columns = _axes(site)
    channels, filters = site.shape()[2], site.output_shape()[2]
    with w.loop("y", "end", start="begin", trips=rows.places):
        w(f"const int32_t top = {rows.position('y')};")
        if not rows.always_inside:
            declare_taps(w, rows, "top", "ky_begin", "ky_end")
        with w.loop("x", columns.places):
            w(f"const int32_t left = {columns.position('x')};")
            if not columns.always_inside:
                declare_taps(w, columns, "left", "kx_begin", "kx_end")
            w(f"float *to = {names.outputs[0]} + ({product('y', columns.places)} + x) * {filters};")
            _position(w, site, names, rows, columns, channels, filters)


def _position(w: Writer, site: Site, names: Names, rows: Axis, columns: Axis, channels: int, filters: int) -> None:
    attributes = site.op.attributes
    assert isinstance(attributes, DepthwiseConv2D)
    multiplier = filters // channels
    with w.loop("c", filters):
        source = "c" if multiplier == 1 else f"c / {multiplier}"
        w(w.use(c99.LOAD_MUTABLE, "sum", f"{names.packed['bias']}[c]" if "bias" in names.packed else "0.0f"))
        with row_taps(w, rows, "top"):
            line = product("ky", rows.dilation)
            start = f"{product(f'top + {line}', columns.size)} + left"
            w(f"const float *row = {names.inputs[0]} + {product(start, channels)} + {source};")
            w(f"const float *k = {names.packed['kernel']} + {total(product('ky', columns.kernel * filters), 'c')};")
            bounds = ("0", columns.kernel) if columns.always_inside else ("kx_begin", "kx_end")
            with w.loop("kx", bounds[1], start=bounds[0], trips=columns.kernel):
                x = f"row[{product('kx', columns.dilation * channels)}]"
                w(w.use(c99.MULTIPLY_ADD, "sum", x, f"k[{product('kx', filters)}]"))
        c99.clamp(w, attributes.clamp, "sum")
        w(w.use(c99.STORE, "to[c]", "sum"))
