"""Sums of single bytes for Cortex-M3 and M0: hooks of the dot-product skeletons.

Inputs are taken as they are; their zero point is part of where a sum starts, so padding must be copied in. A
convolution's sums are scaled by one high product, as `dsp_scaling` has it.
"""

from __future__ import annotations

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm_small import SMALL
from nnbuild.isa.lanes import Lanes
from nnbuild.kernels.contract import only_int8
from nnbuild.kernels.dsp_scaling import Scaling, scaled
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import Ints, ints
from nnbuild.ops.convolution import Convolution
from nnbuild.ops.integer import bounds, quant_of, requantization
from nnbuild.ops.site import Site

LOAD = Row("const int32_t {0} = {1};", 1)
START = Row("int32_t {0} = {1};", 1)
MULTIPLY_ADD = Row("{0} += {1} * {2};", 1)
SHORT_MULTIPLY_ADD = Row("{0} += {1} * {2};", 2)
"""Of a core that multiplies and adds in two instructions."""
ADD = Row("{0} += {1};", 1)
SCALE = Row("{0} * {1}", 1)
STORE = Row("{0} = (int8_t){1};", 1)


def weights_of(site: Site) -> Ints:
    """[taps, channels] of a convolution, a depthwise one too."""
    return ints(site.constant("kernel")).reshape(-1, site.output_shape()[-1])


def starts(site: Site, weights: Ints) -> Ints:
    bias = ints(site.constant("bias")) if "bias" in site.constants else np.zeros(weights.shape[1], np.int64)
    begin: Ints = bias - quant_of(site.inputs[0]).zero_point * weights.sum(axis=0)
    return begin


def scaling_of(site: Site[Convolution], weights: Ints) -> Scaling | str:
    attributes, out = site.attributes, site.outputs[0]
    scale, begin = requantization(site, weights.shape[1]), starts(site, weights)
    reach = np.abs(begin) + 256 * np.abs(weights).sum(axis=0)
    limits, zero = bounds(attributes.clamp, out), quant_of(out).zero_point
    return scaled(scale.multiplier, scale.shift, reach, np.zeros_like(reach), zero, limits, apart=True)


def refused_bytes(site: Site[Convolution]) -> str | None:
    """Why a convolution's sums cannot be those of these lanes."""
    found = only_int8(site) or scaling_of(site, weights_of(site))
    return found if isinstance(found, str) else None


class ByteLanes(Lanes):
    """int8 into 32 bits, one channel a lane."""

    input_type = "int8_t"
    weight_type = "int8_t"
    output_type = "int8_t"

    vectors = 4

    def __init__(self, site: Site[Convolution]) -> None:
        weights = weights_of(site)
        found = scaling_of(site, weights)
        assert isinstance(found, Scaling)
        self.scaling = found
        self.factor = int(found.factors[0]) if (found.factors == found.factors[0]).all() else None
        columns: dict[str, Array] = {"start": starts(site, weights), **found.columns}
        if self.factor is None:
            columns["factor"] = found.factors
        if found.shift is not None:
            columns["shift"] = np.full(weights.shape[1], found.shift)
        self.channels: dict[str, Array] = {name: values.astype(np.int32) for name, values in columns.items()}

    def start(self, w: Writer, accumulator: str, channel: str) -> None:
        w(w.use(START, accumulator, f"start[{channel}]"))

    def weights(self, w: Writer, name: str, pointer: str) -> None:
        w(w.use(LOAD, name, c99.at(pointer)))

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        w(w.use(LOAD, name, c99.at(pointer)))

    def multiply(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        w(w.use(MULTIPLY_ADD, accumulator, name, weights))

    def store(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        columns = {name: f"{name}[{channel}]" for name in self.channels}
        offset = columns["offset"]
        if "below" in columns:
            w.bill(3)
            offset = f"{offset} - ({columns['below']} & ({accumulator} >> 31))"
        raised = w.use(SCALE, accumulator, str(self.factor) if self.factor else columns["factor"])
        w.bill(4)
        high = SMALL.call(w, "high", raised, columns["multiplier"])
        w(f"{accumulator} = ({high} + {offset}) >> {columns['shift']};")
        c99.bound(w, self.scaling.bounds, accumulator)
        w(w.use(STORE, c99.at(pointer), accumulator))


class ShortByteLanes(ByteLanes):
    """For Cortex-M0, whose loads of signed bytes take two instructions: weights are stored 128 too large.

    So every sum is 128 times the sum of its inputs too large, which is counted once a position. The skeleton calls a
    position's inputs x0, x1 …, and its sums sum00, sum01 …, sum10 ….
    """

    weight_type = "uint8_t"

    @staticmethod
    def stored(kernel: Array) -> Array:
        return (kernel.astype(np.int16) + 128).astype(np.uint8)

    def start(self, w: Writer, accumulator: str, channel: str) -> None:
        if channel == "0":
            w(w.use(START, f"{accumulator}_inputs", "0"))
        super().start(w, accumulator, channel)

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        super().inputs(w, name, pointer)
        w(w.use(ADD, f"{name.replace('x', 'sum')}0_inputs", name))
        w.bill(1)

    def multiply(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        w(w.use(SHORT_MULTIPLY_ADD, accumulator, name, weights))

    def store(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        w.bill(20)
        w(f"{accumulator} -= {accumulator[: -len(str(int(channel)))]}0_inputs * 128;")
        super().store(w, accumulator, pointer, channel, count)


class CentredByteLanes(ByteLanes):
    """For kernels that leave padding out: inputs are taken less their zero point."""

    def __init__(self, site: Site[Convolution]) -> None:
        super().__init__(site)
        self.zero = quant_of(site.inputs[0]).zero_point
        bias = site.constants.get("bias")
        start = np.zeros_like(self.channels["start"]) if bias is None else bias.data.astype(np.int32)
        self.channels["start"] = start

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        w.bill(1)
        w(w.use(LOAD, name, c99.added(c99.at(pointer), -self.zero)))


class ShortCentredByteLanes(CentredByteLanes):
    """The same on Cortex-M0: signed loads, products that are added, and a high product take more instructions."""

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        w.bill(2)
        super().inputs(w, name, pointer)

    def weights(self, w: Writer, name: str, pointer: str) -> None:
        w.bill(2)
        super().weights(w, name, pointer)

    def multiply(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        w.bill(1)
        w(w.use(SHORT_MULTIPLY_ADD, accumulator, name, weights))

    def store(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        w.bill(25)
        super().store(w, accumulator, pointer, channel, count)
