"""int16 convolutions and dense layers by totals of 64 bits, where 32 do not hold their sums: see `long_matmul`.

The inputs under a window are copied side by side, then multiplied by the weights of two output channels at a time.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import Demand, Kernel, Names, OnEach, on_nests, only_int16, variant
from nnbuild.kernels.lanes import integer_layers
from nnbuild.kernels.lanes.layer_sums import general_of, sums_of
from nnbuild.kernels.loops.long_matmul import TOGETHER, WIDTH, arranged, declare_totals
from nnbuild.kernels.loops.vector_matmul import MOVE
from nnbuild.kernels.loops.window import Axis, Weighted, Windowed
from nnbuild.kernels.parts.integer_steps import declare
from nnbuild.model.graph import Array
from nnbuild.ops.integer import bounds
from nnbuild.ops.site import Site


def refused(site: Site[Weighted]) -> str | None:
    if reason := only_int16(site):
        return reason
    if site.tail or getattr(site.attributes, "groups", 1) > 1:
        return "it computes neither groups nor what follows"
    short = None if integer_layers.refused_sums(site) else "its sums fit 32 bits, which take less"
    return integer_layers.refused_weights(site) or short


@dataclass(frozen=True, eq=False)
class LongRows(Windowed):
    v: Vectors

    @property
    def stride(self) -> int:
        """The taps up to whole blocks."""
        return self.window.taps + -self.window.taps % WIDTH

    @property
    def copied(self) -> bool:
        return not (self.window.flat and self.stride == self.window.taps)

    def demand(self) -> Demand:
        kernel = self.site.constant("kernel").reshape(-1, self.window.filters).T
        kernel = arranged(self.v, np.pad(kernel, ((0, 0), (0, self.stride - self.window.taps))))
        packed: dict[str, Array] = {"kernel": kernel.reshape(-1), "bias": sums_of(self.site).start}
        packed |= dict(general_of(self.site).constants)
        scratch = 2 * self.stride if self.copied else 0
        return Demand(extent=self.window.outputs[0], scratch=scratch, scratch_type="int16", packed=packed)

    def emit(self, w: Writer, names: Names) -> None:
        (rows, columns), filters = self.window.outputs, self.window.filters
        with w.loop("y", "end", start="begin", trips=rows), w.loop("x", columns):
            place = f"y * {columns} + x"
            w(f"int16_t *to = {names.outputs[0]} + ({place}) * {filters};")
            if self.copied:
                self._copy(w, names)
                w(f"const int16_t *left = {names.scratch};")
            else:
                w(f"const int16_t *left = {names.inputs[0]} + ({place}) * {self.stride};")
            w(f"const int8_t *k = {names.packed['kernel']};")
            for channel, some in in_vectors(w, TOGETHER, filters, "channel"):
                self._outputs(w, names, channel, some)

    def _copy(self, w: Writer, names: Names) -> None:
        window, (rows, columns) = self.window, (self.window.rows, self.window.columns)
        w(f"int16_t *copy = {names.scratch};")
        with w.loop("ky", rows.kernel), w.loop("kx", columns.kernel):
            declare(w, "row", _under(rows, "y", "ky"))
            declare(w, "column", _under(columns, "x", "kx"))
            at = f"(row * {columns.size} + column) * {window.depth}"
            source = f"{names.inputs[0]}[{at} + i]"
            tests = [*_outside(rows, "row"), *_outside(columns, "column")]
            if tests:
                with w.block(f"if ({' || '.join(tests)})"), w.loop("i", window.depth, trips=0):
                    w("copy[i] = 0;")
            with w.block("else") if tests else nullcontext(), w.loop("i", window.depth):
                w(w.use(MOVE, "copy[i]", source))
            w(f"copy += {window.depth};")
        if self.stride > window.taps:
            with w.loop("i", self.stride - window.taps):
                w("copy[i] = 0;")

    def _outputs(self, w: Writer, names: Names, channel: str, some: int) -> None:
        scaling, out = general_of(self.site), self.site.outputs[0]
        places = [f"{channel} + {one}" for one in range(some)]
        declare_totals(w, self.v, self.stride, [f"{names.packed['bias']}[{place}]" for place in places], True)
        for one, place in enumerate(places):
            constants = [f"{names.packed[name]}[{place}]" for name in scaling.constants]
            declare(w, f"value{one}", w.helper(scaling.function, f"sum{one}", *constants), "int32_t")
            c99.bound(w, bounds(self.site.attributes.clamp, out), f"value{one}")
            w(w.use(c99.STORE, f"to[{one}]", f"({C_TYPES[out.dtype]})value{one}"))
        w(f"k += {some * self.stride};")
        w(f"to += {some};")
        w.bill(2)


def variants() -> tuple[Kernel[Any] | OnEach[Any], ...]:
    """The kernels, of convolutions and dense layers alike."""
    return (
        variant("long_rows", frozenset({"armv7em_dsp"}), refused, lambda site: LongRows(site, DSP)),
        on_nests("across", "_long", refused, lambda v, site: LongRows(site, v)),
    )


def _under(axis: Axis, place: str, tap: str) -> str:
    """The input under a tap of an output."""
    return f"({place}) * {axis.stride} + ({tap}) * {axis.dilation} - {axis.pad}"


def _outside(axis: Axis, name: str) -> list[str]:
    return [] if axis.always_inside else [f"{name} < 0", f"{name} >= {axis.size}"]
