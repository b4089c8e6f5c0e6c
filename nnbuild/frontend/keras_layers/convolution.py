"""Convolutions over one and two axes. One-dimensional ones are computed as a single row."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.frontend.checked_config import Config
from nnbuild.frontend.keras_layers.activation import activate
from nnbuild.frontend.keras_layers.base import Call, LayerKind, trained_by
from nnbuild.frontend.keras_layers.channels_first import of_images
from nnbuild.ops.base import Pair
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.windows import NO_PADDING, Padding, same_padding, spread

PADDINGS = ("valid", "same")


@dataclass(frozen=True)
class Geometry:
    """The window of a convolution, always with two axes; `flat` marks an added first axis."""

    kernel: Pair
    strides: Pair
    dilation: Pair
    padding: str
    flat: bool

    def stored(self, *channels: int) -> tuple[int, ...]:
        """The kernel's shape in the file."""
        return (self.kernel[1:] if self.flat else self.kernel) + channels


def geometry(config: Config, flat: bool, paddings: tuple[str, ...] = PADDINGS) -> Geometry:
    def both(key: str) -> Pair:
        return (1, config.single(key)) if flat else config.pair(key)

    padding = config.choice("padding", "valid", paddings)
    return Geometry(both("kernel_size"), both("strides"), both("dilation_rate"), padding, flat)


def as_row(call: Call, flat: bool) -> str:
    """The input as [height, width, channels]."""
    wanted = 2 if flat else 3
    if len(call.shape) != wanted:
        axes = "[time, channels]" if flat else "[height, width, channels]"
        raise call.config.error(f"it needs an input {axes}, not {call.shape}.")
    return call.one(Reshape((1, *call.shape)), call.input) if flat else call.input


def from_row(call: Call, x: str, flat: bool) -> str:
    return call.one(Reshape(call.builder.shape(x)[1:]), x) if flat else x


def pads(call: Call, x: str, window: Geometry) -> Padding:
    size = call.builder.shape(x)
    if window.padding == "same":
        rows, columns = (same_padding(size[i], window.kernel[i], window.strides[i], window.dilation[i]) for i in (0, 1))
        return rows, columns
    if window.padding == "causal":
        return (0, 0), (spread(window.kernel[1], window.dilation[1]) - 1, 0)
    return NO_PADDING


def bias(call: Call, out: int) -> dict[str, str]:
    return {"bias": call.weight("bias", (out,))} if call.config.flag("use_bias", True) else {}


