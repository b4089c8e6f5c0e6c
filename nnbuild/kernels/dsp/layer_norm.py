"""Layer normalization of bytes on cores with long multiplies and pairs of products.

The variance of the integers comes from their sum and sum of squares, both by pairs. One rounded high product normalizes
a value; one long multiply-accumulate makes the output: it multiplies by the factor at the output's scale, and starts
from the summand, half a unit and the zero point at that scale. All of it is exact.
"""

from __future__ import annotations

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.kernels.parts.integer_steps import declare
from nnbuild.kernels.parts.layer_norm_steps import HIGH, MOST_RIGHT
from nnbuild.numeric.rounding import INT8
from nnbuild.ops.integer import quant_of
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.site import Site

LARGEST = 1 << 16
"""Bytes whose squares have a sum of 32 bits."""
ONES = str(0x00010001)
FOUR = 4
LONG_PRODUCT = Row("const int64_t total = {0} + (int64_t)normal * {1};", 1, products=1)
RAISED = Row("(int32_t)((uint32_t){0} * unit + origin)", 2, 1, products=1)
NORMAL = Row("const int32_t normal = (int32_t)(((int64_t){0} * root + {1}) >> right);", 8, products=2)


def sums(w: Writer, size: int) -> None:
    """Declares the sum of a row and the sum of its squares."""
    w(w.use(c99.LOAD_AS, "int32_t", "sum", "0"))
    w(w.use(c99.LOAD_AS, "int32_t", "squares", "0"))
    whole = size // FOUR * FOUR
    turn = next(words * FOUR for words in (4, 2, 1) if whole % (words * FOUR) == 0)
    with w.loop("i", whole, step=turn):
        for at in range(0, turn, FOUR):
            with w.block(""):
                place = f"from + i + {at}" if at else "from + i"
                w(f"const int32_t four = {DSP.call(w, 'load_bytes', place, of=(FOUR,))};")
                for name in ("even", "odd"):
                    w(f"const int32_t {name} = {DSP.call(w, f'p_{name}_bytes', 'four')};")
                    w(f"squares = {DSP.call(w, 'p_dot', name, name, 'squares')};")
                    w(f"sum = {DSP.call(w, 'p_dot', name, ONES, 'sum')};")
    with w.loop("i", size, start=whole):
        w(w.use(c99.ADD, "sum", "from[i]"))
        w(w.use(c99.MULTIPLY_ADD, "squares", "from[i]", "from[i]"))


def outputs(w: Writer, site: Site[LayerNorm], size: int, packed: str) -> None:
    """All outputs of a row, from its mean, `root` and `right`."""
    scales = site.attributes.scales(site)
    with w.block(f"if (right <= {HIGH})"):
        w(f"const uint32_t unit = {1 << scales.fraction}U << ({HIGH} - right);")
        w(f"const uint32_t origin = 0U - ((uint32_t)mean << ({HIGH} - right));")
        w(f"const int32_t *k = {packed};")
        whole = size // FOUR * FOUR
        with w.loop("i", whole, step=FOUR):
            for at in range(FOUR):
                with w.block(""):
                    _normal(w, site, f"i + {at}" if at else "i")
        with w.loop("i", size, start=whole):
            _normal(w, site, "i")
    with w.block("else"), w.trips(0):
        w(f"const int32_t *k = {packed};")
        with w.loop("i", size):
            declare(w, "centred", f"from[i] * {1 << scales.fraction} - mean")
            w(w.use(NORMAL, "centred", "((int64_t)1 << (right - 1))"))
            _output(w, site, "i")


def _normal(w: Writer, site: Site[LayerNorm], i: str) -> None:
    raised = w.use(RAISED, f"from[{i}]")
    w(f"const int32_t normal = {DSP.call(w, 'high_rounded_add', raised, '(int32_t)root', '0')};")
    _output(w, site, i)


def _output(w: Writer, site: Site[LayerNorm], i: str) -> None:
    right, zero = site.attributes.scales(site).output.right, quant_of(site.outputs[0]).zero_point
    w(w.use(LONG_PRODUCT, DSP.call(w, "two", "k[0]", "k[1]"), "k[2]"))
    w.bill(3, 3)
    if HIGH <= right <= MOST_RIGHT:
        value = DSP.call(w, "saturate", f"(int32_t)(total >> {HIGH})", of=(8, right - HIGH))
    else:
        w(f"int64_t value = {c99.added(f'(total >> {right})', zero if right > MOST_RIGHT else 0)};")
        c99.bound(w, INT8, "value")
        value = "value"
    w(w.use(c99.STORE, f"to[{i}]", f"(int8_t){value}"))
    w("k += 3;")
    w.bill(1)
