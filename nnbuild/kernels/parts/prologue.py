"""A convolution with a fused prologue, which works on a copy of the input: a factor and a summand per channel, or a
border of values other than zero.

The copy, in scratch, includes the padding. So the convolution's kernel sees no padding, and any kernel serves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import lcm, prod
from typing import Any, cast

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa.arm import FEATURES, FPU
from nnbuild.isa.c99 import SINGLE
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import Demand, Kernel, Names, OnEach, Overlap, each_changed
from nnbuild.kernels.loops.border import (
    Move,
    Place,
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
from nnbuild.kernels.loops.window import window_of
from nnbuild.model.graph import Array, Op
from nnbuild.ops.affine import Affine
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.pad import Pad
from nnbuild.ops.site import Site
from nnbuild.ops.windows import NO_PADDING

ALIGNMENT = 64
"""Alignment of the copy in bytes."""
UNROLLED = 4
"""Vectors of a row's period up to which it is unrolled."""


@dataclass(frozen=True, eq=False)
class Parts:
    """`outer` makes the copy; `inner` is computed from it."""

    outer: Site[Pad]
    inner: Site[Conv2D | DepthwiseConv2D]

    @property
    def size(self) -> int:
        """Bytes of the copy."""
        return self.outer.outputs[0].nbytes


def copied(site: Site[Affine | Pad]) -> Parts | str:
    """The two parts, or why there are none."""
    behind = site.tail[0] if site.tail else site
    if not isinstance(behind.attributes, Conv2D | DepthwiseConv2D):
        return "no convolution follows it"
    if len({tensor.dtype for tensor in (*site.inputs, *behind.inputs)}) > 1:
        return "it changes the number format"
    if isinstance(site.attributes, Pad):
        if behind.attributes.padding != NO_PADDING or site.output_shape() != behind.shape():
            return "the convolution has padding of its own"
        padding, whole = cast(Op[Any], site.op), site.outputs[0]
    else:
        if site.attributes.axis != len(site.shape()) - 1 or site.shape() != behind.shape():
            return "its constants are not per channel of the convolution"
        if site.inputs[0].dtype != "float32":
            return "it computes float32 only"
        zeros = Pad((*behind.attributes.padding, (0, 0)))
        padding = replace(cast(Op[Any], site.op), attributes=zeros, constants={})
        whole = replace(behind.inputs[0], shape=zeros.shapes([behind.shape()], {})[0])
    plain: Op[Any] = replace(cast(Op[Any], behind.op), attributes=replace(behind.attributes, padding=NO_PADDING))
    constants = site.constants if isinstance(site.attributes, Pad) else {}
    inner = Site(plain, (whole,), behind.outputs, behind.constants, site.tail[1:], behind.shared)
    return Parts(Site(padding, site.inputs, (whole,), constants), inner)


