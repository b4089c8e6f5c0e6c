"""Two layouts of 8-bit weights as pairs of 16 bits.

`Wide`: every weight is an int16; one SMLAD takes two inputs of one channel. `Packed`: an int16 holds 256 * b + a, the
weights of two channels, as small as int8. SMLAD on the word gives 256 * B + A, and on its low bytes A alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa.arm import DSP
from nnbuild.kernels.dsp.scaling import Scaling
from nnbuild.kernels.lanes.layer_sums import Sums
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT16, INT32, Ints, ints

WORD = 0xFFFFFFFF
RAISED = 8
"""Bits by which the upper of two packed sums is shifted."""
LOAD_TWO = Row("const int64_t {0} = {1};", 1, 2)
"""Two words by one "load_two"."""
INPUT_ORDER = {"int8": (0, 2, 1, 3), "int16": (0, 1, 2, 3)}
"""The order in which four inputs are unpacked from a word of bytes: the first and third, then the second and fourth."""


def padded_taps(taps: int) -> int:
    return -(-taps // 4) * 4


def in_pairs(weights: Ints, dtype: str) -> Ints:
    """[taps, channels] -> [pairs, 2, channels], in the order of the inputs."""
    taps = padded_taps(len(weights))
    whole = np.zeros((taps, weights.shape[1]), np.int64)
    whole[: len(weights)] = weights
    ordered: Ints = whole.reshape(taps // 4, 4, -1)[:, INPUT_ORDER[dtype]].reshape(taps // 2, 2, -1)
    return ordered


def words(halves: Ints) -> Ints:
    """[pairs, 2, …] 16-bit numbers -> [pairs, …] words."""
    return (halves[:, 0] & 0xFFFF) | ((halves[:, 1] & 0xFFFF) << 16)


def doublets(values: Ints) -> Array:
    """Consecutive words, two per int64, the first one low; behind an odd number of them, zero."""
    flat = np.pad(values.reshape(-1), (0, values.size % 2)).reshape(-1, 2).astype(np.uint64)
    return (flat[:, 0] | (flat[:, 1] << np.uint64(32))).view(np.int64)


def word(w: Writer, index: int, name: str = "w", source: str = "k") -> str:
    """Word `index` from a pointer on; asking for the first of two loads both."""
    name = f"{name}{index // 2}"
    if index % 2 == 0:
        w(w.use(LOAD_TWO, name, f"{source}[{index // 2}]"))
    return high(name) if index % 2 else low(name)


def overlapping_pair(w: Writer, pair: int, place: int, source: str = "") -> tuple[tuple[str, str], tuple[str, str]]:
    """The inputs x[pair] of two positions and the two words at k[place], in overlapping loads."""
    first, *others = (f"x{pair}", f"other{pair}", f"near{place}", f"near{place}_next")
    for name in others:
        w(f"int32_t {name};")
    loaded = DSP.call(w, "load_both", source or f"x + {pair}", f"k + {place}", *(f"&{name}" for name in others))
    w(f"const int32_t {first} = {loaded};")
    return (first, others[0]), (others[1], others[2])


def low(value: str) -> str:
    return f"(int32_t){value}"


def high(value: str) -> str:
    return f"(int32_t)({value} >> 32)"


@dataclass(frozen=True)
class Wide:
    """One channel per word, shifted as the scaling needs."""

    name: str = "wide"

    def room(self, channels: int) -> Ints:
        """The accumulator range of a tile."""
        return np.full(channels, INT32[1])

    def refusal(self, sums: Sums) -> str | None:
        """16-bit weights always fit."""

    def pack(self, pairs: Ints, scaling: Scaling) -> Array:
        """[pairs, 2, block] -> the constants of a tile, in the order in which it reads them."""
        return doublets(words(pairs * scaling.factor))

    def start(self, start: Ints, scaling: Scaling) -> Ints:
        return start * scaling.factor

    def words(self, width: int) -> int:
        """Words of a pair of a block."""
        return width

    def multiply(self, w: Writer, inputs: Sequence[str], weights: str, index: int, width: int, name: str) -> None:
        """Multiplies a pair of inputs of every position, each a word, by word `index` of a block of `width` channels;
        what is declared for it is called `name`."""
        _add(w, inputs, weights, index)

    def finish(self, w: Writer, width: int, positions: int, scaling: Scaling) -> None:
        """Turns packed sums into the sums to be scaled."""


@dataclass(frozen=True)
class Packed:
    """Two channels per word."""

    name: str = "packed"

    def room(self, channels: int) -> Ints:
        """The lower of two sums in a word may have any size, as it is also summed alone."""
        return np.where(np.arange(channels) % 2, (1 << 23) - 1, INT32[1])

    def refusal(self, sums: Sums) -> str | None:
        """Why two weights do not fit one word."""
        a, b = _two_by_two(sums.weights)
        both = 256 * b + a
        fits = np.abs(a).max() <= 127 and bool((both == np.clip(both, *INT16)).all())
        return None if fits else "its weights do not fit 8 bits"

    def pack(self, pairs: Ints, scaling: Scaling) -> Array:
        a, b = _two_by_two(pairs)
        return doublets(words(256 * b + a))

    def start(self, start: Ints, scaling: Scaling) -> Ints:
        result = start.copy()
        result[1::2] = 256 * start[1::2] + start[: len(start) // 2 * 2 : 2]
        return result

    def words(self, width: int) -> int:
        return -(-width // 2)

    def multiply(self, w: Writer, inputs: Sequence[str], weights: str, index: int, width: int, name: str) -> None:
        if 2 * index + 1 < width:
            _add(w, inputs, weights, 2 * index + 1)
            w(f"const int32_t {name} = {DSP.call(w, 'p_even_bytes', weights)};")
            weights = name
        _add(w, inputs, weights, 2 * index)

    def finish(self, w: Writer, width: int, positions: int, scaling: Scaling) -> None:
        left = scaling.form.left or 0 if scaling.form else 0
        for position in range(positions):
            for channel in range(0, width, 2):
                a, b = f"sum{position}{channel}", f"sum{position}{channel + 1}"
                if channel + 1 < width:
                    less = f"(int32_t)((uint32_t){b} - (uint32_t){a})"
                    w(f"{b} = {less};" if left == RAISED else f"{b} = {less} >> {RAISED - left};")
                    w.bill(1 + (left < RAISED))
                if left:
                    w(f"{a} *= {1 << left};")
                    w.bill(1)


Layout = Wide | Packed


def size_of(layout: Layout, pairs: int, width: int) -> int:
    """int64 that `pairs` pairs of a block take; an even number of pairs where their words are odd."""
    return pairs * layout.words(width) // 2


def add_pair(
    w: Writer, layout: Layout, pair: int, inputs: Sequence[str], width: int, there: Sequence[str] = ()
) -> None:
    """Multiplies one pair of inputs of every position by the weights of a block; `there` are the first of their words,
    if loaded already."""
    words = layout.words(width)
    for index in range(words):
        weights = there[index] if index < len(there) else word(w, pair * words + index)
        layout.multiply(w, inputs, weights, index, width, f"low{pair}_{index}")


def _add(w: Writer, inputs: Sequence[str], weights: str, channel: int) -> None:
    for position, x in enumerate(inputs):
        total = f"sum{position}{channel}"
        w(f"{total} = {DSP.call(w, 'p_dot', x, weights, total)};")


def _two_by_two(values: Ints) -> tuple[Ints, Ints]:
    """Those of even and of odd channels, zeros for one that does not exist."""
    whole = np.pad(ints(values), [(0, 0)] * (values.ndim - 1) + [(0, values.shape[-1] % 2)])
    return whole[..., 0::2], whole[..., 1::2]
