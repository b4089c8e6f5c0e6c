"""Concatenation along an axis; each index of the axes before it is one work item."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import (
    PORTABLE,
    Demand,
    Functions,
    Kernel,
    Names,
    accepted,
    kernel_of,
    on_any_floats,
    on_each,
    only_float,
    only_int8,
    only_int16,
    only_integer,
    reason_of,
)
from nnbuild.kernels.lanes.rounded_arithmetic import Arithmetic, declare_centred, on_arithmetic, store_result
from nnbuild.kernels.lanes.rounded_functions import join_rules
from nnbuild.kernels.parts import byte_tables
from nnbuild.kernels.parts.integer_steps import UNIT, centred, finish, requantized, scaled_once, zero
from nnbuild.model.graph import Array
from nnbuild.numeric.elementwise import rescale_multiplier
from nnbuild.numeric.rounding import INT8, limits, saturate
from nnbuild.ops.base import around
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.integer import bounds, quant_of, ratio_once
from nnbuild.ops.site import Site

LookUp = Callable[[Writer, "str | None", tuple[str, str, str], int], None]
"""Prints the look-ups of one input: (table, pointers, length)."""


def _demand(site: Site[Concatenate]) -> Demand:
    return Demand(extent=around(site.output_shape(), site.attributes.axis)[0])


def _each(w: Writer, site: Site[Concatenate], names: Names, lanes: int = 1) -> Iterator[tuple[int, str, str, int]]:
    """The loops over the elements of each input in turn, by vectors of `lanes` lanes: (index of the input, offset in
    the input, offset in the output, count)."""
    axis = site.attributes.axis
    before, joined, after = around(site.output_shape(), axis)
    with w.loop("row", "end", start="begin", trips=before):
        at = 0
        for index in range(len(names.inputs)):
            run = site.shape(index)[axis] * after
            for i, count in in_vectors(w, lanes, run, "i"):
                yield index, f"row * {run} + {i}", f"row * {joined * after} + {at} + {i}", count
            at += run


def _floats(v: Vectors, w: Writer, site: Site[Concatenate], names: Names) -> None:
    for index, source, to, count in _each(w, site, names, v.lanes):
        v.declare(w, "value", v.load(w, f"{names.inputs[index]} + {source}", count))
        v.bound(w, site.attributes.clamp, "value")
        v.store(w, f"{names.outputs[0]} + {to}", "value", count)


def _emit_integers(w: Writer, site: Site[Concatenate], names: Names) -> None:
    """Requantizes inputs whose scale differs from the output's."""
    out = site.outputs[0]
    within = bounds(site.attributes.clamp, out)
    for index, place, to, _ in _each(w, site, names):
        own, source, target = site.inputs[index], f"{names.inputs[index]}[{place}]", f"{names.outputs[0]}[{to}]"
        scale = rescale_multiplier(quant_of(own).scale, quant_of(out).scale)
        if scale == UNIT and zero(own) == zero(out) and within == limits(out.dtype):
            w.bill(c99.LOAD.cycles)
            w(w.use(c99.STORE, target, source))
            continue
        centred(w, "x", source, zero(own))
        once = site.attributes.once
        value = scaled_once(w, "x", ratio_once(own, out)) if once else requantized(w, "x", scale)
        finish(w, target, value, out, within)


def _accepts_integers(site: Site[Concatenate]) -> str | None:
    """Also 32-bit whole numbers, which are only copied."""
    carried = site.dtypes == {"int32"} and len({quant_of(t) for t in (*site.inputs, *site.outputs)}) == 1
    return None if carried else only_integer(site)


def _entries(site: Site[Concatenate], index: int) -> Array | None:
    """The results for each byte of an input; None where they are unchanged."""
    own, out = site.inputs[index], site.outputs[0]
    x = np.arange(INT8[0], INT8[1] + 1)
    found = saturate(site.attributes.rescaled(own, out, x), *bounds(site.attributes.clamp, out))
    return None if np.array_equal(found, x) else byte_tables.table(found).astype(np.int8)


def _demand_tables(site: Site[Concatenate]) -> Demand:
    tables = {f"table{i}": _entries(site, i) for i in range(len(site.inputs))}
    packed = {name: entries for name, entries in tables.items() if entries is not None}
    return Demand(extent=_demand(site).extent, packed=packed)


def _emit_tables(look_up: LookUp, w: Writer, site: Site[Concatenate], names: Names) -> None:
    """Maps bytes by a table for each input, or copies them."""
    axis = site.attributes.axis
    before, joined, after = around(site.output_shape(), axis)
    with w.loop("row", "end", start="begin", trips=before):
        w(f"int8_t *to = {names.outputs[0]} + row * {joined * after};")
        for index, name in enumerate(names.inputs):
            run, table = site.shape(index)[axis] * after, names.packed.get(f"table{index}")
            with w.block(""):
                w(f"const int8_t *from{index} = {name} + row * {run};")
                w.bill(6)
                look_up(w, table, (f"from{index}", "to", f"left{index}"), run)


def _singly(w: Writer, table: str | None, pointers: tuple[str, str, str], run: int) -> None:
    w(f"int32_t {pointers[2]} = {run};")
    byte_tables.lookups(w, table, pointers, run)


def _in_vectors(v: Vectors, w: Writer, table: str | None, pointers: tuple[str, str, str], run: int) -> None:
    byte_tables.look_up(w, v, table, (*pointers[:2], str(run)), run)
    w(f"to += {run};")


def _looking_up(look_up: LookUp) -> Functions[Concatenate]:
    return Functions(only_int8, _demand_tables, partial(_emit_tables, look_up))


@dataclass(frozen=True)
class _Lines:
    """Each input in its own scale; bytes only in vectors, as a table is faster for single ones."""

    n: Arithmetic

    def accepts(self, site: Site[Concatenate]) -> str | None:
        refused = only_int16(site) if self.n.lanes == 1 else only_integer(site)
        return refused or reason_of(join_rules(site))

    def demand(self, site: Site[Concatenate]) -> Demand:
        return _demand(site)

    def emit(self, w: Writer, site: Site[Concatenate], names: Names) -> None:
        lines, n, out = accepted(join_rules(site)), self.n, site.outputs[0]
        for index, place, to, count in _each(w, site, names, n.lanes):
            line, own, target = lines[index], site.inputs[index], f"{names.outputs[0]} + {to}"
            value = n.load(w, out.dtype, names.inputs[index], place, count)
            if line.scale is None and zero(own) == zero(out) and line.bounds == limits(out.dtype):
                n.store(w, out.dtype, target, value, None, count)
                continue
            declare_centred(w, n, "x", value, zero(own))
            store_result(w, n, out, target, line.apply(w, n, "x"), line.bounds, count)


VARIANTS = (
    *on_any_floats(lambda v: Functions(only_float, _demand, partial(_floats, v))),
    Kernel("integer", PORTABLE, _accepts_integers, _demand, _emit_integers),
    kernel_of("tables", PORTABLE, _looking_up(_singly)),
    on_each("tables", lambda v: _looking_up(partial(_in_vectors, v))),
    *on_arithmetic(_Lines),
)
