"""LSTM: the four sums of a unit together, then its gates."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Kernel, Names, on_each, only_float
from nnbuild.kernels.integers import declare
from nnbuild.kernels.loops import recurrent, recurrent_integer, recurrent_vector
from nnbuild.kernels.loops.recurrent import state_names, time_steps
from nnbuild.kernels.loops.recurrent_integer import Sums, hold, shifted
from nnbuild.kernels.loops.recurrent_pairs import integer_kernels
from nnbuild.kernels.loops.recurrent_vector import Cells, Units, blocks, each_vector, fresh_state
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.recurrent import rules_of
from nnbuild.ops.recurrent_rules import LARGEST
from nnbuild.ops.site import Site

SUMS = ("let_in", "forget", "candidate", "let_out")
GATES = (("entry", "let_in"), ("keep", "forget"), ("exit", "let_out"))


def _emit(w: Writer, site: Site[LSTM], names: Names) -> None:
    attributes, (_, memory) = site.attributes, state_names(site, names)
    with time_steps(w, site, names), w.loop("unit", attributes.units):
        recurrent.sums(w, site, names, SUMS)
        for gate, total in GATES:
            recurrent.apply(w, gate, attributes.gate_activation, total)
        recurrent.apply(w, "proposal", attributes.activation, "candidate")
        kept, added = c99.product(w, "keep", f"{memory}[unit]"), c99.product(w, "entry", "proposal")
        w(w.use(c99.LOAD, "cell", f"{kept} + {added}"))
        recurrent.apply(w, "shown", attributes.activation, "cell")
        w(w.use(c99.STORE, f"{memory}[unit]", "cell"))
        w(w.use(c99.STORE, f"{names.scratch}[unit]", c99.product(w, "exit", "shown")))


def _emit_integers(sums: Sums, w: Writer, site: Site[LSTM], names: Names) -> None:
    units, rules = site.attributes.units, rules_of(site)
    hidden, memory = state_names(site, names)
    point, value_point = rules.gate.power, rules.value.power
    with time_steps(w, site, names):
        sums.begin_step(w, site, names)
        with w.loop("unit", units):
            of_x, of_h = [f"{name}_x" for name in SUMS], [f"{name}_h" for name in SUMS]
            sums.weighted(w, names, of_x, ("x", site.shape()[1]), "kernel", rules.of_input)
            sums.weighted(w, names, of_h, (hidden, units), "recurrent", rules.of_state)
            for name, first, second in zip(SUMS, of_x, of_h, strict=True):
                curve, table = (rules.value, "activation") if name == "candidate" else (rules.gate, "gate")
                sums.total(w, name, first, second, curve)
                recurrent_integer.apply(w, names, curve, name, table)
            kept = shifted(f"(int64_t)forget * {memory}[unit]", point)
            added = shifted("(int64_t)let_in * candidate", point + value_point - rules.cell_power)
            declare(w, "cell", hold(w, f"({kept}) + ({added})", "INT32_MAX"))
            assert rules.shown is not None
            declare(w, "shown", hold(w, shifted("(int64_t)cell", rules.shown_shift), str(rules.shown.limit)), "int32_t")
            recurrent_integer.apply(w, names, rules.shown, "shown", "activation")
            result = shifted("(int64_t)let_out * shown", point + value_point - rules.hidden_power)
            w(w.use(c99.STORE, f"{memory}[unit]", "cell"))
            w(w.use(c99.STORE, f"{names.scratch}[unit]", f"(int16_t){hold(w, result, str(LARGEST))}"))


class _Floats(Cells[LSTM]):
    sums = 4

    def step(self, w: Writer, site: Site[LSTM], names: Names, units: Units) -> None:
        attributes, v, (_, memory) = site.attributes, units.floats, state_names(site, names)
        fresh = fresh_state(site, names, units)

        def gates(vector: int, place: str, count: int) -> None:
            for gate, total in GATES:
                recurrent_vector.apply(w, units, gate, attributes.gate_activation, f"{total}{vector}")
            recurrent_vector.apply(w, units, "proposal", attributes.activation, f"candidate{vector}")
            v.declare(w, "old", v.load(w, f"{memory} + {place}", count))
            kept, added = v.use(w, "mul", "keep", "old"), v.use(w, "mul", "entry", "proposal")
            v.declare(w, "cell", v.use(w, "add", kept, added))
            v.store(w, f"{memory} + {place}", "cell", count)
            recurrent_vector.apply(w, units, "shown", attributes.activation, "cell")
            v.store(w, f"{fresh} + {place}", v.use(w, "mul", "exit", "shown"), count)

        def block(real: int) -> None:
            recurrent_vector.sums(w, units, site, names, SUMS)
            each_vector(w, units, real, gates)

        blocks(w, units, block)


VARIANTS = (
    Kernel("scalar", PORTABLE, only_float, recurrent.all_gates, _emit),
    *integer_kernels(Sums.all_gates, _emit_integers),
    on_each("float", _Floats),
)