@dataclass(frozen=True, eq=False)
class Prologue:
    """The prologue of one convolution kernel, in one vector set."""

    kernel: Kernel[Any]
    floats: Vectors

    def accepts(self, site: Site[Affine | Pad]) -> str | None:
        parts = copied(site)
        if isinstance(parts, str):
            return parts
        if not {follower.op.kind for follower in parts.inner.tail} <= self.kernel.fuses:
            return "the convolution's kernel does not compute what follows"
        return self.kernel.accepts(parts.inner)

    def parts(self, site: Site[Affine | Pad]) -> tuple[Parts, Demand, int]:
        """The two parts, the convolution's demand, and the offset of the copy in scratch."""
        parts = copied(site)
        assert isinstance(parts, Parts)
        inner = self.kernel.demand(parts.inner)
        return parts, inner, -(-inner.scratch // ALIGNMENT) * ALIGNMENT

    def demand(self, site: Site[Affine | Pad]) -> Demand:
        parts, inner, start = self.parts(site)
        numbers = {f"ahead_{role}": values for role, values in self._numbers(site, parts).items()}
        return Demand(
            extent=inner.extent,
            scratch=start + parts.size,
            scratch_type=inner.scratch_type if inner.scratch else parts.outer.outputs[0].dtype,
            packed={**inner.packed, **numbers},
            overlaps=(Overlap(distance=-site.inputs[0].nbytes, split_distance=site.writes[0].nbytes),),
            copied=inner.copied,
            grain=inner.grain,
            costs=inner.costs,
        )

    def _numbers(self, site: Site[Affine | Pad], parts: Parts) -> Mapping[str, Array]:
        """The constants of the copy: a channel's number in every lane that meets it."""
        if isinstance(site.attributes, Pad):
            return border(parts.outer)
        period = min(prod(site.shape()[-2:]), lcm(site.shape()[-1], self.floats.lanes))
        return {role: np.resize(site.constant(role), period) for role in ("scale", "shift")}

    def emit(self, w: Writer, site: Site[Affine | Pad], names: Names) -> None:
        parts, inner, start = self.parts(site)
        tensor, numbers = parts.outer.outputs[0], self._numbers(site, parts)
        kind, size = C_TYPES[tensor.dtype], np.dtype(inner.scratch_type).itemsize if inner.scratch else 1
        place = f"{names.scratch} + {start // size}"
        same = not inner.scratch or inner.scratch_type == tensor.dtype
        w(f"{kind} *const framed = {place if same else f'({kind} *)(void *)({place})'};")
        there = replace(names, outputs=("framed",), packed={role: names.packed[f"ahead_{role}"] for role in numbers})
        with_border(w, parts.outer, there, self._move(site, there, numbers), _rows(w, parts, inner))
        own = {role: names.packed[role] for role in inner.packed}
        self.kernel.emit(w, parts.inner, replace(names, inputs=("framed", *names.inputs[1:]), packed=own))

    def _move(self, site: Site[Affine | Pad], names: Names, numbers: Mapping[str, Array]) -> Move:
        if isinstance(site.attributes, Affine):
            return partial(self._scaled, site, names, len(numbers["scale"]))
        if site.inputs[0].dtype == "float32":
            return partial(by_vectors, self.floats)
        if refused(cast(Site[Pad], site)):
            return by_elements
        vectors = "b_load" in self.floats.spellings
        return partial(of_items, item_bytes(site), partial(by_bytes, self.floats) if vectors else by_words)

    def _scaled(
        self, site: Site[Any], names: Names, period: int, w: Writer, to: Place, source: Place | str, count: int
    ) -> None:
        """Stores zeros, or inputs scaled for the convolution."""
        v = self.floats
        if isinstance(source, str):
            by_vectors(v, w, to, source, count)
            return
        for turn, some in in_vectors(w, period, count, "turn"):
            for place, lanes in w.each(in_vectors(w, v.lanes, some, "i", UNROLLED)):
                at = [f"{name} + {begin} + {turn} + {place}" for name, begin in (source, to)]
                v.declare(w, "value", v.load(w, at[0], lanes))
                for role in ("scale", "shift"):
                    v.declare(w, role, v.load(w, f"{names.packed[role]} + {place}", lanes))
                w(f"value = {v.use(w, 'add', v.use(w, 'mul', 'value', 'scale'), 'shift')};")
                v.bound(w, site.attributes.clamp, "value")
                v.store(w, at[1], "value", lanes)


def _rows(w: Writer, parts: Parts, inner: Demand) -> tuple[int | str, int | str]:
    """The rows of the copy that the range of work items reads, where the kernel tells."""
    window = window_of(parts.inner)
    each, rest = divmod(inner.extent, window.outputs[0])
    if not inner.rows or rest:
        return 0, parts.outer.output_shape()[0]
    first, behind = ("begin", "end") if each == 1 else (f"begin / {each}", f"(end + {each - 1}) / {each}")
    w(f"const int32_t first_row = ({first}) * {window.row_step};")
    w(f"const int32_t last_row = ({behind}) * {window.row_step} + {window.rows_under(1) - window.row_step};")
    return "first_row", "last_row"


def kernels(kind: str, of: Iterable[Kernel[Any] | OnEach[Any]]) -> Iterator[Kernel[Any] | OnEach[Any]]:
    """The kernels of an operation of this kind fused as a prologue with each of a convolution's kernels."""
    return each_changed(of, partial(_with, kind))


def _with(kind: str, kernel: Kernel[Any], vectors: Vectors | None) -> Iterator[Kernel[Any]]:
    body = Prologue(kernel, vectors or (FPU if kernel.needs & FEATURES else SINGLE))
    yield replace(
        kernel,
        name=f"{kernel.name}_{kind}",
        accepts=body.accepts,
        demand=body.demand,
        emit=body.emit,
        fuses=kernel.fuses | {kind},
        joins=kind,
    )