def _conv(flat: bool) -> LayerKind:
    def build(call: Call) -> str:
        window = geometry(call.config, flat, (*PADDINGS, "causal") if flat else PADDINGS)
        x = as_row(call, flat)
        channels, groups = call.builder.shape(x)[2], call.config.integer("groups", 1)
        out = call.config.integer("filters")
        if channels % groups or out % groups:
            raise call.config.error(f"its {channels} channels and {out} filters do not divide into {groups} groups.")
        shape = window.stored(channels // groups, out)
        kernel = call.weight("kernel", shape, (*window.kernel, channels // groups, out))
        op = Conv2D(window.strides, window.dilation, pads(call, x, window), groups)
        y = call.builder.one(op, (x,), {"kernel": kernel, **bias(call, out)})
        return activate(call, from_row(call, y, flat))

    return LayerKind(of_images(build, 1 if flat else 2), trained_by("kernel"))


def _depthwise(flat: bool) -> LayerKind:
    def build(call: Call) -> str:
        window = geometry(call.config, flat)
        x = as_row(call, flat)
        channels, multiplier = call.builder.shape(x)[2], call.config.integer("depth_multiplier", 1)
        shape = window.stored(channels, multiplier)
        kernel = call.weight("depthwise_kernel", shape, (*window.kernel, channels, multiplier))
        op = DepthwiseConv2D(window.strides, window.dilation, pads(call, x, window))
        y = call.builder.one(op, (x,), {"kernel": kernel, **bias(call, channels * multiplier)})
        return activate(call, from_row(call, y, flat))

    return LayerKind(of_images(build, 1 if flat else 2), trained_by("depthwise_kernel"))


def _separable(flat: bool) -> LayerKind:
    def build(call: Call) -> str:
        window = geometry(call.config, flat, (*PADDINGS, "causal") if flat else PADDINGS)
        x = as_row(call, flat)
        channels, multiplier = call.builder.shape(x)[2], call.config.integer("depth_multiplier", 1)
        out, between = call.config.integer("filters"), channels * multiplier
        shape = window.stored(channels, multiplier)
        depthwise = call.weight("depthwise_kernel", shape, (*window.kernel, channels, multiplier))
        ones = (1,) if flat else (1, 1)
        pointwise = call.weight("pointwise_kernel", (*ones, between, out), (1, 1, between, out))
        op = DepthwiseConv2D(window.strides, window.dilation, pads(call, x, window))
        y = call.one(op, x, kernel=depthwise)
        y = call.builder.one(Conv2D(), (y,), {"kernel": pointwise, **bias(call, out)})
        return activate(call, from_row(call, y, flat))

    return LayerKind(of_images(build, 1 if flat else 2), trained_by("depthwise_kernel", "pointwise_kernel"))


def _transposed(flat: bool) -> LayerKind:
    def build(call: Call) -> str:
        window = geometry(call.config, flat)
        x = as_row(call, flat)
        size, out = call.builder.shape(x), call.config.integer("filters")
        extra = _output_padding(call.config, flat)
        same = window.padding == "same"
        reach = [spread(window.kernel[i], window.dilation[i]) for i in (0, 1)]
        places = [transposed_places(call.config, size[i], reach[i], window.strides[i], same, extra[i]) for i in (0, 1)]
        kernel = call.weight("kernel", window.stored(out, size[2]), (*window.kernel, out, size[2]))
        op = Conv2DTranspose(
            (places[0][0], places[1][0]), window.strides, window.dilation, (places[0][1], places[1][1])
        )
        y = call.builder.one(op, (x,), {"kernel": kernel, **bias(call, out)})
        return activate(call, from_row(call, y, flat))

    return LayerKind(of_images(build, 1 if flat else 2), trained_by("kernel"))


def _output_padding(config: Config, flat: bool) -> tuple[int | None, int | None]:
    if "output_padding" not in config:
        return None, None
    return (0, config.single("output_padding", 0, 0)) if flat else config.pair("output_padding", 0, 0)


def transposed_places(config: Config, size: int, reach: int, stride: int, same: bool, extra: int | None) -> Pair:
    """(outputs along an axis, number of cropped outputs before the first), as Keras infers them."""
    if extra is None:
        out = size * stride if same else size * stride + max(reach - stride, 0)
    else:
        if extra >= stride and not (extra == 0 and stride == 1):
            raise config.error(f"its output_padding {extra} is not smaller than its stride {stride}.")
        out = (size - 1) * stride + reach - (2 * (reach // 2) if same else 0) + extra
    if out < 1:
        raise config.error("its output would be empty.")
    return out, same_padding(out, reach, stride)[0] if same else 0


LAYERS = {
    "Conv1D": _conv(flat=True),
    "Conv2D": _conv(flat=False),
    "Convolution1D": _conv(flat=True),
    "Convolution2D": _conv(flat=False),
    "DepthwiseConv1D": _depthwise(flat=True),
    "DepthwiseConv2D": _depthwise(flat=False),
    "SeparableConv1D": _separable(flat=True),
    "SeparableConv2D": _separable(flat=False),
    "SeparableConvolution2D": _separable(flat=False),
    "Conv1DTranspose": _transposed(flat=True),
    "Conv2DTranspose": _transposed(flat=False),
    "Deconvolution2D": _transposed(flat=False),
}
