"""Networks at random of every kind of operation: of texts, sequences and images, with states, several inputs and
outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.random_graphs import (
    CHANNELS,
    FLAT,
    IMAGE,
    Draft,
    biases,
    finished,
    weights,
)
from nnbuild.model.graph import WHOLE, Array, Constant, Graph, State, Tensor
from nnbuild.numeric.resize import MODES
from nnbuild.ops.activation import Activation
from nnbuild.ops.arg import Arg
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.dense import Dense
from nnbuild.ops.functions import Function
from nnbuild.ops.gather import Gather
from nnbuild.ops.gru import GRU
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.lrn import LRN
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.pick import Pick
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.select import Select
from nnbuild.ops.simple_rnn import SimpleRNN
from nnbuild.ops.slice import Slice
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.top_k import TopK
from nnbuild.ops.transpose import Transpose

Maker = Callable[[Draft, str], str]
FUNCTIONS = (
    *(("selu", ()), ("softsign", ()), ("erf", ()), ("mish", ()), ("gelu", ()), ("negative", ()), ("sin", ())),
    *(("cos", ()), ("hard_sigmoid_fifth", ()), ("relu", (float("inf"), 0.1, -0.5)), ("clamp", (-0.7, 1.3))),
)
GATES: tuple[Function, ...] = (("sigmoid", ()), ("sigmoid", ()), ("hard_sigmoid", ()))
VALUES: tuple[Function, ...] = (("tanh", ()), ("tanh", ()), ("relu", (float("inf"), 0.0, 0.0)), ("softsign", ()))
LARGEST = 12_000


def function(d: Draft, x: str) -> str:
    name, parameters = FUNCTIONS[int(d.chance.integers(len(FUNCTIONS)))]
    return d.add(Activation(name, parameters), [x])


def normalization(d: Draft, x: str) -> str:
    shape = d.shape(x)
    count = int(d.chance.integers(1, len(shape) + 1))
    given = {role: d.chance.normal(size=shape[-count:]).astype(np.float32) for role in ("scale", "shift")}
    kept = {role: values for role, values in given.items() if d.chance.random() < 0.7}
    return d.add(LayerNorm(count, float(10.0 ** -d.pick(2, 3, 5)), d.chance.random() < 0.7), [x], **kept)


def neighbours(d: Draft, x: str) -> str:
    return d.add(LRN(d.pick(0, 1, 2, 5), 1.0, float(d.chance.uniform(0.01, 1)), (0.5, 0.75, 1.0)[d.pick(0, 1, 2)]), [x])


def slopes(d: Draft, x: str) -> str:
    shape = tuple(n if d.chance.random() < 0.5 else 1 for n in d.shape(x))
    return d.add(PReLU(), [x], slope=d.chance.normal(0.2, 0.3, shape).astype(np.float32))


def softmax(d: Draft, x: str) -> str:
    rank = len(d.shape(x))
    axis = int(d.chance.integers(rank))
    return d.add(Softmax(axis, int(d.chance.integers(1, rank - axis + 1))), [x])


def joined(d: Draft, x: str) -> str:
    """Along any axis, up to four tensors of which one may occur twice."""
    shape = d.shape(x)
    axis = int(d.chance.integers(len(shape)))
    rest = [*shape[:axis], *shape[axis + 1 :]]
    fit = [n for n in d.numbers() if len(d.shape(n)) == len(shape) and _without(d, n, axis) == rest]
    return d.add(Concatenate(axis), [x, *(fit[int(d.chance.integers(len(fit)))] for _ in range(d.pick(1, 1, 2, 3)))])


def _without(d: Draft, name: str, axis: int) -> list[int]:
    shape = d.shape(name)
    return [*shape[:axis], *shape[axis + 1 :]]


def combined(d: Draft, x: str) -> str:
    """Two tensors of which one is broadcast, or a constant on either side."""
    name = ("add", "subtract", "multiply", "maximum", "minimum", "squared_difference")[int(d.chance.integers(6))]
    fit = [n for n in d.numbers() if _broadcast(d.shape(n), d.shape(x))]
    if d.chance.random() < 0.6:
        other = fit[int(d.chance.integers(len(fit)))]
        return d.add(Binary(name), [x, other] if d.chance.random() < 0.5 else [other, x])
    shape = tuple(n if d.chance.random() < 0.6 else 1 for n in d.shape(x))[d.pick(*range(len(d.shape(x)))) :]
    side = ("left", "right")[d.pick(0, 1)]
    return d.add(Binary(name), [x], **{side: d.chance.normal(size=shape).astype(np.float32)})


def _broadcast(one: Sequence[int], other: Sequence[int]) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(one), reversed(other), strict=False))


def quotient(d: Draft, x: str) -> str:
    """By numbers that are not near 0."""
    below = d.chance.uniform(0.3, 3.0, d.shape(x)[-1:]) * d.chance.choice([-1, 1])
    return d.add(Binary("divide"), [x], right=below.astype(np.float32))


def product(d: Draft, x: str) -> str:
    """Of two tensors: with the same one, or with another that fits."""
    shape, turned = d.shape(x), d.chance.random() < 0.5
    if len(shape) < 2:
        return x
    at = -1 if turned else -2
    fit = [n for n in d.numbers() if d.shape(n)[:-2] == shape[:-2] and d.shape(n)[at:][:1] == shape[-1:]]
    other = fit[int(d.chance.integers(len(fit)))] if fit else x
    return d.add(MatMul(turned if fit else True), [x, other])


def attention(d: Draft, x: str) -> str:
    """Products by rows, a softmax of them, and their use as weights."""
    if len(d.shape(x)) != 2:
        return x
    depth = d.pick(4, 8, 9, 16)
    found = []
    for _ in range(3):
        kernel = weights(d.chance, (d.shape(x)[-1], depth), depth)
        found.append(d.add(Dense(), [x], kernel=kernel, **biases(d.chance, depth)))
    scores = d.add(MatMul(True), found[:2])
    scaled = d.add(Binary("multiply"), [scores], right=np.full(1, depth**-0.5, np.float32))
    return d.add(MatMul(), [d.add(Softmax(1, 1), [scaled]), found[2]])


def recurrent(d: Draft, x: str) -> str:
    """A layer over rows: forwards or backwards, its last output or all of them, sometimes with a state that is kept."""
    shape = d.shape(x)
    if len(shape) == 3:
        x = d.add(Reshape((shape[0], shape[1] * shape[2])), [x])
    if len(d.shape(x)) != 2 or d.shape(x)[0] > 24:
        return x
    kind: type[Recurrent] = (LSTM, GRU, SimpleRNN)[d.pick(0, 1, 2)]
    units, features = d.pick(1, 2, 3, 5, 8, 9, 16, 17), d.shape(x)[1]
    how = kind(
        units=units,
        activation=VALUES[d.pick(*range(len(VALUES)))],
        gate_activation=GATES[d.pick(0, 1, 2)],
        sequences=d.chance.random() < 0.5,
        backwards=d.chance.random() < 0.25,
    )
    if isinstance(how, GRU):
        how = replace(how, reset_after=d.chance.random() < 0.6)
    width = how.gates * units
    given = {"kernel": weights(d.chance, (features, width), width)}
    given["recurrent"] = (d.chance.normal(size=(units, width)) / np.sqrt(2 * units)).astype(np.float32)
    if d.chance.random() < 0.8:
        given["bias"] = d.chance.normal(0, 0.3, how.bias_shape()).astype(np.float32)
    kept = [f"kept{len(d.ops)}_{index}" for index in range(how.states if d.chance.random() < 0.3 else 0)]
    d.tensors |= {name: Tensor(name, (units,)) for name in kept}
    marks = []
    steps, inputs = d.shape(x)[0], [name for name in d.numbers() if ":" not in name]
    if d.chance.random() < 0.4 and inputs and (size := int(np.prod(d.shape(inputs[0])))) >= steps:
        how = replace(how, masked=True, zero_rows=d.chance.random() < 0.5)
        first = d.add(Slice((0,), (1,), (steps,)), [d.add(Reshape((size,)), [inputs[0]])])
        marks = [d.add(Compare("greater"), [first], right=np.zeros(1, np.float32))]
    y = d.add(how, [x, *kept, *marks], **given)
    d.states += [State(name, after) for name, after in zip(kept, d.ops[-1].outputs[-len(kept) :], strict=False)]
    return y


def moved(d: Draft, x: str) -> str:
    shape = d.shape(x)
    kind = d.pick(0, 1, 2, 3, 4)
    if kind == 0:
        return d.add(Repeat(tuple(d.pick(1, 1, 2, 3) for _ in shape)), [x])
    if kind == 1:
        return d.add(Pick(tuple(_places(d, n) if d.chance.random() < 0.5 else None for n in shape)), [x])
    if kind == 2:
        begin = tuple(int(d.chance.integers(n)) for n in shape)
        steps = tuple(d.pick(1, 1, 2, 3) for _ in shape)
        return d.add(Slice(begin, shape, steps), [x])
    if kind == 3 and len(shape) == 3:
        size = d.pick(1, 2, 3, 5, 8, 11), d.pick(1, 2, 3, 5, 8, 11)
        return d.add(ResizeBilinear(size, MODES[d.pick(0, 1, 2)]), [x])
    return d.add(Transpose(tuple(int(axis) for axis in d.chance.permutation(len(shape)))), [x])


def _places(d: Draft, size: int) -> tuple[int, ...]:
    return tuple(int(place) for place in d.chance.integers(0, size, int(d.chance.integers(1, size + 2))))


def chosen(d: Draft, x: str) -> str:
    """Where the network's input, which nothing has rounded, is larger than a number."""
    shape = d.shape(x)
    inputs = [n for n in d.numbers() if ":" not in n and _fits(d.shape(n), shape)]
    if not inputs:
        return x
    bound = d.chance.normal(size=1).astype(np.float32)
    question = d.add(Compare(("less", "greater_equal")[d.pick(0, 1)]), [inputs[0]], right=bound)
    others = [n for n in d.numbers() if d.shape(n) == shape]
    return d.add(Select(), [question, x, others[int(d.chance.integers(len(others)))]])


