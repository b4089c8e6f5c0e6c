"""Floats that become integers of a scale, and such integers that become floats, in vectors."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.lanes.rounded_arithmetic import InVectors
from nnbuild.kernels.loops.strided import alike
from nnbuild.kernels.parts.integer_steps import zero
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.model.graph import Tensor
from nnbuild.numeric.rounding import limits
from nnbuild.ops.convert import Convert
from nnbuild.ops.integer import scale_and_limits
from nnbuild.ops.site import Site

WHOLE = 12582912.0
"""1.5 * 2**23: a sum of it and a number up to 2**22 is a whole number, and its last bits are those of an integer."""
WHOLE_BITS = 0x4B400000
BELOW_HALF = 0.49999997
LOADS = {"int8": "widen", "int16": "widen_words", "int32": "load"}
"""What brings integers into 32-bit lanes; `load` fills all of them."""


def scalar_real(w: Writer, x: Tensor, source: str, target: str) -> None:
    assert x.quant is not None
    w.bill(c99.MULTIPLY_ADD.cycles)
    real = c99.product(w, f"(float)({source} - {zero(x)})", float_literal(x.quant.scale))
    w(w.use(c99.STORE, target, real))


@dataclass(frozen=True)
class FloatEdges:
    v: Vectors

    def accepts(self, site: Site[Convert]) -> str | None:
        source, target = site.inputs[0].dtype, site.outputs[0].dtype
        if target == "float32" and source in LOADS:
            needed = [LOADS[source], "f_of_sums"]
        elif source == "float32" and target in ("int8", "int16"):
            needed = ["f_bits", "store_bytes" if target == "int8" else "store_words"]
        else:
            return "it converts floats from 8, 16 and 32 bits, and to 8 and 16 bits"
        lacking = [name for name in needed if name not in self.v.spellings]
        return f"the set has no {lacking[0]}" if lacking else None

    def demand(self, site: Site[Convert]) -> Demand:
        narrows = site.outputs[0].dtype == "int8"  # C allows only bytes to alias other types
        return Demand(extent=alike(site, 2).vectors(self.v.lanes), overlaps=IN_PLACE if narrows else ())

    def emit(self, w: Writer, site: Site[Convert], names: Names) -> None:
        quantizes = site.inputs[0].dtype == "float32"

        def element(at: list[str], count: int) -> None:
            source, target = f"{names.inputs[0]} + {at[1]}", f"{names.outputs[0]} + {at[0]}"
            if quantizes:
                self._quantized(w, site.outputs[0], source, target, count)
            else:
                self._real(w, site.inputs[0], source, target, count)

        alike(site, 2).vector_nest(w, self.v.lanes, element)

    def _real(self, w: Writer, x: Tensor, source: str, target: str, count: int) -> None:
        assert x.quant is not None
        whole, load = InVectors(self.v), LOADS[x.dtype]
        if load == "load" and count < self.v.lanes:
            with w.loop("j", str(count), trips=count):
                scalar_real(w, x, f"({source})[j]", f"({target})[j]")
            return
        whole.declare(w, "steps", self.v.call(w, load, source, of=() if load == "load" else (count,)))
        steps = whole.both(w, "sub", "steps", zero(x)) if zero(x) else "steps"
        real = self.v.use(w, "of_sums", steps)
        self.v.store(w, target, self.v.use(w, "mul", real, x.quant.scale) if x.quant.scale != 1 else real, count)

    def _quantized(self, w: Writer, out: Tensor, source: str, target: str, count: int) -> None:
        v, (scale, point, low, high) = self.v, scale_and_limits(out)
        v.declare(w, "x", v.use(w, "div", v.load(w, source, count), scale))
        if "f_steps" in v.spellings:
            steps = v.use(w, "steps", "x", of=(low - point, high - point))
            steps = InVectors(v).both(w, "add", steps, point) if point else steps
        else:
            steps = self._rounded(w, point, low, high)
        v.let(w, "sums", "steps", steps)
        InVectors(v).store(w, out.dtype, target, "steps", limits(out.dtype), count)

    def _rounded(self, w: Writer, point: int, low: int, high: int) -> str:
        """The size is rounded to even; where that has lost a half, one is added."""
        v = self.v
        least = v.each(w, low - point - 1.0)
        w(f"x = {v.use(w, 'if_less', least, 'x', 'x', least)};")  # a NaN becomes the smallest
        w(f"x = {v.use(w, 'min', 'x', high - point + 1.0)};")
        v.declare(w, "size", v.use(w, "max", "x", v.use(w, "sub", 0.0, "x")))
        near = v.use(w, "bits", v.use(w, "add", "size", WHOLE))
        v.declare(w, "near", v.use(w, "of_sums", InVectors(v).both(w, "sub", near, WHOLE_BITS)))
        rest = v.use(w, "sub", "size", "near")
        more = v.use(w, "if_less", BELOW_HALF, rest, 1.0, 0.0)
        w(f"near = {v.use(w, 'add', 'near', more)};")
        signed = v.use(w, "if_less", "x", 0.0, v.use(w, "sub", 0.0, "near"), "near")
        whole = v.use(w, "bits", v.use(w, "add", signed, WHOLE))
        return InVectors(v).both(w, "sub", whole, WHOLE_BITS - point)
