"""PReLU: negative values have their own slopes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import (
    PORTABLE,
    Demand,
    Kernel,
    Names,
    accepted,
    on_any_floats,
    only_int8,
    only_integer,
    reason_of,
)
from nnbuild.kernels.lanes.rounded_arithmetic import rounded_kernels
from nnbuild.kernels.lanes.rounded_functions import prelu_rule
from nnbuild.kernels.loops.strided import Elements, Loops, Walk, broadcast, contiguous, loops
from nnbuild.kernels.parts import channel_tables
from nnbuild.kernels.parts.channel_tables import every_input
from nnbuild.kernels.parts.integer_steps import centred, finish, requantized
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.model.graph import Array
from nnbuild.numeric.elementwise import prelu
from nnbuild.numeric.rounding import INT8, Ints, ints, limits, saturate
from nnbuild.numeric.step_line import StepLines, step_lines
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.site import Site


def _loops(site: Site[PReLU]) -> Loops:
    shape = site.shape()
    return loops(shape, Walk(contiguous(shape)), Walk(broadcast(site.constant("slope").shape, shape)))


def _demand(site: Site[PReLU], lanes: int = 1) -> Demand:
    packed = {"slope": site.constant("slope").reshape(-1)}
    return Demand(extent=_loops(site).vectors(lanes), packed=packed, overlaps=IN_PLACE)


def _floats(w: Writer, v: Vectors, site: Site[PReLU], names: Names, at: list[str], count: int) -> None:
    v.declare(w, "x", v.load(w, f"{names.inputs[0]} + {at[0]}", count))
    v.declare(w, "slope", _loops(site).load(w, v, 1, f"{names.packed['slope']} + {at[1]}", count))
    below = v.use(w, "mul", "x", "slope")
    v.declare(w, "value", v.use(w, "if_less", "x", 0.0, below, "x"))
    v.store(w, f"{names.outputs[0]} + {at[0]}", "value", count)


def _emit_integers(w: Writer, site: Site[PReLU], names: Names) -> None:
    out, scales, zeros = site.outputs[0], site.attributes.scales(site), site.attributes.zeros(site)

    def element(at: list[str]) -> None:
        centred(w, "x", f"{names.inputs[0]}[{at[0]}]", zeros[0])
        slope = f"{names.packed['slope']}[{at[1]}] - {zeros[1]}"
        w.bill(5)
        with w.trips(1 / 2):
            below = requantized(w, f"x * ({slope})", scales.negative)
            above = requantized(w, "x", scales.positive)
        value = f"(x >= 0 ? {above} : {below})"
        finish(w, f"{names.outputs[0]}[{at[0]}]", value, out, limits(out.dtype))

    _loops(site).nest(w, element)


def _results(site: Site[PReLU], x: Ints) -> Ints:
    return _values(site, x, ints(site.constant("slope")).reshape(-1))


def _values(site: Site[PReLU], x: Ints, slopes: Ints) -> Ints:
    values = prelu(x[:, None], slopes, site.attributes.zeros(site), site.attributes.scales(site))
    return saturate(values, *INT8)


def _word_loops(site: Site[PReLU]) -> Loops:
    shape = site.shape()
    walk = Walk(contiguous(shape))
    return loops(shape, walk, walk, Walk(broadcast(site.constant("slope").shape, shape)))


@dataclass(frozen=True)
class _Lines:
    """Exact lines of bytes: one for each slope below the input's zero point, and another from there on."""

    below: StepLines | None
    above: StepLines
    zero: int


@lru_cache(maxsize=256)
def _lines(site: Site[PReLU]) -> _Lines | str:
    if refused := only_int8(site):
        return refused
    (zero, middle, out_zero), scales = site.attributes.zeros(site), site.attributes.scales(site)
    slopes, which = np.unique(ints(site.constant("slope")).reshape(-1), return_inverse=True)
    rising, falling = (np.ldexp(float(scale.multiplier), scale.shift - 31) for scale in scales)
    x = every_input()
    values = _values(site, x, slopes)

    def lines(part: Array, columns: slice, steps: Array) -> StepLines | None:
        found = step_lines(x[part], values[part, columns], INT8, steps, out_zero)
        return None if found is None or found.kinks.any() else found

    above = lines(x >= zero, slice(1), np.array([rising]))
    below = lines(x < zero, slice(None), (slopes - middle) * falling) if zero > INT8[0] else None
    if above is None or (below is None and zero > INT8[0]):
        return "no lines give every result exactly"
    each = below and replace(below, factors=below.factors[which], starts=below.starts[which])
    return _Lines(each, above, zero)


def _demand_lines(site: Site[PReLU]) -> Demand:
    below = accepted(_lines(site)).below
    columns = {"factor": below.factors, "start": below.starts, "shift": ints([below.shift])} if below else {}
    packed = {name: values.astype(np.int32) for name, values in columns.items()}
    return Demand(extent=_loops(site).extent, packed=packed, overlaps=IN_PLACE)


def _emit_lines(w: Writer, site: Site[PReLU], names: Names) -> None:
    lines = accepted(_lines(site))
    below, above = lines.below, lines.above
    if below is not None:
        w(f"const int32_t shift = {names.packed['shift']}[0];")

    def element(at: list[str]) -> None:
        w(w.use(c99.LOAD_AS, "const int32_t", "x", f"{names.inputs[0]}[{at[0]}]"))
        w("int32_t value;")
        w.bill(c99.MULTIPLY_ADD.cycles + 6)
        if below is not None:
            factor, start = (f"{names.packed[name]}[{at[1]}]" for name in ("factor", "start"))
            with w.block(f"if (x < {lines.zero})"):
                w(f"value = (x * {factor} + {start}) >> shift;")
        with w.block("else") if below is not None else nullcontext():
            w(f"value = (x * {above.factors[0]} + {int(above.starts[0])}) >> {above.shift};")
        c99.bound(w, INT8, "value")
        w(w.use(c99.STORE, f"{names.outputs[0]}[{at[0]}]", "(int8_t)value"))

    _loops(site).nest(w, element)


VARIANTS = (
    *on_any_floats(lambda v: Elements(v, _loops, _demand, _floats)),
    Kernel("integer", PORTABLE, only_integer, _demand, _emit_integers),
    channel_tables.kernel(_results, _loops),
    Kernel("lines", PORTABLE, lambda site: reason_of(_lines(site)), _demand_lines, _emit_lines),
    *rounded_kernels(_word_loops, _demand, prelu_rule, lambda inputs, constants: (inputs[0], constants["slope"])),
)
