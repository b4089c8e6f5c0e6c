"""The hooks through which a dot-product skeleton speaks to an ISA.

A skeleton computes acc[lane] += sum over k of a[k] * w[lane][k] for a block of output channels. It owns the loops,
the register blocking and the borders; an ISA says how a vector of `lanes` accumulators is declared, fed and stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from nnbuild.base.writer import Writer
from nnbuild.model.graph import Array


class Lanes(ABC):
    """All arguments that are not numbers are C: names to declare, or expressions.

    `channels` holds what the ISA wants to know of every output channel (bias, multipliers …), one value a channel.
    The skeleton packs these as it packs the weights, and keeps a pointer of the same name at the present block.
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
    """vectors of output channels of a full tile"""
    loaded: int = 1
    """steps of `depth` inputs that one load brings"""
    paired: bool = False
    """whether two positions are multiplied together"""
    straight: bool = False
    """whether rows of taps are worth printing one after the other, with inputs as they are where all rows are real"""
    blank: int = 0
    """the inputs' zero point, where sums of inputs as they are start with it"""

    @abstractmethod
    def start(self, w: Writer, accumulator: str, channel: str) -> None:
        """Declares an accumulator for the lanes from `channel` of the block on; it begins with their bias."""

    def start_centred(self, w: Writer, accumulator: str, channel: str) -> None:  # noqa: B027
        """An accumulator begins anew, for inputs less their zero point."""

    def inputs_as_they_are(self, w: Writer, name: str, pointer: str, count: int) -> None:
        """The same as `inputs_apart`, but without taking the zero point off."""
        self.inputs_apart(w, name, pointer, count)

    def clear(self, w: Writer, accumulator: str) -> None:
        """Declares an accumulator that begins with nothing, to be added to another one."""
        raise NotImplementedError("these lanes keep one sum an output")

    def combine(self, w: Writer, operation: str, accumulator: str, other: str) -> None:
        """An accumulator becomes what an operation makes of it and another one."""
        raise NotImplementedError("these lanes keep one sum an output")

    def join(self, w: Writer, name: str, inputs: tuple[str, str], step: int) -> None:
        """Declares the inputs of one step of two positions, of those that were loaded together."""
        raise NotImplementedError("these lanes take one position at a time")

    def multiply_both(self, w: Writer, accumulators: tuple[str, str], name: str, weights: str) -> None:
        """Both accumulators += the joined inputs of two positions * weights."""
        raise NotImplementedError("these lanes take one position at a time")

    def exchange(self, w: Writer, accumulators: tuple[str, str]) -> None:  # noqa: B027
        """Brings the accumulators of two positions to the form in which they are summed, or back."""

    @abstractmethod
    def weights(self, w: Writer, name: str, pointer: str) -> None:
        """Declares and loads the weights of one vector for `depth` inputs."""

    @abstractmethod
    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        """Declares `depth` inputs, as every lane will meet them."""

    def inputs_apart(self, w: Writer, name: str, pointer: str, count: int) -> None:
        """Declares `count` neighbouring inputs, of which each lane meets one of its own."""
        assert self.lanes == count == 1
        self.inputs(w, name, pointer)

    @abstractmethod
    def multiply(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        """accumulator += inputs * weights."""

    def multiply_by(self, w: Writer, accumulator: str, name: str, step: int, weights: str) -> None:
        """accumulator += the inputs of one of the steps that were loaded together * weights."""
        assert step == 0 and self.loaded == 1
        self.multiply(w, accumulator, name, weights)

    def anew(self, w: Writer, pointer: str) -> str:
        """A pointer to weights that are not loaded before, where there are few registers to keep them in."""
        return pointer

    def recall(self, w: Writer) -> None:  # noqa: B027
        """Declares what storing wants to know of the present channel, before the first of its outputs is stored."""

    @abstractmethod
    def store(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        """Applies the epilogue for the lanes from `channel` of the block on and writes the first `count`."""
