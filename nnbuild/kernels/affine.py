"""A factor and a summand per channel."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels import conv2d, depthwise_conv2d
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, on_any_floats, only_int8, only_integer
from nnbuild.kernels.loops.strided import Elements, Loops, Walk, contiguous, loops
from nnbuild.kernels.parts import as_depthwise, channel_linear, channel_tables, prologue
from nnbuild.kernels.parts.integer_steps import centred, declare, finish, zero
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.model.graph import Array
from nnbuild.numeric.multiplier import convolution_scales
from nnbuild.numeric.requant import General, Layer, RuleName
from nnbuild.numeric.rounding import Ints, ints, limits, saturate
from nnbuild.numeric.step_line import StepLines, step_lines
from nnbuild.ops.affine import Affine
from nnbuild.ops.integer import bounds, quant_of, real_scales
from nnbuild.ops.site import Site


def _loops(site: Site[Affine]) -> Loops:
    axis, shape = site.attributes.axis, site.shape()
    return loops(shape, Walk(contiguous(shape)), Walk(tuple(int(i == axis) for i in range(len(shape)))))


def _demand(site: Site[Affine], lanes: int = 1, more: dict[str, Array] | None = None) -> Demand:
    packed = {role: site.constant(role) for role in ("scale", "shift")} | (more or {})
    return Demand(extent=_loops(site).vectors(lanes), packed=packed, overlaps=IN_PLACE)


def _general(site: Site[Affine]) -> General:
    """The vendored function that scales the sums, and what it takes for each channel."""
    x, out, factors = site.inputs[0], site.outputs[0], ints(site.constant("scale"))
    ends = [factors * (limit - zero(x)) + ints(site.constant("shift")) for limit in limits(x.dtype)]
    rule: RuleName = "once" if site.attributes.once else "twice" if x.dtype == "int8" else "wide"
    reals = np.broadcast_to(real_scales(site, "scale"), factors.shape)
    within = bounds(site.attributes.clamp, out)
    return Layer(rule, reals, zero(out), within, np.minimum(*ends), np.maximum(*ends)).general(limits(out.dtype))


SCALING = "by_"
"""Before the names of the vendored function's constants."""


def _demand_integers(site: Site[Affine]) -> Demand:
    return _demand(site, more={SCALING + name: values for name, values in _general(site).constants.items()})


def _emit_integers(w: Writer, site: Site[Affine], names: Names) -> None:
    """Rounded like a convolution with a single weight."""
    x, out, scaling = site.inputs[0], site.outputs[0], _general(site)
    kind = "int32_t" if x.dtype == "int8" else "int64_t"

    def element(at: list[str]) -> None:
        of = {role: f"{name}[{at[1]}]" for role, name in names.packed.items()}
        centred(w, "x", f"{names.inputs[0]}[{at[0]}]", zero(x))
        w.bill(c99.MULTIPLY_ADD.cycles)
        declare(w, "sum", f"x * {of['scale']} + {of['shift']}", f"const {kind}")
        scaled = w.helper(scaling.function, "sum", *[of[SCALING + name] for name in scaling.constants])
        finish(w, f"{names.outputs[0]}[{at[0]}]", scaled, out, bounds(site.attributes.clamp, out))

    _loops(site).nest(w, element)


def _floats(w: Writer, v: Vectors, site: Site[Affine], names: Names, at: list[str], count: int) -> None:
    v.declare(w, "value", v.load(w, f"{names.inputs[0]} + {at[0]}", count))
    for role in ("scale", "shift"):
        v.declare(w, role, _loops(site).load(w, v, 1, f"{names.packed[role]} + {at[1]}", count))
    w(f"value = {v.use(w, 'add', v.use(w, 'mul', 'value', 'scale'), 'shift')};")
    v.bound(w, site.attributes.clamp, "value")
    v.store(w, f"{names.outputs[0]} + {at[0]}", "value", count)


def _results(site: Site[Affine], x: Ints) -> Ints:
    out, factors = site.outputs[0], ints(site.constant("scale"))
    sums = (x[:, None] - zero(site.inputs[0])) * factors + ints(site.constant("shift"))
    return saturate(site.attributes.scaled(site, sums) + zero(out), *bounds(site.attributes.clamp, out))


@lru_cache(maxsize=256)
def _lines(site: Site[Affine], drop: int) -> StepLines | str:
    """Each channel as a linear function of its input."""
    if refused := only_int8(site):
        return refused
    x, out, inputs = site.inputs[0], site.outputs[0], channel_tables.every_input()
    reals = convolution_scales(quant_of(x).scale, quant_of(site.constants["scale"]).scales, quant_of(out).scale)
    slopes, within = ints(site.constant("scale")) * reals, bounds(site.attributes.clamp, out)
    found = step_lines(inputs, _results(site, inputs), within, slopes, zero(out), drop)
    return found or "one of its channels is not linear"


VARIANTS = (
    *on_any_floats(lambda v: Elements(v, _loops, _demand, _floats)),
    Kernel("integer", PORTABLE, only_integer, _demand_integers, _emit_integers),
    channel_tables.kernel(_results, _loops),
    *channel_linear.kernels(_lines, _loops),
    *as_depthwise.kernels(depthwise_conv2d.WORDS),
    *prologue.kernels("conv2d", conv2d.FLOATS),
    *prologue.kernels("depthwise_conv2d", depthwise_conv2d.FLOATS),
)
