"""Matrix products of two tensors. In portable C a work item is a row of the left one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import (
    PORTABLE,
    Demand,
    Kernel,
    Names,
    Nest,
    on_nests,
    only_float,
    only_int16,
    only_integer,
    variant,
)
from nnbuild.kernels.cross_lane import matmul as across_matmul
from nnbuild.kernels.dsp import matmul as dsp_matmul
from nnbuild.kernels.dsp import single_row_matmul as dsp_single_row
from nnbuild.kernels.lanes.layer_sums import layer_of
from nnbuild.kernels.loops import single_row_matmul as single_row
from nnbuild.kernels.loops import vector_matmul, word_matmul
from nnbuild.kernels.loops.long_matmul import LongMatmul
from nnbuild.kernels.loops.vector_matmul import literals, sizes
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


@contextmanager
def _each_row(w: Writer, site: Site[MatMul], names: Names) -> Iterator[None]:
    """The loop over the rows of all products: declares where one is, its matrix and its outputs."""
    count, rows, depth, columns = sizes(site)
    left, right, out = (C_TYPES[t.dtype] for t in (*site.inputs, site.outputs[0]))
    with w.loop("row", "end", start="begin", trips=count * rows):
        w(f"const {left} *from = {names.inputs[0]} + row * {depth};")
        matrix = f"(row / {rows}) * {depth * columns if count > 1 else 0}"
        w(f"const {right} *with = {names.inputs[1]} + {matrix};")
        w(f"{out} *to = {names.outputs[0]} + row * {columns};")
        yield


def _tiles(w: Writer, site: Site[MatMul], most: int = TILE) -> Iterator[tuple[str, list[str], str]]:
    """The loop over a row's outputs, some neighbouring columns at a time: yields the place of the first of them, their
    factors, to be summed over i with those of the row, from[i], and what advances these."""
    _, _, depth, columns = sizes(site)
    apart, by = (depth, 1) if site.attributes.turned else (1, columns)
    for j, width in in_vectors(w, most, columns, "j"):
        w(f"const {C_TYPES[site.inputs[1].dtype]} *k = with + ({j}) * {apart};")
        yield j, [f"k[{column * apart}]" for column in range(width)], f"k += {by};"


def _emit(w: Writer, site: Site[MatMul], names: Names) -> None:
    with _each_row(w, site, names):
        for j, factors, advance in _tiles(w, site):
            for column in range(len(factors)):
                w(w.use(c99.LOAD_MUTABLE, f"sum{column}", "0.0f"))
            with w.loop("i", sizes(site)[2]):
                for column, factor in enumerate(factors):
                    c99.multiply_add(w, f"sum{column}", "from[i]", factor)
                w(advance)
            for column in range(len(factors)):
                w(w.use(c99.STORE, f"to[{j} + {column}]", f"sum{column}"))


def _emit_integers(w: Writer, site: Site[MatMul], names: Names) -> None:
    wide = site.inputs[0].dtype == "int16"
    left, right = (zero(tensor) for tensor in site.inputs)
    kind = "int64_t" if wide else "int32_t"
    with _each_row(w, site, names):
        if right:
            declare(w, "start", "0", kind)
            with w.loop("i", sizes(site)[2]):
                w(w.use(c99.STEP, "start", f"from[i] - {left}"))
            w(f"start *= {-right};")
        for j, factors, advance in _tiles(w, site):
            for column in range(len(factors)):
                declare(w, f"sum{column}", "start" if right else "0", kind)
            with w.loop("i", sizes(site)[2]):
                declare(w, "x", f"from[i] - {left}", f"const {kind}")
                for column, factor in enumerate(factors):
                    w.bill(0, wides=wide)
                    w(w.use(c99.MULTIPLY_ADD, f"sum{column}", "x", factor))
                w(advance)
            for column in range(len(factors)):
                w.bill(SHIFTED if wide else 0)
                _store_scaled(w, site, f"value{column}", f"sum{column}", f"to[{j} + {column}]")


def _store_scaled(w: Writer, site: Site[MatMul], value: str, summed: str, target: str) -> None:
    """Stores a scaled sum, with the variable `value`."""
    out = site.outputs[0]
    scaling = layer_of(site).general(limits(out.dtype))
    scaled = f"{w.helper(scaling.function, summed, *literals(scaling))} + {zero(out)}"
    computed(w, value, scaled, "int32_t")
    c99.bound(w, limits(out.dtype), value)
    store(w, target, value, out)


HALF = 1 << 16
"""A unit of upper halves; so many lower ones have a sum of 32 bits."""
PAIR = 2
"""Columns whose sums of halves fit the registers of a Cortex-M0."""
PRODUCT = Row("const int32_t product = x * {0};", 5, products=1)
ADD_UPPER = Row("{0} += product >> 16;", 2)
ADD_LOWER = Row("{0} += (uint16_t)product;", 2)


def _emit_halves(w: Writer, site: Site[MatMul], names: Names) -> None:
    """Of words: the upper and the lower halves of products are summed apart, in 32 bits."""
    with _each_row(w, site, names):
        for j, factors, advance in _tiles(w, site, PAIR):
            for column in range(len(factors)):
                declare(w, f"upper{column}", "0", "int32_t")
                declare(w, f"lower{column}", "0", "uint32_t")
            with w.loop("i", sizes(site)[2]):
                declare(w, "x", "from[i]")
                for column, factor in enumerate(factors):
                    with w.block(""):
                        w(w.use(PRODUCT, factor))
                        w(w.use(ADD_UPPER, f"upper{column}"))
                        w(w.use(ADD_LOWER, f"lower{column}"))
                w.bill(1)
                w(advance)
            for column in range(len(factors)):
                w.bill(6)
                summed = f"(int64_t)upper{column} * {HALF} + lower{column}"
                _store_scaled(w, site, f"value{column}", summed, f"to[{j} + {column}]")


def _refused_halves(site: Site[MatMul]) -> str | None:
    reason = _refused_words(site)
    return reason or (None if sizes(site)[2] <= HALF else f"32 bits hold {HALF} halves of products")


def _refused_integers(site: Site[MatMul]) -> str | None:
    if site.dtypes == {"int8"}:
        return vector_matmul.refused_bytes(site)
    return only_integer(site) or _refused_words(site) or word_matmul.refused(site)


def _integers(chosen: Vectors, site: Site[MatMul]) -> Nest:
    if site.inputs[0].dtype == "int16":
        return WordMatmul(chosen, site)
    return (single_row.nest if site.shape()[-2] == 1 else vector_matmul.of_bytes)(chosen, site)


def _refused_words(site: Site[MatMul]) -> str | None:
    return only_int16(site) or ("it takes no zero points" if any(map(zero, (*site.inputs, *site.outputs))) else None)


VARIANTS = (
    Kernel("scalar", PORTABLE, only_float, _demand, _emit),
    Kernel("integer", PORTABLE, only_integer, _demand, _emit_integers),
    Kernel("halves", frozenset({"armv6m"}), _refused_halves, _demand, _emit_halves),
    *dsp_matmul.VARIANTS,
    *dsp_single_row.VARIANTS,
    variant("long_pairs", frozenset({"armv7em_dsp"}), _refused_words, partial(LongMatmul, DSP)),
    *across_matmul.VARIANTS,
    on_nests("float_sums", "", only_float, vector_matmul.floats),
    on_nests("integer", "_integers", _refused_integers, _integers),
    on_nests("across", "_words", _refused_words, LongMatmul),
)
