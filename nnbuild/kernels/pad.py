"""Padding with zeros or other values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from nnbuild.base.writer import Writer
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels import conv2d, depthwise_conv2d
from nnbuild.kernels.contract import PORTABLE, Demand, Floats, Kernel, Names, any_format, on_each
from nnbuild.kernels.loops.border import border, by_bytes, by_elements, by_vectors, by_words, refused, with_border
from nnbuild.kernels.parts import prologue
from nnbuild.ops.pad import Pad
from nnbuild.ops.site import Site


def _demand(site: Site[Pad]) -> Demand:
    return Demand(extent=site.output_shape()[0], packed=border(site))


def _emit(w: Writer, site: Site[Pad], names: Names) -> None:
    with_border(w, site, names, by_elements)


def _emit_words(w: Writer, site: Site[Pad], names: Names) -> None:
    with_border(w, site, names, by_words)


def _floats(v: Vectors, w: Writer, site: Site[Pad], names: Names) -> None:
    with_border(w, site, names, partial(by_vectors, v))


@dataclass(frozen=True)
class _Bytes:
    v: Vectors

    def accepts(self, site: Site[Pad]) -> str | None:
        return refused(site)

    def demand(self, site: Site[Pad]) -> Demand:
        return _demand(site)

    def emit(self, w: Writer, site: Site[Pad], names: Names) -> None:
        with_border(w, site, names, partial(by_bytes, self.v))


VARIANTS = (
    Kernel("scalar", PORTABLE, any_format, _demand, _emit),
    on_each("float", lambda v: Floats(v, _demand, _floats)),
    on_each("bytes", _Bytes),
    Kernel("words", frozenset({"armv7em_dsp"}), refused, _demand, _emit_words),
    *prologue.kernels("conv2d", conv2d.VARIANTS),
    *prologue.kernels("depthwise_conv2d", depthwise_conv2d.VARIANTS),
)
