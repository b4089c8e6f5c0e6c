"""Elementwise operations of two operands, with broadcasting."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import FLOATS
from nnbuild.isa.c99 import SINGLE
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import (
    PORTABLE,
    Demand,
    Kernel,
    Names,
    Overlap,
    all_int8,
    kernel_of,
    on_any_floats,
    on_each,
    only_integer,
    reason_of,
)
from nnbuild.kernels.dsp import binary as dsp_binary
from nnbuild.kernels.lanes.rounded_arithmetic import rounded_kernels
from nnbuild.kernels.lanes.rounded_functions import binary_rule
from nnbuild.kernels.lanes.vector_binary import ProductRule, product_rule
from nnbuild.kernels.lanes.vector_epilogue import OPERATIONS
from nnbuild.kernels.loops.strided import (
    Elements,
    Loops,
    flat_constants,
    operand_loops,
)
from nnbuild.kernels.loops.turns import Turns
from nnbuild.kernels.parts import byte_tables, channel_tables, device_arithmetic, portable_binary
from nnbuild.kernels.parts.integer_steps import centred, declare, finish, requantized, scaled_once
from nnbuild.kernels.parts.residual import Residual, sum_of
from nnbuild.model.graph import Array
from nnbuild.numeric.elementwise import AddScales
from nnbuild.numeric.rounding import Ints, ints, saturate
from nnbuild.ops.binary import Binary, Formats, combined, formats, operands
from nnbuild.ops.integer import bounds
from nnbuild.ops.site import Site


def _demand(site: Site[Binary], lanes: int = 1) -> Demand:
    """A broadcast operand is not streamed row by row."""
    packed = flat_constants(site)
    shapes, out = [site.shape(i) for i in range(len(site.inputs))], site.output_shape()
    whole = tuple(Overlap(input=i) for i, shape in enumerate(shapes) if shape == out)
    in_rows = lanes == 1 and all(shape[:1] == out[:1] for shape in shapes)
    return Demand(extent=operand_loops(site).vectors(lanes), packed=packed, overlaps=whole, rows=in_rows)


def _emit_integers(w: Writer, site: Site[Binary], names: Names) -> None:
    left, right = operands(names.inputs, names.packed)
    form, out = formats(site), site.outputs[0]

    def element(at: list[str]) -> None:
        centred(w, "a", f"{left}[{at[1]}]", form.zeros[0])
        centred(w, "b", f"{right}[{at[2]}]", form.zeros[1])
        value = _value(w, site.attributes.function, form)
        finish(w, f"{names.outputs[0]}[{at[0]}]", value, out, bounds(site.attributes.clamp, out))

    operand_loops(site).nest(w, element)


def _value(w: Writer, function: str, form: Formats) -> str:
    """The result for a and b, without the zero point; 16-bit operands square to 46 bits."""
    match function:
        case "multiply":
            w.bill(1)
            if form.once:
                return scaled_once(w, "a * b", form.product_once())
            return requantized(w, "a * b", form.product_scale())
        case "divide":
            division = form.division_scale()
            return w.helper("divide", "a", "b", str(division.multiplier), str(division.right))
        case "add" | "subtract":
            _align(w, form.sum_scales())
            return requantized(w, f"left {'+' if function == 'add' else '-'} right", form.sum_scales().output)
        case "squared_difference":
            _align(w, form.square_scales())
            declare(w, "apart", "left - right")
            wide = form.wide_square_scale()
            if wide is not None:
                return w.helper("scale_wide", "(int64_t)apart * apart", str(wide.multiplier), str(wide.right))
            return requantized(w, "apart * apart", form.square_scales().output)
    scales = form.choice_scales()
    declare(w, "left", requantized(w, "a", scales[0]))
    declare(w, "right", requantized(w, "b", scales[1]))
    w.bill(3)
    return f"(left {'>' if function == 'maximum' else '<'} right ? left : right)"


def _align(w: Writer, scales: AddScales) -> None:
    """Brings both operands to one scale with spare bits below, as TFLite does."""
    for name, operand, scale in (("left", "a", scales.first), ("right", "b", scales.second)):
        whole = portable_binary.Term(0, scale, scales.left_shift).factor
        value = f"{operand} * {whole or 1 << scales.left_shift}"
        declare(w, name, value if whole else requantized(w, value, scale))


def _floats(w: Writer, v: Vectors, site: Site[Binary], names: Names, at: list[str], count: int) -> None:
    walks, pointers, function = operand_loops(site), operands(names.inputs, names.packed), site.attributes.function
    for operand, name in enumerate("ab"):
        v.declare(w, name, walks.load(w, v, operand + 1, f"{pointers[operand]} + {at[operand + 1]}", count))
    if function == "squared_difference":
        w(f"a = {v.use(w, 'sub', 'a', 'b')};")
        w(f"a = {v.use(w, 'mul', 'a', 'a')};")
    else:
        w(f"a = {v.use(w, OPERATIONS[function], 'a', 'b')};")
    v.bound(w, site.attributes.clamp, "a")
    v.store(w, f"{names.outputs[0]} + {at[0]}", "a", count)


def _demand_plain(site: Site[Binary]) -> Demand:
    usual = _demand(site)
    return replace(usual, packed={**usual.packed, **portable_binary.tables(site)})


def _demand_words(site: Site[Binary]) -> Demand:
    """Where one operand is broadcast, channels are computed one by one, so outputs must not overlap other channels."""
    usual, size = _demand(site), prod(site.output_shape())
    if dsp_binary.broadcast_rows(operand_loops(site)) is None:
        return usual
    return replace(usual, overlaps=tuple(replace(each, step=size) for each in usual.overlaps))


@lru_cache(maxsize=256)
def _rule(site: Site[Binary]) -> Residual | ProductRule | str:
    refused = all_int8(site)
    return refused or (product_rule(site) if site.attributes.function == "multiply" else sum_of(site))


@dataclass(frozen=True)
class _Integers:
    """Sums, differences and products of bytes in vectors."""

    v: Vectors

    def accepts(self, site: Site[Binary]) -> str | None:
        return reason_of(_rule(site)) or operand_loops(site).no_vectors(self.v.lanes)

    def demand(self, site: Site[Binary]) -> Demand:
        return _demand(site, self.v.lanes)

    def emit(self, w: Writer, site: Site[Binary], names: Names) -> None:
        rule, v, once = _rule(site), self.v, operand_loops(site).repeated
        assert not isinstance(rule, str)
        pointers = operands(names.inputs, names.packed)

        def element(at: list[str], count: int) -> None:
            for name, pointer, place, single in zip(("left", "right"), pointers, at[1:], once[1:], strict=True):
                if single:
                    value = v.call(w, "each", f"{pointer}[{place}]")
                else:
                    value = v.call(w, "widen", f"{pointer} + {place}", of=(count,))
                v.let(w, "sums", name, value)
            v.let(w, "sums", "total", "left", "")
            rule.join(w, v, "left", "right", "total")
            w(f"{v.call(w, 'store_bytes', f'{names.outputs[0]} + {at[0]}', 'total', of=(*rule.bounds, count))};")

        operand_loops(site).vector_nest(w, v.lanes, element)


def _beside_constant(site: Site[Binary]) -> Loops:
    """The walks of the output and of the constant, if there is one and the input has the output's shape."""
    walks, held = operand_loops(site), next(iter(site.constants), "")
    return replace(walks, walks=(walks.walks[0], walks.walks[1 if held == "left" else 2]))


