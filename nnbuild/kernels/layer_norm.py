"""Layer normalization: mean, then variance, then the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, on_each, only_float, only_int8, only_integer
from nnbuild.kernels.dsp import layer_norm as dsp_layer_norm
from nnbuild.kernels.loops import layer_norm_words
from nnbuild.kernels.loops.layer_norm_vectors import NormalizedVectors, refusal
from nnbuild.kernels.loops.strided import each_run, flat_constants
from nnbuild.kernels.parts import layer_norm_steps as steps
from nnbuild.kernels.parts.integer_steps import declare, finish
from nnbuild.kernels.parts.long_sums import declare_parts, end_parts, join_parts, summed
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.numeric.layer_norm import LARGEST, SUMMAND_SHIFT, UNIT
from nnbuild.numeric.rounding import limits
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.site import Site


def _demand(site: Site[LayerNorm]) -> Demand:
    return Demand(extent=steps.sizes(site)[0], packed=flat_constants(site), overlaps=IN_PLACE)


@contextmanager
def _rows(w: Writer, site: Site[LayerNorm], names: Names) -> Iterator[int]:
    """The loop over the vectors, from pointer to pointer; yields their length."""
    rows, size = steps.sizes(site)
    with each_run(w, site, names, rows, size):
        yield size


def _emit(w: Writer, site: Site[LayerNorm], names: Names) -> None:
    with _rows(w, site, names) as size:
        centred = "from[i]"
        if site.attributes.centred:
            centred = "from[i] - mean"
            with summed(w, "sum", size):
                w(w.use(c99.ADD_FLOAT, "sum", "from[i]"))
            w(w.use(c99.LOAD, "mean", f"sum / {size}.0f"))
        with summed(w, "squares", size):
            c99.multiply_add(w, "squares", centred, centred)
            w.bill(0, floats=site.attributes.centred)
        root = w.helper("sqrtf", f"squares / {size}.0f + {float_literal(site.attributes.epsilon)}")
        w(w.use(c99.LOAD, "scale", f"1.0f / {root}"))
        with w.loop("i", size):
            value = c99.product(w, centred, "scale")
            if "scale" in names.packed:
                value = c99.product(w, value, f"{names.packed['scale']}[i]")
            if "shift" in names.packed:
                value += f" + {names.packed['shift']}[i]"
            w.bill(4, floats=site.attributes.centred + ("shift" in names.packed))
            w(w.use(c99.STORE, "to[i]", value))


TOGETHER = 4
"""Accumulators used in turn."""


@dataclass(frozen=True)
class _Floats:
    """Sums a row in lanes, then across them."""

    floats: Vectors

    def accepts(self, site: Site[LayerNorm]) -> str | None:
        fills = steps.sizes(site)[1] >= self.floats.lanes
        return only_float(site) if fills else "its values do not fill a vector"

    def demand(self, site: Site[LayerNorm]) -> Demand:
        return _demand(site)

    def emit(self, w: Writer, site: Site[LayerNorm], names: Names) -> None:
        v, attributes = self.floats, site.attributes
        with _rows(w, site, names) as size:
            if attributes.centred:
                mean = self._mean(w, "sum", size, lambda total, x, _: f"{total} = {v.use(w, 'add', total, x)};")
                v.declare(w, "mean", mean)

            def centred(x: str) -> str:
                return v.use(w, "sub", x, "mean") if attributes.centred else x

            def squared(total: str, x: str, count: int) -> str:
                v.declare(w, "x", v.kept(w, centred(x), count))
                return f"{total} = {v.use(w, 'fma', 'x', 'x', total)};"

            mean = self._mean(w, "squares", size, squared)
            root = v.use(w, "sqrt", v.use(w, "add", mean, attributes.epsilon))
            v.declare(w, "scale", v.use(w, "div", 1.0, root))
            for i, count in in_vectors(w, v.lanes, size, "i"):
                value = v.use(w, "mul", centred(v.load(w, f"from + {i}", count)), "scale")
                scale, shift = (
                    v.load(w, f"{names.packed[role]} + {i}", count) if role in names.packed else ""
                    for role in ("scale", "shift")
                )
                if scale and shift:
                    value = v.use(w, "fma", value, scale, shift)
                elif scale or shift:
                    value = v.use(w, "mul" if scale else "add", value, scale or shift)
                v.store(w, f"to + {i}", value, count)

    def _mean(self, w: Writer, name: str, size: int, add: Callable[[str, str, int], str]) -> str:
        """The mean, in every lane, of what `add` adds for a row's values; its arguments are a total, some values and
        their number."""
        v = self.floats
        together = min(TOGETHER, size // v.lanes)
        width = together * v.lanes
        for k in range(together):
            v.declare(w, f"{name}{k}", v.each(w, 0.0))
        sums = declare_parts(w, [f"{name}{k}" for k in range(together)], size // width, v)
        for i, count in in_vectors(w, width, size, "i"):
            if count == width:
                end_parts(w, sums, i, width, v)
            for k, at in enumerate(range(0, count, v.lanes)):
                lanes = min(v.lanes, count - at)
                with w.block(""):
                    w(add(f"{name}{k}", v.load(w, f"from + {i} + {at}", lanes), lanes))
        join_parts(w, sums, v)
        for k in range(1, together):
            w(f"{name}0 = {v.use(w, 'add', f'{name}0', f'{name}{k}')};")
        return v.use(w, "div", v.across(w, "add", f"{name}0"), size)


def _accepts_integers(site: Site[LayerNorm]) -> str | None:
    size = steps.sizes(site)[1]
    return only_integer(site) or (
        None if size <= LARGEST else f"a 64-bit sum of squares holds {LARGEST} values, not {size}"
    )


def _emit_integers(w: Writer, site: Site[LayerNorm], names: Names) -> None:
    """The steps of `numeric.layer_norm`."""
    out, scales = site.outputs[0], site.attributes.scales(site)
    with _rows(w, site, names) as size:
        if site.attributes.centred:
            declare(w, "sum", "0", "int64_t")
            with w.loop("i", size):
                w(w.use(c99.ADD, "sum", "from[i]"))
        steps.mean(w, site, size, scales)
        centred = f"from[i] * {1 << scales.fraction} - mean"
        declare(w, "variance", "0", "int64_t")
        with w.loop("i", size):
            declare(w, "centred", centred, "const int64_t")
            w.bill(0, wides=1)
            w(w.use(c99.MULTIPLY_ADD, "variance", "centred", "centred"))
        steps.root(w, size, scales)
        with w.loop("i", size):
            declare(w, "centred", centred)
            w.bill(6, wides=2)
            declare(w, "normal", "(centred * root + ((int64_t)1 << (right - 1))) >> right", "const int64_t")
            total = f"normal * {names.packed['scale']}[i]" if "scale" in names.packed else f"normal * {UNIT}"
            if "shift" in names.packed:
                total += f" + (int64_t){names.packed['shift']}[i] * {1 << SUMMAND_SHIFT}"
            scaled = w.helper("scale_wide", total, str(scales.output.multiplier), str(scales.output.right))
            finish(w, "to[i]", scaled, out, limits(out.dtype))


def _accepts_pairs(site: Site[LayerNorm]) -> str | None:
    size, most = steps.sizes(site)[1], dsp_layer_norm.LARGEST
    return only_int8(site) or (None if size <= most else f"32 bits hold the squares of {most} bytes, not of {size}")


def _demand_pairs(site: Site[LayerNorm]) -> Demand:
    rows, _ = steps.sizes(site)
    return Demand(extent=rows, packed={"constants": steps.constants(site)}, overlaps=IN_PLACE)


def _emit_pairs(w: Writer, site: Site[LayerNorm], names: Names) -> None:
    with _rows(w, site, names) as size:
        dsp_layer_norm.sums(w, size)
        steps.mean_and_root(w, site, size)
        dsp_layer_norm.outputs(w, site, size, names.packed["constants"])


VARIANTS = (
    Kernel("scalar", PORTABLE, only_float, _demand, _emit),
    Kernel("words", PORTABLE, refusal, layer_norm_words.demand, layer_norm_words.emit),
    Kernel("pairs", frozenset({"armv7em_dsp"}), _accepts_pairs, _demand_pairs, _emit_pairs),
    Kernel("integer", PORTABLE, _accepts_integers, _demand, _emit_integers),
    on_each("float", _Floats),
    on_each("integer", NormalizedVectors),
    on_each("across", NormalizedVectors),
)
