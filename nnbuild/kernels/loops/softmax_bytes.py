"""Softmax of bytes in vectors, over contiguous values.

Powers come from a table, by gathers where the set has them. They stay in registers where they are few; else the scratch
holds them, zeros up to a whole vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops.strided import each_run
from nnbuild.kernels.parts.integer_steps import declare
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.kernels.parts.softmax_steps import few_at_once, inverse8, powers8, sizes
from nnbuild.numeric.rounding import INT8
from nnbuild.numeric.softmax import SUM_INTEGER_BITS
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site
from nnbuild.ops.softmax import Softmax

LOWEST = INT8[0]


@dataclass(frozen=True)
class SoftmaxOfBytes:
    v: Vectors

    def accepts(self, site: Site[Softmax]) -> str | None:
        _, size, after = sizes(site)
        if after > 1:
            return "its values are not contiguous"
        return None if size > 1 else "it has a single value"

    def demand(self, site: Site[Softmax]) -> Demand:
        """The powers of all differences, from -255 up."""
        before, size, _ = sizes(site)
        powers = np.zeros(256, np.int32)
        found = powers8(quant_of(site.inputs[0]).scale)
        powers[256 - len(found) :] = found[::-1]
        scratch = 0 if self._in_registers(size) else 4 * self._padded(size)
        return Demand(
            extent=before, packed={"powers": powers}, overlaps=IN_PLACE, scratch=scratch, scratch_type="int32"
        )

    def _in_registers(self, size: int) -> bool:
        return self.v.gathers and size <= self.v.registers // 2 * self.v.lanes

    def _padded(self, size: int) -> int:
        return -(-size // self.v.lanes) * self.v.lanes

    def emit(self, w: Writer, site: Site[Softmax], names: Names) -> None:
        before, size, _ = sizes(site)
        if not self.v.gathers:
            for rest in range(size, self._padded(size)):
                w(w.use(c99.STORE, f"{names.scratch}[{rest}]", "0"))
        with each_run(w, site, names, before, size):
            if self._in_registers(size):
                self._held(w, names.packed["powers"], size)
            else:
                self._in_turns(w, names.packed["powers"], names.scratch, size)

    def _held(self, w: Writer, table: str, size: int) -> None:
        v = self.v
        parts = [(f"x{i}", str(at), min(v.lanes, size - at)) for i, at in enumerate(range(0, size, v.lanes))]
        for name, at, count in parts:
            v.let(w, "sums", name, self._values(w, at, count), "")
        self._largest(w, (name for name, _, _ in parts))
        for name, _, count in parts:
            w(f"{name} = {self._gathered(w, table, name, count)};")
        self._sum(w, (name for name, _, _ in parts))
        self._declare_scaling(w)
        for name, at, count in parts:
            self._store(w, name, f"to + {at}", count)

    def _in_turns(self, w: Writer, table: str, scratch: str, size: int) -> None:
        v = self.v
        self._largest(w, (self._values(w, at, count) for at, count in in_vectors(w, v.lanes, size, "i", rolled=v)))
        self._sum(w, self._kept_powers(w, table, scratch, size))
        self._declare_scaling(w)
        for at, count in in_vectors(w, v.lanes, size, "i", rolled=v):
            self._store(w, v.call(w, "load", f"{scratch} + {at}"), f"to + {at}", count)

    def _kept_powers(self, w: Writer, table: str, scratch: str, size: int) -> Iterator[str]:
        """All powers, which also go to the scratch."""
        v = self.v
        if self.v.gathers:
            for at, count in in_vectors(w, v.lanes, size, "i", rolled=v):
                v.let(w, "sums", "power", self._gathered(w, table, self._values(w, at, count), count))
                w(f"{v.call(w, 'store', f'{scratch} + {at}', 'power')};")
                yield "power"
            return
        for at in few_at_once(w, size):
            w.bill(2 * c99.LOAD.cycles + c99.ADD.cycles)
            w(w.use(c99.STORE, f"{scratch}[{at}]", f"{table}[first + from[{at}]]"))
        for at, _ in in_vectors(w, v.lanes, self._padded(size), "i", rolled=v):
            yield v.call(w, "load", f"{scratch} + {at}")

    def _values(self, w: Writer, at: str, count: int) -> str:
        """A vector of inputs, the lowest number in lanes without any."""
        v = self.v
        values = v.call(w, "widen", f"from + {at}", of=(count,))
        if count == v.lanes:
            return values
        lowest = v.call(w, "each", str(LOWEST))
        return v.call(w, "add", v.kept_sums(w, v.call(w, "sub", values, lowest), count), lowest)

    def _largest(self, w: Writer, values: Iterator[str]) -> None:
        """Declares the place in the table of the power of 0."""
        v = self.v
        v.let(w, "sums", "largest", v.call(w, "each", str(LOWEST)), "")
        for value in values:
            w(f"largest = {v.call(w, 'max', 'largest', value)};")
        declare(w, "first", f"255 - {v.call(w, 'max_across', 'largest')}")
        if self.v.gathers:
            v.let(w, "sums", "firsts", v.call(w, "each", "first"))

    def _gathered(self, w: Writer, table: str, values: str, count: int) -> str:
        v = self.v
        return v.kept_sums(w, v.call(w, "gather", table, v.call(w, "add", values, "firsts")), count)

    def _sum(self, w: Writer, powers: Iterator[str]) -> None:
        v = self.v
        v.let(w, "sums", "parts", v.call(w, "each", "0"), "")
        for power in powers:
            rounded = v.call(w, "add", power, 1 << (SUM_INTEGER_BITS - 1))
            shifted = v.call(w, "shift_down", rounded, of=(SUM_INTEGER_BITS,))
            w(f"parts = {v.call(w, 'add', 'parts', shifted)};")
        declare(w, "sum", f"(uint32_t){v.call(w, 'sum_across', 'parts')}", "const uint32_t")

    def _declare_scaling(self, w: Writer) -> None:
        v = self.v
        inverse8(w)
        v.let(w, "sums", "inverses", v.call(w, "each", "(int32_t)inverse"))
        if v.rounds:
            v.let(w, "sums", "halves", v.call(w, "each", "(int32_t)(2 * half)"))
        else:
            rounding = "(int64_t)((uint64_t)half << 32 | UINT32_C(1) << 30)"
            v.let(w, "wide", "rounding", v.call(w, "each_wide", rounding))

    def _store(self, w: Writer, power: str, to: str, count: int) -> None:
        v = self.v
        if v.rounds:
            share = v.call(w, "add", v.call(w, "high_rounded", power, "inverses"), "halves")
            share = v.call(w, "shift_down_by", share, "amount + 1")
        else:
            share = v.call(w, "scaled", power, "inverses", "rounding", "rounding", of=(int(v.alternating),))
            share = v.call(w, "shift_down_by", share, "amount")
        share = v.call(w, "add", share, LOWEST)
        w(f"{v.call(w, 'store_bytes', to, share, of=(*INT8, count))};")
