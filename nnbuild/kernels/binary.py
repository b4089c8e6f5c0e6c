"""Two operands, element by element with broadcasting."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import (
    PORTABLE,
    Demand,
    Kernel,
    Names,
    Overlap,
    on_any_floats,
    on_each,
    only_float,
    only_integer,
)
from nnbuild.kernels.dsp.beside import exact_sum
from nnbuild.kernels.integers import centred, declare, finish, requantized
from nnbuild.kernels.loops.strided import Loops, Walk, broadcast, contiguous, loops
from nnbuild.kernels.tensor_sums import ProductRule, SumRule, product_rule, sum_rule
from nnbuild.kernels.vector_tail import OPERATIONS
from nnbuild.numeric.elementwise import AddScales
from nnbuild.numeric.linear_sum import FRACTION, LinearSum
from nnbuild.numeric.rounding import INT8
from nnbuild.ops.binary import Binary, Formats, formats, operands
from nnbuild.ops.integer import bounds
from nnbuild.ops.site import Site


def _loops(site: Site[Binary]) -> Loops:
    out, constants = site.output_shape(), {role: constant.data.shape for role, constant in site.constants.items()}
    left, right = operands([site.shape(i) for i in range(len(site.inputs))], constants)
    return loops(out, Walk(contiguous(out)), Walk(broadcast(left, out)), Walk(broadcast(right, out)))


def _demand(site: Site[Binary], lanes: int = 1) -> Demand:
    """An operand of one row for all rows is no row by row operand."""
    packed = {role: constant.data.reshape(-1) for role, constant in site.constants.items()}
    shapes, out = [site.shape(i) for i in range(len(site.inputs))], site.output_shape()
    whole = tuple(Overlap(input=i) for i, shape in enumerate(shapes) if shape == out)
    in_rows = lanes == 1 and all(shape[:1] == out[:1] for shape in shapes)
    return Demand(extent=_loops(site).vectors(lanes), packed=packed, overlaps=whole, rows=in_rows)


def _emit_integers(w: Writer, site: Site[Binary], names: Names) -> None:
    left, right = operands(names.inputs, names.packed)
    form, out = formats(site), site.outputs[0]

    def element(at: list[str]) -> None:
        centred(w, "a", f"{left}[{at[1]}]", form.zeros[0])
        centred(w, "b", f"{right}[{at[2]}]", form.zeros[1])
        value = _value(w, site.attributes.function, form)
        finish(w, f"{names.outputs[0]}[{at[0]}]", value, out, bounds(site.attributes.clamp, out))

    _loops(site).nest(w, element)


def _value(w: Writer, function: str, form: Formats) -> str:
    """The result for a and b before the zero point; 16-bit operands square to 46 bits."""
    match function:
        case "multiply":
            w.bill(1)
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
    """Both operands on one scale with spare bits below, as TFLite adds."""
    for name, operand, scale in (("left", "a", scales.first), ("right", "b", scales.second)):
        declare(w, name, requantized(w, f"{operand} * {1 << scales.left_shift}", scale))


@dataclass(frozen=True)
class _Floats:
    floats: Vectors

    def accepts(self, site: Site[Binary]) -> str | None:
        return only_float(site) or _loops(site).no_vectors(self.floats.lanes)

    def demand(self, site: Site[Binary]) -> Demand:
        return _demand(site, self.floats.lanes)

    def emit(self, w: Writer, site: Site[Binary], names: Names) -> None:
        v, pointers, function = self.floats, operands(names.inputs, names.packed), site.attributes.function
        once = _loops(site).repeated

        def element(at: list[str], count: int) -> None:
            for name, pointer, place, single in zip(("a", "b"), pointers, at[1:], once[1:], strict=True):
                address = f"{pointer} + {place}"
                v.declare(w, name, v.broadcast(w, address, 1) if single else v.load(w, address, count))
            if function == "squared_difference":
                w(f"a = {v.use(w, 'sub', 'a', 'b')};")
                w(f"a = {v.use(w, 'mul', 'a', 'a')};")
            else:
                w(f"a = {v.use(w, OPERATIONS[function], 'a', 'b')};")
            v.bound(w, site.attributes.clamp, "a")
            v.store(w, f"{names.outputs[0]} + {at[0]}", "a", count)

        _loops(site).vector_nest(w, v.lanes, element)


@lru_cache(maxsize=256)
def _rule(site: Site[Binary]) -> SumRule | ProductRule | str:
    return product_rule(site) if site.attributes.function == "multiply" else sum_rule(site)


@dataclass(frozen=True)
class _Bytes:
    """Sums, differences and products of two tensors of bytes in vectors. A work item is one vector."""

    v: Vectors

    def accepts(self, site: Site[Binary]) -> str | None:
        if site.dtypes != {"int8"}:
            return "it computes int8 only"
        rule = _rule(site)
        return rule if isinstance(rule, str) else None

    def demand(self, site: Site[Binary]) -> Demand:
        return Demand(extent=_loops(site).vectors(self.v.lanes), overlaps=(Overlap(0, 0), Overlap(0, 1)))

    def emit(self, w: Writer, site: Site[Binary], names: Names) -> None:
        rule, v = _rule(site), self.v
        assert not isinstance(rule, str)

        def element(at: list[str], count: int) -> None:
            for name, source, const in zip(("sum", "other"), names.inputs, ("", "const "), strict=True):
                v.let(w, "sums", name, v.call(w, "widen", f"{source} + {at[0]}", of=(count,)), const)
            rule.join(w, v, "sum", "other", "sum")
            w(f"{v.call(w, 'store_bytes', f'{names.outputs[0]} + {at[0]}', 'sum', of=(*rule.bounds, count))};")

        _loops(site).vector_nest(w, v.lanes, element)


AT_ONCE = 8
"""Elements of one turn of the loop."""
LOAD = Row("const int32_t {0} = {1};", 0)
ODD = Row("{0} & mask", 1)
STEP = Row("{0} += {1};", 1)
STORE = Row("{0} = (int8_t){1};", 1)


def _accepts_linear(site: Site[Binary], fraction: int = FRACTION) -> str | None:
    if site.attributes.function not in ("add", "subtract"):
        return "it adds and subtracts only"
    if site.dtypes != {"int8"} or any(constant.data.dtype != "int8" for constant in site.constants.values()):
        return "it computes int8 only"
    shapes = [site.shape(i) for i in range(len(site.inputs))] + [c.data.shape for c in site.constants.values()]
    if any(prod(shape) != prod(site.output_shape()) for shape in shapes):
        return "its operands differ in shape"
    return None if exact_sum(site, fraction) else "no coefficients give every sum exactly"


def _emit_linear(w: Writer, site: Site[Binary], names: Names) -> None:
    """Sum or difference of two int8 tensors: two multiplications and a saturating shift an element on Cortex-M4 and up.

    Bytes are taken two at a time as the upper halves of 16-bit numbers. The coefficients are exact for every pair of
    numbers (see `numeric.linear_sum`), so no table is needed.
    """
    left, right = operands(names.inputs, names.packed)
    size, found = prod(site.output_shape()), exact_sum(site)
    assert found is not None
    w(f"const int8_t *left = {left} + begin;")
    w(f"const int8_t *right = {right} + begin;")
    w(f"int8_t *to = {names.outputs[0]} + begin;")
    w(f"const int32_t mask = {0xFF00FF00 - (1 << 32)};")
    w(f"const int8_t *const last = {left} + end;")
    with w.block(f"while (last - left >= {AT_ONCE})"), w.trips(size // AT_ONCE):
        w.bill(3)
        for at in range(0, AT_ONCE, 4):
            _word(w, site, found, at)
        for pointer in ("left", "right", "to"):
            w(w.use(STEP, pointer, str(AT_ONCE)))
    with w.block("while (left < last)"), w.trips(size % AT_ONCE):
        w.bill(5)
        _element(w, site, found, "p_wide_low", ("*left++ * 256", "*right++ * 256", "*to++"))


def _word(w: Writer, site: Site[Binary], found: LinearSum, at: int) -> None:
    """The four elements of a word: the second and fourth byte are where they should be already."""
    for name, pointer in (("a", "left"), ("b", "right")):
        w(w.use(LOAD, f"{name}{at}", DSP.call(w, "load_bytes", f"{pointer} + {at}" if at else pointer, of=(4,))))
        w(w.use(LOAD, f"even_{name}{at}", DSP.call(w, "masked_left8", "mask", f"{name}{at}")))
        w(w.use(LOAD, f"odd_{name}{at}", w.use(ODD, f"{name}{at}")))
    for byte in range(4):
        part, half = ("even", "odd")[byte % 2], ("p_wide_low", "p_wide_high")[byte // 2]
        _element(w, site, found, half, (f"{part}_a{at}", f"{part}_b{at}", f"to[{at + byte}]"))


def _element(w: Writer, site: Site[Binary], found: LinearSum, half: str, places: tuple[str, str, str]) -> None:
    a, b, target = places
    partial = DSP.call(w, half, str(found.second), b, str(found.start))
    value = DSP.call(w, "saturate", DSP.call(w, half, str(found.first), a, partial), of=(8, found.shift))
    limits = bounds(site.attributes.clamp, site.outputs[0])
    if limits == INT8:
        w(w.use(STORE, target, value))
        return
    with w.block(""):
        w(f"int32_t value = {value};")
        c99.bound(w, limits, "value")
        w(w.use(STORE, target, "value"))


@dataclass(frozen=True)
class _Linear:
    """Sum or difference of two int8 tensors with the same coefficients, 8 elements a work item: two vectors, whose
    outputs a table puts in order."""

    v: Vectors

    def accepts(self, site: Site[Binary]) -> str | None:
        return _accepts_linear(site, 0)

    def demand(self, site: Site[Binary]) -> Demand:
        demand = _demand(site)
        places = np.arange(AT_ONCE, dtype=np.uint16).reshape(2, -1).T.reshape(-1)
        packed = {**demand.packed, "places": places}
        return replace(demand, extent=-(-prod(site.output_shape()) // AT_ONCE), packed=packed, rows=False)

    def emit(self, w: Writer, site: Site[Binary], names: Names) -> None:
        left, right = operands(names.inputs, names.packed)
        found, v, limits = exact_sum(site, 0), self.v, bounds(site.attributes.clamp, site.outputs[0])
        assert found is not None
        whole, rest = divmod(prod(site.output_shape()), AT_ONCE)
        last = "end" if not rest else f"end < {whole} ? end : {whole}"
        w(f"const int32_t whole = {last};")
        with w.loop("unit", "whole", start="begin", trips=whole):
            for half in (0, 1):
                for name, pointer in (("a", left), ("b", right)):
                    at = f"{pointer} + unit * {AT_ONCE} + {half * v.lanes}"
                    v.let(w, "sums", f"{name}{half}", v.call(w, "widen", at, of=(v.lanes,)))
                first = v.call(w, "add_by", v.call(w, "multiply_by", f"a{half}", str(found.first)), str(found.start))
                value = v.call(w, "multiply_add_by", first, f"b{half}", str(found.second))
                v.let(w, "sums", f"sum{half}", v.call(w, "shift_right", value, of=(found.shift,)))
            to = f"{names.outputs[0]} + unit * {AT_ONCE}"
            w(f"{v.call(w, 'store_places', to, 'sum0', 'sum1', names.packed['places'], of=limits)};")
        if rest:
            with w.block(f"if (end > {whole})"), w.loop("i", whole * AT_ONCE + rest, start=whole * AT_ONCE):
                terms = f"{left}[i] * {found.first} + {right}[i] * {found.second} + {found.start}"
                w(f"int32_t value = ({terms}) >> {found.shift};")
                c99.bound(w, limits, "value")
                w(w.use(STORE, f"{names.outputs[0]}[i]", "value"))


VARIANTS = (
    *on_any_floats(_Floats),
    Kernel("integer", PORTABLE, only_integer, _demand, _emit_integers),
    Kernel("linear", frozenset({"armv7em_dsp"}), _accepts_linear, _demand, _emit_linear),
    on_each("integer", _Bytes),
    on_each("across", _Linear),
)
