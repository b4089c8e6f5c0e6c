"""Networks at random, with values as training leaves them: for a campaign that looks for cases nobody thought of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from nnbuild.model.graph import WHOLE, Array, Constant, Graph, Op, Shape, State, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import NO_CLAMP, Attributes, Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.pad import Pad
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.transpose import Transpose

Chance = np.random.Generator
CLAMPS = (NO_CLAMP, NO_CLAMP, Clamp(0.0, None), Clamp(0.0, 6.0), Clamp(-1.0, 1.0))
FUNCTIONS = (
    *(("tanh", ()), ("sigmoid", ()), ("relu", (float("inf"), 0.0, 0.0)), ("relu", (6.0, 0.0, 0.0))),
    *(
        ("leaky_relu", (0.2,)),
        ("elu", (1.0,)),
        ("swish", ()),
        ("hard_swish", ()),
        ("hard_sigmoid", ()),
        ("gelu_tanh", ()),
    ),
    *(("softplus", ()), ("exponential", ()), ("absolute", ()), ("square", ())),
)
SIZES = (1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 16)
CHANNELS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 33)
MOST_SPREAD = 8
"""Rows and columns up to which an input is spread."""
LONG = "a_layer_with_so_long_a_name_that_it_has_to_be_cut_short_somewhere_"
"""Two such names are the same where they are cut."""


WHOLE_OUTPUTS = {("arg", 0): ("int32", WHOLE), ("compare", 0): ("int8", WHOLE), ("top_k", 1): ("int32", WHOLE)}
"""Outputs of kinds of operations that are no floats."""


@dataclass
class Draft:
    """A graph that grows from its input."""

    chance: Chance
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    states: list[State] = field(default_factory=list)

    def pick(self, *values: int) -> int:
        return int(values[int(self.chance.integers(len(values)))])

    def shape(self, name: str) -> Shape:
        return self.tensors[name].shape

    def numbers(self) -> list[str]:
        """The tensors that hold numbers, no truth values or places."""
        return [name for name, tensor in self.tensors.items() if tensor.dtype == "float32"]

    def add(self, attributes: Attributes, inputs: list[str], **constants: Array) -> str:
        """Adds an operation; its first output."""
        number = len(self.ops)
        name = f"{LONG if self.chance.random() < 0.1 else 'op'}{number}"
        roles = {role: f"{name}/{role}" for role in constants}
        self.constants |= {roles[role]: Constant(roles[role], values) for role, values in constants.items()}
        shapes = {role: values.shape for role, values in constants.items()}
        outs = attributes.shapes([self.shape(each) for each in inputs], shapes)
        outputs = tuple(f"{name}:{index}" for index in range(len(outs)))
        forms = [WHOLE_OUTPUTS.get((attributes.kind, index), ("float32", None)) for index in range(len(outs))]
        made = zip(outputs, outs, forms, strict=True)
        self.tensors |= {y: Tensor(y, out, *form, layer=name) for y, out, form in made}
        self.ops.append(Op(name, attributes, tuple(inputs), outputs, roles, layer=name))
        return outputs[0]


def weights(chance: Chance, shape: Shape, channels: int) -> Array:
    """Channels of very different sizes, some of them dead or nearly so, some with zeros in them."""
    values = chance.normal(size=shape) / np.sqrt(max(1, np.prod(shape) // channels))
    flat = values.reshape(-1, channels)
    flat *= 10.0 ** chance.uniform(-1.0, 1.0, channels)
    flat[:, chance.random(channels) < 0.08] = 0
    flat[:, chance.random(channels) < 0.05] *= 1e-7
    if chance.random() < 0.2:
        flat[chance.random(flat.shape) < 0.6] = 0
    return values.astype(np.float32)


def biases(chance: Chance, channels: int) -> dict[str, Array]:
    kind = chance.integers(4)
    if kind == 0:
        return {}
    return {"bias": (chance.normal(size=channels) * (0.0, 0.1, 1.0, 30.0)[kind]).astype(np.float32)}


def padding(d: Draft, kernel: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    kind = d.pick(0, 0, 1, 2)
    if kind == 0:
        return ((0, 0), (0, 0))
    if kind == 1:
        return tuple((k // 2, k - 1 - k // 2) for k in kernel)  # type: ignore[return-value]
    return tuple((int(d.chance.integers(k)), int(d.chance.integers(k))) for k in kernel)  # type: ignore[return-value]


def convolution(d: Draft, x: str) -> str:
    channels, filters = d.shape(x)[2], d.pick(*CHANNELS)
    kernel = d.pick(1, 1, 2, 3, 3, 3, 4, 5), d.pick(1, 1, 2, 3, 3, 3, 4, 5)
    dilation = (d.pick(1, 1, 1, 2, 3), d.pick(1, 1, 1, 2, 3))
    groups = d.pick(*(g for g in (1, 1, 1, 2, 3, 4) if channels % g == 0 and filters % g == 0), 1)
    strides = (d.pick(1, 1, 2, 3), d.pick(1, 1, 2, 3))
    clamp = CLAMPS[d.pick(*range(len(CLAMPS)))]
    reach = tuple((k - 1) * r + 1 for k, r in zip(kernel, dilation, strict=True))
    how = Conv2D(strides, dilation, padding(d, reach), groups, clamp=clamp)  # type: ignore[arg-type]
    return d.add(
        how, [x], kernel=weights(d.chance, (*kernel, channels // groups, filters), filters), **biases(d.chance, filters)
    )


def transposed(d: Draft, x: str) -> str:
    """From a small input, as its output has stride times stride as many positions."""
    (*size, channels), filters = d.shape(x), d.pick(*CHANNELS)
    if max(size) > MOST_SPREAD:
        return convolution(d, x)
    kernel = d.pick(1, 2, 2, 3, 3, 4, 5), d.pick(1, 2, 2, 3, 3, 4, 5)
    dilation, strides = (d.pick(1, 1, 1, 2), d.pick(1, 1, 1, 3)), (d.pick(1, 2, 2, 3), d.pick(1, 2, 2, 3))
    full = [(n - 1) * s + (k - 1) * a + 1 for n, s, k, a in zip(size, strides, kernel, dilation, strict=True)]
    crop = d.pick(0, 0, min(1, full[0] - 1)), d.pick(0, 0, min(1, full[1] - 1))
    out = full[0] - crop[0] + d.pick(0, 0, 1), full[1] - crop[1] + d.pick(0, 0, 1)
    how = Conv2DTranspose(out, strides, dilation, crop, clamp=CLAMPS[d.pick(*range(len(CLAMPS)))])
    taps = np.moveaxis(weights(d.chance, (*kernel, channels, filters), filters), 2, 3)
    return d.add(how, [x], kernel=np.ascontiguousarray(taps), **biases(d.chance, filters))


def depthwise(d: Draft, x: str) -> str:
    channels, multiplier = d.shape(x)[2], d.pick(1, 1, 1, 2, 3)
    kernel = d.pick(1, 2, 3, 3, 3, 4, 5), d.pick(1, 2, 3, 3, 3, 4, 5)
    dilation = (d.pick(1, 1, 1, 2), d.pick(1, 1, 1, 2))
    reach = tuple((k - 1) * r + 1 for k, r in zip(kernel, dilation, strict=True))
    strides = (d.pick(1, 1, 2), d.pick(1, 1, 2))
    clamp = CLAMPS[d.pick(*range(len(CLAMPS)))]
    how = DepthwiseConv2D(strides, dilation, padding(d, reach), clamp=clamp)  # type: ignore[arg-type]
    out = channels * multiplier
    return d.add(how, [x], kernel=weights(d.chance, (*kernel, channels, multiplier), out), **biases(d.chance, out))


def pool(d: Draft, x: str) -> str:
    window = d.pick(1, 2, 2, 3, 4), d.pick(1, 2, 2, 3, 4)
    strides = (d.pick(1, 2, 2, 3), d.pick(1, 2, 2, 3))
    function = ("max", "average")[d.pick(0, 1)]
    around = tuple((0, d.pick(0, 0, min(1, w - 1))) for w in window)
    return d.add(Pool2D(function, window, strides, around), [x])  # type: ignore[arg-type]


def activation(d: Draft, x: str) -> str:
    function, parameters = FUNCTIONS[int(d.chance.integers(len(FUNCTIONS)))]
    return d.add(Activation(function, parameters), [x])


def binary(d: Draft, x: str) -> str:
    """With a constant, or with another tensor of the same shape."""
    function = ("add", "add", "subtract", "multiply", "maximum", "minimum")[int(d.chance.integers(6))]
    same = [name for name in d.numbers() if d.shape(name) == d.shape(x)]
    clamp = CLAMPS[d.pick(*range(len(CLAMPS)))] if function in ("add", "subtract", "multiply") else NO_CLAMP
    if d.chance.random() < 0.7:
        other = same[int(d.chance.integers(len(same)))]
        return d.add(Binary(function, clamp), [x, other] if d.chance.random() < 0.5 else [other, x])
    shape = d.shape(x)[-1:] if d.chance.random() < 0.5 else d.shape(x)
    return d.add(Binary(function, clamp), [x], right=d.chance.normal(size=shape).astype(np.float32))


def concatenation(d: Draft, x: str) -> str:
    shape = d.shape(x)
    others = [n for n in d.numbers() if len(d.shape(n)) == len(shape) and d.shape(n)[:-1] == shape[:-1]]
    other = others[int(d.chance.integers(len(others)))]
    return d.add(Concatenate(len(shape) - 1), [x, other])


def move(d: Draft, x: str) -> str:
    shape = d.shape(x)
    kind = d.pick(0, 1, 2, 3)
    if kind == 0:
        order = tuple(int(axis) for axis in d.chance.permutation(len(shape)))
        return d.add(Transpose(order), [x])
    if kind == 1:
        amounts = tuple((d.pick(0, 0, 1), d.pick(0, 0, 1, 2)) for _ in shape)
        return d.add(Pad(amounts), [x])
    if kind == 2 and max(shape) > 1:
        begin = tuple(int(d.chance.integers(size)) for size in shape)
        end = tuple(int(d.chance.integers(b, size)) + 1 for b, size in zip(begin, shape, strict=True))
        return d.add(Slice(begin, end, (1,) * len(shape)), [x])
    return d.add(Reshape((int(np.prod(shape)),)), [x]) if len(shape) > 1 and d.chance.random() < 0.3 else x


def dense(d: Draft, x: str, units: tuple[int, ...] = CHANNELS) -> str:
    depth, out = d.shape(x)[-1], d.pick(*units)
    clamp = CLAMPS[d.pick(*range(len(CLAMPS)))]
    return d.add(Dense(clamp), [x], kernel=weights(d.chance, (depth, out), out), **biases(d.chance, out))


def reduction(d: Draft, x: str) -> str:
    rank = len(d.shape(x))
    axis = int(d.chance.integers(rank))
    count = int(d.chance.integers(1, rank - axis + 1))
    function = ("mean", "mean", "sum", "max")[int(d.chance.integers(4))]
    return d.add(Reduce(function, axis, count, bool(d.chance.integers(2))), [x])


IMAGE: tuple[Callable[[Draft, str], str], ...] = (
    *(
        convolution,
        convolution,
        convolution,
        transposed,
        depthwise,
        depthwise,
        pool,
        activation,
        binary,
        concatenation,
        move,
        dense,
    ),
    *(reduction,),
)
FLAT: tuple[Callable[[Draft, str], str], ...] = (dense, dense, activation, binary, concatenation, move)
LARGEST = 20_000
MANY = (256, 257, 300, 384, 511, 512, 640, 768, 1000, 1024)
WIDEST = 120_000
"""Elements of a tensor of a network with a wide layer."""
MOST_WEIGHTS, MOST_MACS = 200_000, 4_000_000
"""Of one of its layers."""


def random_graph(seed: int) -> Graph:
    """Of two to eight operations; what a shape does not allow is left out."""
    d = Draft(np.random.default_rng([seed, 16]))
    images = d.chance.random() < 0.85
    shape = (d.pick(*SIZES), d.pick(*SIZES), d.pick(*CHANNELS)) if images else (d.pick(*CHANNELS) * d.pick(1, 3, 10),)
    d.tensors["x"] = Tensor("x", shape)
    x = "x"
    for _ in range(int(d.chance.integers(2, 9))):
        makers = IMAGE if len(d.shape(x)) == 3 else FLAT
        try:
            made = makers[int(d.chance.integers(len(makers)))](d, x)
        except ValueError:
            continue
        if np.prod(d.shape(made)) <= LARGEST and len(d.shape(made)):
            x = made
    return finished(d, x)


def wide_graph(seed: int) -> Graph:
    """With a layer whose weights or inputs are beyond the nearest caches: a dense layer of 1,000 to 4,000 inputs, a
    convolution to or from 256 to 1,024 channels, or one over a large image. A border, or a factor and a summand of each
    channel, may stand ahead, and up to four usual operations follow."""
    d = Draft(np.random.default_rng([seed, 17]))
    kind, sides = d.pick(0, 1, 2, 3), (d.pick(*SIZES), d.pick(*SIZES))
    if kind == 0:
        shape: Shape = (int(d.chance.integers(1000, 4001)),)
    elif kind == 1:
        shape = (*sides, d.pick(*MANY))
    elif kind == 2:
        shape = (*sides, d.pick(5, 8, 16, 24, 33, 64, 100, 128))
    else:
        shape = (int(d.chance.integers(20, 57)), int(d.chance.integers(20, 57)), d.pick(3, 8, 16, 24, 32, 33))
    d.tensors["x"] = Tensor("x", shape)
    first = x = "x" if kind == 0 else (_border, _line, lambda _, given: given)[d.pick(0, 1, 2, 2)](d, "x")
    x = tried(
        d, x, (_deep, (convolution, convolution, depthwise, pool)[d.pick(0, 1, 2, 3)], _widening, convolution)[kind]
    )
    if x == first:
        x = tried(d, x, _deep)
    for _ in range(int(d.chance.integers(0, 5))):
        makers = IMAGE if len(d.shape(x)) == 3 else FLAT
        x = tried(d, x, makers[int(d.chance.integers(len(makers)))])
    return finished(d, x)


def _border(d: Draft, x: str) -> str:
    return d.add(Pad(((d.pick(0, 1), d.pick(0, 1)), (d.pick(0, 1), d.pick(1, 2)), (0, 0))), [x])


def _line(d: Draft, x: str) -> str:
    """What a normalization leaves."""
    channels = d.shape(x)[-1]
    given = {role: d.chance.normal(size=channels).astype(np.float32) for role in ("scale", "shift")}
    return d.add(Affine(len(d.shape(x)) - 1), [x], **given)


def _deep(d: Draft, x: str) -> str:
    return dense(d, x, (4, 9, 16, 33, 48, 64, 100))


def _widening(d: Draft, x: str) -> str:
    """A convolution of one or nine taps to many channels."""
    taps, filters = d.pick(1, 1, 3), d.pick(*MANY)
    around = (taps // 2, taps // 2)
    how = Conv2D((d.pick(1, 2),) * 2, (1, 1), (around, around), clamp=CLAMPS[d.pick(*range(len(CLAMPS)))])
    kernel = weights(d.chance, (taps, taps, d.shape(x)[2], filters), filters)
    return d.add(how, [x], kernel=kernel, **biases(d.chance, filters))


def tried(d: Draft, x: str, maker: Callable[[Draft, str], str]) -> str:
    """What it makes, or x where the shape does not allow it or it is too much."""
    before = dict(d.tensors), dict(d.constants), list(d.ops)
    try:
        made = maker(d, x)
    except ValueError:
        return x
    shape = d.shape(made)
    held = d.ops[-1].constants if d.ops else {}
    kernel = d.constants[held["kernel"]].data.size if "kernel" in held else 0
    if shape and np.prod(shape) <= WIDEST and kernel <= MOST_WEIGHTS and np.prod(shape[:-1]) * kernel <= MOST_MACS:
        return made
    d.tensors, d.constants, d.ops = before
    return x


def finished(d: Draft, x: str, more: Sequence[str] = ()) -> Graph:
    """With the output x, and more of them, without what leads to no output."""
    if not d.ops or ":" not in x:
        x = d.add(Activation("tanh", ()), [x])
    if d.chance.random() < 0.3 and len(d.shape(x)) == 1:
        x = d.add(Softmax(0, 1), [x])
    outputs = (x, *more)
    wanted = set(outputs)
    for op in reversed(d.ops):
        if wanted & set(op.outputs):
            wanted |= set(op.inputs)
    ops = tuple(op for op in d.ops if set(op.outputs) & wanted)
    states = tuple(state for state in d.states if state.before in wanted)
    inputs = tuple(n for n in d.tensors if ":" not in n and n in wanted and all(n != s.before for s in states))
    names = {*inputs, *(state.before for state in states), *(name for op in ops for name in op.outputs)}
    held = {name for op in ops for name in op.constants.values()}
    tensors = {name: tensor for name, tensor in d.tensors.items() if name in names}
    constants = {name: constant for name, constant in d.constants.items() if name in held}
    return verify(Graph("net", tensors, constants, ops, inputs, outputs, states))
