"""ONNX models at random, with the channels first as exporters write them and values as training leaves them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shape = tuple[int, ...]
LARGEST = 6_000


@dataclass
class Draft:
    """A graph that grows from its input; onnx infers the shapes."""

    chance: np.random.Generator
    opset: int
    inputs: list[Any] = field(default_factory=list)
    nodes: list[Any] = field(default_factory=list)
    held: list[Any] = field(default_factory=list)
    shapes: dict[str, Shape] = field(default_factory=dict)

    def pick(self, *values: Any) -> Any:
        return values[int(self.chance.integers(len(values)))]

    def maybe(self, share: float) -> bool:
        return bool(self.chance.random() < share)

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        name = f"c{len(self.held)}"
        self.held.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def normal(self, *shape: int, size: float = 1.0) -> str:
        return self.constant(self.chance.normal(0, size, shape))

    def node(self, kind: str, inputs: list[str], count: int = 1, **attributes: Any) -> str:
        """Adds a node; its first output. A ValueError where onnx does not infer its shape."""
        names = [f"t{len(self.nodes)}" + (f"_{i}" if i else "") for i in range(count)]
        attributes = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        try:
            inferred = onnx.shape_inference.infer_shapes(self.model(names), strict_mode=True, data_prop=True)
        except Exception as error:
            raise ValueError(str(error)) from None
        for value in [*inferred.graph.value_info, *inferred.graph.output]:
            dims = value.type.tensor_type.shape.dim
            if value.name in names:
                if any(not d.HasField("dim_value") or d.dim_value < 1 for d in dims):
                    raise ValueError("its shape is not known")
                self.shapes[value.name] = tuple(d.dim_value for d in dims)
        if names[0] not in self.shapes:
            raise ValueError("its shape is not known")
        return names[0]

    def model(self, outputs: list[str]) -> Any:
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shapes.get(name)) for name in outputs]
        graph = helper.make_graph(self.nodes, "net", self.inputs, ends, self.held)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)


Maker = Callable[[Draft, str], str]


def spread(d: Draft, *shape: int) -> str:
    """Weights whose channels, the first axis, are of very different sizes; some are dead."""
    values = d.chance.normal(size=shape) / np.sqrt(max(1, np.prod(shape[1:])))
    sizes = 10.0 ** d.chance.uniform(-0.7, 0.5, shape[0])
    sizes[d.chance.random(shape[0]) < 0.06] = 0
    return d.constant(values * sizes.reshape(-1, *(1,) * (len(shape) - 1)))


def window(d: Draft, x: str, largest: int = 3) -> dict[str, Any]:
    """Kernel and strides, and padding in one of the ways of saying it."""
    rank = len(d.shapes[x]) - 2
    kernel = [d.pick(*range(1, largest + 1)) for _ in range(rank)]
    found: dict[str, Any] = {"kernel_shape": kernel, "strides": [d.pick(1, 1, 2, 3) for _ in range(rank)]}
    same = ("SAME_UPPER", "SAME_LOWER") if max(found["strides"]) <= min(kernel) else ()  # tools disagree on others
    kind = d.pick("none", "pads", "pads", "VALID", *same)
    if kind == "pads":
        found["pads"] = [int(d.chance.integers(0, (k + 1) // 2 + (k > 2))) for k in [*kernel, *kernel]]
    elif kind != "none":
        found["auto_pad"] = kind
    pads = found.get("pads", [0] * 2 * rank)
    room = (n + pads[i] + pads[rank + i] for i, n in enumerate(d.shapes[x][2:]))
    if any(k > n for k, n in zip(kernel, room, strict=True)):
        raise ValueError("onnx counts a window that is larger than its input")
    return found


def convolution(d: Draft, x: str) -> str:
    channels = d.shapes[x][1]
    groups = d.pick(*(g for g in (1, 1, 1, 2, 3, channels, channels) if channels % g == 0))
    out = groups * d.pick(1, 1, 2, 3, 4)
    how = window(d, x)
    if d.maybe(0.2) and "auto_pad" not in how:
        how["dilations"] = [d.pick(1, 2) for _ in how["kernel_shape"]]
    weights = spread(d, out, channels // groups, *how["kernel_shape"])
    extra = [d.normal(out, size=0.5)] if d.maybe(0.7) else []
    return d.node("Conv", [x, weights, *extra], group=groups, **how)


def transposed(d: Draft, x: str) -> str:
    channels, rank = d.shapes[x][1], len(d.shapes[x]) - 2
    groups = d.pick(*(g for g in (1, 1, 2, channels) if channels % g == 0))
    out = d.pick(1, 2, 3)
    kernel, strides = [d.pick(1, 2, 3, 4) for _ in range(rank)], [d.pick(1, 2, 2, 3) for _ in range(rank)]
    pads = [int(d.chance.integers(0, (k + 1) // 2)) for k in [*kernel, *kernel]]
    more = [int(d.chance.integers(0, s)) for s in strides] if d.maybe(0.3) else None
    extra = [d.normal(out * groups)] if d.maybe(0.6) else []
    return d.node(
        "ConvTranspose",
        [x, d.normal(channels, out, *kernel, size=0.4), *extra],
        group=groups,
        kernel_shape=kernel,
        strides=strides,
        pads=pads,
        output_padding=more,
    )


def pool(d: Draft, x: str) -> str:
    how = window(d, x)
    if d.maybe(0.5):
        return d.node("MaxPool", [x], ceil_mode=d.pick(None, 0, 1), **how)
    return d.node("AveragePool", [x], ceil_mode=d.pick(None, 0), count_include_pad=d.pick(None, 0, 1), **how)


def whole_pool(d: Draft, x: str) -> str:
    return d.node(d.pick("GlobalAveragePool", "GlobalMaxPool"), [x])


def normalization(d: Draft, x: str) -> str:
    channels = d.shapes[x][1]
    kind = d.pick("batch", "batch", "batch", "instance", "layer")
    scale, shift = d.normal(channels), d.normal(channels)
    if kind == "instance" and len(d.shapes[x]) > 2:
        return d.node("InstanceNormalization", [x, scale, shift], epsilon=1e-3)
    if kind == "layer":
        axis = d.pick(-1, len(d.shapes[x]) - 1)
        size = d.shapes[x][-1]
        return d.node("LayerNormalization", [x, d.normal(size), d.normal(size)], axis=axis, epsilon=1e-4)
    variance = d.constant(10.0 ** d.chance.uniform(-1.5, 1, channels))
    return d.node("BatchNormalization", [x, scale, shift, d.normal(channels), variance], epsilon=1e-3)


def activation(d: Draft, x: str) -> str:
    kinds: tuple[tuple[str, dict[str, Any]], ...] = (
        *(("Relu", {}), ("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("LeakyRelu", {"alpha": 0.1}), ("Elu", {})),
        *(("Selu", {}), ("Softplus", {}), ("Softsign", {}), ("HardSigmoid", {}), ("HardSwish", {}), ("Exp", {})),
        *(("Softmax", {"axis": d.pick(-1, 1)}), ("Neg", {}), ("Abs", {}), ("Erf", {}), ("Mish", {})),
        *(("ThresholdedRelu", {"alpha": 0.5}), ("Celu", {"alpha": 2.0}), ("LogSoftmax", {"axis": d.pick(-1, 1)})),
    )
    kind, how = d.pick(*kinds, ("Clip", {}), ("PRelu", {}))
    if kind == "Clip":
        ends = d.pick((0.0, 6.0), (-1.0, 1.0), (0.1, None), (None, 0.7))
        return d.node("Clip", [x, *("" if e is None else d.constant(e) for e in ends)])
    if kind == "PRelu":
        shape = d.shapes[x]
        slopes = d.pick((shape[1], *(1,) * (len(shape) - 2)), (1,), shape[1:]) if len(shape) > 2 else (1,)
        return d.node("PRelu", [x, d.normal(*slopes, size=0.3)])
    return d.node(kind, [x], **how)


def composed(d: Draft, x: str) -> str:
    """What exporters write of one layer in several nodes."""
    kind = d.pick("silu", "hard_swish", "gelu", "squeeze", "norm", "shuffle")
    if kind == "silu":
        return d.node("Mul", [x, d.node("Sigmoid", [x])])
    if kind == "hard_swish":
        gate = d.node("Clip", [d.node("Add", [x, d.constant(3.0)]), d.constant(0.0), d.constant(6.0)])
        return d.node("Div", [d.node("Mul", [x, gate]), d.constant(6.0)])
    if kind == "gelu":
        inner = d.node("Erf", [d.node("Div", [x, d.constant(np.sqrt(2.0))])])
        return d.node("Mul", [d.node("Mul", [x, d.node("Add", [inner, d.constant(1.0)])]), d.constant(0.5)])
    if kind == "squeeze" and len(d.shapes[x]) == 4:
        channels = d.shapes[x][1]
        gate = d.node("Conv", [d.node("GlobalAveragePool", [x]), spread(d, channels, channels, 1, 1)])
        return d.node("Mul", [x, d.node("Sigmoid", [gate])])
    if kind == "shuffle" and len(d.shapes[x]) == 4 and d.shapes[x][1] % 2 == 0:
        n, c, h, w = d.shapes[x]
        split = d.node("Reshape", [x, d.constant([n, 2, c // 2, h, w], np.int64)])
        turned = d.node("Transpose", [split], perm=[0, 2, 1, 3, 4])
        return d.node("Reshape", [turned, d.constant([n, c, h, w], np.int64)])
    mean = d.node("ReduceMean", [x, d.constant([-1], np.int64)], keepdims=1)
    off = d.node("Sub", [x, mean])
    square = d.node("ReduceMean", [d.node("Pow", [off, d.constant(2.0)]), d.constant([-1], np.int64)], keepdims=1)
    return d.node("Div", [off, d.node("Sqrt", [d.node("Add", [square, d.constant(1e-5)])])])


def product(d: Draft, x: str) -> str:
    shape, out = d.shapes[x], d.pick(1, 2, 3, 5, 8)
    if len(shape) == 2 and d.maybe(0.6):
        turned = d.maybe(0.6)
        weights = spread(d, out, shape[1]) if turned else d.normal(shape[1], out, size=0.5)
        extra = [d.normal(out)] if d.maybe(0.7) else []
        how = {"alpha": d.pick(None, 0.5), "beta": d.pick(None, 2.0)} if d.maybe(0.3) else {}
        return d.node("Gemm", [x, weights, *extra], transB=int(turned), **how)
    y = d.node("MatMul", [x, d.normal(shape[-1], out, size=0.5)])
    return d.node("Add", [y, d.normal(out)]) if d.maybe(0.6) else y


def attention(d: Draft, x: str) -> str:
    """Scores of rows, a softmax, and the weighted rows; with heads, as exporters write them."""
    shape = d.shapes[x]
    if len(shape) != 3:
        return x
    n, rows, depth = shape
    heads = d.pick(*(h for h in (1, 2, 3) if depth % h == 0))
    parts = []
    for role in range(3):
        y = d.node("Add", [d.node("MatMul", [x, d.normal(depth, depth, size=0.5)]), d.normal(depth)])
        y = d.node("Reshape", [y, d.constant([n, rows, heads, depth // heads], np.int64)])
        parts.append(d.node("Transpose", [y], perm=[0, 2, 3, 1] if role == 1 else [0, 2, 1, 3]))
    scores = d.node("Mul", [d.node("MatMul", parts[:2]), d.constant((depth // heads) ** -0.5)])
    y = d.node("MatMul", [d.node("Softmax", [scores], axis=-1), parts[2]])
    return d.node("Reshape", [d.node("Transpose", [y], perm=[0, 2, 1, 3]), d.constant([n, rows, depth], np.int64)])


def arithmetic(d: Draft, x: str) -> str:
    kind, shape = d.pick("Add", "Add", "Mul", "Sub", "Div", "Max", "Min"), d.shapes[x]
    same = [name for name, other in d.shapes.items() if other == shape]
    if kind != "Div" and d.maybe(0.6):
        return d.node(kind, [x, d.pick(*same)])
    other = tuple(n if d.maybe(0.5) else 1 for n in shape[1:])[d.pick(*range(len(shape[1:]))) :]
    values = d.chance.uniform(0.4, 2, other) * d.chance.choice([-1, 1], other)
    name = d.constant(values)
    return d.node(kind, [x, name] if kind == "Div" or d.maybe(0.7) else [name, x])


def joined(d: Draft, x: str) -> str:
    shape = d.shapes[x]
    axis = d.pick(*range(1, len(shape)))
    fit = [
        n
        for n, s in d.shapes.items()
        if len(s) == len(shape) and s[:axis] + s[axis + 1 :] == shape[:axis] + shape[axis + 1 :]
    ]
    return d.node("Concat", [x, *(d.pick(*fit) for _ in range(d.pick(1, 2)))], axis=d.pick(axis, axis - len(shape)))


def moved(d: Draft, x: str) -> str:
    shape = d.shapes[x]
    rank, total = len(shape), int(np.prod(shape[1:]))
    kind = d.pick(
        "Reshape", "Flatten", "Transpose", "Slice", "Split", "Pad", "Resize", "Gather", "Unsqueeze", "Tile", "D2S"
    )
    axis = d.pick(*range(1, rank))
    if kind == "Reshape":
        first = d.pick(*(n for n in range(1, 17) if total % n == 0))
        target = d.pick(
            [shape[0], first, total // first], [0, -1], [shape[0], -1, first], [1, first, 1, total // first]
        )
        return d.node("Reshape", [x, d.constant(target, np.int64)])
    if kind == "Flatten":
        return d.node("Flatten", [x], axis=1)
    if kind == "Transpose":
        return d.node("Transpose", [x], perm=[0, *(int(a) + 1 for a in d.chance.permutation(rank - 1))])
    if kind == "Slice":
        begin, step = int(d.chance.integers(0, shape[axis])), d.pick(1, 1, 2)
        ends = [begin], [d.pick(2**31, shape[axis])], [axis], [step]
        return d.node("Slice", [x, *(d.constant(e, np.int64) for e in ends)])
    if kind == "Split" and shape[axis] > 1:
        first = int(d.chance.integers(1, shape[axis]))
        d.node("Split", [x, d.constant([first, shape[axis] - first], np.int64)], 2, axis=axis)
        return d.nodes[-1].output[d.pick(0, 1)]
    if kind == "Pad":
        amounts = [0] + [d.pick(0, 0, 1, 2) for _ in shape[1:]] + [0] + [d.pick(0, 0, 1) for _ in shape[1:]]
        mode = d.pick("constant", "constant", "reflect", "edge")
        return d.node("Pad", [x, d.constant(amounts, np.int64)], mode=mode)
    if kind == "Resize" and rank == 4:
        mode, times = d.pick("nearest", "nearest", "linear"), d.pick([1, 1, 2, 2], [1, 1, 1, 2], [1, 1, 2, 3])
        place = d.pick("asymmetric", "half_pixel") if mode == "linear" else "asymmetric"
        how = {"nearest_mode": "floor"} if mode == "nearest" else {}
        scales = d.constant(np.float32(times))
        return d.node("Resize", [x, "", scales], mode=mode, coordinate_transformation_mode=place, **how)
    if kind == "Gather":
        return d.node(
            "Gather", [x, d.constant(d.chance.integers(0, shape[axis], d.pick(1, 2, 3)), np.int64)], axis=axis
        )
    if kind == "Unsqueeze" and rank < 4:
        return d.node("Unsqueeze", [x, d.constant([axis], np.int64)])
    if kind == "Tile":
        return d.node("Tile", [x, d.constant([1, *(d.pick(1, 1, 2) for _ in shape[1:])], np.int64)])
    if kind == "D2S" and rank == 4 and shape[1] % 4 == 0:
        return d.node("DepthToSpace", [x], blocksize=2, mode=d.pick("DCR", "CRD"))
    return x


def reduced(d: Draft, x: str) -> str:
    rank = len(d.shapes[x])
    axes = sorted({d.pick(*range(1, rank)) for _ in range(d.pick(1, 1, 2))})
    kind = d.pick("ReduceMean", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2")
    return d.node(kind, [x, d.constant(axes, np.int64)], keepdims=d.pick(0, 1))


def recurrent(d: Draft, x: str) -> str:
    """Rows [1, time, features] through a layer with the time first, as PyTorch writes it."""
    shape = d.shapes[x]
    if len(shape) != 3 or shape[1] > 16:
        return x
    kind, units = d.pick("LSTM", "GRU", "RNN"), d.pick(1, 2, 4, 5)
    gates, ways = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], d.pick(1, 1, 2)
    rows = d.node("Transpose", [x], perm=[1, 0, 2])
    held = [d.normal(ways, gates * units, size, size=0.4) for size in (shape[2], units)]
    if d.maybe(0.8):
        held.append(d.normal(ways, 2 * gates * units, size=0.3))
    if d.maybe(0.25):
        held += [""] * (3 - len(held)) + [d.constant([int(d.chance.integers(1, shape[1] + 1))], np.int32)]
    how = {"linear_before_reset": d.pick(0, 1)} if kind == "GRU" else {}
    direction = "bidirectional" if ways == 2 else d.pick("forward", "forward", "reverse")
    y = d.node(kind, [rows, *held], 2, hidden_size=units, direction=direction, **how)
    turned = d.node("Transpose", [y], perm=[2, 0, 1, 3])
    return d.node("Reshape", [turned, d.constant([1, shape[1], ways * units], np.int64)])


ANY: tuple[Maker, ...] = (activation, activation, activation, composed, arithmetic, arithmetic, joined, moved, moved)
ANY = (*ANY, moved, reduced, product, normalization)
OF_RANK: dict[int, tuple[Maker, ...]] = {
    2: (product, product),
    3: (convolution, pool, product, recurrent, attention, transposed, normalization),
    4: (convolution, convolution, convolution, convolution, pool, transposed, whole_pool, normalization),
}


def random_model(seed: int) -> Any:
    """Of two to ten steps; what a shape does not allow is left out."""
    chance = np.random.default_rng([seed, 21])
    d = Draft(chance, opset=int(chance.choice([18, 20, 21])))
    sizes = [d.pick(1, 2, 3, 4, 6, 8), d.pick(1, 4, 5, 7, 8, 10), d.pick(1, 3, 6, 8, 9)]
    shape = (1, *sizes[: d.pick(3, 3, 3, 2, 2, 1)])
    d.shapes["x"] = shape
    d.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
    x = "x"
    for _ in range(int(chance.integers(2, 11))):
        before = list(d.nodes), list(d.held), dict(d.shapes)
        try:
            y = d.pick(*ANY, *OF_RANK.get(len(d.shapes[x]), ()) * 2)(d, x)
        except ValueError:
            y = ""
        if y and 2 <= len(d.shapes[y]) <= 5 and np.prod(d.shapes[y]) <= LARGEST:
            x = y
        else:
            d.nodes, d.held, d.shapes = before
    if x == "x":
        x = d.node("Tanh", ["x"])
    outputs = [x]
    made = [name for name in d.shapes if name not in ("x", x)]
    if made and d.maybe(0.2):
        outputs.append(d.pick(*made))
    return onnx.utils.Extractor(d.model(outputs)).extract_model(["x"], outputs)
