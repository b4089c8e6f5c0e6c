"""GRU in both of Keras' forms: the reset gate acts on the candidate's product, or on the state before it."""

from __future__ import annotations

from typing import cast

import numpy as np

from nnbuild.kernels.contract import Demand
from nnbuild.kernels.recurrent.cells import Cells, Step, Units, on_floats
from nnbuild.kernels.recurrent.integer_cells import Sums, both_products, largest_of, parts_of
from nnbuild.kernels.recurrent.integer_variants import integer_kernels
from nnbuild.kernels.recurrent.scalar_cell import Gate, ScalarCell
from nnbuild.model.graph import Array
from nnbuild.ops.gru import GRU
from nnbuild.ops.recurrent import rules_of
from nnbuild.ops.recurrent_rules import LARGEST, Rules
from nnbuild.ops.site import Site

OF_X, OF_H = ("update", "reset", "of_input"), ("update", "reset", "of_state")
"""The sums of a unit where the reset gate acts after the product: the candidate has two parts."""
GATES, CANDIDATE = slice(0, 2), slice(2, 3)


def _four_biases(bias: Array) -> Array:
    """Update and reset add both biases; the candidate keeps those of the input and the state separate."""
    of_x, of_h = bias.reshape(2, 3, -1)
    return np.stack([of_x[0] + of_h[0], of_x[1] + of_h[1], of_x[2], of_h[2]], axis=1)


def _demand_integers(sums: Sums, site: Site[GRU]) -> Demand:
    if site.attributes.reset_after:
        return sums.all_gates(site)
    packed: dict[str, Array] = {}
    for name, products in zip(("kernel", "recurrent"), both_products(site), strict=True):
        packed |= sums.packed(site, name, products, GATES)
        packed |= sums.packed(site, f"{name}_candidate", products, CANDIDATE)
    return sums.demand(site, packed, 3)


def _emit_integers(cell: ScalarCell) -> None:
    with cell.time_steps():
        if cast(GRU, cell.site.attributes).reset_after:
            _integers_after(cell)
        else:
            _integers_before(cell)


def _integer_gates(rules: Rules) -> list[Gate]:
    """`update` and `reset`, of two parts each."""
    largest = largest_of(rules.of_input, rules.of_state)
    return [Gate(name, f"{name}_x", f"{name}_h", rules.gate, largest) for name in ("update", "reset")]


def _recalled(rules: Rules, largest: int) -> int:
    """The bound of a number within `largest` after the reset gate."""
    return (max(map(abs, rules.gate.bounds)) * largest >> rules.gate.power) + 1


def _integer_blend(cell: ScalarCell, rules: Rules, update: str) -> None:
    """Stores the new hidden state, from the old one and the candidate."""
    cell.blend(update, cell.state(cell.states[0]), cell.number("candidate"), rules)


def _integers_after(cell: ScalarCell) -> None:
    rules, (hidden,) = rules_of(cell.site), cell.states
    parts = parts_of(cell.site, ("update", "reset", "candidate"), hidden, both_products(cell.site))
    of_state = largest_of(rules.of_state)
    most = largest_of(rules.of_input) + _recalled(rules, of_state)

    def unit(cell: ScalarCell) -> None:
        reset, of_h = cell.number("reset"), cell.number("candidate_h")
        cell.declare_product("recalled", reset, of_h, rules.gate.power, (rules.gate.most, of_state))
        cell.gate(Gate("candidate", cell.number("candidate_x"), "recalled", rules.value, most, "activation"))
        _integer_blend(cell, rules, cell.number("update"))

    cell.each_unit(parts, _integer_gates(rules), unit)


