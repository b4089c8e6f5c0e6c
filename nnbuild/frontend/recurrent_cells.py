"""Recurrent cells that a loop may compute, by the weights of its products: one is known by its values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import inf

import numpy as np

from nnbuild.model.graph import Array
from nnbuild.ops.functions import Function
from nnbuild.ops.gru import GRU
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.simple_rnn import SimpleRNN

SAMPLES, TOLERANCE = 24, 1e-5
LARGEST_ROW = 1e7
FUNCTIONS: Sequence[Function] = (
    ("tanh", ()),
    ("sigmoid", ()),
    ("clamp", (0.0, inf)),
    ("linear", ()),
    ("hard_sigmoid", ()),
    ("hard_sigmoid_fifth", ()),
    ("softsign", ()),
    ("softplus", ()),
    ("elu", (1.0,)),
    ("selu", ()),
    ("swish", ()),
    ("gelu", ()),
    ("gelu_tanh", ()),
    ("hard_swish", ()),
    ("clamp", (0.0, 6.0)),
    ("clamp", (-1.0, 1.0)),
)


def candidates(
    units: int, kernel: Array, of_state: Sequence[Array], others: Sequence[Array], biases: Array
) -> Iterator[tuple[Recurrent, dict[str, Array]]]:
    """Cells with these weights [inputs, outputs]: of a row, of the hidden state, and of what is computed from it.
    `biases` has what is added to the products of the row, or to all, and what to those of the state."""
    width = kernel.shape[1]
    if len(of_state) != 1 or any(len(each) != units for each in (*of_state, *others)):
        return
    recurrent = np.concatenate([*of_state, *others], axis=1)
    if recurrent.shape != (units, width):
        return
    held = {"kernel": kernel, "recurrent": recurrent}
    if width == units and not others:
        for function in FUNCTIONS:
            yield SimpleRNN(units, function), held | {"bias": biases.sum(axis=0)}
    for function, gate in product(FUNCTIONS, FUNCTIONS):
        if width == 4 * units and not others:
            yield LSTM(units, function, gate), held | {"bias": biases.sum(axis=0)}
        elif width == 3 * units and not others:
            yield GRU(units, function, gate), held | {"bias": biases}
        elif width == 3 * units and len(others) == 1 and of_state[0].shape[1] == 2 * units:
            yield GRU(units, function, gate, reset_after=False), held | {"bias": biases.sum(axis=0)}


def near(found: Array, wanted: Array) -> bool:
    return found.shape == wanted.shape and bool(np.allclose(found, wanted, TOLERANCE, TOLERANCE))


def sizes(largest: float, rank: int) -> Array:
    """Of the numbers in each sample: rows become so large that functions with bounds reach them, whatever the weights;
    states stay small, so that they do not hide what is added to them."""
    return np.geomspace(0.1, largest, SAMPLES).reshape(-1, *(1,) * rank)
