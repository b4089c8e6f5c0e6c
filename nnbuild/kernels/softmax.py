"""Softmax, with the maximum subtracted first so that no exponential overflows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa import vector_functions as math
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import PORTABLE, Demand, Functions, Kernel, Names, on_each, only_float, only_int8
from nnbuild.kernels.loops import softmax_row
from nnbuild.kernels.loops.softmax_bytes import SoftmaxOfBytes
from nnbuild.kernels.loops.softmax_words import SoftmaxOfWords
from nnbuild.kernels.loops.strided import each_run
from nnbuild.kernels.parts.integer_steps import declare, store
from nnbuild.kernels.parts.long_sums import declare_parts, end_parts, join_parts, summed
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.kernels.parts.softmax_steps import (
    AT_ONCE,
    accepts_integers,
    few_at_once,
    if_counted,
    inverse8,
    inverse16,
    powers8,
    sizes,
    sum8,
)
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT16
from nnbuild.numeric.softmax import exp_table16, reciprocal_table16, softmax16_multiplier
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site
from nnbuild.ops.softmax import Softmax


def _demand(site: Site[Softmax], packed: dict[str, Array] | None = None) -> Demand:
    """Where the values of one softmax are not contiguous, an output before its input would overwrite other inputs."""
    before, _, after = sizes(site)
    return Demand(extent=before, packed=packed or {}, overlaps=IN_PLACE if after == 1 else ())


@contextmanager
def _below_largest(
    w: Writer, site: Site[Softmax], names: Names, kind: str, most: int = AT_ONCE
) -> Iterator[tuple[int, int]]:
    """For every softmax, pointers to its values and their maximum; yields (size, distance of values)."""
    before, size, after = sizes(site)
    element = C_TYPES[site.inputs[0].dtype]
    with w.loop("row", "end", start="begin", trips=before), w.loop("column", after):
        start = f"row * {size * after} + column"
        w(f"const {element} *from = {names.inputs[0]} + {start};")
        w(f"{element} *to = {names.outputs[0]} + {start};")
        declare(w, "largest", "from[0]", kind)
        for at in few_at_once(w, size, most):
            w(w.use(c99.LARGER, "largest", f"from[({at}) * {after}]"))
        yield size, after


def _emit(w: Writer, site: Site[Softmax], names: Names) -> None:
    with _below_largest(w, site, names, "float") as (size, after):
        place = f"i * {after}"
        with summed(w, "sum", size):
            w(w.use(c99.LOAD, "power", w.helper("expf", f"from[{place}] - largest")))
            w(w.use(c99.STORE, f"to[{place}]", "power"))
            w(w.use(c99.ADD_FLOAT, "sum", "power"))
            w.bill(0, floats=1)
        w(w.use(c99.LOAD, "share", "1.0f / sum"))
        with w.loop("i", size):
            w(w.use(c99.STORE, f"to[{place}]", c99.product(w, f"to[{place}]", "share")))


MOST = 8
"""Vectors of one row that stay in registers."""


def _accepts_rows(site: Site[Softmax]) -> str | None:
    return only_float(site) if sizes(site)[2] == 1 else "its values are not contiguous"


def _emit_rows(v: Vectors, w: Writer, site: Site[Softmax], names: Names) -> None:
    """Over contiguous values, which stay in registers where they are few."""
    before, size, _ = sizes(site)
    with each_run(w, site, names, before, size):
        (_in_registers if size <= MOST * v.lanes else _in_turns)(v, w, size)


def _in_registers(v: Vectors, w: Writer, size: int) -> None:
    counts = [min(v.lanes, size - at) for at in range(0, size, v.lanes)]
    values = [f"x{i}" for i in range(len(counts))]
    for i, count in enumerate(counts):
        v.declare(w, values[i], v.load(w, f"from + {i * v.lanes}", count))
    softmax_row.emit(w, v, values, counts)
    for i, count in enumerate(counts):
        v.store(w, f"to + {i * v.lanes}", values[i], count)


def _in_turns(v: Vectors, w: Writer, size: int) -> None:
    """The last vector of the maximum repeats values."""
    v.declare(w, "largest", v.load(w, "from"))
    for i, count in in_vectors(w, v.lanes, size, "i"):
        place = i if count == v.lanes else str(size - v.lanes)
        w(f"largest = {v.use(w, 'max', 'largest', v.load(w, f'from + {place}'))};")
    w(f"largest = {v.across(w, 'max', 'largest')};")
    v.declare(w, "sum", v.each(w, 0.0))
    sums = declare_parts(w, ["sum"], size // v.lanes, v)
    for i, count in in_vectors(w, v.lanes, size, "i"):
        if i == "i":
            end_parts(w, sums, "i", v.lanes, v)
        below = v.use(w, "sub", v.load(w, f"from + {i}", count), "largest")
        v.declare(w, "power", w.call(math.exp(v), below))
        v.store(w, f"to + {i}", "power", count)
        w(f"sum = {v.use(w, 'add', 'sum', v.kept(w, 'power', count))};")
    join_parts(w, sums, v)
    v.declare(w, "share", v.use(w, "div", 1.0, v.across(w, "add", "sum")))
    for i, count in in_vectors(w, v.lanes, size, "i"):
        v.store(w, f"to + {i}", v.use(w, "mul", v.load(w, f"to + {i}", count), "share"), count)


def _accepts_short(site: Site[Softmax]) -> str | None:
    """A value per iteration takes less code by gcc; clang unrolls that, too. All kernels of int16 have it."""
    return only_int8(site) or accepts_integers(site)


def _demand_integers(site: Site[Softmax]) -> Demand:
    """A table of exp for each difference of two 8-bit numbers."""
    if site.inputs[0].dtype == "int8":
        return _demand(site, {"powers": powers8(quant_of(site.inputs[0]).scale)})
    return _demand(site, {"powers": exp_table16().astype(np.int16), "inverses": reciprocal_table16().astype(np.int16)})


def _emit_integers(w: Writer, site: Site[Softmax], names: Names, most: int = AT_ONCE) -> None:
    with _below_largest(w, site, names, "int32_t", most) as (size, after):
        if site.inputs[0].dtype == "int8":
            _shares8(w, site, names.packed["powers"], (size, after), most)
        else:
            _shares16(w, site, names, size, after)


def _shares8(w: Writer, site: Site[Softmax], powers: str, sizes: tuple[int, int], most: int) -> None:
    size, after = sizes
    counted = len(powers8(quant_of(site.inputs[0]).scale))
    sum8(w, powers, counted, sizes, most)
    inverse8(w)
    declare(w, "rounding", "(uint64_t)half << 32 | UINT32_C(1) << 30", "const uint64_t")
    for at in few_at_once(w, size, most):
        declare(w, "below", f"largest - from[({at}) * {after}]")
        declare(w, "value", "-128", "int32_t")
        with if_counted(w, counted):
            w.bill(c99.MULTIPLY_ADD.cycles + c99.LOAD.cycles)
            declare(w, "share", f"(uint64_t)inverse * (uint32_t){powers}[below] + rounding", "const uint64_t")
            w(w.use(c99.ADD, "value", "(int32_t)((uint32_t)(share >> 32) >> amount)"))
        w(w.use(c99.AT_MOST, "value", "127"))
        store(w, f"to[({at}) * {after}]", "value", site.outputs[0])


def _shares16(w: Writer, site: Site[Softmax], names: Names, size: int, after: int) -> None:
    place = f"i * {after}"
    scale = softmax16_multiplier(quant_of(site.inputs[0]).scale)
    declare(w, "sum", "0", "int32_t")
    with w.loop("i", size):
        difference = w.helper("requantize", f"from[{place}] - largest", str(scale.multiplier), str(scale.shift))
        declare(w, "x", difference, "int32_t")
        c99.bound(w, (INT16[0] - INT16[1], 0), "x")  # a large scale's shift may exceed 32 bits and change the sign
        declare(w, "power", w.helper("interpolate16", names.packed["powers"], f"x + {INT16[1]}"))
        store(w, f"to[{place}]", "power", site.outputs[0])
        w(w.use(c99.ADD, "sum", "power"))
    inverse16(w, names.packed["inverses"])
    with w.loop("i", size):
        declare(w, "value", f"(to[{place}] * inverse + (1 << (30 - headroom))) >> (31 - headroom)", "int32_t")
        c99.bound(w, (0, INT16[1]), "value")
        store(w, f"to[{place}]", "value", site.outputs[0])


@dataclass(frozen=True)
class _Integers:
    v: Vectors

    def _of(self, site: Site[Softmax]) -> SoftmaxOfBytes | SoftmaxOfWords:
        return (SoftmaxOfWords if site.inputs[0].dtype == "int16" else SoftmaxOfBytes)(self.v)

    def accepts(self, site: Site[Softmax]) -> str | None:
        return accepts_integers(site) or self._of(site).accepts(site)

    def demand(self, site: Site[Softmax]) -> Demand:
        return self._of(site).demand(site)

    def emit(self, w: Writer, site: Site[Softmax], names: Names) -> None:
        self._of(site).emit(w, site, names)


VARIANTS = (
    Kernel("scalar", PORTABLE, only_float, _demand, _emit),
    Kernel("integer", PORTABLE, accepts_integers, _demand_integers, _emit_integers),
    *(
        Kernel(name, frozenset({feature}), _accepts_short, _demand_integers, partial(_emit_integers, most=1))
        for name, feature in (("one_by_one", "armv7m"), ("one_by_one_short", "armv6m"))
    ),
    on_each("float", lambda v: Functions(_accepts_rows, _demand, partial(_emit_rows, v))),
    *(on_each(numbers, _Integers) for numbers in ("integer", "across")),
)