def _fits(one: Sequence[int], other: Sequence[int]) -> bool:
    return len(one) <= len(other) and all(a in (1, b) for a, b in zip(reversed(one), reversed(other), strict=False))


def reduced(d: Draft, x: str) -> str:
    rank = len(d.shape(x))
    axis = int(d.chance.integers(rank))
    name = ("mean", "sum", "max", "min")[d.pick(0, 1, 2, 3)]
    return d.add(Reduce(name, axis, int(d.chance.integers(1, rank - axis + 1)), bool(d.chance.integers(2))), [x])


def largest(d: Draft, x: str) -> str:
    return d.add(TopK(int(d.chance.integers(1, d.shape(x)[-1] + 1))), [x])


def wide_pool(d: Draft, x: str) -> str:
    """Windows as large as the image, or nearly so."""
    rows, columns, _ = d.shape(x)
    window = max(1, rows - d.pick(0, 0, 1, 2)), max(1, columns - d.pick(0, 0, 1, 2))
    strides = d.pick(1, 1, 2), d.pick(1, 1, 2)
    around = tuple((d.pick(0, 0, min(2, n - 1)), d.pick(0, 0, min(2, n - 1))) for n in window)
    return d.add(Pool2D(("max", "average")[d.pick(0, 1)], window, strides, around), [x])  # type: ignore[arg-type]


