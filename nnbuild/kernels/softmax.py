"""Softmax, with the maximum subtracted first so that no exponential overflows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa import vector_functions as math
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, on_each, only_float, only_integer
from nnbuild.kernels.loops import softmax_row
from nnbuild.kernels.loops.dot import offset
from nnbuild.kernels.loops.strided import each_run
from nnbuild.kernels.loops.window_loops import product, total
from nnbuild.kernels.parts.integer_steps import declare, store
from nnbuild.kernels.parts.long_sums import declare_parts, end_parts, join_parts, summed
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.model.graph import Array
from nnbuild.numeric.fixed_point import exp_of_negative
from nnbuild.numeric.rounding import INT8, INT16, high_multiply
from nnbuild.numeric.softmax import (
    DIFF_INTEGER_BITS,
    SUM_INTEGER_BITS,
    exp_table16,
    reciprocal_table16,
    softmax8_constants,
    softmax16_multiplier,
)
from nnbuild.ops.base import around
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site
from nnbuild.ops.softmax import Softmax


def _sizes(site: Site[Softmax]) -> tuple[int, int, int]:
    return around(site.shape(), site.attributes.axis, site.attributes.count)


def _demand(site: Site[Softmax], packed: dict[str, Array] | None = None) -> Demand:
    """Where the values of one softmax are not contiguous, an output before its input would overwrite other inputs."""
    before, _, after = _sizes(site)
    return Demand(extent=before, packed=packed or {}, overlaps=IN_PLACE if after == 1 else ())


@contextmanager
def _below_largest(w: Writer, site: Site[Softmax], names: Names, kind: str) -> Iterator[tuple[int, int]]:
    """For every softmax, pointers to its values and their maximum; yields (size, distance of values)."""
    before, size, after = _sizes(site)
    element = C_TYPES[site.inputs[0].dtype]
    with w.loop("row", "end", start="begin", trips=before), w.loop("column", after):
        start = f"{product('row', size * after)} + column"
        w(f"const {element} *from = {names.inputs[0]} + {start};")
        w(f"{element} *to = {names.outputs[0]} + {start};")
        declare(w, "largest", "from[0]", kind)
        for at in _few_at_once(w, size):
            w(w.use(c99.LARGER, "largest", f"from[{product(at, after)}]"))
        yield size, after


def _emit(w: Writer, site: Site[Softmax], names: Names) -> None:
    with _below_largest(w, site, names, "float") as (size, after):
        place = product("i", after)
        with summed(w, "sum", size):
            w(w.use(c99.LOAD, "power", w.helper("expf", f"from[{place}] - largest")))
            w(w.use(c99.STORE, f"to[{place}]", "power"))
            w(w.use(c99.ADD, "sum", "power"))
        w(w.use(c99.LOAD, "share", "1.0f / sum"))
        with w.loop("i", size):
            w(w.use(c99.STORE, f"to[{place}]", c99.product(w, f"to[{place}]", "share")))


AT_ONCE = 10
"""Values per iteration; for two iterations compilers make branches that hide how far the loop has come."""
MOST = 8
"""Vectors of one row that stay in registers."""


@dataclass(frozen=True)
class _Floats:
    """Over contiguous values, which stay in registers where they are few."""

    floats: Vectors

    def accepts(self, site: Site[Softmax]) -> str | None:
        return only_float(site) if _sizes(site)[2] == 1 else "its values are not contiguous"

    def demand(self, site: Site[Softmax]) -> Demand:
        return _demand(site)

    def emit(self, w: Writer, site: Site[Softmax], names: Names) -> None:
        before, size, _ = _sizes(site)
        with each_run(w, site, names, before, size):
            if size <= MOST * self.floats.lanes:
                self._in_registers(w, size)
            else:
                self._in_turns(w, size)

    def _in_registers(self, w: Writer, size: int) -> None:
        v = self.floats
        counts = [min(v.lanes, size - at) for at in range(0, size, v.lanes)]
        values = [f"x{i}" for i in range(len(counts))]
        for i, count in enumerate(counts):
            v.declare(w, values[i], v.load(w, offset("from", i * v.lanes), count))
        softmax_row.emit(w, v, values, counts)
        for i, count in enumerate(counts):
            v.store(w, offset("to", i * v.lanes), values[i], count)

    def _in_turns(self, w: Writer, size: int) -> None:
        """The last vector of the maximum repeats values."""
        v = self.floats
        v.declare(w, "largest", v.load(w, "from"))
        for i, count in in_vectors(w, v.lanes, size, "i"):
            place = i if count == v.lanes else str(size - v.lanes)
            w(f"largest = {v.use(w, 'max', 'largest', v.load(w, total('from', place)))};")
        w(f"largest = {v.across(w, 'max', 'largest')};")
        v.declare(w, "sum", v.each(w, 0.0))
        sums = declare_parts(w, ["sum"], size // v.lanes, v)
        for i, count in in_vectors(w, v.lanes, size, "i"):
            if i == "i":
                end_parts(w, sums, "i", v.lanes, v)
            below = v.use(w, "sub", v.load(w, total("from", i), count), "largest")
            v.declare(w, "power", w.call(math.exp(v), below))
            v.store(w, total("to", i), "power", count)
            w(f"sum = {v.use(w, 'add', 'sum', v.kept(w, 'power', count))};")
        join_parts(w, sums, v)
        v.declare(w, "share", v.use(w, "div", v.each(w, 1.0), v.across(w, "add", "sum")))
        for i, count in in_vectors(w, v.lanes, size, "i"):
            v.store(w, total("to", i), v.use(w, "mul", v.load(w, total("to", i), count), "share"), count)


LARGEST = {"int8": 1 << 13, "int16": 1 << 16}
"""The number of exponentials from which a 32-bit sum may overflow."""


def _accepts_integers(site: Site[Softmax]) -> str | None:
    refused = only_integer(site)
    if refused:
        return refused
    size, most = _sizes(site)[1], LARGEST[site.inputs[0].dtype]
    return None if size < most else f"a 32-bit sum holds the powers of fewer than {most} values, not of {size}"


def _demand_integers(site: Site[Softmax]) -> Demand:
    """A table of exp for each difference of two 8-bit numbers."""
    if site.inputs[0].dtype == "int8":
        return _demand(site, {"powers": _powers8(quant_of(site.inputs[0]).scale)})
    return _demand(site, {"powers": exp_table16().astype(np.int16), "inverses": reciprocal_table16().astype(np.int16)})


def _powers8(scale: float) -> Array:
    """exp of each relevant difference, from 0 down."""
    constants = softmax8_constants(scale)
    differences = np.arange(0, max(constants.diff_min, -255) - 1, -1)
    scaled = high_multiply(differences << constants.scale.shift, constants.scale.multiplier)
    return exp_of_negative(scaled, DIFF_INTEGER_BITS).astype(np.int32)


def _emit_integers(w: Writer, site: Site[Softmax], names: Names) -> None:
    with _below_largest(w, site, names, "int32_t") as (size, after):
        if site.inputs[0].dtype == "int8":
            _shares8(w, site, names.packed["powers"], size, after)
        else:
            _shares16(w, site, names, size, after)


def _shares8(w: Writer, site: Site[Softmax], powers: str, size: int, after: int) -> None:
    counted = len(_powers8(quant_of(site.inputs[0]).scale))
    condition = f"below < {counted}" if counted < 256 else ""
    declare(w, "sum", "0", "uint32_t")
    for at in _few_at_once(w, size):
        declare(w, "below", f"largest - from[{product(at, after)}]")
        with w.block(f"if ({condition})") if condition else nullcontext():
            declare(w, "power", f"{powers}[below]")
            w(w.use(c99.ADD, "sum", f"((uint32_t)power + {1 << (SUM_INTEGER_BITS - 1)}U) >> {SUM_INTEGER_BITS}"))
    _inverse8(w)
    declare(w, "rounding", "(uint64_t)half << 32 | UINT32_C(1) << 30", "const uint64_t")
    for at in _few_at_once(w, size):
        declare(w, "below", f"largest - from[{product(at, after)}]")
        declare(w, "value", "-128", "int32_t")
        with w.block(f"if ({condition})") if condition else nullcontext():
            w.bill(c99.MULTIPLY_ADD.cycles + c99.LOAD.cycles)
            declare(w, "share", f"(uint64_t)inverse * (uint32_t){powers}[below] + rounding", "const uint64_t")
            w(w.use(c99.ADD, "value", "(int32_t)((uint32_t)(share >> 32) >> amount)"))
        w(w.use(c99.AT_MOST, "value", "127"))
        store(w, f"to[{product(at, after)}]", "value", site.outputs[0])


def _inverse8(w: Writer) -> None:
    """The inverse of `sum`, and the rounding shift of the upper words of its products."""
    declare(w, "headroom", w.helper("leading_zeros", "sum"))
    declare(w, "inverse", f"(uint32_t){w.helper('reciprocal', 'sum', 'headroom')}", "const uint32_t")
    # An upper word has 30 bits: a larger shift leaves nothing.
    declare(w, "amount", f"headroom < {SUM_INTEGER_BITS - 8} ? 30 : {SUM_INTEGER_BITS + 22} - headroom")
    declare(w, "half", f"headroom < {SUM_INTEGER_BITS - 8} ? 0 : UINT32_C(1) << (amount - 1)", "const uint32_t")


@dataclass(frozen=True)
class _Bytes:
    """Over contiguous bytes: powers are looked up one by one, all else is in vectors.

    The scratch holds a row's powers, zeros up to a whole vector, and another vector, whose lanes are joined.
    """

    v: Vectors

    def accepts(self, site: Site[Softmax]) -> str | None:
        if site.inputs[0].dtype != "int8":
            return "it computes int8 only"
        _, size, after = _sizes(site)
        if after > 1:
            return "its values are not contiguous"
        return _accepts_integers(site) if size >= self.v.lanes else "its values do not fill a vector"

    def demand(self, site: Site[Softmax]) -> Demand:
        """The powers of all differences, from -255 up."""
        powers = np.zeros(256, np.int32)
        found = _powers8(quant_of(site.inputs[0]).scale)
        powers[256 - len(found) :] = found[::-1]
        scratch = 4 * (self._padded(site) + self.v.lanes)
        return replace(_demand(site, {"powers": powers}), scratch=scratch, scratch_type="int32")

    def _padded(self, site: Site[Softmax]) -> int:
        return -(-_sizes(site)[1] // self.v.lanes) * self.v.lanes

    def emit(self, w: Writer, site: Site[Softmax], names: Names) -> None:
        v, powers, padded = self.v, names.scratch, self._padded(site)
        before, size, _ = _sizes(site)
        w(f"int32_t *const lanes = {powers} + {padded};")
        for rest in range(size, padded):
            w(w.use(c99.STORE, f"{powers}[{rest}]", "0"))
        with each_run(w, site, names, before, size):
            self._largest(w, size)
            declare(w, "first", "255 - most")
            for at in _few_at_once(w, size):
                w.bill(2 * c99.LOAD.cycles + c99.ADD.cycles)
                w(w.use(c99.STORE, f"{powers}[{at}]", f"{names.packed['powers']}[first + from[{at}]]"))
            self._sum(w, padded, powers)
            _inverse8(w)
            self._declare_scaling(w)
            for i, count in in_vectors(w, v.lanes, size, "i"):
                self._store(w, total(powers, i), total("to", i), count)

    def _largest(self, w: Writer, size: int) -> None:
        """Declares `most`. The last vector repeats values."""
        v = self.v
        v.let(w, "sums", "largest", v.call(w, "widen", "from", of=(v.lanes,)), "")
        for i, count in in_vectors(w, v.lanes, size, "i"):
            place = i if count == v.lanes else str(size - v.lanes)
            values = v.call(w, "widen", total("from", place), of=(v.lanes,))
            w(f"largest = {v.call(w, 'max', 'largest', values)};")
        w(f"{v.call(w, 'store', 'lanes', 'largest')};")
        declare(w, "most", "lanes[0]", "int32_t")
        for lane in range(1, v.lanes):
            w(w.use(c99.LARGER, "most", f"lanes[{lane}]"))

    def _sum(self, w: Writer, padded: int, powers: str) -> None:
        v = self.v
        v.let(w, "sums", "parts", v.call(w, "each", "0"), "")
        for i, _ in in_vectors(w, v.lanes, padded, "i"):
            half = v.call(w, "each", str(1 << (SUM_INTEGER_BITS - 1)))
            power = v.call(w, "add", v.call(w, "load", total(powers, i)), half)
            power = v.call(w, "shift_down", power, of=(SUM_INTEGER_BITS,))
            w(f"parts = {v.call(w, 'add', 'parts', power)};")
        w(f"{v.call(w, 'store', 'lanes', 'parts')};")
        declare(w, "sum", "(uint32_t)lanes[0]", "uint32_t")
        for lane in range(1, v.lanes):
            w(w.use(c99.ADD, "sum", f"(uint32_t)lanes[{lane}]"))

    def _declare_scaling(self, w: Writer) -> None:
        v = self.v
        v.let(w, "sums", "inverses", v.call(w, "each", "(int32_t)inverse"))
        if v.rounds:
            v.let(w, "sums", "halves", v.call(w, "each", "(int32_t)(2 * half)"))
        else:
            rounding = "(int64_t)((uint64_t)half << 32 | UINT32_C(1) << 30)"
            v.let(w, "wide", "rounding", v.call(w, "each_wide", rounding))

    def _store(self, w: Writer, powers: str, to: str, count: int) -> None:
        v, power = self.v, self.v.call(w, "load", powers)
        if v.rounds:
            share = v.call(w, "add", v.call(w, "high_rounded", power, "inverses"), "halves")
            share = v.call(w, "shift_down_by", share, "amount + 1")
        else:
            share = v.call(w, "scaled", power, "inverses", "rounding", "rounding", of=(int(v.alternating),))
            share = v.call(w, "shift_down_by", share, "amount")
        share = v.call(w, "add", share, v.call(w, "each", "-128"))
        w(f"{v.call(w, 'store_bytes', to, share, of=(*INT8, count))};")


def _few_at_once(w: Writer, size: int) -> Iterator[str]:
    """The index of every value; several per iteration, as the loop itself costs much."""
    together = max(n for n in range(1, AT_ONCE + 1) if size % n == 0 and size != 2 * n)
    with w.loop("i", size, step=together):
        for n in range(together):
            with w.block(""):
                yield total("i", str(n)) if size > together else str(n)


def _shares16(w: Writer, site: Site[Softmax], names: Names, size: int, after: int) -> None:
    place = product("i", after)
    scale = softmax16_multiplier(quant_of(site.inputs[0]).scale)
    declare(w, "sum", "0", "int32_t")
    with w.loop("i", size):
        difference = w.helper("requantize", f"from[{place}] - largest", str(scale.multiplier), str(scale.shift))
        declare(w, "x", difference, "int32_t")
        c99.bound(w, (INT16[0] - INT16[1], 0), "x")  # a large scale's shift may exceed 32 bits and change the sign
        declare(w, "power", w.helper("interpolate16", names.packed["powers"], f"x + {INT16[1]}"))
        store(w, f"to[{place}]", "power", site.outputs[0])
        w(w.use(c99.ADD, "sum", "power"))
    declare(w, "headroom", w.helper("leading_zeros", "(uint32_t)sum"))
    declare(w, "mantissa", "(uint32_t)sum << (headroom - 1)", "const uint32_t")
    declare(w, "x", f"(int32_t)((mantissa + 8192) >> 14) - {(1 << 15) + (1 << 16)}", "int32_t")
    w(w.use(c99.AT_MOST, "x", str(INT16[1])))
    declare(w, "inverse", w.helper("interpolate16", names.packed["inverses"], "x"))
    with w.loop("i", size):
        declare(w, "value", f"(to[{place}] * inverse + (1 << (30 - headroom))) >> (31 - headroom)", "int32_t")
        c99.bound(w, (0, INT16[1]), "value")
        store(w, f"to[{place}]", "value", site.outputs[0])


VARIANTS = (
    Kernel("scalar", PORTABLE, only_float, _demand, _emit),
    Kernel("integer", PORTABLE, _accepts_integers, _demand_integers, _emit_integers),
    on_each("float", _Floats),
    *(on_each(numbers, _Bytes) for numbers in ("integer", "across")),
)
