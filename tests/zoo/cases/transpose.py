"""Conv1DTranspose and Conv2DTranspose."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from tests.zoo.case import Case, one, tag

_PADDINGS = ("valid", "same")


def cases() -> Iterator[Case]:
    yield from _two_dimensions()
    yield from _one_dimension()


def _two_dimensions() -> Iterator[Case]:
    def conv(variant: str, shape: tuple[int, ...] = (4, 5, 3), /, **options: Any) -> Case:
        options = {"filters": 4, "kernel_size": 3} | options
        return one("transpose2d", variant, shape, "Conv2DTranspose", **options)

    for kernel, padding, strides in product((1, 2, 3, (2, 4), 5), _PADDINGS, (1, 2, (1, 3))):
        variant = f"k{tag(kernel)}_{padding}_s{tag(strides)}"
        yield conv(variant, kernel_size=kernel, padding=padding, strides=strides)
    for padding, output_padding in product(_PADDINGS, (0, 1, (1, 0))):
        variant = f"output_padding_{tag(output_padding)}_{padding}"
        yield conv(variant, strides=2, padding=padding, output_padding=output_padding)
    for padding in _PADDINGS:
        yield conv(f"output_padding_stride_3_{padding}", strides=3, kernel_size=4, padding=padding, output_padding=2)
        yield conv(f"dilation_{padding}", dilation_rate=2, padding=padding)
    yield conv("no_bias_relu", strides=2, padding="same", use_bias=False, activation="relu")
    yield conv("softmax", strides=2, padding="same", activation="softmax")
    yield conv("one_pixel", (1, 1, 6), kernel_size=4, strides=4)
    yield conv("one_filter", (3, 3, 2), filters=1, strides=2, padding="same", activation="sigmoid")


def _one_dimension() -> Iterator[Case]:
    def conv(variant: str, /, **options: Any) -> Case:
        options = {"filters": 4, "kernel_size": 3} | options
        return one("transpose1d", variant, (5, 3), "Conv1DTranspose", **options)

    for kernel, padding, strides in product((1, 2, 3, 5), _PADDINGS, (1, 2, 3)):
        yield conv(f"k{kernel}_{padding}_s{strides}", kernel_size=kernel, padding=padding, strides=strides)
    for padding in _PADDINGS:
        yield conv(f"output_padding_{padding}", strides=2, padding=padding, output_padding=1)
        yield conv(f"dilation_{padding}", dilation_rate=2, padding=padding)
    yield conv("no_bias_tanh", strides=2, use_bias=False, activation="tanh")
