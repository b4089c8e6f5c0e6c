"""Transposed convolution in portable C: every output gathers the inputs whose taps reach it."""

from __future__ import annotations

from nnbuild.isa import c99
from nnbuild.kernels.site import Demand, Names, Site, only_float
from nnbuild.kernels.window_loops import product
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.writer import Writer

needs: frozenset[str] = frozenset()
accepts = only_float


def demand(site: Site) -> Demand:
    packed = {"kernel": site.constant("kernel").reshape(-1)}
    if "bias" in site.constants:
        packed["bias"] = site.constant("bias")
    return Demand(extent=site.output_shape()[0], packed=packed)


def emit(w: Writer, site: Site, names: Names) -> None:
    attributes = site.op.attributes
    assert isinstance(attributes, Conv2DTranspose)
    kh, kw, filters, channels = site.constant("kernel").shape
    height, width, _ = site.shape()
    rows, columns, _ = site.output_shape()
    share = 1 / (attributes.strides[0] * attributes.strides[1])
    with w.loop("y", "end", start="begin", trips=rows), w.loop("x", columns):
        w(f"float *to = {names.outputs[0]} + ({product('y', columns)} + x) * {filters};")
        with w.loop("c", filters):
            bias = f"{names.packed['bias']}[c]" if "bias" in names.packed else "0.0f"
            w(w.use(c99.STORE, "to[c]", bias))
        with w.loop("ky", kh):
            _source(w, "row", "y", "ky", attributes.crop[0], attributes.dilation[0], attributes.strides[0], height)
            with w.loop("kx", kw):
                _source(
                    w, "column", "x", "kx", attributes.crop[1], attributes.dilation[1], attributes.strides[1], width
                )
                w(f"const float *from = {names.inputs[0]} + ({product('row', width)} + column) * {channels};")
                w(f"const float *k = {names.packed['kernel']} + ({product('ky', kw)} + kx) * {filters * channels};")
                with w.loop("c", filters), w.trips(share):
                    w(w.use(c99.LOAD_MUTABLE, "sum", "to[c]"))
                    with w.loop("i", channels):
                        w(w.use(c99.MULTIPLY_ADD, "sum", "from[i]", f"k[{product('c', channels)} + i]"))
                    w(w.use(c99.STORE, "to[c]", "sum"))
        if attributes.clamp.low is not None or attributes.clamp.high is not None:
            with w.loop("c", filters):
                c99.clamp(w, attributes.clamp, "to[c]")


def _source(w: Writer, name: str, place: str, tap: str, crop: int, dilation: int, stride: int, size: int) -> None:
    """Declares the input under a tap, and goes on to the next tap where there is none."""
    reach = f"{place} + {crop}" if crop else place
    w(f"const int32_t {name}_reach = {reach} - {product(tap, dilation)};")
    missing = f"{name}_reach < 0 || {name}_reach >= {size * stride}"
    if stride > 1:
        missing += f" || {name}_reach % {stride} != 0"
    with w.block(f"if ({missing})"):
        w("continue;")
    w(f"const int32_t {name} = {name}_reach / {stride};" if stride > 1 else f"const int32_t {name} = {name}_reach;")
