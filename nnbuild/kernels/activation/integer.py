"""A function of every element, in integers: a table of 256 entries for 8 bits, the rule itself for 16."""

from __future__ import annotations

from math import prod

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.c99 import added
from nnbuild.kernels.contract import Demand, Names, only_integer
from nnbuild.kernels.integers import UNIT, centred, declare, finish, requantized, store
from nnbuild.kernels.overlaps import IN_PLACE
from nnbuild.model.graph import Array
from nnbuild.numeric.tables import sigmoid_table
from nnbuild.ops import activation_rules as rules
from nnbuild.ops.activation import Activation
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_integer


def _rule(site: Site[Activation]) -> rules.Rule:
    """The site's rule, as a table where that serves; bounds alone are cheaper than one."""
    attributes = site.attributes
    rule = attributes.rule(site)
    if site.inputs[0].dtype == "int16" or (isinstance(rule, rules.Rescale) and rule.scale == UNIT):
        return rule
    return rules.Entries(rules.entries_of(rule))


def _packed(site: Site[Activation]) -> dict[str, Array]:
    match _rule(site):
        case rules.Entries(entries) | rules.Table(entries):
            return {"table": entries.astype(site.outputs[0].dtype)}
        case rules.Sigmoid():
            return {"sigmoid": sigmoid_table().astype(np.uint16)}
    return {}


def demand(site: Site[Activation]) -> Demand:
    return Demand(extent=prod(site.shape()), packed=_packed(site), overlaps=IN_PLACE, rows=True)


def emit(w: Writer, site: Site[Activation], names: Names) -> None:
    rule = _rule(site)
    source, target = f"{names.inputs[0]}[i]", f"{names.outputs[0]}[i]"
    with w.loop("i", "end", start="begin", trips=prod(site.shape())):
        match rule:
            case rules.Entries():
                w.bill(c99.LOAD.cycles)
                w(w.use(c99.STORE, target, f"{names.packed['table']}[{source} + 128]"))
            case rules.Table():
                store(w, target, w.helper("interpolate16", names.packed["table"], source), site.outputs[0])
            case rules.Sigmoid(function, scale):
                helper = "logistic16" if function == "sigmoid" else "tanh16"
                value = w.helper(helper, names.packed["sigmoid"], source, str(scale.multiplier), str(scale.shift))
                store(w, target, value, site.outputs[0])
            case rules.Rescale(form) | rules.Slopes(form) | rules.Line(form) | rules.Gate(form) | rules.Whole(form):
                centred(w, "x", source, form.in_zero)
                finish(w, target, value_of(w, rule), site.outputs[0], form.bounds)


def value_of(w: Writer, rule: rules.Rule, x: str = "x") -> str:
    """The result for the variable x, which is less its zero point, before the output's."""
    match rule:
        case rules.Line(_, scale, offset):
            return added(requantized(w, x, scale), offset)
        case rules.Gate(_, gate, output):
            half = 1 << (rules.GATE_BITS - 1)
            declare(w, "gate", added(requantized(w, x, gate), half), "int32_t")
            c99.bound(w, (0, 2 * half), "gate")
            return requantized(w, f"{x} * gate", output)
        case rules.Whole():
            sign = "-" if rule.up else ""
            declare(w, "whole", f"(int32_t)({sign}(({sign}(int64_t){x} * {rule.steps}) >> {rule.right}))", "int32_t")
            c99.bound(w, (-rule.limit, rule.limit), "whole")
            return requantized(w, "whole", rule.output)
        case rules.Slopes(_, scales, threshold):
            w.bill(3)
            slope, shift = scales.negative
            below = requantized(w, added(x, -threshold), type(scales.negative)(abs(slope), shift))
            below = f"-({below})" if slope < 0 else below
            return f"({x} >= {threshold} ? {requantized(w, x, scales.positive)} : {below})"
        case rules.Rescale(_, scale):
            return requantized(w, x, scale)
    raise AssertionError(f"{rule} is no rule of a value")
