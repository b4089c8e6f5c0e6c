"""Conv1D/2D, DepthwiseConv1D/2D and SeparableConv1D/2D."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from tests.zoo.case import TFKERAS, Case, one, tag

_PADDINGS = ("valid", "same")


def cases() -> Iterator[Case]:
    yield from _conv2d_cases()
    yield from _conv1d_cases()
    yield from _depthwise2d_cases()
    yield from _depthwise1d_cases()
    yield from _separable_cases()


def _conv2d_cases() -> Iterator[Case]:
    def conv(variant: str, shape: tuple[int, ...] = (9, 10, 3), /, **options: Any) -> Case:
        return one("conv2d", variant, shape, "Conv2D", **{"filters": 4, "kernel_size": 3} | options)

    for kernel, padding, strides in product((1, 2, 3, (2, 5), 7), _PADDINGS, (1, 2, (1, 3))):
        variant = f"k{tag(kernel)}_{padding}_s{tag(strides)}"
        yield conv(variant, kernel_size=kernel, padding=padding, strides=strides)
    for dilation, padding in product((2, (1, 3), (3, 2)), _PADDINGS):
        variant = f"dilation_{tag(dilation)}_{padding}"
        yield conv(variant, kernel_size=(3, 2), dilation_rate=dilation, padding=padding)
    for groups, strides, padding in product((2, 4), (1, 2), _PADDINGS):
        variant = f"groups_{groups}_s{strides}_{padding}"
        yield conv(variant, (7, 6, 4), filters=8, groups=groups, strides=strides, padding=padding)
    yield conv("groups_dilation_no_bias", (8, 8, 6), filters=6, groups=3, dilation_rate=2, use_bias=False)
    for activation in ("relu", "relu6", "leaky_relu", "tanh", "sigmoid", "softmax", "elu", "swish", "hard_sigmoid"):
        yield conv(f"fused_{activation}", (6, 5, 2), activation=activation)
    yield conv("no_bias", use_bias=False)
    yield conv("one_pixel", (1, 1, 5), kernel_size=1)
    yield conv("one_pixel_same", (1, 1, 5), padding="same")
    yield conv("one_channel", (6, 7, 1), filters=1, padding="same")
    yield conv("whole_input", (5, 4, 3), kernel_size=(5, 4))
    yield conv("row_kernel", (6, 9, 3), kernel_size=(1, 5), padding="same", strides=(1, 2))
    yield conv("column_kernel", (9, 6, 3), kernel_size=(5, 1), padding="same", strides=(2, 1))
    for kernel, strides in product((5, 7, (7, 2)), (1, 2)):
        yield conv(f"larger_than_input_k{tag(kernel)}_s{strides}", (3, 4, 2), kernel_size=kernel, strides=strides,
                   padding="same")  # fmt: skip
    yield conv("stride_past_kernel", (11, 10, 2), kernel_size=2, strides=3)
    yield conv("stride_past_kernel_same", (11, 10, 2), kernel_size=1, strides=4, padding="same")
    yield conv("odd_channels", (6, 6, 5), filters=7, padding="same", strides=2)
    yield conv("many_channels", (5, 5, 8), filters=8, padding="same", activation="relu")
    yield conv("channels_past_vector", (3, 3, 17), filters=19, padding="same")


def _conv1d_cases() -> Iterator[Case]:
    def conv(variant: str, shape: tuple[int, ...] = (11, 3), /, **options: Any) -> Case:
        return one("conv1d", variant, shape, "Conv1D", **{"filters": 4, "kernel_size": 3} | options)

    paddings = (*_PADDINGS, "causal")
    for kernel, padding, strides in product((1, 3, 4, 7), paddings, (1, 2, 3)):
        yield conv(f"k{kernel}_{padding}_s{strides}", kernel_size=kernel, padding=padding, strides=strides)
    for dilation, padding in product((2, 3), paddings):
        yield conv(f"dilation_{dilation}_{padding}", dilation_rate=dilation, padding=padding)
    for groups, padding in product((2, 4), paddings):
        yield conv(f"groups_{groups}_{padding}", (8, 4), filters=8, groups=groups, padding=padding)
    yield conv("no_bias_relu", use_bias=False, activation="relu")
    yield conv("causal_longer_than_input", (4, 2), kernel_size=7, padding="causal")
    yield conv("causal_dilated_past_input", (4, 2), kernel_size=3, dilation_rate=4, padding="causal")
    yield conv("larger_than_input", (4, 2), kernel_size=7, padding="same")
    yield conv("one_step", (1, 5), kernel_size=1, activation="softmax")


def _depthwise2d_cases() -> Iterator[Case]:
    def conv(variant: str, shape: tuple[int, ...] = (8, 9, 4), /, **options: Any) -> Case:
        return one("depthwise2d", variant, shape, "DepthwiseConv2D", **{"kernel_size": 3} | options)

    for kernel, padding, strides in product((1, 2, 3, (3, 5), 7), _PADDINGS, (1, 2)):
        variant = f"k{tag(kernel)}_{padding}_s{strides}"
        yield conv(variant, kernel_size=kernel, padding=padding, strides=strides)
    for multiplier, padding in product((2, 3), _PADDINGS):
        yield conv(f"multiplier_{multiplier}_{padding}", depth_multiplier=multiplier, padding=padding)
    for dilation, padding in product((2, 3), _PADDINGS):
        yield conv(f"dilation_{dilation}_{padding}", dilation_rate=dilation, padding=padding)
    yield conv("multiplier_dilation_no_bias", depth_multiplier=2, dilation_rate=2, use_bias=False)
    yield conv("one_channel_multiplier", (6, 6, 1), depth_multiplier=5, padding="same")
    yield conv("larger_than_input", (3, 2, 3), kernel_size=5, padding="same")
    yield conv("whole_input", (5, 4, 3), kernel_size=(5, 4), use_bias=False)
    for activation in ("relu", "relu6", "tanh", "swish"):
        yield conv(f"fused_{activation}", (6, 5, 3), padding="same", activation=activation)


def _depthwise1d_cases() -> Iterator[Case]:
    def conv(variant: str, shape: tuple[int, ...] = (10, 3), /, **options: Any) -> Case:
        return one("depthwise1d", variant, shape, "DepthwiseConv1D", **{"kernel_size": 3} | options)

    for kernel, padding, strides in product((1, 3, 4), _PADDINGS, (1, 2)):
        yield conv(f"k{kernel}_{padding}_s{strides}", kernel_size=kernel, padding=padding, strides=strides)
    yield conv("multiplier", depth_multiplier=2, padding="same")
    yield conv("dilation", dilation_rate=2, padding="same")
    yield conv("no_bias_relu", use_bias=False, activation="relu")


def _separable_cases() -> Iterator[Case]:
    def conv2d(variant: str, /, **options: Any) -> Case:
        options = {"filters": 5, "kernel_size": 3} | options
        return one("separable2d", variant, (8, 9, 3), "SeparableConv2D", **options)

    def conv1d(variant: str, /, **options: Any) -> Case:
        options = {"filters": 5, "kernel_size": 3} | options
        return one("separable1d", variant, (10, 3), "SeparableConv1D", **options)

    for padding, strides in product(_PADDINGS, (1, 2)):
        yield conv2d(f"{padding}_s{strides}", padding=padding, strides=strides)
        yield conv1d(f"{padding}_s{strides}", padding=padding, strides=strides)
    for conv in (conv2d, conv1d):
        yield conv("multiplier", depth_multiplier=2, padding="same")
        yield conv("dilation", dilation_rate=2)
        yield conv("dilation_same", dilation_rate=2, padding="same")
        yield conv("no_bias_relu", use_bias=False, activation="relu")
        yield conv("even_kernel", kernel_size=4, padding="same", strides=2)
    yield conv2d("long_kernel", kernel_size=(2, 5), padding="same")
    causal = [conv1d(f"causal_s{strides}", padding="causal", strides=strides) for strides in (1, 2)]
    causal.append(conv1d("causal_dilation", padding="causal", dilation_rate=2))
    yield from (replace(case, writers=(TFKERAS,)) for case in causal)  # Keras 3 makes such a layer and fails to run it
