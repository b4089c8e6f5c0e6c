"""Padding with zeros or other values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nnbuild.base.writer import Writer
from nnbuild.kernels import conv2d, depthwise_conv2d
from nnbuild.kernels.contract import PORTABLE, Demand, Functions, Names, any_format, kernel_of, on_each, only_float
from nnbuild.kernels.loops.border import (
    Move,
    border,
    by_bytes,
    by_elements,
    by_vectors,
    by_words,
    of_items,
    refused,
    with_border,
)
from nnbuild.kernels.loops.strided import item_bytes
from nnbuild.kernels.parts import prologue
from nnbuild.ops.pad import Pad
from nnbuild.ops.site import Site


def _demand(site: Site[Pad]) -> Demand:
    return Demand(extent=site.output_shape()[0], packed=border(site))


def _moving(accepts: Callable[[Site[Pad]], str | None], move: Move) -> Functions[Pad]:
    return Functions(accepts, _demand, partial(with_border, move=move))


def _moving_bytes(move: Move) -> Functions[Pad]:
    def emit(w: Writer, site: Site[Pad], names: Names) -> None:
        with_border(w, site, names, partial(of_items, item_bytes(site), move))

    return Functions(refused, _demand, emit)


VARIANTS = (
    kernel_of("scalar", PORTABLE, _moving(any_format, by_elements)),
    on_each("float", lambda v: _moving(only_float, partial(by_vectors, v))),
    on_each("bytes", lambda v: _moving_bytes(partial(by_bytes, v))),
    kernel_of("words", frozenset({"armv7em_dsp"}), _moving_bytes(by_words)),
    *prologue.kernels("conv2d", conv2d.VARIANTS),
    *prologue.kernels("depthwise_conv2d", depthwise_conv2d.VARIANTS),
)
