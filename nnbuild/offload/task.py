"""A task of a device: a frozen value that the device's Python file packs, describes, prices and computes.

A device file has four functions: `pack(task)` returns the bytes of its constants in the order in which the device reads
them; `describe(task, addresses)` the bytes of its descriptor; `cycles(task)` its cost; `compute(task, arrays)` its
output, exact in every bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT8, Ints

Pair = tuple[int, int]
Operation = Literal["conv2d", "depthwise_conv2d", "dense", "max_pool", "average_pool", "add", "load", "store"]


@dataclass(frozen=True)
class Layout:
    """A tensor [height, width, channels] of bytes, or a part of one; `row` and `pixel` are the bytes from row to row
    and from pixel to pixel."""

    shape: tuple[int, int, int]
    row: int
    pixel: int


@dataclass(frozen=True, eq=False)
class Scaling:
    """How sums are scaled: arrays with one number per channel, or one for all channels.

    `rule`: "device" is what the table's [arithmetic] says; "twice" is that of TFLite, `numeric.rounding.requantize`;
    "once" is `numeric.real_scale.apply_integer_scale`, where `shift` is the right shift, from 1 to 62, and `away` the
    channels that round halves away from zero.
    """

    multiplier: Ints
    shift: Ints
    rule: str = "twice"
    away: Array | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """One operation on tensors, or parts of them, in a device's memory.

    Weights are [kh, kw, in, out]; of a depthwise convolution [kh, kw, channels]; of a dense layer [in, out]. A sum
    ("add") has three scales: of its left operand, its right operand, and its result; operands are first shifted left by
    `spare` bits. "load" copies a tensor from the memory shared with the host into the device's own, "store" copies one
    back; nothing is computed.
    """

    operation: Operation
    name: str
    inputs: tuple[Layout, ...]
    output: Layout
    window: Pair = (1, 1)
    strides: Pair = (1, 1)
    padding: tuple[Pair, Pair] = ((0, 0), (0, 0))
    """((top, bottom), (left, right)) of this part; 0 for an inner part."""
    in_zeros: tuple[int, ...] = (0,)
    out_zero: int = 0
    bounds: Pair = INT8
    weights: Array | None = None
    bias: Ints | None = None
    scales: tuple[Scaling, ...] = ()
    spare: int = 20


@dataclass(frozen=True)
class Addresses:
    """Addresses of a task's data, in bytes from the start of each memory, and its order among other tasks."""

    inputs: tuple[int, ...]
    output: int
    constants: int = 0
    tag: int = 0
    after: frozenset[str] = frozenset()
    """Engines of the device, by the names in its table, that must be idle before the task begins. Tasks of one engine
    run one after the other anyway."""
    interrupt: bool = False
