"""Windowed networks at random: convolutions and pools along time with every sort of padding, strides, dilations,
branches, and ends of every sort; in floats and in integers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nnbuild import passes
from nnbuild.base.errors import UsageError
from nnbuild.model.graph import Array, Constant, Graph, Op, Shape, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Attributes, Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.gru import GRU
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.windows import same_padding
from nnbuild.quantize.data import Source
from nnbuild.quantize.quantize import Recipe, quantize_with, ranges_of
from nnbuild.streaming import sample_rows

FORMS = ("int8", "int16", "float")
ENDS = ("mean", "pool", "max", "dense", "gru", "softmax", "rows")


class Maker:
    def __init__(self, seed: int, shape: Shape) -> None:
        self.rng = np.random.default_rng([seed, 18])
        self.tensors = {"x": Tensor("x", shape)}
        self.constants: dict[str, Constant] = {}
        self.ops: list[Op] = []

    def add(self, attributes: Attributes, *inputs: str, **constants: Array) -> str:
        place = len(self.ops)
        held = {}
        for role, values in constants.items():
            name = f"{role}{place}"
            self.constants[name] = Constant(name, np.asarray(values, np.float32))
            held[role] = name
        shapes = attributes.shapes(
            [self.tensors[n].shape for n in inputs], {r: self.constants[n].data.shape for r, n in held.items()}
        )
        names = [f"t{place}" if i == 0 else f"t{place}_{i}" for i in range(len(shapes))]
        for name, shape in zip(names, shapes, strict=True):
            self.tensors[name] = Tensor(name, shape)
        self.ops.append(Op(f"op{place}", attributes, inputs, tuple(names), held, layer=f"layer{place}"))
        return names[0]

    def weights(self, *shape: int) -> Array:
        fan = int(np.prod(shape[:-1]))
        values = self.rng.normal(size=shape) / np.sqrt(fan) * np.exp(self.rng.normal(size=shape[-1]) * 0.7)
        return values * (self.rng.random(shape[-1]) > 0.05)

    def padding(self, sort: str, size: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
        if sort == "same":
            return same_padding(size, kernel, stride, dilation)
        return ((kernel - 1) * dilation, 0) if sort == "causal" else (0, 0)

    def conv(self, x: str, sort: str, stride: int, dilation: int, axis: int, depthwise: bool) -> str:
        shape = self.tensors[x].shape
        kernel = int(self.rng.integers(1, 6))
        if sort == "valid":
            kernel = max(1, min(kernel, (shape[axis] - 1) // (2 * dilation)))
        other = int(self.rng.integers(1, min(3, shape[1 - axis]) + 1))
        sides = [(0, 0), (0, 0)]
        sides[axis] = self.padding(sort, shape[axis], kernel, stride, dilation)
        sides[1 - axis] = same_padding(shape[1 - axis], other, 1)
        sizes = (kernel, other) if axis == 0 else (other, kernel)
        strides = (stride, 1) if axis == 0 else (1, stride)
        apart = (dilation, 1) if axis == 0 else (1, dilation)
        channels, filters = shape[2], int(self.rng.integers(2, 7))
        more = {"clamp": Clamp(0.0)} if self.rng.random() < 0.6 else {}
        kind = DepthwiseConv2D if depthwise else Conv2D
        weights = self.weights(*sizes, channels, 1 if depthwise else filters)
        bias = self.rng.normal(size=channels if depthwise else filters) * 0.2
        attributes = kind(strides=strides, dilation=apart, padding=(sides[0], sides[1]), **more)
        return self.add(attributes, x, kernel=weights, bias=bias)

    def pool(self, x: str, sort: str, stride: int, axis: int) -> str:
        size = self.tensors[x].shape[axis]
        window = min(int(self.rng.integers(2, 4)), size)
        side = self.padding("same" if sort == "same" else "valid", size, window, stride, 1)
        pads = (side, (0, 0)) if axis == 0 else ((0, 0), side)
        windows = (window, 1) if axis == 0 else (1, window)
        strides = (stride, 1) if axis == 0 else (1, stride)
        return self.add(Pool2D(str(self.rng.choice(["max", "average"])), windows, strides, pads), x)

    def branches(self, x: str, axis: int) -> str:
        """Two ways of different lengths that meet; the longer one's end is cut where nothing is padded."""
        size = self.tensors[x].shape[axis]
        sort = str(self.rng.choice(["same", "valid"])) if size > 4 else "same"
        left = self.conv(x, sort, 1, 1, axis, depthwise=True)
        right = self.add(Activation("tanh"), x)
        shape, wanted = self.tensors[right].shape, self.tensors[left].shape
        if shape != wanted:
            late = shape[axis] - wanted[axis] if self.rng.random() < 0.5 else 0
            begins = tuple(late if i == axis else 0 for i in range(3))
            right = self.add(Slice(begins, (1, 1, 1), wanted), right)
        return self.add(Concatenate(2), left, right) if self.rng.random() < 0.3 else self.add(Binary(), left, right)

    def end(self, x: str, axis: int, sort: str) -> str:
        shape = self.tensors[x].shape
        if sort == "mean":
            x = self.add(Reduce("mean", 0, 2), x)
        elif sort == "pool":
            x = self.add(Pool2D("average", shape[:2], shape[:2]), x)
        elif sort == "max":
            x = self.add(Reduce("max", 0, 2), x)
        elif sort == "gru":
            rows = self.add(Reshape((shape[0], shape[1] * shape[2])), x)
            weights = self.weights(shape[1] * shape[2], 12), self.weights(4, 12), np.zeros((2, 12))
            x = self.add(GRU(units=4), rows, kernel=weights[0], recurrent=weights[1], bias=weights[2])
        elif sort == "rows":
            return self.add(Dense(), x, kernel=self.weights(shape[2], 3), bias=self.rng.normal(size=3))
        size = int(np.prod(self.tensors[x].shape))
        flat = self.add(Reshape((size,)), x)
        x = self.add(Dense(), flat, kernel=self.weights(size, 3), bias=self.rng.normal(size=3))
        return self.add(Softmax(0), x) if sort == "softmax" else x

    def graph(self, out: str) -> Graph:
        return verify(Graph("net", self.tensors, self.constants, tuple(self.ops), ("x",), (out,)))


