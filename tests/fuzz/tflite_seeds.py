"""Small sound `.tflite` files, one for every operator that is read, in every format it is read in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tests.frontend.tflite_files import File, O, T
from tests.fuzz.tflite_branch_seeds import BRANCHES
from tests.fuzz.tflite_composed_seeds import COMPOSED
from tests.fuzz.tflite_detection_seeds import detector, settings
from tests.fuzz.tflite_loop_seeds import LOOPS
from tests.fuzz.tflite_mediapipe_seeds import SEEDS as MEDIAPIPE
from tests.fuzz.tflite_recurrent_seeds import RECURRENT
from tests.fuzz.tflite_selection_seeds import CHOOSING
from tests.fuzz.tflite_spectrum_seeds import SPECTRA
from tests.fuzz.tflite_variable_seeds import VARIABLES

RNG = np.random.default_rng(5)
IMAGE = (1, 6, 5, 4)
CONV = {"StrideH": 1, "StrideW": 2, "DilationHFactor": 1, "DilationWFactor": 1, "FusedActivationFunction": 1}


def tensor(name: str, shape: Sequence[int], dtype: str, scale: float = 0.1, zero: int = 3) -> T:
    return T(name, shape, dtype, (scale,), (zero if dtype == "int8" else 0,))


def numbers(name: str, values: Sequence[Any], dtype: Any = np.int32) -> T:
    data = np.asarray(values, dtype)
    return T(name, data.shape, data.dtype.name, (), (), data=data)


def weights(name: str, shape: Sequence[int], dtype: str, channels: int = 1, axis: int = 0, zero: int = 0) -> T:
    if dtype == "float32":
        return T(name, shape, dtype, data=RNG.normal(size=shape).astype(np.float32))
    scales = RNG.uniform(0.01, 0.05, channels).tolist()
    data = RNG.integers(-127, 128, shape).astype(np.int8)
    return T(name, shape, "int8", scales, [zero] * channels, axis, data)


def bias(size: int, dtype: str) -> T:
    kind = {"int8": np.int32, "int16": np.int64, "float32": np.float32}[dtype]
    return T("bias", (size,), np.dtype(kind).name, (), (), data=RNG.integers(-99, 99, size).astype(kind))


def one(
    kind: str, inputs: Sequence[T], output: T | Sequence[T], options: str = "NONE", order: Sequence[int] = (), **v: Any
) -> File:
    """A file of one operator, whose input is the one tensor that holds no data."""
    outputs = [output] if isinstance(output, T) else list(output)
    tensors = [*inputs, *outputs]
    ends = [i for i, t in enumerate(inputs) if t.data is None]
    last = list(range(len(inputs), len(tensors)))
    return File(tensors, [O(kind, list(order or range(len(inputs))), last, options, v)], ends, last)


def conv(dtype: str) -> File:
    """Two groups of two channels."""
    out = tensor("out", (1, 6, 3, 4), dtype, 2.0)
    parts = [tensor("x", IMAGE, dtype), weights("w", (4, 3, 3, 2), dtype, 4), bias(4, dtype)]
    return one("CONV_2D", parts, out, "Conv2DOptions", **CONV, Padding=0)


def depthwise(dtype: str) -> File:
    out = tensor("out", (1, 4, 2, 8), dtype, 2.0)
    parts = [tensor("x", IMAGE, dtype), weights("w", (1, 3, 2, 8), dtype, 8, 3), bias(8, dtype)]
    return one("DEPTHWISE_CONV_2D", parts, out, "DepthwiseConv2DOptions", **CONV, Padding=1, DepthMultiplier=2)


def transpose_conv(dtype: str) -> File:
    size, out = numbers("size", (1, 12, 10, 3)), tensor("out", (1, 12, 10, 3), dtype, 2.0)
    parts = [size, weights("w", (3, 3, 3, 4), dtype, 3), tensor("x", IMAGE, dtype)]
    return one("TRANSPOSE_CONV", parts, out, "TransposeConvOptions", Padding=0, StrideH=2, StrideW=2)


def dense(dtype: str) -> File:
    parts = [tensor("x", (1, 3, 4), dtype), weights("w", (5, 12), dtype, 1, zero=-3 * (dtype == "int8"))]
    out = tensor("out", (1, 5), dtype, 2.0)
    return one("FULLY_CONNECTED", [*parts, bias(5, dtype)], out, "FullyConnectedOptions", FusedActivationFunction=3)


def flat_dense(dtype: str) -> File:
    """An odd number of weights, without a zero point."""
    out = tensor("out", (1, 5), dtype, 2.0)
    parts = [tensor("x", (1, 7), dtype), weights("w", (5, 7), dtype), bias(5, dtype)]
    return one("FULLY_CONNECTED", parts, out, "FullyConnectedOptions")


def pool(kind: str, dtype: str) -> File:
    values = {"Padding": 0, "StrideH": 2, "StrideW": 1, "FilterHeight": 3, "FilterWidth": 2}
    return one(kind, [tensor("x", IMAGE, dtype)], tensor("out", (1, 3, 5, 4), dtype), "Pool2DOptions", **values)


def binary(kind: str, options: str, constant: bool, dtype: str) -> File:
    other = tensor("y", (1, 1, 1, 4), dtype, 0.2, -7)
    if constant:
        data = RNG.integers(2, 99, (4,)).astype(dtype)  # no zero, by which DIV would divide
        other = T("c", (4,), dtype, (0.05,), (1 if dtype == "int8" else 0,), data=data)
    if kind in ("MAXIMUM", "MINIMUM"):
        other = T(other.name, other.shape, dtype, (0.1,), (3 if dtype == "int8" else 0,), data=other.data)
    scale = 0.0213 if kind == "DIV" else 0.1  # no quotient is exactly half a step
    return one(kind, [tensor("x", IMAGE, dtype), other], tensor("out", IMAGE, dtype, scale), options)


def unary(kind: str, options: str, values: dict[str, Any], dtype: str) -> File:
    scale, zero = 0.1, 3
    if kind in ("LOGISTIC", "TANH", "SOFTMAX"):
        scale = 2.0**-15 if dtype == "int16" else 2.0**-8 if kind != "TANH" else 2.0**-7
        zero = -128 if kind != "TANH" else 0
    return one(kind, [tensor("x", IMAGE, dtype)], tensor("out", IMAGE, dtype, scale, zero), options, **values)


def prelu(dtype: str) -> File:
    return one("PRELU", [tensor("x", IMAGE, dtype), weights("a", (1, 1, 4), dtype)], tensor("out", IMAGE, dtype))


def moved(
    kind: str, arguments: Sequence[Sequence[Any]], shape: Sequence[int], options: str, values: Any, dtype: str
) -> File:
    constants = [numbers(f"c{i}", value) for i, value in enumerate(arguments)]
    return one(kind, [tensor("x", IMAGE, dtype), *constants], tensor("out", shape, dtype), options, **values)


def split(dtype: str) -> File:
    outs = [tensor(f"out{i}", (1, 6, 5, 2), dtype) for i in range(2)]
    axis = T("axis", (), "int32", (), (), data=np.int32(3))
    return one("SPLIT", [axis, tensor("x", IMAGE, dtype)], outs, "SplitOptions", NumSplits=2)


def unpack(dtype: str) -> File:
    outs = [tensor(f"out{i}", (1, 6, 4), dtype) for i in range(5)]
    return one("UNPACK", [tensor("x", IMAGE, dtype)], outs, "UnpackOptions", Axis=2, Num=5)


def joined(kind: str, shape: Sequence[int], options: str, dtype: str) -> File:
    parts = [tensor("x", IMAGE, dtype), tensor("y", IMAGE, dtype)]
    counted = {"ValuesCount": 2} if kind == "PACK" else {}
    return one(kind, parts, tensor("out", shape, dtype), options, Axis=3, **counted)


def lstm(dtype: str) -> File:
    units, features = 3, 4
    tensors = [tensor("x", (1, 5, features), dtype)]
    tensors += [weights(f"w{i}", (units, features), dtype) for i in range(4)]
    tensors += [weights(f"r{i}", (units, units), dtype) for i in range(4)]
    tensors += [bias(units, dtype) for _ in range(4)]
    tensors += [T("hidden", (1, units), dtype, (1 / 128,), (2,), variable=True)]
    cell = "int16" if dtype == "int8" else dtype
    tensors += [T("cell", (1, units), cell, (2.0**-12,), (0,), variable=True)]
    inside = [T(f"inside{i}", (0,), cell, (2.0**-12,), (0,)) for i in range(4)]
    inside += [T("inside4", (0,), dtype, (1 / 128,), (2,))]
    first = len(tensors)
    out = T("out", (1, 5, units), dtype, (1 / 128,), (2,))
    order = [0, *range(1, 9), -1, -1, -1, *range(9, 13), -1, -1, 13, 14, -1, -1, -1, -1]
    operator = O(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        order,
        [first + 5],
        "UnidirectionalSequenceLSTMOptions",
        {"FusedActivationFunction": 4, "CellClip": 0.0},
        range(first, first + 5) if dtype == "int8" else (),
    )
    return File([*tensors, *inside, out], [operator], [0], [first + 5])


def island(_: str) -> File:
    """float -> int8 -> float, and a function in between that is computed in float."""
    tensors = [
        tensor("x", IMAGE, "float32"), tensor("q", IMAGE, "int8"), tensor("r", IMAGE, "int8"),
        tensor("f", IMAGE, "float32"), tensor("e", IMAGE, "float32"), tensor("out", IMAGE, "int8", 0.2, 5),
    ]  # fmt: skip
    kinds = ("QUANTIZE", "RELU6", "DEQUANTIZE", "ELU", "QUANTIZE")
    return File(tensors, [O(kind, [i], [i + 1]) for i, kind in enumerate(kinds)], [0], [5])


def half_weights(_: str) -> File:
    """Weights in half precision, brought to single by an operator, as float16 files have them."""
    stored = T("w", (5, 4), "float16", (), (), data=RNG.normal(size=(5, 4)).astype(np.float16))
    x, w, out = tensor("x", (2, 4), "float32"), tensor("w32", (5, 4), "float32"), tensor("out", (2, 5), "float32")
    options = "FullyConnectedOptions"
    operators = [O("DEQUANTIZE", [1], [2]), O("FULLY_CONNECTED", [0, 2, -1], [3], options)]
    return File([x, stored, w, out], operators, [0], [3])


def small_weights(make: Callable[[str], File], dtype: str) -> File:
    """The same with weights of 4 bits, two to a byte."""
    file = make(dtype)
    (place,) = (i for i, t in enumerate(file.tensors) if t.name == "w")
    stored = np.asarray(RNG.integers(-8, 8, file.tensors[place].shape), np.int8)
    flat = np.append(stored.reshape(-1), np.zeros(stored.size % 2, np.int8)).view(np.uint8)
    count = len(file.tensors[place].scales) if dtype != "float32" else 1
    scales = RNG.uniform(0.05, 0.2, count).tolist()
    packed = (flat[::2] & 15) | (flat[1::2] << 4)
    return file.with_tensor(place, dtype="int4", data=packed, scales=scales, zeros=(0,) * count)


def trained(_: str) -> File:
    """A float layer trained for integers: its input and its weights are bytes for a moment, channel by channel."""
    scales = [0.02, 0.3, 0.1, 0.05, 0.2]
    tensors = [
        tensor("x", (1, 4), "float32"), T("bytes", (1, 4), "uint8", (0.03,), (97,)), tensor("y", (1, 4), "float32"),
        weights("w", (5, 4), "float32"), T("held", (5, 4), "uint8", scales, (128,) * 5, 0), tensor("v", (), "float32"),
        tensor("out", (1, 5), "float32"),
    ]  # fmt: skip
    operators = [O("QUANTIZE", [0], [1]), O("DEQUANTIZE", [1], [2], version=2), O("QUANTIZE", [3], [4])]
    operators += [O("DEQUANTIZE", [4], [5], version=2)]
    operators += [O("FULLY_CONNECTED", [2, 5, -1], [6], "FullyConnectedOptions")]
    return File(tensors, operators, [0], [6])


ALL = ("int8", "int16", "float32")
Maker = Callable[[str], File]


def _makers() -> dict[str, tuple[Maker, Sequence[str]]]:
    found: dict[str, tuple[Maker, Sequence[str]]] = {
        "CONV_2D": (conv, ALL), "DEPTHWISE_CONV_2D": (depthwise, ALL), "TRANSPOSE_CONV": (transpose_conv, ALL),
        "FULLY_CONNECTED": (dense, ALL), "PRELU": (prelu, ("int8", "float32")), "SPLIT": (split, ALL),
        "UNPACK": (unpack, ALL), "UNIDIRECTIONAL_SEQUENCE_LSTM": (lstm, ("int8", "float32")),
        "QUANTIZE": (island, ("mixed",)), "DEQUANTIZE": (half_weights, ("half",)),
        "DEQUANTIZE-trained": (trained, ("float32",)),
        "CONCATENATION": (partial(joined, "CONCATENATION", (1, 6, 5, 8), "ConcatenationOptions"), ALL),
        "PACK": (partial(joined, "PACK", (1, 6, 5, 2, 4), "PackOptions"), ALL),
    }  # fmt: skip
    found["CONV_2D-4bits"] = partial(small_weights, conv), ("int8",)
    found["DEPTHWISE_CONV_2D-4bits"] = partial(small_weights, depthwise), ("int8",)
    found["FULLY_CONNECTED-4bits"] = partial(small_weights, flat_dense), ("int8",)
    for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        found[kind] = partial(pool, kind), ALL
    for kind, options, constant, dtypes in (
        ("ADD", "AddOptions", False, ALL), ("SUB", "SubOptions", True, ALL), ("MUL", "MulOptions", True, ALL),
        ("DIV", "DivOptions", True, ("int8", "float32")), ("MAXIMUM", "NONE", False, ALL),
        ("MINIMUM", "NONE", True, ALL), ("SQUARED_DIFFERENCE", "NONE", False, ("int8", "float32")),
    ):  # fmt: skip
        found[kind] = partial(binary, kind, options, constant), dtypes
    for kind, dtypes in (
        ("RELU", ALL), ("RELU6", ALL), ("RELU_N1_TO_1", ALL), ("HARD_SWISH", ("int8", "float32")), ("LOGISTIC", ALL),
        ("TANH", ALL), ("RSQRT", ("int8", "float32")), ("ELU", ("float32",)), ("EXP", ("float32",)),
    ):  # fmt: skip
        found[kind] = partial(unary, kind, "NONE", {}), dtypes
    found["LEAKY_RELU"] = partial(unary, "LEAKY_RELU", "LeakyReluOptions", {"Alpha": 0.2}), ALL
    found["SOFTMAX"] = partial(unary, "SOFTMAX", "SoftmaxOptions", {"Beta": 1.0}), ALL
    for kind, arguments, shape, options, values in MOVES:
        dtypes = ("float32",) if kind == "SUM" else ALL
        found[kind] = partial(moved, kind, arguments, shape, options, values), dtypes
    return found


MOVES: tuple[tuple[str, Sequence[Any], Sequence[int], str, dict[str, Any]], ...] = (
    ("RESHAPE", [[1, 30, 4]], (1, 30, 4), "NONE", {}),
    ("TRANSPOSE", [[0, 2, 3, 1]], (1, 5, 4, 6), "NONE", {}),
    ("STRIDED_SLICE", [[0, 1, 4, 0], [0, 6, -6, 2], [1, 2, -2, 1]], (6 // 2, 3, 2), "StridedSliceOptions",
     {"BeginMask": 1, "EndMask": 1, "ShrinkAxisMask": 0}),
    ("SLICE", [[0, 1, 0, 2], [1, 3, -1, 2]], (1, 3, 5, 2), "NONE", {}),
    ("REVERSE_V2", [[1, 2]], IMAGE, "NONE", {}),
    ("SPLIT_V", [[4], [3]], IMAGE, "SplitVOptions", {"NumSplits": 1}),
    ("TILE", [[1, 2, 1, 2]], (1, 12, 5, 8), "NONE", {}),
    ("PAD", [[[0, 0], [1, 2], [0, 1], [0, 0]]], (1, 9, 6, 4), "NONE", {}),
    ("MIRROR_PAD", [[[0, 0], [1, 2], [0, 1], [0, 0]]], (1, 9, 6, 4), "MirrorPadOptions", {"Mode": 0}),
    ("RESIZE_NEAREST_NEIGHBOR", [[12, 5]], (1, 12, 5, 4), "ResizeNearestNeighborOptions", {}),
    ("RESIZE_BILINEAR", [[12, 15]], (1, 12, 15, 4), "ResizeBilinearOptions", {"HalfPixelCenters": True}),
    ("MEAN", [[1, 2]], (1, 4), "ReducerOptions", {"KeepDims": False}),
    ("SUM", [[1, 3]], (1, 5), "ReducerOptions", {"KeepDims": False}),
    ("REDUCE_MAX", [[3]], (1, 6, 5), "ReducerOptions", {"KeepDims": False}),
)  # fmt: skip


def retyped(file: File, source: str, dtype: str) -> File:
    """The same with tensors of another type."""
    scales: tuple[Any, Any] = ((0.1,), (0,)) if dtype in ("int8", "int16") else ((), ())
    tensors = [
        replace(
            t, dtype=dtype, scales=scales[0], zeros=scales[1], data=None if t.data is None else t.data.astype(dtype)
        )
        if t.dtype == source
        else t
        for t in file.tensors
    ]
    return replace(file, tensors=tensors)


CARRIED = (
    "SPLIT TILE UNPACK CONCATENATION PACK TRANSPOSE STRIDED_SLICE SLICE REVERSE_V2 SPLIT_V PAD MIRROR_PAD REDUCE_MAX "
    "RESIZE_NEAREST_NEIGHBOR DEPTH_TO_SPACE SPACE_TO_DEPTH SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND"
).split()
"""What carries whole numbers too."""
YOUNGER = "SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND DILATE MATRIX_DIAG MATRIX_SET_DIAG DYNAMIC_UPDATE_SLICE".split()
COMPARED = "EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL".split()
OTHERS = (
    *(
        ("REVERSE_SEQUENCE", "int16"),
        ("SPARSE_TO_DENSE", "int8"),
        ("ABS", "int16"),
        ("FILL", "int8"),
        ("FILL", "int16"),
    ),
    *((kind, "int32") for kind in ("ABS", "NEG", "SUM", "MEAN", "ADD_N", "SQUARED_DIFFERENCE")),
    *(("EMBEDDING_LOOKUP", dtype) for dtype in ("int8", "int16", "int32")),
)
FIRST: dict[str, File] = {
    **{f"{kind}-{dtype}": maker(dtype) for kind, (maker, dtypes) in _makers().items() for dtype in dtypes},
    **CHOOSING,
    **COMPOSED,
    **LOOPS,
    **MEDIAPIPE,
    **BRANCHES,
    **RECURRENT,
    **SPECTRA,
    **VARIABLES,
    "DETECTIONS-float32": detector(settings()),
}
SEEDS: dict[str, File] = {
    **FIRST,
    **{f"{kind}-int32": retyped(FIRST[f"{kind}-int8"], "int8", "int32") for kind in CARRIED},
    **{f"{kind}-int16": retyped(FIRST[f"{kind}-int8"], "int8", "int16") for kind in (*YOUNGER, *COMPARED)},
    **{f"{kind}-{dtype}": retyped(FIRST[f"{kind}-float32"], "float32", dtype) for kind, dtype in OTHERS},
}

WITHOUT_REFERENCE = (
    *("QUANTIZE-mixed", "ELU-float32", "CEIL-float32", "RELU_N1_TO_1-int16"),
    *("FULLY_CONNECTED-2bits-float32", "FULLY_CONNECTED-blocks-float32", "STABLEHLO_IOTA-float32"),
    *("DETECTIONS-float32", *MEDIAPIPE),
)
"""Files with operators that TFLite's reference kernels lack: ELU, CEIL, STABLEHLO_IOTA, RELU_N1_TO_1 in 16 bits, those
of MediaPipe, and floats by weights in few bits, of which the inputs are rounded to 8 bits, or which are in blocks. What
is no detection they leave as it was."""
