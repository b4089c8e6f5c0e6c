"""The logarithm of softmax: every value less the largest one, and less the logarithm of the sum of their powers."""

from __future__ import annotations

from math import prod

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, only_float, only_int8
from nnbuild.kernels.loops.strided import each_run
from nnbuild.kernels.parts.integer_steps import declare, store
from nnbuild.kernels.parts.long_sums import summed
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.kernels.parts.softmax_steps import few_enough, if_counted, powers8, sum8
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT8
from nnbuild.numeric.softmax import DIFF_INTEGER_BITS, LOG_INTEGER_BITS, softmax8_constants
from nnbuild.ops.integer import quant_of
from nnbuild.ops.log_softmax import LogSoftmax
from nnbuild.ops.site import Site

POINT = 31 - DIFF_INTEGER_BITS - LOG_INTEGER_BITS
MOST = 1 << 12
"""The number of exponentials of which the sum has more than 12 bits before its point."""


def _demand(site: Site[LogSoftmax], packed: dict[str, Array] | None = None) -> Demand:
    return Demand(extent=prod(site.shape()[:-1]), packed=packed or {}, overlaps=IN_PLACE)


def _largest(w: Writer, size: int, kind: str) -> None:
    declare(w, "largest", "from[0]", kind)
    with w.loop("i", size):
        w(w.use(c99.LARGER, "largest", "from[i]"))


def _emit(w: Writer, site: Site[LogSoftmax], names: Names) -> None:
    size = site.shape()[-1]
    with each_run(w, site, names, prod(site.shape()[:-1]), size):
        _largest(w, size, "float")
        with summed(w, "sum", size):
            w(w.use(c99.LOAD, "below", "from[i] - largest"))
            w(w.use(c99.STORE, "to[i]", "below"))
            w(w.use(c99.ADD_FLOAT, "sum", w.helper("expf", "below")))
        w(w.use(c99.LOAD, "all", w.helper("logf", "sum")))
        with w.loop("i", size):
            w(w.use(c99.STORE, "to[i]", "to[i] - all"))
            w.bill(0, floats=1)


def _accepts_integers(site: Site[LogSoftmax]) -> str | None:
    return only_int8(site) or few_enough(site.shape()[-1], MOST)


def _demand_integers(site: Site[LogSoftmax]) -> Demand:
    return _demand(site, {"powers": powers8(quant_of(site.inputs[0]).scale)})


def _emit_integers(w: Writer, site: Site[LogSoftmax], names: Names) -> None:
    """A difference with 26 bits behind its point fits 31 bits, and so many unsigned ones its sum with the logarithm."""
    size, powers = site.shape()[-1], names.packed["powers"]
    scale = quant_of(site.inputs[0]).scale
    counted, (multiplier, shift) = len(powers8(scale)), softmax8_constants(scale).scale
    with each_run(w, site, names, prod(site.shape()[:-1]), size):
        _largest(w, size, "int32_t")
        sum8(w, powers, counted, (size, 1))
        logarithm = w.helper("log_of_sum", "(int32_t)sum")
        declare(w, "all", f"(uint32_t){logarithm} + {1 << (POINT - 1)}U", "const uint32_t")
        with w.loop("i", size):
            declare(w, "below", "largest - from[i]")
            declare(w, "value", str(INT8[0]), "int32_t")
            with if_counted(w, counted):
                away = w.helper("requantize", "-below", str(multiplier), str(shift))
                declare(w, "share", f"all - (uint32_t){away}", "const uint32_t")
                w(w.use(c99.STORE, "value", f"{INT8[1]} - (int32_t)(share >> {POINT})"))
            w(w.use(c99.AT_LEAST, "value", str(INT8[0])))
            store(w, "to[i]", "value", site.outputs[0])


VARIANTS = (
    Kernel("scalar", PORTABLE, only_float, _demand, _emit),
    Kernel("integer", PORTABLE, _accepts_integers, _demand_integers, _emit_integers),
)
