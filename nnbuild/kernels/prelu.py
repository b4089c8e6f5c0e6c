"""PReLU: negative values have their own slopes."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa.c99 import added
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, on_any_floats, only_integer
from nnbuild.kernels.lanes.rounded_arithmetic import rounded_kernels
from nnbuild.kernels.lanes.rounded_functions import prelu_rule
from nnbuild.kernels.loops.strided import Elements, Loops, Walk, broadcast, contiguous, loops
from nnbuild.kernels.parts import channel_tables
from nnbuild.kernels.parts.integer_steps import centred, finish, requantized
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.numeric.elementwise import prelu
from nnbuild.numeric.rounding import Ints, ints, limits, saturate
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
    v.declare(w, "value", v.use(w, "if_less", "x", v.each(w, 0.0), below, "x"))
    v.store(w, f"{names.outputs[0]} + {at[0]}", "value", count)


def _emit_integers(w: Writer, site: Site[PReLU], names: Names) -> None:
    out, scales, zeros = site.outputs[0], site.attributes.scales(site), site.attributes.zeros(site)

    def element(at: list[str]) -> None:
        centred(w, "x", f"{names.inputs[0]}[{at[0]}]", zeros[0])
        slope = added(f"{names.packed['slope']}[{at[1]}]", -zeros[1])
        below = requantized(w, f"x * ({slope})" if " " in slope else f"x * {slope}", scales.negative)
        w.bill(5)
        value = f"(x >= 0 ? {requantized(w, 'x', scales.positive)} : {below})"
        finish(w, f"{names.outputs[0]}[{at[0]}]", value, out, limits(out.dtype))

    _loops(site).nest(w, element)


def _results(site: Site[PReLU], x: Ints) -> Ints:
    slopes = ints(site.constant("slope")).reshape(-1)
    values = prelu(x[:, None], slopes, site.attributes.zeros(site), site.attributes.scales(site))
    return saturate(values, *limits("int8"))


def _word_loops(site: Site[PReLU]) -> Loops:
    shape = site.shape()
    walk = Walk(contiguous(shape))
    return loops(shape, walk, walk, Walk(broadcast(site.constant("slope").shape, shape)))


VARIANTS = (
    *on_any_floats(lambda v: Elements(v, _loops, _demand, _floats)),
    Kernel("integer", PORTABLE, only_integer, _demand, _emit_integers),
    channel_tables.kernel(_results, _loops),
    *rounded_kernels(_word_loops, _demand, prelu_rule, lambda inputs, constants: (inputs[0], constants["slope"])),
)
