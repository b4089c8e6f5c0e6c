"""Mean, sum, maximum and minimum over neighbouring axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, on_each, only_float, only_integer
from nnbuild.kernels.dsp import reduce as dsp_reduce
from nnbuild.kernels.lanes.row_sums import declare_sums, declare_word_sums, extreme
from nnbuild.kernels.lanes.vector_binary import Scaled, scaled_by, scaled_once_by
from nnbuild.kernels.loops.strided import each_run
from nnbuild.kernels.parts.integer_steps import centred, finish, requantized, scaled_once, zero
from nnbuild.kernels.parts.long_sums import Levels, declare_parts, end_parts, join_parts
from nnbuild.model.graph import Tensor
from nnbuild.numeric.rounding import INT32, limits
from nnbuild.ops.base import around
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.site import Site

FLOAT_ROWS = {"mean": c99.ADD_FLOAT, "sum": c99.ADD_FLOAT, "max": c99.LARGER_FLOAT, "min": c99.SMALLER_FLOAT}
ROWS = {"mean": c99.ADD, "sum": c99.ADD, "max": c99.LARGER, "min": c99.SMALLER}


def _sizes(site: Site[Reduce]) -> tuple[int, int, int]:
    """(size before the axes, of the axes, behind them)."""
    return around(site.shape(), site.attributes.axis, site.attributes.count)


def _demand(site: Site[Reduce]) -> Demand:
    before, _, after = _sizes(site)
    return Demand(extent=before if before > 1 else after)


@contextmanager
def _folded(w: Writer, site: Site[Reduce], names: Names, result: str) -> Iterator[str]:
    """Accumulates `result` for every output, value by value; yields the offset of the output."""
    before, size, after = _sizes(site)
    outer, inner = (("row", before), w.loop("column", after)) if before > 1 else (("column", after), nullcontext())
    with w.loop(outer[0], "end", start="begin", trips=outer[1]), inner:
        if before == 1:
            w("const int32_t row = 0;")
        kind = C_TYPES[site.inputs[0].dtype]
        w(f"const {kind} *from = {names.inputs[0]} + row * {size * after} + column;")
        w(w.use(c99.LOAD_AS, result, "result", "from[0]"))
        row = (FLOAT_ROWS if kind == "float" else ROWS)[site.attributes.function]
        sums = declare_parts(w, ["result"] if row is c99.ADD_FLOAT else [], size)
        with w.loop("i", size, start=1):
            end_parts(w, sums, "i")
            w(w.use(row, "result", f"from[i * {after}]"))
        join_parts(w, sums)
        yield f"{names.outputs[0]}[row * {after} + column]"


def _emit(w: Writer, site: Site[Reduce], names: Names) -> None:
    with _folded(w, site, names, "float") as target:
        value = f"result / {_sizes(site)[1]}.0f" if site.attributes.function == "mean" else "result"
        w(w.use(c99.STORE, target, value))


def _accepts_integers(site: Site[Reduce]) -> str | None:
    x, size = site.inputs[0], _sizes(site)[1]
    refused = only_integer(site)
    if refused or site.attributes.function not in ("mean", "sum"):
        return refused
    return too_many(x, size)


def too_many(x: Tensor, size: int) -> str | None:
    """Why a 32-bit sum cannot hold so many values."""
    most = INT32[1] // max(abs(limit - zero(x)) for limit in limits(x.dtype))
    return None if size <= most else f"a 32-bit sum holds {most} of these values, not {size}"


def _emit_integers(w: Writer, site: Site[Reduce], names: Names) -> None:
    with _folded(w, site, names, "int32_t") as target:
        finish_sum(w, site, "result", target)


def finish_sum(w: Writer, site: Site[Reduce], result: str, target: str) -> None:
    """Stores the output of a sum or an extreme."""
    x, out = site.inputs[0], site.outputs[0]
    centred(w, "x", result, zero(x) * (_sizes(site)[1] if site.attributes.function in ("mean", "sum") else 1))
    finish(w, target, _scaled(w, site), out, limits(out.dtype))


def _scaled(w: Writer, site: Site[Reduce]) -> str:
    """The sum x, less its zero points, in steps of the output."""
    if site.attributes.once and site.attributes.function in ("mean", "sum"):
        return scaled_once(w, "x", site.attributes.once_scale(site))
    return requantized(w, "x", site.attributes.multiplier(site))


def _rows(w: Writer, site: Site[Reduce], names: Names) -> AbstractContextManager[None]:
    """The loop over the index before the axes, with pointers to the values and the results."""
    before, size, after = _sizes(site)
    return each_run(w, site, names, before, size * after, after)


OPERATIONS = {"mean": "add", "sum": "add", "max": "max", "min": "min"}
TOGETHER = 4
"""Accumulators used in turn."""


@dataclass(frozen=True)
class _Floats:
    """Where axes follow the reduced ones, lanes are neighbouring outputs.

    Otherwise each output is reduced across the lanes of its own values.
    """

    floats: Vectors

    def accepts(self, site: Site[Reduce]) -> str | None:
        _, size, after = _sizes(site)
        if after == 1 and size < self.floats.lanes:
            return "its values do not fill a vector"
        return only_float(site)

    def demand(self, site: Site[Reduce]) -> Demand:
        return Demand(extent=_sizes(site)[0])

    def emit(self, w: Writer, site: Site[Reduce], names: Names) -> None:
        _, size, after = _sizes(site)
        with _rows(w, site, names):
            if after == 1:
                self._lanes_of_one(w, site.attributes.function, size)
            else:
                for column, count in in_vectors(w, TOGETHER * self.floats.lanes, after):
                    self._columns(w, site, column, count)

    def _columns(self, w: Writer, site: Site[Reduce], column: str, count: int) -> None:
        """The results of `count` columns from `column` on."""
        v, function, (_, size, after) = self.floats, site.attributes.function, _sizes(site)
        parts = [(i, min(v.lanes, count - i)) for i in range(0, count, v.lanes)]
        w(f"const float *value = from + {column};")
        for i, lanes in parts:
            v.declare(w, f"result{i}", v.load(w, f"value + {i}", lanes))
        sums = self._parts(w, function, [i for i, _ in parts], size)
        with w.loop("i", size, start=1):
            end_parts(w, sums, "i", 1, v)
            w(f"value += {after};")
            for i, lanes in parts:
                self._take(w, function, i, v.load(w, f"value + {i}", lanes))
        join_parts(w, sums, v)
        for i, lanes in parts:
            address = f"to + {column}" if not i else f"to + {column} + {i}"
            v.store(w, address, self._finished(w, function, f"result{i}", size), lanes)

    def _lanes_of_one(self, w: Writer, function: str, size: int) -> None:
        """The last vector of a maximum may repeat values; a sum pads with zeros."""
        v, (full, rest) = self.floats, divmod(size, self.floats.lanes)
        together = min(TOGETHER, full)
        width = together * v.lanes
        for i in range(together):
            v.declare(w, f"result{i}", v.load(w, f"from + {i * v.lanes}"))
        rounds, left = divmod(full - together, together)
        sums = self._parts(w, function, range(together), rounds)
        with w.loop("i", (1 + rounds) * width, start=width, step=width):
            end_parts(w, sums, "i", width, v)
            for i in range(together):
                self._take(w, function, i, v.load(w, f"from + i + {i * v.lanes}"))
        for i in range(left):
            self._take(w, function, i, v.load(w, f"from + {(1 + rounds) * width + i * v.lanes}"))
        if rest:
            again = OPERATIONS[function] != "add"
            at = size - v.lanes if again else full * v.lanes
            self._take(w, function, 0, v.load(w, f"from + {at}", None if again else rest))
        join_parts(w, sums, v)
        for i in range(1, together):
            self._take(w, function, 0, f"result{i}")
        w(f"result0 = {v.across(w, OPERATIONS[function], 'result0')};")
        v.store(w, "to", self._finished(w, function, "result0", size), 1)

    def _parts(self, w: Writer, function: str, results: Iterable[int], times: int) -> Levels:
        adds = OPERATIONS[function] == "add"
        return declare_parts(w, [f"result{i}" for i in results] if adds else [], times, self.floats)

    def _take(self, w: Writer, function: str, index: int, value: str) -> None:
        w(f"result{index} = {self.floats.use(w, OPERATIONS[function], f'result{index}', value)};")

    def _finished(self, w: Writer, function: str, result: str, size: int) -> str:
        v = self.floats
        return v.use(w, "div", result, size) if function == "mean" else result


@lru_cache(maxsize=256)
def _scale(site: Site[Reduce]) -> Scaled | None:
    size, attributes, point, kind = _sizes(site)[1], site.attributes, zero(site.outputs[0]), site.outputs[0].dtype
    if attributes.once:
        found = scaled_once_by(attributes.real(site), point, limits(kind), attributes.sums(site))
    else:
        most = size * (255 if kind == "int8" else 65535)
        found = scaled_by(attributes.multiplier(site), point, (-most, most))
    return replace(found, constant=found.constant - size * zero(site.inputs[0])) if found else None


@dataclass(frozen=True)
class _Integers:
    """Where axes follow the reduced ones, as in global pools, lanes are neighbouring outputs."""

    v: Vectors

    def accepts(self, site: Site[Reduce]) -> str | None:
        _, size, channels = _sizes(site)
        if refused := only_integer(site):
            return refused
        if channels == 1 and size < self.v.lanes:
            return "its values do not fill a vector"
        if site.attributes.function in ("max", "min"):
            same = site.inputs[0].quant == site.outputs[0].quant
            return None if same else "its outputs have another scale than its inputs"
        if refused := too_many(site.inputs[0], size):
            return refused
        if channels == 1:
            return None
        if "across" in self.v.kernels and site.dtypes == {"int8"}:
            return "sums of words, four bytes each, take less"
        return None if _scale(site) else "its scale needs a shift to the left"

    def demand(self, site: Site[Reduce]) -> Demand:
        return Demand(extent=_sizes(site)[0])

    def emit(self, w: Writer, site: Site[Reduce], names: Names) -> None:
        function, (_, size, channels) = site.attributes.function, _sizes(site)
        kind, extremes = site.outputs[0].dtype, site.attributes.function in ("max", "min")
        with _rows(w, site, names):
            if channels == 1 and extremes:
                w(w.use(c99.STORE, "*to", f"({C_TYPES[kind]})({extreme(w, self.v, size, function, kind)})"))
            elif channels == 1:
                (declare_sums if kind == "int8" else declare_word_sums)(w, self.v, size, ("sum",))
                finish_sum(w, site, "sum", "*to")
            elif extremes and kind == "int8":
                for c, real in in_vectors(w, 4 * self.v.lanes, channels):
                    self._extremes(w, site, c, real)
            else:
                for c, real in in_vectors(w, self.v.lanes, channels):
                    self._lanes(w, site, c, real)

    def _extremes(self, w: Writer, site: Site[Reduce], c: str, real: int) -> None:
        v, (_, size, channels) = self.v, _sizes(site)
        v.let(w, "bytes", "best", v.call(w, "b_load", f"from + {c}", of=(real,)), "")
        with w.loop("i", size, start=1):
            values = v.call(w, "b_load", f"from + i * {channels} + {c}", of=(real,))
            w(f"best = {v.call(w, f'b_{site.attributes.function}', 'best', values)};")
        w(f"{v.call(w, 'b_store', f'to + {c}', 'best', of=(real,))};")

    def _lanes(self, w: Writer, site: Site[Reduce], c: str, real: int) -> None:
        v, (_, size, channels), kind = self.v, _sizes(site), site.outputs[0].dtype
        widen, store = ("widen", "store_bytes") if kind == "int8" else ("widen_words", "store_words")
        operation = OPERATIONS[site.attributes.function]
        v.let(w, "sums", "sum", v.call(w, widen, f"from + {c}", of=(real,)), "")
        with w.loop("i", size, start=1):
            value = v.call(w, widen, f"from + i * {channels} + {c}", of=(real,))
            w(f"sum = {v.call(w, operation, 'sum', value)};")
        if operation == "add":
            scale = _scale(site)
            assert scale is not None
            scale.apply(w, v, "sum")
        w(f"{v.call(w, store, f'to + {c}', 'sum', of=(*limits(kind), real))};")


def _emit_words(w: Writer, site: Site[Reduce], names: Names) -> None:
    _, size, after = _sizes(site)
    function, kind = site.attributes.function, site.inputs[0].dtype
    with _rows(w, site, names):
        if after == 1:
            w(f"const {C_TYPES[kind]} *value = from;")
            finish_sum(w, site, dsp_reduce.row(w, function, kind, size), "*to")
            return
        for c, count in in_vectors(w, dsp_reduce.WORD[kind], after):
            w(f"const {C_TYPES[kind]} *value = from + {c};")
            for k, result in w.each(enumerate(dsp_reduce.columns(w, function, kind, size, after, count))):
                finish_sum(w, site, result, f"to[{c} + {k}]")


VARIANTS = (
    Kernel("scalar", PORTABLE, only_float, _demand, _emit),
    Kernel("integer", PORTABLE, _accepts_integers, _demand, _emit_integers),
    Kernel(
        "words", frozenset({"armv7em_dsp"}), _accepts_integers, lambda site: Demand(extent=_sizes(site)[0]), _emit_words
    ),
    on_each("float", _Floats),
    *(on_each(numbers, _Integers) for numbers in ("integer", "across")),
)