def _results(site: Site[Binary], x: Ints) -> Array | str:
    """The results of bytes x combined with the constant."""
    if not site.constants or site.shape() != site.output_shape():
        return "it has no constant operand"
    ((role, constant),) = site.constants.items()
    if constant.data.dtype != "int8":
        return "it computes int8 only"
    given, held = x[:, None], ints(constant.data).reshape(1, -1)
    left, right = (held, given) if role == "left" else (given, held)
    values = combined(site.attributes.function, left, right, formats(site))
    return saturate(values, *bounds(site.attributes.clamp, site.outputs[0]))


def _no_function_of_a_byte(site: Site[Binary]) -> str | None:
    """Why its results are not those of one number beside every byte."""
    if site.dtypes != {"int8"}:
        return "it computes int8 only"
    found = _results(site, channel_tables.every_input())
    if isinstance(found, str):
        return found
    return None if found.shape[1] == 1 else "its constant has several numbers"


def _of_bytes(site: Site[Binary]) -> Ints:
    return ints(_results(site, channel_tables.every_input())).reshape(-1)


UNIT = 8
"""Elements of a work item of two vectors."""


def _accepts_linear(site: Site[Binary]) -> str | None:
    shapes = [site.shape(i) for i in range(len(site.inputs))] + [c.data.shape for c in site.constants.values()]
    if any(prod(shape) != prod(site.output_shape()) for shape in shapes):
        return "its operands differ in shape"
    return all_int8(site) or reason_of(sum_of(site))