def window(seed: int, form: str | None = None, end: str | None = None, sorts: tuple[str, ...] = ()) -> Graph:
    """A network for a seed; where its layers are dead so that no integers fit, one for another seed."""
    while True:
        try:
            return _window(seed, form or FORMS[seed % 3], end, sorts)
        except UsageError:
            seed += 10_000


def _window(seed: int, form: str, end: str | None, sorts: tuple[str, ...]) -> Graph:
    """Time is axis 0, or 1 after a reshape, as convolutions of one axis have it."""
    rng = np.random.default_rng([seed, 81])
    sorts = sorts or ("valid", "same", "causal")[: int(rng.integers(1, 4))]
    long = bool(rng.random() < 0.3)
    rows, features = int(rng.integers(16, 40)), int(rng.integers(1, 6))
    maker = Maker(seed, (rows, features) if long else (rows, features, int(rng.integers(1, 3))))
    axis = int(long)
    x = maker.add(Reshape((1, rows, features)), "x") if long else "x"
    for _ in range(int(rng.integers(2, 5))):
        size = maker.tensors[x].shape[axis]
        sort = str(rng.choice(sorts))
        stride = 2 if size > 10 and rng.random() < 0.25 else 1
        dilation = 2 if size > 8 and stride == 1 and rng.random() < 0.25 else 1
        chance = rng.random()
        if chance < 0.2 and size > 3:
            x = maker.pool(x, sort, stride, axis)
        elif chance < 0.35:
            x = maker.branches(x, axis)
        else:
            x = maker.conv(x, sort, stride, dilation, axis, depthwise=bool(rng.random() < 0.4))
    chosen = end or str(rng.choice(ENDS[:4] if long else ENDS))
    graph = passes.run(maker.graph(maker.end(x, axis, chosen)))
    if form == "float":
        return graph
    recipe = Recipe(form=form, source=Source(None))
    return verify(quantize_with(graph, recipe, ranges_of(graph, recipe)))


def stream_of(graph: Graph, count: int, seed: int, axis: int = 0) -> Array:
    """So many rows of integers over their whole range, or floats; the time is the first axis."""
    tensor = graph.tensors[graph.inputs[0]]
    shape = (count, *(n for i, n in enumerate(tensor.shape) if i != axis))
    rng = np.random.default_rng(seed)
    if tensor.quant is None:
        return rng.normal(size=shape).astype(np.float32)
    limits = np.iinfo(tensor.dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(tensor.dtype)


def by_window(graph: Graph, rows: Array, hop: int, axis: int = 0) -> Mapping[str, Array]:
    (name,) = graph.inputs
    return interpret.run(graph, {name: sample_rows.windows(graph.tensors[name], rows, hop, axis)})
