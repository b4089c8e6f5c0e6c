"""Exact sums and differences of 16-bit tensors by rounded high words of products, one at a time.

`requantize` of a number shifted left by 15 is the rounded high word of the number shifted by 16, times the multiplier.
"""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Names, kinds_of, reason_of
from nnbuild.kernels.lanes.vector_binary import word_sum
from nnbuild.kernels.loops.strided import Loops
from nnbuild.kernels.parts.integer_steps import declare
from nnbuild.numeric.multiplier import Multiplier
from nnbuild.numeric.rounding import INT16
from nnbuild.ops.binary import Binary, operands
from nnbuild.ops.site import Site


def refused(site: Site[Binary]) -> str | None:
    return "it computes int16 only" if kinds_of(site) != {"int16"} else reason_of(word_sum(site))


def emit(w: Writer, site: Site[Binary], names: Names, walks: Loops, ops: Vectors) -> None:
    rule = word_sum(site)
    assert not isinstance(rule, str)

    def element(at: list[str]) -> None:
        scales = rule.left.scale, rule.right.scale
        for name, pointer, place, scale in zip("ab", operands(names.inputs, names.packed), at[1:], scales, strict=True):
            w.bill(2)
            declare(w, name, f"{pointer}[{place}] * {2 << rule.spare}", "int32_t")
            _requantize(w, ops, name, scale)
        declare(w, "value", f"(a {'+' if rule.operation == 'add' else '-'} b) * 2", "int32_t")
        w.bill(2)
        _requantize(w, ops, "value", rule.output.scale)
        w(f"value = {ops.call(w, 'saturate', 'value', of=(16,))};")
        c99.narrow(w, rule.bounds, "value", INT16)
        w(w.use(c99.STORE, f"{names.outputs[0]}[{at[0]}]", "(int16_t)value"))

    walks.nest(w, element)


def _requantize(w: Writer, ops: Vectors, doubled: str, scale: Multiplier) -> None:
    """Replaces a doubled number by its multiple, rounded at the product and again, away from zero, at the shift."""
    w(f"{doubled} = {ops.call(w, 'high_rounded_add', doubled, str(scale.multiplier), '0')};")
    if scale.shift < 0:
        w.bill(3)
        w(f"{doubled} = ({doubled} + ({doubled} >> 31) + {1 << (-scale.shift - 1)}) >> {-scale.shift};")
