"""Recurrent layers of whose sequence only the last row is read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.nets import Net
from nnbuild import passes
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.gru import GRU
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.simple_rnn import SimpleRNN
from nnbuild.ops.slice import Slice

STEPS, FEATURES, UNITS = 7, 3, 4
LAST = Slice((STEPS - 1, 0), (1, 1), (1, UNITS))
Read = Callable[["Layer"], tuple[str, ...]]


class Layer(Net):
    def __init__(self, attributes: Recurrent) -> None:
        super().__init__("layer")
        width = attributes.gates * UNITS
        inputs = [self.input(STEPS, FEATURES)] + ([self.input(STEPS)] if attributes.masked else [])
        kernel, recurrent = (self.chance.normal(size=(n, width)) for n in (FEATURES, UNITS))
        self.sequence = self.add(attributes, inputs, {"kernel": kernel, "recurrent": recurrent})


def last(net: Layer) -> tuple[str, ...]:
    return (net.add(LAST, [net.sequence]),)


def last_of_images(net: Layer) -> tuple[str, ...]:
    """As PyTorch's: of [1, steps, units]."""
    seen = net.add(Reshape((1, STEPS, UNITS)), [net.sequence])
    return (net.add(Slice((0, STEPS - 1, 0), (1, 1, 1), (1, 1, UNITS)), [seen]),)


def first(net: Layer) -> tuple[str, ...]:
    return (net.add(Slice((0, 0), (1, 1), (1, UNITS)), [net.sequence]),)


def last_and_more(net: Layer) -> tuple[str, ...]:
    return (net.add(LAST, [net.sequence]), net.add(Activation("tanh"), [net.sequence]))


def all_of_it(net: Layer) -> tuple[str, ...]:
    return (net.add(LAST, [net.sequence]), net.sequence)


def run(attributes: Recurrent, read: Read) -> Recurrent:
    """The layer after the passes, which change no result."""
    net = Layer(attributes)
    graph = net.graph(*read(net))
    made = passes.run(graph)
    chance = np.random.default_rng(1)
    given = {name: chance.normal(size=(6, *graph.tensors[name].shape)).astype(np.float32) for name in graph.inputs}
    if attributes.masked:
        given[graph.inputs[1]] = (given[graph.inputs[1]] > 0).astype(np.float32)
    wanted, found = interpret.run(graph, given), interpret.run(made, given)
    for name in graph.outputs:
        np.testing.assert_array_equal(found[name], wanted[name])
    (layer,) = (op.attributes for op in made.ops if isinstance(op.attributes, Recurrent))
    return layer


@pytest.mark.parametrize("read", [last, last_of_images])
@pytest.mark.parametrize(
    "attributes",
    [
        LSTM(UNITS, sequences=True),
        GRU(UNITS, sequences=True, backwards=True),
        SimpleRNN(UNITS, sequences=True),
        SimpleRNN(UNITS, sequences=True, masked=True),
    ],
)
def test_the_last_row_is_the_state(attributes: Recurrent, read: Read) -> None:
    assert not run(attributes, read).sequences


@pytest.mark.parametrize("read", [first, last_and_more, all_of_it])
def test_sequences_that_are_read_stay(read: Read) -> None:
    assert run(LSTM(UNITS, sequences=True), read).sequences


def test_rows_of_zeros_for_masked_steps_are_no_state() -> None:
    assert run(SimpleRNN(UNITS, sequences=True, masked=True, zero_rows=True), last).sequences
