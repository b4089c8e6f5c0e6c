"""Selects one of two operands by a truth value, in any type."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, on_each
from nnbuild.kernels.loops.strided import Loops, flat_constants, loops_over
from nnbuild.numeric.rounding import limits
from nnbuild.ops.select import Select, sides
from nnbuild.ops.site import Site

ROW = Row("{0} ? {1} : {2}", 4)


def _loops(site: Site[Select]) -> Loops:
    return loops_over(site, sides)


def _accepts(site: Site[Select]) -> str | None:
    kinds = {tensor.dtype for tensor in (*site.inputs[1:], *site.outputs)}
    return None if len(kinds) == 1 else f"its operands are of several types: {', '.join(sorted(kinds))}"


def _demand(site: Site[Select]) -> Demand:
    return Demand(extent=_loops(site).extent, packed=flat_constants(site))


def _emit(w: Writer, site: Site[Select], names: Names) -> None:
    given = sides(names.inputs, names.packed)

    def element(at: list[str]) -> None:
        w.bill(2 * c99.LOAD.cycles)
        values = [f"{name}[{place}]" for name, place in zip(given, at[1:], strict=True)]
        w(w.use(c99.STORE, f"{names.outputs[0]}[{at[0]}]", w.use(ROW, *values)))

    _loops(site).nest(w, element)


@dataclass(frozen=True)
class _Floats:
    """Floats, by truth values in bytes."""

    v: Vectors

    def accepts(self, site: Site[Select]) -> str | None:
        kinds = [tensor.dtype for tensor in (*site.inputs, *site.outputs)]
        if kinds != ["int8", *["float32"] * (len(kinds) - 1)]:
            return "it selects floats by bytes"
        lacking = [name for name in ("widen", "f_of_sums") if name not in self.v.spellings]
        return f"the set has no {lacking[0]}" if lacking else _loops(site).no_vectors(self.v.lanes)

    def demand(self, site: Site[Select]) -> Demand:
        return replace(_demand(site), extent=_loops(site).vectors(self.v.lanes))

    def emit(self, w: Writer, site: Site[Select], names: Names) -> None:
        v, loops, given = self.v, _loops(site), sides(names.inputs, names.packed)

        def row(at: list[str], _: str, elements: int) -> None:
            condition, *places = (f"{name} + {place}" for name, place in zip(given, at[1:], strict=True))
            w(f"const float *from = *({condition}) != 0 ? {places[0]} : {places[1]};")
            w(f"float *to = {names.outputs[0]} + {at[0]};")
            for place, count in in_vectors(w, v.lanes, elements, "i"):
                v.store(w, f"to + {place}", v.load(w, f"from + {place}", count), count)

        def element(at: list[str], count: int) -> None:
            places = [f"{name} + {place}" for name, place in zip(given, at[1:], strict=True)]
            if loops.repeated[1]:
                truth = v.call(w, "f_each", f"(float)*({places[0]})")
            else:
                truth = v.use(w, "of_sums", v.call(w, "widen", places[0], of=(count,)))
            v.declare(w, "truth", truth)
            values = [loops.load(w, v, operand, places[operand - 1], count) for operand in (2, 3)]
            chosen = v.use(w, "if_less", 0.0, v.use(w, "mul", "truth", "truth"), *values)
            v.store(w, f"{names.outputs[0]} + {at[0]}", chosen, count)

        if loops.repeated[1:] == [True, False, False] and len(loops.sizes) > 1:
            loops.runs(w, row)
        else:
            loops.vector_nest(w, v.lanes, element)


MOVES = {"int8": ("widen", "store_bytes"), "int16": ("widen_words", "store_words")}


@dataclass(frozen=True)
class _Integers:
    """Bytes or 16-bit numbers, by truth values in bytes."""

    v: Vectors

    def accepts(self, site: Site[Select]) -> str | None:
        kinds = {tensor.dtype for tensor in (*site.inputs[1:], *site.outputs)}
        constants = {constant.data.dtype.name for constant in site.constants.values()}
        if site.inputs[0].dtype != "int8" or len(kinds) > 1 or not constants <= kinds <= set(MOVES):
            return "it selects bytes or 16-bit numbers by bytes"
        return _loops(site).no_vectors(self.v.lanes)

    def demand(self, site: Site[Select]) -> Demand:
        return replace(_demand(site), extent=_loops(site).vectors(self.v.lanes))

    def emit(self, w: Writer, site: Site[Select], names: Names) -> None:
        v, loops, given = self.v, _loops(site), sides(names.inputs, names.packed)
        (load, store), limit = MOVES[site.outputs[0].dtype], limits(site.outputs[0].dtype)

        def element(at: list[str], count: int) -> None:
            def value(operand: int, row: str) -> str:
                place = f"{given[operand - 1]} + {at[operand]}"
                if loops.repeated[operand]:
                    return v.call(w, "each", f"*({place})")
                return v.call(w, row, place, of=(count,))

            v.let(w, "sums", "truth", value(1, "widen"))
            # Below zero where true: bytes other than 0 and 1 are true, too.
            below = v.call(w, "sub", 0, v.call(w, "max", "truth", v.call(w, "sub", 0, "truth")))
            v.let(w, "sums", "then", value(2, load))
            v.let(w, "sums", "otherwise", value(3, load))
            kept = v.call(w, "and", v.call(w, "shift_right", below, of=(31,)), v.call(w, "xor", "then", "otherwise"))
            chosen = v.call(w, "xor", "otherwise", kept)
            w(f"{v.call(w, store, f'{names.outputs[0]} + {at[0]}', chosen, of=(*limit, count))};")

        loops.vector_nest(w, v.lanes, element)


VARIANTS = (
    Kernel("scalar", PORTABLE, _accepts, _demand, _emit),
    on_each("float", _Floats),
    *(on_each(numbers, _Integers, "_integers") for numbers in ("integer", "across")),
)
