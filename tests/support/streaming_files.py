"""`.tflite` files that keep variables, in the pattern of wake-word models in the field: rings of rows that are read,
joined with what is new, and assigned again; depthwise convolutions of several lengths on shares of the channels; a
normalization by groups of features; an output of raw bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.frontend.tflite_files import File, O, T

CONV = {"Padding": 1, "StrideW": 1, "StrideH": 1, "DilationWFactor": 1, "DilationHFactor": 1}
DEPTHWISE = {**CONV, "DepthMultiplier": 1}


class Net:
    """One graph under construction; tensors are [1, rows, 1, channels] and known by their place."""

    def __init__(self, seed: int = 0, dtype: str = "int8") -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = dtype
        self.zeros = (-128 if dtype == "int8" else 0,)
        self.tensors: list[T] = []
        self.operators: list[O] = []
        self.variables: list[tuple[str, str, Sequence[int], Any]] = []

    def tensor(self, name: str, shape: Sequence[int], dtype: str | None = None, **more: Any) -> int:
        kind = dtype or self.dtype
        more.setdefault("zeros", self.zeros)
        if kind == "float32":
            more["scales"] = ()
        self.tensors.append(T(f"{name}{len(self.tensors)}", shape, kind, **more))
        return len(self.tensors) - 1

    def add(self, kind: str, inputs: Sequence[int], shape: Sequence[int], options: str = "NONE", **values: Any) -> int:
        like = self.tensors[inputs[0]] if inputs else None
        keep = {"scales": like.scales, "zeros": like.zeros} if like is not None and like.dtype == self.dtype else {}
        out = self.tensor("t", shape, **keep)
        self.operators.append(O(kind, inputs, [out], options, values))
        return out

    def integers(self, *values: int) -> int:
        return self.tensor("numbers", (len(values),), "int32", scales=(), data=np.asarray(values, np.int32))

    def shape(self, index: int) -> tuple[int, ...]:
        return tuple(self.tensors[index].shape)

    # Variables.

    def handle(self, name: str, container: str = "") -> int:
        out = self.tensor("handle", (), "resource", scales=())
        self.operators.append(
            O("VAR_HANDLE", [], [out], "VarHandleOptions", {"Container": container, "SharedName": name})
        )
        return out

    def once(self, subgraph: int = 1) -> None:
        self.operators.append(O("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": subgraph}))

    def read(self, handle: int, shape: Sequence[int], like: int) -> int:
        out = self.tensor("read", shape, scales=self.tensors[like].scales, zeros=self.tensors[like].zeros)
        self.operators.append(O("READ_VARIABLE", [handle], [out], "ReadVariableOptions"))
        return out

    def assign(self, handle: int, value: int) -> None:
        self.operators.append(O("ASSIGN_VARIABLE", [handle, value], [], "AssignVariableOptions"))

    def variable(self, name: str, shape: Sequence[int], initial: Any = None, container: str = "") -> int:
        values = np.full(shape, self.zeros[0] if initial is None else initial, self.dtype)
        self.variables.append((container, name, shape, values))
        return self.handle(name, container)

    def ring(self, x: int, rows: int, name: str, initial: Any = None) -> int:
        """The rows of the runs before, and the new ones behind them."""
        _, new, _, channels = self.shape(x)
        handle = self.variable(name, (1, rows, 1, channels), initial)
        before = self.read(handle, (1, rows, 1, channels), x)
        joined = self.add("CONCATENATION", [before, x], (1, rows + new, 1, channels), "ConcatenationOptions", Axis=1)
        kept = self.last(joined, rows)
        self.assign(handle, kept)
        return joined

    def last(self, x: int, rows: int) -> int:
        _, _, _, channels = self.shape(x)
        bounds = [self.integers(0, -rows, 0, 0), self.integers(0, 0, 0, 0), self.integers(1, 1, 1, 1)]
        return self.add(
            "STRIDED_SLICE", [x, *bounds], (1, rows, 1, channels), "StridedSliceOptions", BeginMask=13, EndMask=15
        )

    # Layers.

    def weights(self, shape: Sequence[int], axis: int, fan: int) -> tuple[int, int]:
        """A kernel with wide scales, a dead channel now and then, and its bias."""
        count, rng = shape[axis], self.rng
        if self.dtype == "float32":
            kernel = (rng.normal(size=shape) / np.sqrt(fan)).astype(np.float32)
            bias = rng.normal(size=count).astype(np.float32) * 0.3
            return self.tensor("k", shape, data=kernel), self.tensor("b", (count,), data=bias)
        data = np.clip(np.round(rng.normal(size=shape) * 50), -127, 127).astype(np.int8)
        scales = (0.02 / np.sqrt(fan) * np.exp(rng.normal(size=count) * 0.5)).astype(np.float32)
        dead = rng.random(count) < 0.06
        if count > 1:
            place = [slice(None)] * len(shape)
            place[axis] = np.flatnonzero(dead)
            data[tuple(place)] = 0
            scales[dead] = 1e-9
        bias = np.round(rng.normal(size=count) * 300).astype(np.int32)
        kernel = self.tensor("k", shape, "int8", scales=scales, zeros=(0,) * count, axis=axis, data=data)
        return kernel, self.tensor("b", (count,), "int32", scales=0.1 * scales, zeros=(0,) * count, data=bias)

    def conv(self, x: int, filters: int, rows: int = 1, stride: int = 1, relu: bool = True) -> int:
        _, height, _, channels = self.shape(x)
        k, b = self.weights((filters, rows, 1, channels), 0, rows * channels)
        options = {**CONV, "StrideH": stride, "FusedActivationFunction": int(relu)}
        shape = (1, (height - rows) // stride + 1, 1, filters)
        return self.layer(self.add("CONV_2D", [x, k, b], shape, "Conv2DOptions", **options))

    def depthwise(self, x: int, rows: int) -> int:
        _, height, _, channels = self.shape(x)
        k, b = self.weights((1, rows, 1, channels), 3, rows)
        shape = (1, height - rows + 1, 1, channels)
        return self.layer(self.add("DEPTHWISE_CONV_2D", [x, k, b], shape, "DepthwiseConv2DOptions", **DEPTHWISE))

    def layer(self, out: int) -> int:
        """A layer's output has a scale of its own."""
        if self.dtype != "float32":
            old = self.tensors[out]
            self.tensors[out] = T(old.name, old.shape, old.dtype, (0.05 + 0.1 * float(self.rng.random()),), self.zeros)
        return out

    def mixed(self, x: int, kernels: Sequence[int]) -> int:
        """Shares of the channels, each with a depthwise convolution of its own over its last rows."""
        if len(kernels) == 1:
            return self.depthwise(x, kernels[0])
        _, height, _, channels = self.shape(x)
        share = channels // len(kernels)
        sizes = self.integers(*[share] * len(kernels))
        like = {"scales": self.tensors[x].scales, "zeros": self.tensors[x].zeros}
        parts = [self.tensor("part", (1, height, 1, share), **like) for _ in kernels]
        self.operators.append(
            O("SPLIT_V", [x, sizes, self.tensor("axis", (), "int32", scales=(), data=np.int32(3))], parts,
              "SplitVOptions", {"NumSplits": len(kernels)})
        )  # fmt: skip
        made = []
        for part, rows in zip(parts, kernels, strict=True):
            made.append(self.depthwise(part if rows == height else self.last(part, rows), rows))
        for out in made[1:]:
            self.tensors[out] = T(
                self.tensors[out].name, self.shape(out), self.dtype, self.tensors[made[0]].scales, self.zeros
            )
        return self.add("CONCATENATION", made, (1, 1, 1, channels), "ConcatenationOptions", Axis=3)

    def grouped(self, x: int, groups: int) -> int:
        """A normalization whose factors belong to groups of neighbouring channels."""
        _, rows, _, channels = self.shape(x)
        split = (rows, 1, groups, channels // groups)
        out = self.reshape(x, split)
        for kind, options in (("MUL", "MulOptions"), ("ADD", "AddOptions")):
            values = self.rng.integers(-100, 127, (1, 1, groups, 1)).astype(np.int8)
            like = {"scales": (0.01,), "zeros": (3,)}
            if self.dtype == "float32":
                factor = self.tensor("factor", values.shape, data=(values / 64).astype(np.float32))
            else:
                factor = self.tensor("factor", values.shape, **like, data=values)
            out = self.layer(self.add(kind, [out, factor], split, options))
        return self.reshape(out, (1, rows, 1, channels))

    def reshape(self, x: int, shape: Sequence[int]) -> int:
        return self.add("RESHAPE", [x, self.integers(*shape)], shape, "ReshapeOptions")

    def end(self, x: int) -> int:
        size = int(np.prod(self.shape(x)))
        k, b = self.weights((1, size), 0, size)
        flat = self.reshape(x, (1, size))
        out = self.layer(self.add("FULLY_CONNECTED", [flat, k, b], (1, 1), "FullyConnectedOptions"))
        if self.dtype == "float32":
            return self.add("LOGISTIC", [out], (1, 1))
        old = self.tensors[out]
        self.tensors[out] = T(old.name, old.shape, old.dtype, (0.1,), (5,))
        share = self.add("LOGISTIC", [out], (1, 1))
        self.tensors[share] = T(self.tensors[share].name, (1, 1), self.dtype, (1 / 256,), self.zeros)
        raw = self.tensor("raw", (1, 1), "uint8", scales=(1 / 256,), zeros=(0,))
        self.operators.append(O("QUANTIZE", [share], [raw], "QuantizeOptions"))
        return raw

    def file(self, x: Sequence[int], out: Sequence[int]) -> File:
        return File(self.tensors, self.operators, x, out, self.beginning())

    def beginning(self) -> list[File]:
        """The subgraph that gives each variable its first value."""
        if not self.variables:
            return []
        other = Net(dtype=self.dtype)
        for container, name, shape, values in self.variables:
            handle = other.handle(name, container)
            other.assign(handle, other.tensor("initial", shape, data=values))
        return [File(other.tensors, other.operators, [], [])]


def wake_word(
    seed: int = 0,
    dtype: str = "int8",
    new: int = 3,
    features: int = 40,
    first: tuple[int, int] = (32, 5),
    blocks: Sequence[tuple[Sequence[int], int]] = (((5,), 64), ((7, 11), 64), ((9, 15), 64), ((23,), 64)),
    end: int = 5,
    initial: int | None = None,
) -> File:
    """`first` (filters, rows) with a stride of all new rows, then blocks of (depthwise lengths, filters)."""
    net = Net(seed, dtype)
    x = net.tensor("input", (1, new, features), scales=(0.10196078568696976,))
    net.once()
    rows = net.reshape(x, (1, new, 1, features))
    filters, reach = first
    if reach > new:
        rows = net.ring(rows, reach - new, "stream", initial)
    out = net.conv(rows, filters, reach, new)
    for number, (kernels, filters) in enumerate(blocks):
        out = net.ring(out, max(kernels) - 1, f"stream_{number + 1}", initial)
        out = net.conv(net.mixed(out, kernels), filters)
    if end:
        out = net.ring(out, end, "stream_end", initial)
    return net.file([x], [net.end(out)])


def older_wake_word(seed: int = 0, dtype: str = "int8") -> File:
    """Whole windows are assigned, and features normalized by groups."""
    net = Net(seed, dtype)
    x = net.tensor("input", (1, 1, 40), scales=(0.10196078568696976,))
    net.once()
    out = net.reshape(x, (1, 1, 1, 40))

    def window(new: int, rows: int, name: str) -> int:
        channels = net.shape(new)[3]
        handle = net.variable(name, (1, rows, 1, channels))
        before = net.read(handle, (1, rows, 1, channels), new)
        older = net.last(before, rows - 1)
        whole = net.add("CONCATENATION", [older, new], (1, rows, 1, channels), "ConcatenationOptions", Axis=1)
        net.assign(handle, whole)
        return whole

    out = net.grouped(net.conv(window(out, 5, "v0"), 32, 5), 8)
    for number, filters in enumerate((24, 24), start=1):
        out = net.grouped(net.conv(net.depthwise(window(out, 4, f"v{number}"), 4), filters), 8)
    out = window(out, 20, "end")
    return net.file([x], [net.end(out)])