@dataclass(frozen=True)
class _Linear:
    """The sum or difference of two int8 tensors with one pair of coefficients, 8 elements per work item: two vectors,
    whose outputs a table reorders."""

    v: Vectors

    def accepts(self, site: Site[Binary]) -> str | None:
        return _accepts_linear(site) or (None if prod(site.output_shape()) >= UNIT else "it has too few elements")

    def demand(self, site: Site[Binary]) -> Demand:
        demand = _demand(site)
        places = np.arange(UNIT, dtype=np.uint16).reshape(2, -1).T.reshape(-1)
        packed = {**demand.packed, "places": places}
        return replace(demand, extent=-(-prod(site.output_shape()) // UNIT), packed=packed, rows=False)

    def emit(self, w: Writer, site: Site[Binary], names: Names) -> None:
        left, right = operands(names.inputs, names.packed)
        rule, v = sum_of(site), self.v
        assert isinstance(rule, Residual)
        found, limits = rule.sum, rule.bounds
        whole, rest = divmod(prod(site.output_shape()), UNIT)
        last = "end" if not rest else f"end < {whole} ? end : {whole}"
        w(f"const int32_t whole = {last};")
        with w.loop("unit", "whole", start="begin", trips=whole):
            for half in (0, 1):
                for name, pointer in (("a", left), ("b", right)):
                    at = f"{pointer} + unit * {UNIT} + {half * v.lanes}"
                    v.let(w, "sums", f"{name}{half}", v.call(w, "widen", at, of=(v.lanes,)))
                first = v.call(w, "add_by", v.call(w, "mul_by", f"a{half}", str(found.first)), str(found.start))
                value = v.call(w, "multiply_add_by", first, f"b{half}", str(found.second))
                v.let(w, "sums", f"sum{half}", v.call(w, "shift_right", value, of=(found.shift,)))
            to = f"{names.outputs[0]} + unit * {UNIT}"
            w(f"{v.call(w, 'store_places', to, 'sum0', 'sum1', names.packed['places'], of=limits)};")
        if rest:
            with w.block(f"if (end > {whole})"), w.loop("i", whole * UNIT + rest, start=whole * UNIT):
                w(f"int32_t value = ({rule.terms(f'{left}[i]', f'{right}[i]')}) >> {found.shift};")
                c99.bound(w, limits, "value")
                w(w.use(c99.STORE, f"{names.outputs[0]}[i]", "(int8_t)value"))


VARIANTS = (
    *on_any_floats(lambda v: Elements(v, operand_loops, _demand, _floats)),
    kernel_of("turns", FLOATS, Turns(SINGLE, operand_loops, _demand, _floats)),
    Kernel("integer", PORTABLE, only_integer, _demand, _emit_integers),
    Kernel("pairs", PORTABLE, portable_binary.refused, _demand_plain, portable_binary.emit),
    Kernel("words", frozenset({"armv7em_dsp"}), dsp_binary.refused, _demand_words, dsp_binary.emit),
    *rounded_kernels(operand_loops, _demand, binary_rule, operands),
    on_each("integer", _Integers),
    on_each("across", _Linear),
    channel_tables.kernel(_results, _beside_constant),
    byte_tables.in_vectors(_of_bytes, _no_function_of_a_byte),
    device_arithmetic.ADD,
)
