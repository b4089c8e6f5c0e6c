"""Bytes on x86: dot products of 8-bit inputs, 16 bits wide two at a time or four at a time as they are.

The skeletons hand over inputs that a copy has made ready: 16-bit numbers less their zero point, or, since the
four-at-a-time instruction takes its first operand as unsigned, bytes with their top bit turned over. What that adds
to a sum is known at build time and taken from the bias.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nnbuild.base.writer import Instruction, Writer
from nnbuild.isa.lanes import Lanes
from nnbuild.isa.x86_copies import COPIES, FILLS, PLAIN_COPIES
from nnbuild.isa.x86_memory import larger, read_bytes, within, write_bytes, write_words
from nnbuild.isa.x86_rules import Rule
from nnbuild.isa.x86_scaling import SCALED, SHIFT_RIGHT_SSE2
from nnbuild.isa.x86_sums import SumRule
from nnbuild.isa.x86_vectors import AVX2, AVX512, SSE, Vectors
from nnbuild.model.graph import Array, Tensor
from nnbuild.numeric.rounding import wrap
from nnbuild.ops.base import Clamp
from nnbuild.ops.integer import bounds, quant_of
from nnbuild.ops.site import Site

TOP_BIT = 128
FAMILY = {128: SSE, 256: AVX2, 512: AVX512}


@dataclass(frozen=True)
class IntegerSet:
    """What a set of instructions offers to integer kernels.

    dot: the instruction that multiplies bytes and adds four products to a sum, if there is one; `pairs` is that for
    16-bit numbers and two products.
    """

    name: str
    vectors: Vectors
    registers: int
    dot: str = ""
    pairs: str = ""

    def serving(self, dtype: str) -> IntegerSet:
        """What of it serves inputs of a type: 16-bit numbers are not taken four at a time."""
        return replace(self, dot="") if dtype == "int16" else self

    @property
    def depth(self) -> int:
        return 4 if self.dot else 2

    @property
    def step(self) -> Instruction:
        """One step of a dot product on a vector of sums.

        The empty assembly keeps gcc from giving the sums of two loop rounds different registers, or from delaying
        the additions.
        """
        v = self.vectors
        products = v.spelt("madd_epi16", "inputs", "weights")
        fused = self.dot or self.pairs
        value = v.spelt(fused, "sum", "inputs", "weights") if fused else v.spelt("add_epi32", "sum", products)
        register = "v" if v is AVX512 else "x"
        body = f'sum = {value};\n__asm__("" : "+{register}"(sum));\nreturn sum;'
        head = f"{v.kind} {{name}}({v.kind} sum, {v.kind} inputs, {v.kind} weights)"
        name = "dot" if self.dot else "added_pairs" if self.pairs else "pairs"
        return Instruction(f"{name}_{v.bits}", head, body, self.step_cycles)

    @property
    def step_cycles(self) -> float:
        return 0.5 if self.dot or self.pairs else 0.8

    @property
    def load_cycles(self) -> float:
        """Of one load beside the multiplications; those in two instructions leave less room."""
        return 0.55 if self.dot else 0.8

    def refused(self, rule: Rule) -> str | None:
        """Why this set cannot scale by a rule."""
        if self.vectors is SSE and rule.left is not None and (rule.left != 1).any():
            return "it cannot shift every channel by a count of its own to the left"
        return None


SETS = (
    IntegerSet("sse2", SSE, 16),
    IntegerSet("avx2_fma", AVX2, 16),
    IntegerSet("avx_vnni", AVX2, 16, "dpbusd_avx_epi32", "dpwssd_avx_epi32"),
    IntegerSet("avx512", AVX512, 32),
    IntegerSet("avx512_vnni", AVX512, 32, "dpbusd_epi32", "dpwssd_epi32"),
)


class IntegerVectors(Lanes):
    """8-bit weights, inputs and outputs of 8 or 16 bits, 32-bit sums, one output channel a lane."""

    weight_type = "int8_t"

    def __init__(self, site: Site, clamp: Clamp, rule: Rule, chosen: IntegerSet) -> None:
        self.dtype = site.outputs[0].dtype
        self.set, self.v, self.rule = chosen.serving(self.dtype), chosen.vectors, rule
        self.lanes, self.depth = self.v.lanes, self.set.depth
        self.input_type, self.output_type = f"{self.scratch_type}_t", f"{self.dtype}_t"
        self.input_zero = quant_of(site.inputs[0]).zero_point
        self.bounds = bounds(clamp, site.outputs[0])
        self.places = 1
        self.added: SumRule | None = None
        """with what its outputs are added to another tensor's, as the left operand"""
        self.channels = {"bias": self._bias(site), **_constants(rule, self.v)}

    def _bias(self, site: Site) -> Array:
        weights = site.constant("kernel").reshape(-1, site.output_shape()[-1]).astype(np.int64)
        bias = site.constant("bias").astype(np.int64) if "bias" in site.constants else np.zeros(weights.shape[1], int)
        lifted = self.input_zero + TOP_BIT if self.set.dot else 0
        return wrap(bias - lifted * weights.sum(axis=0), 32).astype(np.int32)

    def bound_further(self, clamp: Clamp, tensor: Tensor) -> None:
        """Takes the bounds of a maximum that follows on the outputs."""
        low, high = bounds(clamp, tensor)
        self.bounds = (min(max(self.bounds[0], low), high), min(max(self.bounds[1], low), high))

    def arranged(self, name: str, values: Array) -> Array:
        """A packed constant in the order in which vectors take it: additions for even lanes before those for odd."""
        if name != "addend":
            return values
        return values.reshape(-1, self.lanes // 2, 2).transpose(0, 2, 1).reshape(-1)

    @property
    def scratch_type(self) -> str:
        return "int8" if self.set.dot else "int16"

    @property
    def padding(self) -> int:
        """What a ready input holds where it stands for zero."""
        return self.input_zero ^ -TOP_BIT if self.set.dot else 0

    def copy(self, w: Writer, to: str, source: str, count: int) -> None:
        """Makes `count` inputs ready."""
        w.bill(count / self.v.bytes)
        if self.dtype == "int16":
            w(f"{w.call(PLAIN_COPIES[self.v.bits], to, source, str(count))};")
            return
        extra = () if self.set.dot else (str(self.input_zero),)
        w(f"{w.call(COPIES[self.scratch_type, self.v.bits], to, source, str(count), *extra)};")

    def fill(self, w: Writer, to: str, count: int) -> None:
        """Writes zeros of at least `count` inputs, at most a vector too many."""
        w.bill(count / self.v.bytes)
        w(f"{w.call(FILLS[self.scratch_type, self.v.bits], to, str(count), str(self.padding))};")

    def start(self, w: Writer, accumulator: str, channel: str) -> None:
        w.bill(0.5)
        w(f"{self.v.kind} {accumulator} = {self.v.load(_at('bias', channel))};")

    def zero(self, w: Writer, accumulator: str) -> None:
        """Declares an accumulator that begins with nothing, to be added to another one."""
        w(f"{self.v.kind} {accumulator} = {self.v.use(w, f'setzero_si{self.v.bits}')};")

    def add(self, w: Writer, accumulator: str, other: str) -> None:
        w(f"{accumulator} = {self.v.use(w, 'add_epi32', accumulator, other)};")

    def larger(self, w: Writer, accumulator: str, other: str) -> None:
        w(f"{accumulator} = {larger(w, self.v, accumulator, other)};")

    def weights(self, w: Writer, name: str, pointer: str) -> None:
        w.bill(0.5 if self.set.dot else 1)
        w(f"const {self.v.kind} {name} = {self.v.load(pointer) if self.set.dot else widened(self.v, pointer)};")

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        w.bill(0.5)
        if self.places == 1:
            w(f"const {self.v.kind} {name} = {broadcast(self.v, pointer)};")
        else:
            w(f"const {self.v.kind} {name} = {self.v.use(w, 'shuffle_epi8', broadcast16(self.v, pointer), 'apart')};")

    def most_places(self, filters: int, step: int) -> int:
        """How many outputs, their inputs `step` elements apart, one vector of sums can hold with all their channels.

        Their inputs must lie in 16 bytes, from which they are shuffled.
        """
        if self.v is SSE or filters > self.lanes // 2:
            return 1
        size = 1 if self.set.dot else 2
        return min(self.lanes // filters, (16 - 4) // (step * size) + 1)

    def hold(self, places: int, filters: int) -> None:
        """Makes a vector of sums hold the channels of several outputs, one after the other."""
        self.places = places
        if places > 1:
            self.channels = {name: self.repeated(values, filters) for name, values in self.channels.items()}

    def repeated(self, values: Array, filters: int) -> Array:
        """Values of every channel, along the last axis, for every lane."""
        found = np.zeros((*values.shape[:-1], self.lanes), values.dtype)
        for place in range(self.places):
            found[..., place * filters : (place + 1) * filters] = values
        return found

    def declare_apart(self, w: Writer, filters: int, step: int) -> None:
        """Declares which of 16 bytes each lane takes, where a vector holds several outputs."""
        if self.places == 1:
            return
        size = 1 if self.set.dot else 2
        firsts = [lane // filters * step * size if lane < self.places * filters else 0 for lane in range(self.lanes)]
        picks = ", ".join(f"{0x03020100 + 0x01010101 * first:#010x}" for first in firsts)
        w(f"const {self.v.kind} apart = {self.v.name('setr_epi32')}({picks});")

    def multiply(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        w(f"{accumulator} = {w.call(self.set.step, accumulator, name, weights)};")

    def prepare(self, w: Writer, channel: str) -> None:
        """Declares what `scale` needs to know of the lanes from `channel` on."""
        names = ["multiplier", "shift", *(name for name in ("left", "away") if name in self.channels)]
        for name in names:
            w(f"const {self.v.kind} {name}_now = {self.v.load(_at(name, channel))};")
        half = self.v.lanes // 2
        w(f"const {self.v.kind} even_now = {self.v.load(_at('addend', channel))};")
        w(f"const {self.v.kind} odd_now = {self.v.load(_at(f'addend + {half}', channel))};")
        w.bill(0.5 * (len(names) + 2))

    def scale(self, w: Writer, accumulator: str) -> None:
        """Turns sums into outputs, not yet within bounds."""
        v, value = self.v, accumulator
        if self.rule.left is not None:
            doubled = (
                v.use(w, "sllv_epi32", accumulator, "left_now")
                if "left" in self.channels
                else v.use(w, "add_epi32", accumulator, accumulator)
            )
            w(f"const {v.kind} {accumulator}_doubled = {doubled};")
            sign = v.use(w, "srai_epi32", accumulator, "31")
            if "away" in self.channels:
                sign = v.use(w, f"and_si{v.bits}", sign, "away_now")
            w(f"const {v.kind} {accumulator}_sign = {sign};")
            value = f"{accumulator}_doubled"
        high = w.call(SCALED[v.bits], value, "multiplier_now", "even_now", "odd_now")
        if self.rule.left is not None:
            high = v.use(w, "add_epi32", high, f"{accumulator}_sign")
        w(f"{accumulator} = {high};")
        w(f"{accumulator} = {self._shifted(w, accumulator)};")

    def _shifted(self, w: Writer, value: str) -> str:
        if self.v is SSE:
            return w.call(SHIFT_RIGHT_SSE2, value, "shift_now")
        return self.v.use(w, "srav_epi32", value, "shift_now")

    def store(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        """After `prepare`."""
        self.scale(w, accumulator)
        write = write_words if self.dtype == "int16" else write_bytes
        write(w, self.v, accumulator, self.bounds, pointer, count)

    def store_sum(self, w: Writer, accumulator: str, pointer: str, other: str, count: int) -> None:
        """Adds the outputs of another tensor, which `other` points at, to these."""
        assert self.added is not None
        self.scale(w, accumulator)
        held = within(w, self.v, accumulator, self.bounds)
        if held != accumulator:
            w(f"{accumulator} = {held};")
        w(f"const {self.v.kind} {accumulator}_other = {read_bytes(w, self.v, other, count)};")
        self.added.join(w, self.v, accumulator, f"{accumulator}_other", accumulator)
        write_bytes(w, self.v, accumulator, self.added.bounds, pointer, count)


def widened(v: Vectors, pointer: str) -> str:
    """Bytes as 16-bit numbers, as many as a vector has."""
    if v is SSE:
        doubled = f"_mm_unpacklo_epi8({_half(v, pointer)}, {_half(v, pointer)})"
        return f"_mm_srai_epi16({doubled}, 8)"
    return v.spelt("cvtepi8_epi16", _half(v, pointer))


def _half(v: Vectors, pointer: str) -> str:
    if v is SSE:
        return f"_mm_loadl_epi64({SSE.address(pointer)})"
    return FAMILY[v.bits // 2].load(pointer)


def broadcast(v: Vectors, pointer: str) -> str:
    """32 bits of memory in every lane."""
    loaded = f"_mm_loadu_si32({pointer})"
    return f"_mm_shuffle_epi32({loaded}, 0)" if v is SSE else v.spelt("broadcastd_epi32", loaded)


def broadcast16(v: Vectors, pointer: str) -> str:
    """16 bytes of memory in every quarter, or half, of a vector."""
    return v.spelt("broadcast_i32x4" if v is AVX512 else "broadcastsi128_si256", SSE.load(pointer))


def _constants(rule: Rule, v: Vectors) -> dict[str, Array]:
    """The rule's, in the order in which vectors take them."""
    shift = wrap(np.int64(1) << (31 - rule.shift.astype(np.int64)), 32).astype(np.int32) if v is SSE else rule.shift
    found = {"multiplier": rule.multiplier, "addend": rule.addend, "shift": shift}
    if rule.left is not None and (rule.left != 1).any():
        found["left"] = rule.left
    if rule.away is not None and (rule.away != -1).any():
        found["away"] = rule.away
    return found


def _at(name: str, index: str) -> str:
    return name if index == "0" else f"{name} + {index}"