def _integers_before(cell: ScalarCell) -> None:
    rules, (hidden,), products = rules_of(cell.site), cell.states, both_products(cell.site)
    gates = parts_of(cell.site, ("update", "reset"), hidden, products)
    candidate = parts_of(cell.site, ("candidate",), "recalled", products, "_candidate")
    for index, name in enumerate(("updates", "recalled"), 1):
        cell.w(f"int32_t *{name} = {cell.sums.kept(cell.site, cell.names, index)};")

    def recall(cell: ScalarCell) -> None:
        most = rules.gate.most, LARGEST
        kept = cell.product(cell.number("reset"), cell.state(hidden), rules.gate.power, most)
        cell.store("updates", cell.number("update"))
        cell.store_held("recalled", kept)

    cell.each_unit(gates, _integer_gates(rules), recall, 3)
    gate = Gate("candidate", "candidate_x", "candidate_h", rules.value, largest_of(*products), "activation")
    cell.each_unit(candidate, [gate], lambda cell: _integer_blend(cell, rules, cell.state("updates")), 3)


class _Floats(Cells[GRU]):
    sums = 4

    def held(self, site: Site[GRU]) -> int:
        return 0 if site.attributes.reset_after else 2

    def pack(self, site: Site[GRU], units: Units) -> dict[str, Array]:
        after = site.attributes.reset_after
        matrices = self.matrices(site, apart=site.attributes.units if after else 0)
        bias = site.constant("bias") if "bias" in site.constants else None
        if after:
            packed = {role: units.pack(matrix, 3) for role, matrix in matrices.items()}
            if bias is not None:
                packed["bias"] = units.pack(_four_biases(bias).T.reshape(1, -1), 4)
            return packed
        if bias is not None:
            matrices["bias"] = bias[None]
        split = 2 * units.units
        packed = {role: units.pack(matrix[:, :split], 2) for role, matrix in matrices.items()}
        return packed | {f"{role}_candidate": units.pack(matrix[:, split:], 1) for role, matrix in matrices.items()}

    def step(self, step: Step[GRU]) -> None:
        if step.site.attributes.reset_after:
            self._after(step)
        else:
            self._before(step)

    def _after(self, step: Step[GRU]) -> None:
        w, v = step.w, step.floats

        def unit(vector: int, place: str, count: int) -> None:
            self._gates(step, vector)
            recalled = v.use(w, "mul", "recall", f"of_state{vector}")
            v.declare(w, "candidate", v.use(w, "add", f"of_input{vector}", recalled))
            self._blend(step, "candidate", place, count)

        step.each_unit(unit, OF_X, OF_H)

    def _gates(self, step: Step[GRU], vector: int) -> None:
        step.apply("keep", step.site.attributes.gate_activation, f"update{vector}")
        step.apply("recall", step.site.attributes.gate_activation, f"reset{vector}")

    def _blend(self, step: Step[GRU], candidate: str, place: str, count: int) -> None:
        """keep * old + (1 - keep) * proposal."""
        w, v = step.w, step.floats
        step.apply("proposal", step.site.attributes.activation, candidate)
        kept = v.use(w, "mul", "keep", v.load(w, f"{step.states[0]} + {place}", count))
        new = v.use(w, "mul", v.use(w, "sub", 1.0, "keep"), "proposal")
        v.store(w, f"{step.fresh} + {place}", v.use(w, "add", kept, new), count)

    def _before(self, step: Step[GRU]) -> None:
        """The reset gate acts on the whole state before the candidate's product: the gates of all units come first."""
        w, v, units = step.w, step.floats, step.units.units
        w(f"float *keeps = {step.names.scratch} + {units};")
        w(f"float *recalled = {step.names.scratch} + {2 * units};")

        def gates(vector: int, place: str, count: int) -> None:
            self._gates(step, vector)
            v.store(w, f"keeps + {place}", "keep", count)
            old = v.load(w, f"{step.states[0]} + {place}", count)
            v.store(w, f"recalled + {place}", v.use(w, "mul", "recall", old), count)

        def candidate(vector: int, place: str, count: int) -> None:
            v.declare(w, "keep", v.load(w, f"keeps + {place}", count))
            self._blend(step, f"candidate{vector}", place, count)

        step.each_unit(gates, ("update", "reset"))
        step.each_unit(candidate, ("candidate",), state="recalled", suffix="_candidate")


VARIANTS = (
    *on_floats(_Floats),
    *integer_kernels(_demand_integers, _emit_integers),
)
