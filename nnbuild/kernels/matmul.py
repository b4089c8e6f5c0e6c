"""Matrix products of two tensors. In portable C a work item is a row of the left one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.isa.c99 import added
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import (
    PORTABLE,
    Demand,
    Kernel,
    Names,
    Nest,
    on_nests,
    only_float,
    only_integer,
    variant,
)
from nnbuild.kernels.cross_lane import matmul as across_matmul
from nnbuild.kernels.dsp import matmul as dsp_matmul
from nnbuild.kernels.lanes.layer_sums import layer_of
from nnbuild.kernels.loops import vector_matmul, word_matmul
from nnbuild.kernels.loops.long_matmul import LongMatmul
from nnbuild.kernels.loops.vector_matmul import literals, sizes
from nnbuild.kernels.loops.window_loops import product, total
from nnbuild.kernels.loops.word_matmul import WordMatmul
from nnbuild.kernels.parts.integer_steps import computed, declare, store, zero
from nnbuild.numeric.rounding import limits
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.site import Site


def _demand(site: Site[MatMul]) -> Demand:
    count, rows, _, _ = sizes(site)
    return Demand(extent=count * rows)


TILE = 4
"""Columns computed together, which share the factors of a row."""
SHIFTED = 8
"""Instructions by which a known multiple of 64 bits exceeds a product: compilers compute it by shifts and sums."""


def _tiles(w: Writer, site: Site[MatMul], names: Names) -> Iterator[tuple[str, list[str]]]:
    """The loops over the outputs, some neighbouring columns at a time: yields the place of the first of them, and their
    factors, to be summed over i with those of the row, from[i]."""
    count, rows, depth, columns = sizes(site)
    left, right, out = (C_TYPES[t.dtype] for t in (*site.inputs, site.outputs[0]))
    with w.loop("row", "end", start="begin", trips=count * rows):
        w(f"const {left} *from = {total(names.inputs[0], product('row', depth))};")
        matrix = product(f"(row / {rows})", depth * columns) if count > 1 else "0"
        w(f"const {right} *with = {total(names.inputs[1], matrix)};")
        w(f"{out} *to = {total(names.outputs[0], product('row', columns))};")
        for j, width in in_vectors(w, TILE, columns, "j"):
            step, start = (depth, product(j, depth)) if site.attributes.turned else (1, j)
            at = "i" if site.attributes.turned else product("i", columns)
            yield j, [f"with[{total(start, str(column * step), at)}]" for column in range(width)]


def _emit(w: Writer, site: Site[MatMul], names: Names) -> None:
    for j, factors in _tiles(w, site, names):
        for column in range(len(factors)):
            w(w.use(c99.LOAD_MUTABLE, f"sum{column}", "0.0f"))
        with w.loop("i", sizes(site)[2]):
            for column, factor in enumerate(factors):
                c99.multiply_add(w, f"sum{column}", "from[i]", factor)
        for column in range(len(factors)):
            w(w.use(c99.STORE, f"to[{total(j, str(column))}]", f"sum{column}"))


def _emit_integers(w: Writer, site: Site[MatMul], names: Names) -> None:
    out, wide = site.outputs[0], site.inputs[0].dtype == "int16"
    scaling = layer_of(site).general(limits(out.dtype))
    left, right = (zero(tensor) for tensor in site.inputs)
    kind = "int64_t" if wide else "int32_t"
    for j, factors in _tiles(w, site, names):
        for column in range(len(factors)):
            declare(w, f"sum{column}", "0", kind)
        if right:
            declare(w, "inputs", "0", kind)
        with w.loop("i", sizes(site)[2]):
            declare(w, "x", added("from[i]", -left), f"const {kind}")
            if right:
                w(w.use(c99.STEP, "inputs", "x"))
            for column, factor in enumerate(factors):
                w(w.use(c99.MULTIPLY_ADD, f"sum{column}", "x", factor))
        for column in range(len(factors)):
            name = f"sum{column}"
            if right:
                w(f"{name} {'-' if right > 0 else '+'}= {product('inputs', abs(right))};")
            value = f"value{column}"
            w.bill(SHIFTED if wide else 0)
            scaled = added(w.helper(scaling.function, name, *literals(scaling)), zero(out))
            computed(w, value, scaled, "int32_t")
            c99.bound(w, limits(out.dtype), value)
            store(w, f"to[{total(j, str(column))}]", value, out)


def _refused_integers(site: Site[MatMul]) -> str | None:
    refused = only_integer(site) or vector_matmul.refused_rows(site)
    if refused or site.dtypes == {"int8"}:
        return refused or vector_matmul.refused_bytes(site)
    return _refused_words(site) or word_matmul.refused(site)


def _integers(chosen: Vectors, site: Site[MatMul]) -> Nest:
    return WordMatmul(chosen, site) if site.inputs[0].dtype == "int16" else vector_matmul.of_bytes(chosen, site)


def _refused_words(site: Site[MatMul]) -> str | None:
    if site.dtypes != {"int16"}:
        return "it computes int16 only"
    return "it takes no zero points" if any(map(zero, (*site.inputs, *site.outputs))) else None


VARIANTS = (
    Kernel("scalar", PORTABLE, only_float, _demand, _emit),
    Kernel("integer", PORTABLE, only_integer, _demand, _emit_integers),
    *dsp_matmul.VARIANTS,
    variant("long_pairs", frozenset({"armv7em_dsp"}), _refused_words, partial(LongMatmul, DSP)),
    *across_matmul.VARIANTS,
    on_nests("float_sums", "", only_float, vector_matmul.floats),
    on_nests("integer", "_integers", _refused_integers, _integers),
    on_nests("across", "_words", _refused_words, LongMatmul),
)
