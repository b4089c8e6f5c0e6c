"""What a device is asked to do at once: a frozen value that its Python file packs, describes, prices and computes.

A device file has four functions: `pack(task)` gives the bytes of its constants in the order in which the device reads
them; `describe(task, addresses)` the bytes of its descriptor; `cycles(task)` what it costs; `compute(task, arrays)`
its output, exact in every bit.
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
    """A tensor [height, width, channels] of bytes, or a part of one: the bytes from row to row and pixel to pixel."""

    shape: tuple[int, int, int]
    row: int
    pixel: int


@dataclass(frozen=True, eq=False)
class Scaling:
    """How sums are scaled: arrays with a number for every channel, or with one for all of them.

    `rule` names it as the device's table does: "twice" is `numeric.rounding.requantize`; "once" is
    `numeric.real_scale.apply_integer_scale`, where `shift` is the amount shifted right, from 1 to 62, and `away` the
    channels that round halves away from zero.
    """

    multiplier: Ints
    shift: Ints
    rule: str = "twice"
    away: Array | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """One operation on tensors, or parts of them, that lie in a device's memory.

    Weights are [kh, kw, in, out], of a depthwise convolution [kh, kw, channels], of a dense layer [in, out]. A sum
    ("add") has three scales: of its left operand, its right one, and of what comes out; `spare` is by how many bits
    operands are shifted left before. "load" brings a tensor from the memory that the host shares into the device's own,
    "store" brings one back; nothing is computed.
    """

    operation: Operation
    name: str
    inputs: tuple[Layout, ...]
    output: Layout
    window: Pair = (1, 1)
    strides: Pair = (1, 1)
    padding: tuple[Pair, Pair] = ((0, 0), (0, 0))
    """((top, bottom), (left, right)): those of this part, an inner one's are zero."""
    in_zeros: tuple[int, ...] = (0,)
    out_zero: int = 0
    bounds: Pair = INT8
    weights: Array | None = None
    bias: Ints | None = None
    scales: tuple[Scaling, ...] = ()
    spare: int = 20


@dataclass(frozen=True)
class Addresses:
    """Where a task finds everything, in bytes from the start of each memory, and its place among the others."""

    inputs: tuple[int, ...]
    output: int
    constants: int = 0
    tag: int = 0
    after: frozenset[str] = frozenset()
    """The engines of the device, by the names of its table, that must be idle before the task begins. Tasks of one
    engine follow each other anyway."""
    interrupt: bool = False
