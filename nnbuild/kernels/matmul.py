"""Matrix products of two tensors. In portable C a work item is a row of the left one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import prod

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.c99 import added
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, OnEach, only_float, only_integer, variant
from nnbuild.kernels.dsp import matmul as dsp_matmul
from nnbuild.kernels.loops import vector_matmul
from nnbuild.kernels.loops.window_loops import product, total
from nnbuild.kernels.parts.integer_steps import declare, finish, zero
from nnbuild.numeric.rounding import limits, reduced_multiplier
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.site import Site


def sizes(site: Site[MatMul]) -> tuple[int, int, int, int]:
    """(matrices, rows of the left matrix, depth, columns of the right one)."""
    *before, rows, depth = site.shape()
    return prod(before), rows, depth, site.output_shape()[-1]


def _demand(site: Site[MatMul]) -> Demand:
    count, rows, _, _ = sizes(site)
    return Demand(extent=count * rows)


@contextmanager
def _each(w: Writer, site: Site[MatMul], names: Names) -> Iterator[tuple[str, str]]:
    """The loops over the outputs `to[j]`, and inside them the factors summed over i: (left, right)."""
    count, rows, depth, columns = sizes(site)
    left, right, out = (C_TYPES[t.dtype] for t in (*site.inputs, site.outputs[0]))
    with w.loop("row", "end", start="begin", trips=count * rows):
        w(f"const {left} *from = {total(names.inputs[0], product('row', depth))};")
        matrix = product(f"(row / {rows})", depth * columns) if count > 1 else "0"
        w(f"const {right} *with = {total(names.inputs[1], matrix)};")
        w(f"{out} *to = {total(names.outputs[0], product('row', columns))};")
        with w.loop("j", columns):
            place = total(product("j", depth), "i") if site.attributes.turned else total(product("i", columns), "j")
            yield "from[i]", f"with[{place}]"


def _emit(w: Writer, site: Site[MatMul], names: Names) -> None:
    with _each(w, site, names) as (left, right):
        w(w.use(c99.LOAD_MUTABLE, "sum", "0.0f"))
        with w.loop("i", sizes(site)[2]):
            c99.multiply_add(w, "sum", left, right)
        w(w.use(c99.STORE, "to[j]", "sum"))


def _emit_integers(w: Writer, site: Site[MatMul], names: Names) -> None:
    out, scale, wide = site.outputs[0], site.attributes.scale(site), site.inputs[0].dtype == "int16"
    zeros = [zero(tensor) for tensor in site.inputs]
    with _each(w, site, names) as (left, right):
        declare(w, "sum", "0", "int64_t" if wide else "int32_t")
        with w.loop("i", sizes(site)[2]):
            factors = [added(x, -z) for x, z in zip((left, right), zeros, strict=True)]
            factors = [f"({f})" if " " in f else f for f in factors]
            w(w.use(c99.MULTIPLY_ADD, "sum", f"(int64_t){factors[0]}" if wide else factors[0], factors[1]))
        multiplier = int(reduced_multiplier(scale.multiplier)) if wide else scale.multiplier
        value = w.helper("requantize64" if wide else "requantize", "sum", str(multiplier), str(scale.shift))
        finish(w, "to[j]", value, out, limits(out.dtype))


def _on_floats(floats: Vectors) -> list[Kernel[MatMul]]:
    nest = partial(vector_matmul.floats, floats)
    return [variant(floats.name, frozenset({floats.name}), vector_matmul.refused_floats, nest)]


def _on_integers(chosen: Vectors) -> list[Kernel[MatMul]]:
    nest = partial(vector_matmul.integers, chosen)
    return [variant(f"{chosen.name}_integers", frozenset({chosen.name}), vector_matmul.refused_integers, nest)]


VARIANTS = (
    Kernel("scalar", PORTABLE, only_float, _demand, _emit),
    Kernel("integer", PORTABLE, only_integer, _demand, _emit_integers),
    *dsp_matmul.VARIANTS,
    OnEach("float_sums", _on_floats),
    OnEach("integer", _on_integers),
)
