"""Padding with zeros or other values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nnbuild.kernels import conv2d, depthwise_conv2d
from nnbuild.kernels.contract import PORTABLE, Demand, Functions, any_format, kernel_of, on_each, only_float
from nnbuild.kernels.loops.border import Move, border, by_bytes, by_elements, by_vectors, by_words, refused, with_border
from nnbuild.kernels.parts import prologue
from nnbuild.ops.pad import Pad
from nnbuild.ops.site import Site


def _demand(site: Site[Pad]) -> Demand:
    return Demand(extent=site.output_shape()[0], packed=border(site))


def _moving(accepts: Callable[[Site[Pad]], str | None], move: Move) -> Functions[Pad]:
    return Functions(accepts, _demand, partial(with_border, move=move))


VARIANTS = (
    kernel_of("scalar", PORTABLE, _moving(any_format, by_elements)),
    on_each("float", lambda v: _moving(only_float, partial(by_vectors, v))),
    on_each("bytes", lambda v: _moving(refused, partial(by_bytes, v))),
    kernel_of("words", frozenset({"armv7em_dsp"}), _moving(refused, by_words)),
    *prologue.kernels("conv2d", conv2d.VARIANTS),
    *prologue.kernels("depthwise_conv2d", depthwise_conv2d.VARIANTS),
)
