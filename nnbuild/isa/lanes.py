"""The interface between dot-product loops and an instruction set.

The loops compute acc[lane] += sum over k of a[k] * w[lane][k] for a block of output channels. They own the loops,
register blocking and borders; lanes declare, accumulate and store a vector of `lanes` accumulators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from nnbuild.base.writer import Writer
from nnbuild.model.graph import Array


class Lanes(ABC):
    """All arguments that are not numbers are C: names to declare, or expressions.

    `channels` holds the lanes' constants of every output channel (bias, multipliers …), one value a channel. The loops
    pack these like the weights, and keep a pointer of the same name at the current block.
    """

    input_type: str
    weight_type: str
    output_type: str
    channels: Mapping[str, Array]
    lanes: int = 1
    """output channels in one vector"""
    depth: int = 1
    """consecutive inputs that one multiply consumes"""
    vectors: int = 1
    """vectors of output channels in a full tile"""
    loaded: int = 1
    """steps of `depth` inputs per load"""
    paired: bool = False
    """whether two positions are multiplied together"""
    unroll_rows: bool = False
    """whether unrolling rows of taps pays, with unchanged inputs where all rows are real"""
    blank: int = 0
    """the inputs' zero point, where the start of sums accounts for it"""

    @abstractmethod
    def start(self, w: Writer, accumulator: str, channel: str) -> None:
        """Declares an accumulator for the lanes from `channel` of the block on; it starts with their bias."""

    def start_centred(self, w: Writer, accumulator: str, channel: str) -> None:  # noqa: B027
        """Restarts an accumulator, for inputs less their zero point."""

    def raw_inputs(self, w: Writer, name: str, pointer: str, count: int) -> None:
        """The same as `lane_inputs`, but without subtracting the zero point."""
        self.lane_inputs(w, name, pointer, count)

    def clear(self, w: Writer, accumulator: str) -> None:
        """Declares an accumulator that starts at zero, to be added to another one."""
        raise NotImplementedError("these lanes have one sum for each output")

    def combine(self, w: Writer, operation: str, accumulator: str, other: str) -> None:
        """Combines an accumulator with another one by an operation."""
        raise NotImplementedError("these lanes have one sum for each output")

    def join(self, w: Writer, name: str, inputs: tuple[str, str], step: int) -> None:
        """Declares one step's inputs of two positions, out of those loaded together."""
        raise NotImplementedError("these lanes take one position at a time")

    def multiply_both(self, w: Writer, accumulators: tuple[str, str], name: str, weights: str) -> None:
        """Both accumulators += the joined inputs of two positions * weights."""
        raise NotImplementedError("these lanes take one position at a time")

    def exchange(self, w: Writer, accumulators: tuple[str, str]) -> None:  # noqa: B027
        """Converts the accumulators of two positions to the form in which they accumulate, or back."""

    def carry(self, w: Writer, accumulator: str) -> None:  # noqa: B027
        """Makes room in an accumulator; some lanes need that every few steps."""

    @abstractmethod
    def weights(self, w: Writer, name: str, pointer: str) -> None:
        """Declares and loads the weights of one vector for `depth` inputs."""

    @abstractmethod
    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        """Declares `depth` inputs, the same for every lane."""

    def lane_inputs(self, w: Writer, name: str, pointer: str, count: int) -> None:
        """Declares `count` neighbouring inputs, one for each lane."""
        assert self.lanes == count == 1
        self.inputs(w, name, pointer)

    @abstractmethod
    def multiply(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        """accumulator += inputs * weights."""

    def multiply_by(self, w: Writer, accumulator: str, name: str, step: int, weights: str) -> None:
        """accumulator += the inputs of one of the steps loaded together * weights."""
        assert step == 0 and self.loaded == 1
        self.multiply(w, accumulator, name, weights)

    def late_pointer(self, w: Writer, pointer: str) -> str:
        """A pointer to weights that cannot be loaded earlier, where registers are too few to hold them."""
        return pointer

    def declare_constants(self, w: Writer) -> None:  # noqa: B027
        """Declares the constants of the current channel for storing, before its first output is stored."""

    @abstractmethod
    def store(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        """Applies the epilogue for the lanes from `channel` of the block on and writes the first `count`."""