def reshaped(d: Draft, x: str) -> str:
    size = int(np.prod(d.shape(x)))
    parts = [n for n in range(1, 33) if size % n == 0]
    first = parts[int(d.chance.integers(len(parts)))]
    rest = [n for n in range(1, 65) if (size // first) % n == 0]
    second = rest[int(d.chance.integers(len(rest)))]
    shapes = ((size,), (first, size // first), (first, second, size // first // second))
    return d.add(Reshape(shapes[d.pick(0, 1, 1, 2)]), [x])


ANY: tuple[Maker, ...] = (function, normalization, slopes, softmax, joined, combined, combined, quotient, moved, moved)
ANY = (*ANY, chosen, reduced, reshaped, neighbours, largest)
ROWS: tuple[Maker, ...] = (product, attention, recurrent, recurrent, recurrent)


def broad_graph(seed: int) -> Graph:
    """Of two to nine operations; what a shape does not allow is left out."""
    d = Draft(np.random.default_rng([seed, 18]))
    x = _begun(d)
    for _ in range(int(d.chance.integers(2, 10))):
        rank = len(d.shape(x))
        usual = IMAGE if rank == 3 else FLAT if rank < 3 else ()
        makers = (*ANY, *(usual if d.chance.random() < 0.8 else ()), *(ROWS if rank in (2, 3) else ()))
        makers = (*makers, wide_pool) if rank == 3 else makers
        tensors, constants, ops, states = dict(d.tensors), dict(d.constants), list(d.ops), list(d.states)
        try:
            made = makers[int(d.chance.integers(len(makers)))](d, x)
        except ValueError:
            made = ""
        if made and len(d.shape(made)) and 0 < np.prod(d.shape(made)) <= LARGEST:
            x = made
        else:
            d.tensors, d.constants, d.ops, d.states = tensors, constants, ops, states
    how = (_pruned, _shared, None, None, None)[d.pick(0, 1, 2, 3, 4)]
    if how is not None:
        kernels = {name: held for name, held in d.constants.items() if name.endswith(("/kernel", "/recurrent"))}
        d.constants |= {name: Constant(name, how(d, held.data)) for name, held in kernels.items()}
    return finished(d, x, _more_outputs(d, x))


def _pruned(d: Draft, values: Array) -> Array:
    """With seven to nineteen of twenty weights gone."""
    return np.where(d.chance.random(values.shape) < d.chance.uniform(0.35, 0.95), np.float32(0), values)


def _shared(d: Draft, values: Array) -> Array:
    """With no more than 16 or 4 different weights."""
    few = np.quantile(values, np.linspace(0, 1, d.pick(4, 16))).astype(np.float32)
    return few[np.abs(values[..., None] - few).argmin(-1)]


def _begun(d: Draft) -> str:
    """The inputs: an image, rows, numbers, or a text; sometimes a second one."""
    kind = d.pick(0, 0, 0, 1, 1, 2, 3)
    if kind == 3:
        words, depth = d.pick(1, 3, 8, 12), d.pick(1, 4, 7, 8, 16)
        d.tensors["words"] = Tensor("words", (words,), "int32", WHOLE)
        return d.add(Gather(), ["words"], table=d.chance.normal(size=(d.pick(2, 30, 200), depth)).astype(np.float32))
    sizes: list[int] = [d.pick(1, 2, 3, 5, 8, 9, 12), d.pick(1, 2, 4, 5, 7, 8, 11), d.pick(*CHANNELS)]
    shape = tuple(sizes[kind:])
    d.tensors["x"] = Tensor("x", shape)
    if d.chance.random() < 0.3:
        other = tuple(n if d.chance.random() < 0.7 else 1 for n in shape)
        d.tensors["second"] = Tensor("second", other)
    return "x"


def _more_outputs(d: Draft, x: str) -> list[str]:
    """Sometimes a tensor on the way, or the places and the largest of the last one."""
    made = [name for name in d.numbers() if ":" in name and name != x]
    found = [made[int(d.chance.integers(len(made)))]] if made and d.chance.random() < 0.3 else []
    if d.chance.random() < 0.1 and d.ops:
        found.append(d.add(Arg(("max", "min")[d.pick(0, 1)], len(d.shape(x)) - 1), [x]))
    return found
