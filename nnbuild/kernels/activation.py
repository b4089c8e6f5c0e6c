"""Elementwise functions."""

from __future__ import annotations

from math import prod

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, on_any_floats, only_integer
from nnbuild.kernels.lanes.gathered_functions import gathered_kernels
from nnbuild.kernels.lanes.rounded_arithmetic import rounded_kernels
from nnbuild.kernels.lanes.rounded_functions import activation_rule
from nnbuild.kernels.loops.strided import Elements, Loops, alike
from nnbuild.kernels.parts import byte_tables
from nnbuild.kernels.parts.float_functions import missing, spell
from nnbuild.kernels.parts.integer_steps import UNIT, centred, finish, store, value_of
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import Ints, ints
from nnbuild.numeric.tables import sigmoid_table
from nnbuild.ops import activation_rules as rules
from nnbuild.ops.activation import Activation
from nnbuild.ops.site import Site


def _rule(site: Site[Activation]) -> rules.Rule:
    """The site's rule: for 8 bits a table of 256 entries, or clamping alone where that suffices, which is cheaper."""
    rule = site.attributes.rule(site)
    if site.inputs[0].dtype == "int16" or (isinstance(rule, rules.Rescale) and rule.scale == UNIT):
        return rule
    return rules.Entries(rules.entries_of(rule))


def _demand_integers(site: Site[Activation]) -> Demand:
    packed: dict[str, Array] = {}
    match _rule(site):
        case rules.Entries(entries):
            packed["table"] = byte_tables.table(entries).astype(site.outputs[0].dtype)
        case rules.Table(entries):
            packed["table"] = entries.astype(site.outputs[0].dtype)
        case rules.Sigmoid():
            packed["sigmoid"] = sigmoid_table().astype(np.uint16)
    return Demand(extent=prod(site.shape()), packed=packed, overlaps=IN_PLACE, rows=True)


def _emit_integers(w: Writer, site: Site[Activation], names: Names) -> None:
    rule, out = _rule(site), site.outputs[0]
    source, target = f"{names.inputs[0]}[i]", f"{names.outputs[0]}[i]"
    if isinstance(rule, rules.Entries):
        byte_tables.emit(w, site, names)
        return
    with w.loop("i", "end", start="begin", trips=prod(site.shape())):
        match rule:
            case rules.Table():
                store(w, target, w.helper("interpolate16", names.packed["table"], source), out)
            case rules.Sigmoid(function, scale):
                helper = "logistic16" if function == "sigmoid" else "tanh16"
                value = w.helper(helper, names.packed["sigmoid"], source, str(scale.multiplier), str(scale.shift))
                store(w, target, value, out)
            case rules.Rescale(form) | rules.Slopes(form) | rules.Line(form) | rules.Gate(form) | rules.Whole(form):
                centred(w, "x", source, form.in_zero)
                finish(w, target, value_of(w, rule), out, form.bounds)


class _Floats(Elements[Activation]):
    def accepts(self, site: Site[Activation]) -> str | None:
        return super().accepts(site) or missing(self.floats, site.attributes.function)


def _loops(site: Site[Activation]) -> Loops:
    return alike(site, 1)


def _demand(site: Site[Activation], lanes: int) -> Demand:
    return Demand(extent=_loops(site).vectors(lanes), overlaps=IN_PLACE, rows=lanes == 1)


def _element(w: Writer, v: Vectors, site: Site[Activation], names: Names, at: list[str], count: int) -> None:
    v.declare(w, "x", v.load(w, f"{names.inputs[0]} + {at[0]}", count))
    function = site.attributes.function, site.attributes.parameters
    v.store(w, f"{names.outputs[0]} + {at[0]}", spell(w, v, function, "x"), count)


def _entries(site: Site[Activation]) -> Ints:
    return ints(rules.entries_of(site.attributes.rule(site)))


def _word_loops(site: Site[Activation]) -> Loops:
    return alike(site, 2)


VARIANTS = (
    *on_any_floats(lambda v: _Floats(v, _loops, _demand, _element)),
    Kernel("integer", PORTABLE, only_integer, _demand_integers, _emit_integers),
    byte_tables.in_vectors(_entries),
    *gathered_kernels(_word_loops, _demand),
    *rounded_kernels(_word_loops, _demand, activation_rule, lambda inputs, _: inputs),
)
