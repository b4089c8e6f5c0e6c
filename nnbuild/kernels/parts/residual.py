"""Sums and differences of two tensors of bytes: two multiplications and a saturating shift, with coefficients that are
exact for every pair of numbers.

A layer may add another tensor to every output before it is stored. As in TFLite, its result is rounded to an 8-bit
number first; so is the other operand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.isa.vectors import Vectors
from nnbuild.numeric.linear_sum import FRACTION, LinearSum, linear_sum, pairs
from nnbuild.numeric.rounding import INT8, saturate
from nnbuild.ops.binary import Binary, Formats, combined, formats
from nnbuild.ops.integer import bounds
from nnbuild.ops.site import Site

FUSES = frozenset({"binary"})
SUM_CYCLES = 6
"""Two multiply-accumulates, and coefficients that are not kept in registers."""


ADDS = ("add", "subtract")
INEXACT = "no coefficients give every sum exactly"


@dataclass(frozen=True)
class Residual:
    """The coefficients of the left operand, such as a layer's result, and of the other, and the bounds of the sum."""

    sum: LinearSum
    bounds: tuple[int, int]

    def join(self, w: Writer, v: Vectors, left: str, right: str, total: str) -> None:
        """The same in vectors: sets `total` to the sum, which is not clamped yet."""
        terms = [
            v.call(w, "mul", value, factor) for value, factor in ((left, self.sum.first), (right, self.sum.second))
        ]
        started = v.call(w, "add", terms[1], self.sum.start)
        w(f"{total} = {v.call(w, 'shift_right', v.call(w, 'add', terms[0], started), of=(self.sum.shift,))};")

    def terms(self, left: str, right: str) -> str:
        """The sum of two numbers, not shifted yet."""
        return f"{left} * {self.sum.first} + ({right} * {self.sum.second} + {self.sum.start})"

    def mark(self) -> str:
        """The part of a routine's name that identifies this sum."""
        limits = "" if self.bounds == INT8 else f"_{self.bounds[0]}_{self.bounds[1]}".replace("-", "m")
        return f"plus_{self.sum.first}_{self.sum.second}_{self.sum.start}_{self.sum.shift}{limits}".replace("-", "m")

    def load(self, w: Writer, name: str, place: str) -> None:
        w(w.use(c99.READ, name, place))

    def add(self, w: Writer, value: str, name: str, ops: Vectors = DSP) -> None:
        """Sets `value` to the sum, without storing it."""
        w(f"{value} = {ops.call(w, 'saturate', self.terms(value, name), of=(8, self.sum.shift))};")
        w.bill(SUM_CYCLES)
        c99.narrow(w, self.bounds, value, INT8)


def refusal(site: Site) -> str | None:
    """Why the operations that follow cannot be fused."""
    if not site.tail:
        return None
    follower = site.tail[0]
    attributes = follower.attributes
    if len(site.tail) > 1 or not isinstance(attributes, Binary) or attributes.function not in ADDS:
        return "it can add one other tensor only"
    tensors = (*follower.inputs, *follower.outputs)
    if follower.constants or len(follower.inputs) != 2 or any(t.shape != site.outputs[0].shape for t in tensors):
        return "the other operand has another shape"
    if any(tensor.dtype != "int8" for tensor in tensors):
        return "it adds int8 only"
    return None if residual_of(site) else INEXACT


def residual_of(site: Site) -> Residual | None:
    """The residual add of a site's tail."""
    if not site.tail:
        return None
    follower = site.tail[0].of(Binary)
    found = sum_of(follower)
    if isinstance(found, str):
        return None
    line = found.sum
    if follower.inputs[1].name == site.outputs[0].name:
        line = LinearSum(line.second, line.first, line.start, line.shift)
    return Residual(line, found.bounds)


def sum_of(site: Site[Binary]) -> Residual | str:
    """A sum or difference of two int8 tensors, or why it has no such form."""
    if site.attributes.function not in ADDS:
        return "it adds and subtracts only"
    found = exact_sum(site, fraction=0)
    return Residual(found, bounds(site.attributes.clamp, site.outputs[0])) if found else INEXACT


def exact_sum(site: Site[Binary], fraction: int = FRACTION) -> LinearSum | None:
    """Coefficients that give every sum or difference of two int8 numbers exactly, clamped."""
    attributes = site.attributes
    return _found(attributes.function, formats(site), bounds(attributes.clamp, site.outputs[0]), fraction)


@lru_cache(1000)
def _found(function: str, form: Formats, limits: tuple[int, int], fraction: int) -> LinearSum | None:
    wanted = saturate(combined(function, *pairs(), form), *limits)
    sign = 1 if function == "add" else -1
    slopes = (form.left.scale / form.out.scale, sign * form.right.scale / form.out.scale)
    return linear_sum(wanted, slopes, limits, fraction)
