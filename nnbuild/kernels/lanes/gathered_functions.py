"""Functions of 16-bit numbers in vectors: one gather gives two neighbouring entries of a table, to interpolate between.

The results are those of `interpolate16`, `logistic16` and `tanh16`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Names, OnEach, on_each
from nnbuild.kernels.loops.strided import Loops
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT16, INT32, Ints, int32s
from nnbuild.numeric.tables import InputScale, sigmoid_table
from nnbuild.ops import activation_rules as rules
from nnbuild.ops.activation import Activation
from nnbuild.ops.site import Site

STEP_BITS = 7
"""The lower bits of an input, between two entries."""
LAST = 255
"""The first index whose result is that of all larger ones."""
ENDS = {"sigmoid": 2 * INT16[1], "tanh": 65535}


def pairs(entries: Ints) -> Array:
    """Every entry in the lower half of a word, the following one in the upper half."""
    return int32s((entries[:-1] & 0xFFFF) | (entries[1:] << 16))


def looked_up(w: Writer, v: Vectors, table: str, x: str) -> str:
    """The value of a table's function."""
    index = v.call(w, "shift_right", x, of=(STEP_BITS,))
    index = v.call(w, "add", index, 1 << (15 - STEP_BITS))
    fraction = v.call(w, "and", x, (1 << STEP_BITS) - 1)
    return _rounded(w, v, _interpolated(w, v, table, index, fraction, STEP_BITS), STEP_BITS)


def _interpolated(w: Writer, v: Vectors, table: str, index: str, fraction: str, bits: int, signed: bool = True) -> str:
    """The place between two entries that `fraction` of so many bits gives, with these bits; it declares names."""
    v.let(w, "sums", "pair", v.call(w, "gather", table, index))
    if signed:
        entry = v.call(w, "shift_right", v.call(w, "shift_left", "pair", of=(16,)), of=(16,))
        following = v.call(w, "shift_right", "pair", of=(16,))
    else:
        entry = v.call(w, "and", "pair", 65535)
        following = v.call(w, "shift_down", "pair", of=(16,))
    v.let(w, "sums", "entry", entry)
    rise = v.call(w, "mul", v.call(w, "sub", following, "entry"), fraction)
    return v.call(w, "add", v.call(w, "shift_left", "entry", of=(bits,)), rise)


@dataclass(frozen=True)
class GatheredFunction:
    """`walks` are those of output and input."""

    v: Vectors
    walks: Callable[[Site[Activation]], Loops]
    demanded: Callable[[Site[Activation], int], Demand]

    def accepts(self, site: Site[Activation]) -> str | None:
        if {site.inputs[0].dtype, site.outputs[0].dtype} != {"int16"}:
            return "it computes int16 only"
        match site.attributes.rule(site):
            case rules.Table():
                pass
            case rules.Sigmoid(_, scale):
                if -INT16[0] * scale.multiplier + _half(scale) > INT32[1]:
                    return "its input's scale needs 64 bits"
            case _:
                return "its function has no table"
        if not self.v.gathers:
            return "its set does not gather faster than one by one"
        return self.walks(site).no_vectors(self.v.lanes)

    def demand(self, site: Site[Activation]) -> Demand:
        match site.attributes.rule(site):
            case rules.Table(entries):
                table = pairs(entries)
            case rules.Sigmoid(function, _):
                table = pairs(np.append(sigmoid_table()[:LAST], [ENDS[function]] * 2))
            case other:
                raise AssertionError(other)
        return replace(self.demanded(site, self.v.lanes), packed={"pairs": table})

    def emit(self, w: Writer, site: Site[Activation], names: Names) -> None:
        v, walks, rule = self.v, self.walks(site), site.attributes.rule(site)

        def element(at: list[str], count: int) -> None:
            values = v.call(w, "widen_words", f"{names.inputs[0]} + {at[1]}", of=(count,))
            v.let(w, "sums", "x", v.kept_sums(w, values, count))
            table = names.packed["pairs"]
            value = _sigmoid(w, v, rule, table) if isinstance(rule, rules.Sigmoid) else looked_up(w, v, table, "x")
            w(f"{v.call(w, 'store_words', f'{names.outputs[0]} + {at[0]}', value, of=(*INT16, count))};")

        walks.vector_nest(w, v.lanes, element)


def _half(scale: InputScale) -> int:
    return 1 << (scale.shift - 1) if scale.shift else 0


def _rounded(w: Writer, v: Vectors, value: str, bits: int) -> str:
    return v.call(w, "shift_right", v.call(w, "add", value, 1 << (bits - 1)), of=(bits,))


def _sigmoid(w: Writer, v: Vectors, rule: rules.Sigmoid, table: str) -> str:
    """The table is that of magnitudes; tanh takes it at twice the argument."""
    bits = 9 if rule.function == "sigmoid" else 8
    place = v.call(w, "mul", "x", rule.scale.multiplier)
    if rule.scale.shift:
        place = v.call(w, "add", place, _half(rule.scale))
        place = v.call(w, "shift_right", place, of=(rule.scale.shift,))
    v.let(w, "sums", "place", place)
    v.let(w, "sums", "sign", v.call(w, "shift_right", "place", of=(31,)))
    v.let(w, "sums", "size", _signed(w, v, "place"))
    index = v.call(w, "min", v.call(w, "shift_right", "size", of=(bits,)), LAST)
    fraction = v.call(w, "and", "size", (1 << bits) - 1)
    v.let(w, "sums", "above", _interpolated(w, v, table, index, fraction, bits, signed=False))
    if rule.function == "tanh":
        value = _signed(w, v, v.call(w, "sub", "above", 1 << 23))
        half = v.call(w, "add", 128, "sign")
        return v.call(w, "shift_right", v.call(w, "add", value, half), of=(8,))
    half = v.call(w, "and", "sign", (1 << 25) - 1)
    half = v.call(w, "add", half, 512)
    return v.call(w, "shift_right", v.call(w, "add", _signed(w, v, "above"), half), of=(10,))


def _signed(w: Writer, v: Vectors, value: str) -> str:
    """A number with the sign of the variable `sign`."""
    return v.call(w, "sub", v.call(w, "xor", value, "sign"), "sign")


def gathered_kernels(
    walks: Callable[[Site[Activation]], Loops], demanded: Callable[[Site[Activation], int], Demand]
) -> tuple[OnEach[Activation], ...]:
    def made(v: Vectors) -> GatheredFunction:
        return GatheredFunction(v, walks, demanded)

    return on_each("integer", made, "_gathered"), on_each("across", made, "_gathered")
