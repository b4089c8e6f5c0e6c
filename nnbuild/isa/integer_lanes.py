"""Sums of products of 8-bit weights on any vector set, used by the dot-product loops, one channel a lane.

The loops pass prepared copies of inputs: words less their zero point, or bytes with the offset that the set's products
need. The effect of that offset on a sum is known at build time and subtracted from the bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa.c99 import STORE
from nnbuild.isa.integer_ops import TAPS
from nnbuild.isa.lanes import Lanes
from nnbuild.isa.vectors import Vectors
from nnbuild.model.graph import Array
from nnbuild.numeric.requant import General
from nnbuild.numeric.requant_twice import Twice
from nnbuild.numeric.rounding import wrap

SCALARS = 4
"""Steps up to which they are unrolled where inputs are scalars."""
SCALED_BY = ("multiplier_now", "first_now", "second_now")


class Follower(Protocol):
    """Adds another tensor to the outputs."""

    @property
    def bounds(self) -> tuple[int, int]: ...
    def join(self, w: Writer, v: Vectors, left: str, right: str, total: str) -> None: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class IntegerVectors(Lanes):
    """Inputs and outputs of 8 or 16 bits, 32-bit sums.

    dtype: of inputs and outputs. zero: the inputs' zero point. bounds: of the outputs.
    doubled: whether sums are shifted left before they are scaled.
    apart: (outputs, channels of each, distance of their inputs) in one vector of sums.
    added: the residual add, with the outputs as the left operand.
    rounded: the constants of TFLite's own roundings, where the set has instructions for them.
    long: whether multipliers have 63 bits, in two halves.
    single: the function that scales sums one by one, before `output_zero` is added, where no constants are exact.
    """

    v: Vectors
    dtype: str
    zero: int
    bounds: tuple[int, int]
    channels: Mapping[str, Array]
    doubled: bool
    lanes: int
    depth: int
    input_type: str
    output_type: str
    weight_type: str = "int8_t"
    vectors: int = 1
    apart: tuple[int, int, int] = (1, 1, 0)
    added: Follower | None = None
    rounded: Twice | None = None
    long: bool = False
    single: General | None = None
    output_zero: int = 0
    loaded: int = 1

    @property
    def lift(self) -> int:
        """The offset added to input bytes."""
        return self.v.lift if self.of_bytes else 0

    @property
    def of_bytes(self) -> bool:
        """Whether inputs are multiplied as unchanged bytes, with the bias correcting for their zero point."""
        return self.depth != 2

    @property
    def scratch_type(self) -> str:
        return self.input_type.removesuffix("_t")

    @property
    def padding(self) -> int:
        """The prepared input that stands for zero."""
        return int(wrap(self.zero + self.lift, 8)) if self.input_type == "int8_t" else 0

    @property
    def block(self) -> int:
        """Lanes for neighbouring channels where taps are interleaved."""
        return self.v.block or self.lanes

    @property
    def loads(self) -> int:
        """Instructions to load a vector of weights."""
        return 1 if self.of_bytes or self.weight_type != "int8_t" else 2

    @property
    def load_cycles(self) -> float:
        """Cycles of one load beside the multiplications; loads of two instructions overlap less."""
        return 0.55 if self.depth == 4 else 0.8

    def by_lane(self) -> IntegerVectors:
        """The same with inputs of several steps per load, where the set can multiply by one lane."""
        if self.depth == 1:
            return replace(self, loaded=SCALARS)
        rows = ("dot_of", "dot_apart_of") if self.depth == 4 else ("words_apart_of",)
        alone = self.apart[0] == 1 and not self.v.spellings.keys().isdisjoint(rows)
        return replace(self, loaded=self.v.lanes) if alone else self

    @property
    def in_pairs(self) -> bool:
        """Whether the first two weights of every lane precede all others."""
        return self.depth == 4 and self.loaded > 1 and "dot_apart_of" in self.v.spellings

    @property
    def of_words(self) -> bool:
        """Whether words are multiplied by one lane's, and the first weights of all lanes precede the second ones."""
        return self.depth == 2 and self.loaded > 1

    @property
    def busy(self) -> int:
        """Registers that a multiplication needs itself."""
        return 6 if self.in_pairs else 0

    def holding(self, vectors: int, apart: tuple[int, int, int] = (1, 1, 0)) -> IntegerVectors:
        """The same for tiles of `vectors` vectors, one of which may hold the channels of several outputs."""
        if apart[0] == 1:
            return replace(self, vectors=vectors)
        lanes = replace(self, vectors=vectors, apart=apart)
        return replace(lanes, channels={name: lanes.repeated(values) for name, values in self.channels.items()})

    def repeated(self, values: Array) -> Array:
        """Repeats values of every channel, along the last axis, for every lane."""
        outputs, filters, _ = self.apart
        found = np.zeros((*values.shape[:-1], self.lanes), values.dtype)
        for place in range(outputs):
            found[..., place * filters : (place + 1) * filters] = values
        return found

    def most_places(self, filters: int, step: int) -> int:
        """Outputs whose channels all fit one vector of sums; their inputs are `step` elements apart."""
        if self.v.reach == 0 or filters > self.lanes // 2:
            return 1
        return min(self.lanes // filters, (self.v.reach - 4) * self.depth // (step * 4) + 1)

    def arranged(self, name: str, values: Array) -> Array:
        """A packed constant in the order in which vectors read it."""
        if name == "kernel" and self.in_pairs:
            return values.reshape(-1, self.lanes, 2, 2).transpose(0, 2, 1, 3).reshape(-1)
        if name == "kernel" and self.of_words:
            return values.reshape(-1, self.lanes, 2).transpose(0, 2, 1).reshape(-1)
        if name != "addend" or not self.v.alternating:
            return values
        return values.reshape(-1, self.lanes // 2, 2).transpose(0, 2, 1).reshape(-1)

    # Inputs

    def copy(self, w: Writer, to: str, source: str, count: int) -> None:
        """Copies `count` inputs in prepared form."""
        w.bill(self.v.moving(count, 2 if self.input_type == "int16_t" else 1))
        if self.dtype == "int16":
            w(f"{self.v.call(w, 'copy', to, source, str(count))};")
        elif self.input_type == "int8_t":
            w(f"{self.v.call(w, 'lift', to, source, str(count), of=(self.lift,))};")
        else:
            w(f"{self.v.call(w, 'centre', to, source, str(count), str(self.zero))};")

    def fill(self, w: Writer, to: str, count: int) -> None:
        """Writes zeros for at least `count` inputs, at most a vector more."""
        w.bill(self.v.moving(count, 2 if self.input_type == "int16_t" else 1))
        depth = 2 if self.input_type == "int16_t" else self.depth
        w(f"{self.v.call(w, 'fill', to, str(count), str(self.padding), of=(depth,))};")

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        if self.depth == 1:
            bits = (16,) if self.input_type == "int16_t" else ()
            given = f"int32_t {name} = {self.v.call(w, 'repeat', pointer, of=(1, *bits))}" if self.loaded == 1 else ""
            w(f"const {given or f'{self.input_type} *{name} = {pointer}'};")
            return
        row, of = ("repeat_apart", self.apart) if self.apart[0] > 1 else ("repeat", ())
        row = "inputs" if self.loaded > 1 else row
        self.v.let(w, TAPS[self.depth], name, self.v.call(w, row, pointer, of=(self.depth, *of)))

    def late_pointer(self, w: Writer, pointer: str, kind: str = "") -> str:
        kind = kind or self.weight_type
        if not self.v.sparing:
            return pointer
        if kind == "int8_t":
            return self.v.call(w, "anew", pointer)
        anew = self.v.call(w, "anew", f"(const int8_t *)({pointer})")
        return f"(const {kind} *)(const void *){anew}"

    def weights(self, w: Writer, name: str, pointer: str) -> None:
        if self.in_pairs:
            self.v.let(w, "bytes", name, self.v.call(w, "weights_apart", pointer))
            return
        row = "weights" if self.weight_type == "int8_t" else "inputs"
        row, of = ("h_load", ()) if self.depth == 1 and row == "inputs" else (row, (self.depth,))
        self.v.let(w, TAPS[self.depth], name, self.v.call(w, row, pointer, of=of))

    # Sums

    def _sums(self, w: Writer, name: str, value: str, const: str = "const ") -> None:
        self.v.let(w, "sums", name, value, const)

    def start(self, w: Writer, accumulator: str, channel: str) -> None:
        self._sums(w, accumulator, self.v.call(w, "load", f"bias + {channel}"), "")

    def clear(self, w: Writer, accumulator: str) -> None:
        """Declares an accumulator that starts at zero, to be added to another one."""
        self._sums(w, accumulator, self.v.call(w, "each", "0"), "")

    def combine(self, w: Writer, operation: str, accumulator: str, other: str | int) -> None:
        w(f"{accumulator} = {self.v.call(w, operation, accumulator, other)};")

    def multiply(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        w(f"{accumulator} = {self.v.call(w, 'dot', accumulator, name, weights, of=(self.depth, self.lift))};")

    def multiply_by(self, w: Writer, accumulator: str, name: str, step: int, weights: str) -> None:
        if self.loaded == 1:
            self.multiply(w, accumulator, name, weights)
        elif self.depth == 1:
            self.multiply(w, accumulator, f"{name}[{step}]", weights)
        else:
            row = "words_apart_of" if self.of_words else "dot_apart_of" if self.in_pairs else "dot_of"
            w(f"{accumulator} = {self.v.call(w, row, accumulator, name, weights, of=(step,))};")

    # Outputs

    def prepare(self, w: Writer, channel: str) -> None:
        """The constants of `scale` for the lanes from `channel` on."""
        if self.single:
            for name, values in self.single.constants.items():
                w(f"const {C_TYPES[values.dtype.name]} *{name}_now = {name} + {channel};")
            return
        for name in self.channels:
            if name not in ("bias", "addend"):
                if self.v.sparing:
                    w(f"const int32_t *{name}_now = {name} + {channel};")
                else:
                    self._sums(w, f"{name}_now", self.v.call(w, "load", f"{name} + {channel}"))
        if self.rounded or self.long or self.v.apart:
            return
        for name, by in (("first", 0), ("second", self.lanes // 2)):
            self.v.let(w, "wide", f"{name}_now", self.v.call(w, "load_wide", f"addend + {channel} + {by}"))

    def _now(self, w: Writer, name: str) -> str:
        """A constant of the current channels."""
        return self.v.call(w, "load", f"{name}_now") if self.v.sparing else f"{name}_now"

    def scale(self, w: Writer, accumulator: str, count: int | None = None) -> None:
        """Turns sums into outputs, not clamped yet, before all that follows where registers are few.

        Only the first `count` are needed.
        """
        if self.single:
            self._scale_singly(w, accumulator, self.single, self.lanes if count is None else count)
        elif self.rounded:
            self._round(w, accumulator, self.rounded)
        else:
            (self._scale_by_long if self.long else self._scale_by_line)(w, accumulator)
        if self.v.sparing and "settled" in self.v.spellings:
            w(f"{accumulator} = {self.v.call(w, 'settled', accumulator)};")

    def _scale_singly(self, w: Writer, accumulator: str, single: General, count: int) -> None:
        held = f"{accumulator}_held"
        total = self.single_sum(w, held, accumulator)
        with w.loop("lane", count):
            scaled = w.helper(single.function, total, *(f"{name}_now[lane]" for name in single.constants))
            w(w.use(STORE, f"{held}[lane]", f"{scaled} + {self.output_zero}"))
        w(f"{accumulator} = {self.v.call(w, 'load', held)};")

    def single_sum(self, w: Writer, held: str, accumulator: str) -> str:
        """Stores sums in the array `held`; the sum of one `lane`."""
        w(f"int32_t {held}[{self.lanes}];")
        w(f"{self.v.call(w, 'store', held, accumulator)};")
        return f"{held}[lane]"

    def _scale_by_line(self, w: Writer, accumulator: str) -> None:
        v, value = self.v, accumulator
        if self.doubled:
            value = f"{accumulator}_doubled"
            self._sums(w, value, self._doubled(w, accumulator))
            sign = v.call(w, "shift_right", accumulator, of=(31,))
            if "away" in self.channels:
                sign = v.call(w, "and", sign, self._now(w, "away"))
            self._sums(w, f"{accumulator}_sign", sign)
        if v.apart:
            high = v.call(w, "scaled_apart", value, *(self._now(w, name) for name in ("multiplier", "low", "high")))
        else:
            high = v.call(w, "scaled", value, *SCALED_BY, of=(int(v.alternating),))
        w(f"{accumulator} = {v.call(w, 'add', high, f'{accumulator}_sign') if self.doubled else high};")
        self._shift(w, accumulator)

    def _scale_by_long(self, w: Writer, accumulator: str) -> None:
        v, lower, product = self.v, f"{accumulator}_lower", (accumulator, self._now(w, "multiplier"))
        self._sums(w, lower, v.call(w, "upper", accumulator, self._now(w, "lower")))
        sign = (v.call(w, "shift_right", lower, of=(31,)),) if v.apart else ()
        high = v.call(w, "scaled_apart" if v.apart else "upper_plus", *product, lower, *sign)
        w(f"{accumulator} = {v.call(w, 'add', high, self._now(w, 'offset'))};")
        self._shift(w, accumulator)

    def _shift(self, w: Writer, accumulator: str) -> None:
        shift = "shift_by_powers" if self.v.powers else "shift_right_each"
        w(f"{accumulator} = {self.v.call(w, shift, accumulator, self._now(w, 'shift'))};")

    def _round(self, w: Writer, accumulator: str, rounded: Twice) -> None:
        v = self.v
        value = (
            v.call(w, "shift_left_each", accumulator, self._now(w, "left")) if "left" in self.channels else accumulator
        )
        w(f"{accumulator} = {v.call(w, 'high_rounded', value, self._now(w, 'multiplier'))};")
        if rounded.away and "away" in self.channels:
            sign = v.call(w, "and", v.call(w, "shift_right", accumulator, of=(31,)), self._now(w, "away"))
            w(f"{accumulator} = {v.call(w, 'add', accumulator, sign)};")
        elif rounded.away:
            w(f"{accumulator} = {v.call(w, 'away', accumulator)};")
        w(f"{accumulator} = {v.call(w, 'round_each', accumulator, self._now(w, 'shift'))};")
        if rounded.zero:
            self.combine(w, "add", accumulator, rounded.zero)

    def _doubled(self, w: Writer, accumulator: str) -> str:
        if "left" not in self.channels:
            return self.v.call(w, "add", accumulator, accumulator)
        return self.v.call(w, "mul" if self.v.powers else "shift_left_each", accumulator, self._now(w, "left"))

    def store(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        """Requires `prepare`."""
        self.scale(w, accumulator, count)
        write = "store_words" if self.dtype == "int16" else "store_bytes"
        w(f"{self.v.call(w, write, pointer, accumulator, of=(*self.bounds, count))};")

    def store_sum(self, w: Writer, accumulator: str, pointer: str, other: str, count: int) -> None:
        """Adds the tensor at `other` to the outputs and stores them."""
        assert self.added is not None
        self.scale(w, accumulator, count)
        w(f"{accumulator} = {self.v.call(w, 'settled', accumulator)};" if self.v.sparing else "")
        for operation, bound in zip(("max", "min"), self.bounds, strict=True):
            self.combine(w, operation, accumulator, bound)
        self._sums(w, f"{accumulator}_other", self.v.call(w, "widen", other, of=(count,)))
        self.added.join(w, self.v, accumulator, f"{accumulator}_other", accumulator)
        w(f"{self.v.call(w, 'store_bytes', pointer, accumulator, of=(*self.added.bounds, count))};")
