"""Lanes for sums of single bytes on Cortex-M3, M0 and RISC-V, used by the dot-product loops.

Inputs keep their zero point, which the start of each sum accounts for, so padding must be copied in. A convolution's
sums are scaled by one high product.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.armv6m import SMALL
from nnbuild.isa.lanes import Lanes
from nnbuild.isa.riscv import WORDS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import accepted
from nnbuild.kernels.dsp.scaling import Scaling, general, scaling_by
from nnbuild.kernels.lanes.layer_sums import centred_start, sums_of
from nnbuild.kernels.loops.window import Weighted, window_of
from nnbuild.model.graph import Array
from nnbuild.numeric.requant_product import Form
from nnbuild.numeric.rounding import INT8, int32s
from nnbuild.ops.convolution import Convolution
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site

START = Row("int32_t {0} = {1};", 1)
PRODUCT = Row("{0} += {1} * {2};", 0, products=1)
SCALE = Row("{0} * {1}", 1, products=1)
LONG_PRODUCTS = 4
"""Multiplications of a long product."""


@lru_cache(maxsize=256)
def scaling_of(site: Site[Weighted]) -> Scaling:
    """One high product for every channel, or the vendored function."""
    return accepted(scaling_by(site, lambda _: [Form(below=None)], 30))


class ByteLanes(Lanes):
    """int8 with 32-bit sums, one channel a lane."""

    input_type = "int8_t"
    weight_type = "int8_t"
    output_type = "int8_t"

    vectors = 4
    product_cycles: ClassVar[float] = 1
    load_cycles: ClassVar[float] = 0
    store_cycles: ClassVar[float] = 0
    """Cycles of a multiply-accumulate, and those of a load or a sum's store beyond one instruction each."""
    ops: ClassVar[Vectors] = SMALL
    long_wides: ClassVar[float] = 4
    """Products of 64 bits of a scaling by multipliers with lower halves."""

    def __init__(self, site: Site[Weighted], scaling: Scaling | None = None) -> None:
        self.scaling = found = scaling or scaling_of(site)
        self.weight_type = C_TYPES[site.constant("kernel").dtype.name]
        self.output_type = found.output_type
        columns: dict[str, Array] = {"start": sums_of(site).start - found.centre, **found.columns}
        self.factor = int(found.factor[0]) if (found.left == found.left[0]).all() else None
        if self.factor is None:
            columns["factor"] = found.factor
        self.channels: dict[str, Array] = {name: int32s(values) for name, values in columns.items()}
        if found.results:
            self.channels |= found.results.constants

    def start(self, w: Writer, accumulator: str, channel: str) -> None:
        w(w.use(START, accumulator, f"start[{channel}]"))

    def weights(self, w: Writer, name: str, pointer: str) -> None:
        w.bill(self.load_cycles)
        w(w.use(c99.READ, name, c99.at(pointer)))

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        w.bill(self.load_cycles)
        w(w.use(c99.READ, name, c99.at(pointer)))

    def multiply(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        w.bill(self.product_cycles)
        w(w.use(PRODUCT, accumulator, name, weights))

    def store(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        w.bill(self.store_cycles)
        columns = {name: self.column(name, channel) for name in self.channels}
        if self.scaling.results:
            self.scaling.results.declare(w, f"{accumulator}_real", accumulator, columns)
            self.write(w, pointer, f"{accumulator}_real")
            return
        if self.scaling.form is None:
            value = f"{general(w, self.scaling, accumulator, columns)} + {self.scaling.zero}"
        elif self.scaling.form.long:
            w.bill(0, products=2 * LONG_PRODUCTS, wides=self.long_wides)
            factors = [columns[name] for name in ("multiplier", "lower", "offset")]
            value = f"{self.ops.call(w, 'high_long_add', accumulator, *factors)} >> {columns['shift']}"
        else:
            offset = columns["offset"]
            if "below" in columns:
                w.bill(3)
                offset = f"{offset} - ({columns['below']} & ({accumulator} >> 31))"
            raised = w.use(SCALE, accumulator, str(self.factor) if self.factor else columns["factor"])
            value = f"({self.high(w, raised, columns['multiplier'])} + {offset}) >> {columns['shift']}"
        w(f"{accumulator} = {value};")
        self.hold(w, accumulator)
        self.write(w, pointer, accumulator)

    def high(self, w: Writer, value: str, multiplier: str) -> str:
        """The upper word of a product."""
        w.bill(4, products=LONG_PRODUCTS)
        return SMALL.call(w, "high", value, multiplier)

    def write(self, w: Writer, pointer: str, value: str) -> None:
        w(w.use(c99.STORE if self.scaling.results else c99.STORE_BYTE, c99.at(pointer), value))

    def column(self, name: str, channel: str) -> str:
        """A constant of a channel."""
        return f"{name}[{channel}]"

    def hold(self, w: Writer, value: str) -> None:
        """Clamps a value to the bounds of outputs."""
        c99.bound(w, (self.scaling.low, self.scaling.high), value)


class NoMacByteLanes(ByteLanes):
    """For RISC-V, which has no multiply-accumulate."""

    product_cycles, store_cycles = 2, 8

    def hold(self, w: Writer, value: str) -> None:
        bounds = self.scaling.low, self.scaling.high
        if bounds == INT8:
            w(f"{value} = {WORDS.call(w, 'saturate', value, of=(8,))};")
        else:
            c99.bound(w, bounds, value)


class M0ByteLanes(ByteLanes):
    """For Cortex-M0, whose loads of signed bytes take two instructions: weights in bytes are stored plus 128.

    So every sum exceeds the right one by 128 times the sum of its inputs, which is computed once per position. The
    dot-product loops name a position's inputs x0, x1 … and its sums sum00, sum01 …, sum10 ….
    """

    product_cycles, store_cycles = 2, 20

    def __init__(self, site: Site[Weighted]) -> None:
        super().__init__(site)
        self.raised = self.weight_type == "int8_t"
        if self.raised:
            self.weight_type = "uint8_t"

    @staticmethod
    def stored(kernel: Array) -> Array:
        return (kernel.astype(np.int16) + 128).astype(np.uint8) if kernel.dtype == np.int8 else kernel

    def start(self, w: Writer, accumulator: str, channel: str) -> None:
        if channel == "0" and self.raised:
            w(w.use(START, f"{accumulator}_inputs", "0"))
        super().start(w, accumulator, channel)

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        super().inputs(w, name, pointer)
        if self.raised:
            w(w.use(c99.STEP, f"{name.replace('x', 'sum')}0_inputs", name))
            w.bill(1)

    def store(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        if self.raised:
            w(f"{accumulator} -= {accumulator[: -len(str(int(channel)))]}0_inputs * 128;")
        super().store(w, accumulator, pointer, channel, count)


class CentredByteLanes(ByteLanes):
    """For kernels that skip padding: the zero point is subtracted from inputs."""

    def __init__(self, site: Site[Convolution]) -> None:
        super().__init__(site)
        self.zero = quant_of(site.inputs[0]).zero_point
        self.channels["start"] = centred_start(site, self.scaling.centre).astype(np.int32)

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        w.bill(1 + self.load_cycles)
        w(w.use(c99.READ, name, f"{c99.at(pointer)} - {self.zero}"))


class NoMacCentredByteLanes(NoMacByteLanes, CentredByteLanes):
    """The same on RISC-V, with a channel's constants in registers; where all rows of a window are real, inputs keep
    their zero point."""

    unroll_rows = True

    def __init__(self, site: Site[Convolution]) -> None:
        super().__init__(site)
        self.blank = self.zero
        if self.blank and not window_of(site).inside:
            self.channels["centred"] = self.channels["start"]
        self.channels["start"] = int32s(sums_of(site).start - self.scaling.centre)

    def start_centred(self, w: Writer, accumulator: str, channel: str) -> None:
        if "centred" in self.channels:
            w(w.use(c99.STORE, accumulator, f"centred[{channel}]"))

    def raw_inputs(self, w: Writer, name: str, pointer: str, count: int) -> None:
        ByteLanes.inputs(self, w, name, pointer)

    def declare_constants(self, w: Writer) -> None:
        for name in self.channels:
            if name not in ("start", "centred"):
                read = c99.LOAD if self.channels[name].dtype == np.float32 else c99.READ
                w(w.use(read, self.column(name, "0"), f"{name}[0]"))

    def column(self, name: str, channel: str) -> str:
        return f"{name}_here"


class M0CentredByteLanes(CentredByteLanes):
    """The same on Cortex-M0: signed loads, multiply-accumulates and high products take more instructions."""

    product_cycles, load_cycles, store_cycles = 3, 2, 25
