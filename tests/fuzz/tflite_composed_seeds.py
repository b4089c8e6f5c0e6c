"""Small sound files of operators that become several operations, in the forms in which converters write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.frontend.tflite_files import File, O, T
from tests.fuzz.tflite_selection_seeds import SHAPE, constant, file, plain

MOVED = ("int8", "float32")
IMAGE = (1, 4, 6, 3)
RNG = np.random.default_rng(16)


def whole(name: str, values: Any, dtype: str = "int32") -> T:
    data = np.asarray(values, dtype)
    return plain(name, data.shape, dtype, data)


def floats(name: str, shape: Sequence[int]) -> T:
    return constant(name, shape, "float32")


def seeds() -> Iterator[tuple[str, File]]:
    yield from _blocks()
    yield from _placed()
    yield from _reversed()
    yield from _formulas()
    yield from _windows()
    yield from _segments()
    yield from _elementwise()
    yield from _filled()
    yield from _largest()
    yield from _unary()
    yield from _sparse()


def _blocks() -> Iterator[tuple[str, File]]:
    for dtype in MOVED:
        around = whole("around", [[1, 1], [0, 2]])
        parts = [plain("x", IMAGE, dtype), whole("sizes", [2, 2]), around]
        yield f"SPACE_TO_BATCH_ND-{dtype}", file("SPACE_TO_BATCH_ND", parts, plain("out", (4, 3, 4, 3), dtype))
        row = [plain("x", (1, 9, 2), dtype), whole("sizes", [3]), whole("around", [[0, 0]])]
        yield f"SPACE_TO_BATCH_ND-row-{dtype}", file("SPACE_TO_BATCH_ND", row, plain("out", (3, 3, 2), dtype))
        tensors = [plain("x", (1, 48), dtype), whole("to", [4, 2, 3, 2]), plain("y", (4, 2, 3, 2), dtype)]
        tensors += [whole("sizes", [2, 2]), whole("cut", [[1, 0], [0, 2]]), plain("out", (1, 3, 4, 2), dtype)]
        operators = [O("RESHAPE", [0, 1], [2]), O("BATCH_TO_SPACE_ND", [2, 3, 4], [5])]
        yield f"BATCH_TO_SPACE_ND-{dtype}", File(tensors, operators, [0], [5])


def _placed() -> Iterator[tuple[str, File]]:
    for dtype in (*MOVED, "int32"):
        x = plain("x", SHAPE, dtype)
        pad = plain("pad", (), dtype, np.asarray(2, dtype))
        yield f"DILATE-{dtype}", file("DILATE", [x, whole("steps", [1, 3, 2]), pad], plain("out", (1, 10, 5), dtype))
        values = plain("x", (1, 3, 2), dtype)
        once, out = whole("at", [[[0, 3], [0, 1], [0, 0]]]), plain("out", (1, 5, 2), dtype)
        yield f"SCATTER_ND-{dtype}", file("SCATTER_ND", [once, values, whole("shape", [1, 5, 2])], out)
        row = plain("x", (1, 3), dtype)
        yield f"MATRIX_DIAG-{dtype}", file("MATRIX_DIAG", [row], plain("out", (1, 3, 3), dtype))
        pair = [x, plain("diagonal", (1, 3), dtype)]
        yield f"MATRIX_SET_DIAG-{dtype}", file("MATRIX_SET_DIAG", pair, plain("out", SHAPE, dtype))
        parts = [x, plain("part", (1, 2, 2), dtype), whole("begins", [0, 3, 1])]
        yield f"DYNAMIC_UPDATE_SLICE-{dtype}", file("DYNAMIC_UPDATE_SLICE", parts, plain("out", SHAPE, dtype))
    for dtype in ("float32", "int32"):
        twice, values = whole("at", [[1], [0], [1], [3]]), plain("x", (4, 2), dtype)
        parts = [twice, values, whole("shape", [5, 2]), plain("y", (1, 2), dtype)]
        yield f"SCATTER_ND-twice-{dtype}", _with_sum(parts, plain("out", (5, 2), dtype))
    for dtype in ("float32", "int32"):
        at, shape = whole("at", [[0, 1], [0, 3], [1, 0]]), whole("shape", [2, 4])
        parts = [
            at,
            shape,
            plain("x", (3,), dtype),
            plain("rest", (), dtype, np.asarray(7, dtype)),
            plain("y", (1, 4), dtype),
        ]
        yield f"SPARSE_TO_DENSE-{dtype}", _with_sum(parts, plain("out", (2, 4), dtype), "SPARSE_TO_DENSE")


def _reversed() -> Iterator[tuple[str, File]]:
    """By lengths that are constants, by those computed, and by one for each row."""
    kind, options = "REVERSE_SEQUENCE", "ReverseSequenceOptions"
    for dtype in ("float32", "int32"):
        x, out = plain("x", (1, 7, 2), dtype), plain("out", (1, 7, 2), dtype)
        for how, lengths in (("", whole("lengths", [3])), ("run-", plain("lengths", (1,), "int32"))):
            yield f"{kind}-{how}{dtype}", file(kind, [x, lengths], out, options, BatchDim=0, SeqDim=1)
        x, out, lengths = (
            plain("x", (1, 3, 5, 2), dtype),
            plain("out", (1, 3, 5, 2), dtype),
            whole("lengths", [2, 5, 0]),
        )
        yield f"{kind}-rows-{dtype}", file(kind, [x, lengths], out, options, BatchDim=1, SeqDim=2)


def _with_sum(parts: Sequence[T], out: T, kind: str = "SCATTER_ND") -> File:
    """Beside an input of a batch of one, so that the other's first axis is none."""
    *given, y = parts
    middle = T("middle", out.shape, out.dtype, out.scales, out.zeros)
    count = len(given)
    tensors = [*given, y, middle, out]
    operators = [O(kind, range(count), [count + 1]), O("ADD", [count + 1, count], [count + 2], "AddOptions")]
    return File(tensors, operators, [i for i, t in enumerate(tensors[: count + 1]) if t.data is None], [count + 2])


def _formulas() -> Iterator[tuple[str, File]]:
    x, out = plain("x", SHAPE, "float32"), plain("out", SHAPE, "float32")
    yield "LOG_SOFTMAX-float32", file("LOG_SOFTMAX", [x], out, "LogSoftmaxOptions")
    for name, shape, scale in (("", SHAPE, 0.1), ("-long", (1, 2, 700), 0.02), ("-one", (1, 1), 0.5)):
        scores, shares = T("x", shape, "int8", (scale,), (-7,)), T("out", shape, "int8", (1 / 16,), (127,))
        yield f"LOG_SOFTMAX{name}-int8", file("LOG_SOFTMAX", [scores], shares, "LogSoftmaxOptions")
    for beta in (0.5, 0.75):
        values = {"Radius": 2, "Bias": 1.5, "Alpha": 0.3, "Beta": beta}
        image, made = plain("x", (1, 3, 2, 7), "float32"), plain("out", (1, 3, 2, 7), "float32")
        kind = "LOCAL_RESPONSE_NORMALIZATION"
        yield f"{kind}-{beta}-float32", file(kind, [image], made, "LocalResponseNormalizationOptions", **values)
    for bits, narrow, low, high in ((8, False, -1.2, 2.3), (4, False, 0.0, 1.5), (16, False, -3.0, 0.1)):
        values = {"Min": low, "Max": high, "NumBits": bits, "NarrowRange": narrow}
        yield f"FAKE_QUANT-{bits}-float32", file("FAKE_QUANT", [x], out, "FakeQuantOptions", **values)
    for power in (3.0, -2.0, 0.5, 1.3, 0.0, 9.0):
        exponent = T("power", (), "float32", data=np.float32(power))
        name = f"POW-{power}{'-positive' if power in (0.5, 1.3) else ''}-float32"
        yield name, file("POW", [x, exponent], out, "PowOptions")
    base = T("base", (), "float32", data=np.float32(1.7))
    yield "POW-base-float32", file("POW", [base, x], out, "PowOptions")
    rows = T("powers", (3,), "float32", data=np.float32([2, -3, 0]))
    yield "POW-rows-float32", file("POW", [x, rows], out, "PowOptions")
    yield "POW-both-positive-float32", file("POW", [x, plain("y", SHAPE, "float32")], out, "PowOptions")
    for dtype in ("float32", "int32"):
        for exclusive in (False, True):
            for reverse in (False, True):
                values = {"Exclusive": exclusive, "Reverse": reverse}
                parts = [plain("x", (1, 5, 3), dtype), whole("axis", 1)]
                name = f"CUMSUM-{exclusive:d}{reverse:d}-{dtype}"
                yield name, file("CUMSUM", parts, plain("out", (1, 5, 3), dtype), "CumsumOptions", **values)
        bounds = np.float32([-1.5, 0.25, 0.5, 3.0, 40.5])
        out, x = plain("out", SHAPE, "int32"), plain("x", SHAPE, dtype)
        yield f"BUCKETIZE-{dtype}", file("BUCKETIZE", [x], out, "BucketizeOptions", Boundaries=bounds)
        yield f"SIGN-{dtype}", file("SIGN", [plain("x", SHAPE, dtype)], plain("out", SHAPE, dtype))


def _windows() -> Iterator[tuple[str, File]]:
    values = {
        "Padding": 0,
        "StrideH": 2,
        "StrideW": 1,
        "FilterHeight": 3,
        "FilterWidth": 2,
        "FusedActivationFunction": 3,
    }
    x = plain("x", IMAGE, "float32")
    yield (
        "L2_POOL_2D-float32",
        file("L2_POOL_2D", [x], plain("out", (1, 2, 6, 3), "float32"), "Pool2DOptions", **values),
    )
    x, bias = plain("x", (1, 5, 6, 4, 2), "float32"), floats("bias", (3,))
    for padding, strides, dilation, made in (
        (0, (2, 1, 2), (1, 1, 1), (1, 3, 6, 2, 3)),
        (1, (1, 2, 1), (2, 1, 1), (1, 1, 2, 3, 3)),
    ):
        named = {f"Stride{a}": s for a, s in zip("DHW", strides, strict=True)}
        named |= {f"Dilation{a}Factor": d for a, d in zip("DHW", dilation, strict=True)}
        parts = [x, floats("w", (3, 3, 2, 2, 3)), bias]
        out = plain("out", made, "float32")
        options = {**named, "Padding": padding, "FusedActivationFunction": 1}
        yield f"CONV_3D-{padding}-float32", file("CONV_3D", parts, out, "Conv3DOptions", **options)
    x = plain("x", (1, 2, 3, 2, 2), "float32")
    for padding, strides, made in ((0, (2, 2, 1), (1, 4, 6, 2, 3)), (1, (2, 1, 3), (1, 5, 5, 5, 3))):
        named = {f"Stride{a}": s for a, s in zip("DHW", strides, strict=True)}
        named |= {f"Dilation{a}Factor": 1 for a in "DHW"}
        parts = [whole("size", made), floats("w", (3, 3, 2, 3, 2)), x, bias]
        out = plain("out", made, "float32")
        yield (
            f"CONV_3D_TRANSPOSE-{padding}-float32",
            file("CONV_3D_TRANSPOSE", parts, out, "Conv3DOptions", Padding=padding, **named),
        )
    for code, begin in ((1, 0.0), (2, 1.0), (3, 0.5), (4, -0.5), (1, 2.0)):
        for dtype in ("float32", "int32"):
            first = plain("first", (), dtype, np.asarray(begin, dtype))
            window = (("sizes", [1, 2, 2]), ("strides", [1, 2, 1]), ("dilation", [1, 2, 3]))
            parts = [plain("x", (1, 6, 5), dtype), first, *(whole(n, values, "int64") for n, values in window)]
            out = plain("out", (1, 2, 2), dtype)
            name = f"REDUCE_WINDOW-{code}-{begin}-{dtype}"
            yield name, file("REDUCE_WINDOW", parts, out, "ReduceWindowOptions", ReduceFunction=code)


def _segments() -> Iterator[tuple[str, File]]:
    for kind in ("SUM", "PROD", "MAX", "MIN"):
        for dtype in ("float32", "int32"):
            parts = [
                plain("x", (5, 2), dtype),
                whole("ids", [3, 0, 3, 1, 0]),
                whole("count", 5),
                plain("y", (1, 2), dtype),
            ]
            yield (
                f"UNSORTED_SEGMENT_{kind}-{dtype}",
                _with_sum(parts, plain("out", (5, 2), dtype), f"UNSORTED_SEGMENT_{kind}"),
            )


def _filled() -> Iterator[tuple[str, File]]:
    """What follows from shapes, or from single numbers."""
    sides = [plain(name, (), "int8", np.int8(v)) for name, v in (("on", 3), ("off", -2))]
    parts = [plain("rows", (1, 4), "int32"), whole("depth", 6), *sides]
    for dtype, scale, zero in (("int8", 0.02, -9), ("int16", 2.0**-14, 0)):
        factors, made = T("x", (1, 4, 2, 3), dtype, (scale,), (zero,)), T("out", (1, 3), dtype, (scale,), (-zero,))
        yield f"REDUCE_PROD-{dtype}", file("REDUCE_PROD", [factors, whole("axes", [1, 2])], made, "ReducerOptions")
    yield "ONE_HOT-int8", file("ONE_HOT", parts, plain("out", (1, 4, 6), "int8"), "OneHotOptions", Axis=-1)
    for dtype in ("float32", "int32"):
        x, out = plain("x", SHAPE, dtype), plain("out", (1, 5), dtype)
        keep = {"KeepDims": True}
        for axes, made in (([1], (1, 1, 3)), ([2, 1], (1, 1, 1))):
            parts = [x, whole("axes", axes)]
            name = f"REDUCE_PROD-{len(axes)}-{dtype}"
            yield name, file("REDUCE_PROD", parts, plain("out", made, dtype), "ReducerOptions", **keep)
        tensors = [plain("x", (1, 1), dtype), whole("to", []), plain("one", (), dtype), whole("shape", [1, 5]), out]
        operators = [O("RESHAPE", [0, 1], [2]), O("FILL", [3, 2], [4])]
        yield f"FILL-{dtype}", File(tensors, operators, [0], [4])
        tensors = [x, plain("zeros", SHAPE, dtype), plain("out", SHAPE, dtype)]
        operators = [O("ZEROS_LIKE", [0], [1]), O("SUB", [1, 0], [2], "SubOptions")]
        yield f"ZEROS_LIKE-{dtype}", File(tensors, operators, [0], [2])
        ends = [plain(name, (), dtype, np.asarray(v, dtype)) for name, v in (("a", 2), ("b", 11), ("c", 3))]
        tensors = [x, *ends, plain("range", (3,), dtype), plain("out", SHAPE, dtype)]
        operators = [O("RANGE", [1, 2, 3], [4]), O("ADD", [0, 4], [5], "AddOptions")]
        yield f"RANGE-{dtype}", File(tensors, operators, [0], [5])
        numbers = [plain(name, (), dtype, np.asarray(v, dtype)) for name, v in (("on", 3), ("off", -2))]
        for axis, made in ((-1, (1, 4, 6)), (1, (1, 6, 4))):
            parts = [plain("rows", (1, 4), "int32"), whole("depth", 6), *numbers]
            yield (
                f"ONE_HOT-{axis}-{dtype}",
                file("ONE_HOT", parts, plain("out", made, dtype), "OneHotOptions", Axis=axis),
            )
    for kind in ("REDUCE_ANY", "REDUCE_ALL"):
        parts, out = [plain("x", SHAPE, "bool"), whole("axes", [1])], plain("out", (1, 3), "bool")
        yield kind, file(kind, parts, out, "ReducerOptions")
    for kind, options, made in (("SHAPE", "ShapeOptions", (3,)), ("RANK", "NONE", ())):
        tensors = [plain("x", SHAPE, "int32"), plain("made", made, "int32"), plain("out", SHAPE, "int32")]
        operator = O(kind, [0], [1], options, {"OutType": 2} if made else {})
        yield kind, File(tensors, [operator, O("ADD", [0, 1], [2], "AddOptions")], [0], [2])
    pair = [whole("a", [1, 4, 1]), whole("b", [3]), plain("both", (3,), "int32")]
    tensors = [plain("x", (1, 1, 3), "float32"), *pair, plain("out", SHAPE, "float32")]
    operators = [O("BROADCAST_ARGS", [1, 2], [3]), O("BROADCAST_TO", [0, 3], [4], version=2)]
    yield "BROADCAST_ARGS", File(tensors, operators, [0], [4])


def _largest() -> Iterator[tuple[str, File]]:
    for dtype in ("float32", "int8", "int16", "int32"):
        outs = [plain("values", (1, 4, 3), dtype), plain("places", (1, 4, 3), "int32")]
        operator = O("TOPK_V2", [0, 1], [2, 3], "TopKV2Options", version=2)
        yield (
            f"TOPK_V2-{dtype}",
            File([plain("x", (1, 4, 7), dtype), whole("count", 3), *outs], [operator], [0], [2, 3]),
        )


def _unary() -> Iterator[tuple[str, File]]:
    for kind in ("COS", "SIN", "FLOOR", "CEIL", "NEG", "SQRT", "SQUARE", "LOG", "GELU", "ABS", "RELU_0_TO_1"):
        name = f"{kind}{'-positive' if kind in ('SQRT', 'LOG') else ''}-float32"
        x, out = plain("x", SHAPE, "float32"), plain("out", SHAPE, "float32")
        yield name, file(kind, [x], out, "GeluOptions" if kind == "GELU" else "NONE")
    x, out = plain("x", SHAPE, "int8"), T("out", SHAPE, "int8", (0.02,), (-100,))
    yield "LOG-positive-int8", file("LOG", [x], out)
    yield "RELU_0_TO_1-int8", file("RELU_0_TO_1", [x], T("out", SHAPE, "int8", (0.004,), (-128,)))
    for kind in ("FLOOR_DIV", "FLOOR_MOD"):
        pair = [plain("x", SHAPE, "float32"), plain("y", SHAPE, "float32")]
        yield f"{kind}-float32", file(kind, pair, plain("out", SHAPE, "float32"), version=2)
    for dtype in ("int8", "int16", "float32", "int32"):
        x, to = plain("x", (1, 1, 3), dtype), whole("to", [1, 4, 3])
        yield f"BROADCAST_TO-{dtype}", file("BROADCAST_TO", [x, to], plain("out", SHAPE, dtype), version=3)
        x, axis = plain("x", SHAPE, dtype), whole("axis", 2)
        yield f"EXPAND_DIMS-{dtype}", file("EXPAND_DIMS", [x, axis], plain("out", (1, 4, 1, 3), dtype))
        x = plain("x", (1, 4, 1, 3), dtype)
        yield f"SQUEEZE-{dtype}", file("SQUEEZE", [x], plain("out", SHAPE, dtype))
        border = plain("border", (), dtype, np.asarray(5, dtype))
        around = whole("around", [[0, 0], [1, 2], [0, 1]])
        parts = [plain("x", SHAPE, dtype), around, border]
        yield f"PADV2-{dtype}", file("PADV2", parts, plain("out", (1, 7, 4), dtype))
        parts = [plain("x", SHAPE, dtype), whole("axes", [1])]
        yield f"REDUCE_MIN-{dtype}", file("REDUCE_MIN", parts, plain("out", (1, 3), dtype), "ReducerOptions")


def _elementwise() -> Iterator[tuple[str, File]]:
    for kind in ("ADD", "MULTIPLY", "MAXIMUM", "MINIMUM"):
        for dtype in ("float32", "int32"):
            pair = [plain("x", SHAPE, dtype), plain("y", SHAPE, dtype)]
            yield f"STABLEHLO_{kind}-{dtype}", file(f"STABLEHLO_{kind}", pair, plain("out", SHAPE, dtype))
    pair = [plain("x", SHAPE, "int32"), plain("y", SHAPE, "int32")]
    yield "RIGHT_SHIFT-int32", file("RIGHT_SHIFT", pair, plain("out", SHAPE, "int32"), "RightShiftOptions")
    table, rows = constant("table", (7, 4), "float32"), plain("rows", (5,), "int32")
    yield "EMBEDDING_LOOKUP-float32", _looked_up(rows, table)


def _looked_up(rows: T, table: T) -> File:
    """As `_with_sum`: five rows are no batch of five."""
    out, y = plain("out", (5, 4), "float32"), plain("y", (1, 4), "float32")
    middle = plain("middle", (5, 4), "float32")
    operators = [O("EMBEDDING_LOOKUP", [0, 1], [3]), O("ADD", [3, 2], [4], "AddOptions")]
    return File([rows, table, y, middle, out], operators, [0, 2], [4])


def _sparse() -> Iterator[tuple[str, File]]:
    """Weights of which each row has the columns of what is not zero."""
    stored, tree = np.array([3, -2, 5, 7, -1, 4]), ([0, 1], [], [4, ([0, 2, 3, 3, 6], [0, 5, 2, 1, 3, 7])])
    for dtype, kind in (("float32", np.float32), ("int8", np.int8)):
        weights = replace(plain("w", (4, 8), dtype, stored.astype(kind)), sparse=tree)
        tensors = [plain("x", (1, 8), dtype), weights, plain("whole", (4, 8), dtype), plain("y", (1, 4), dtype)]
        operators = [O("DENSIFY", [1], [2]), O("FULLY_CONNECTED", [0, 2, -1], [3], "FullyConnectedOptions")]
        yield f"DENSIFY-{dtype}", File(tensors, operators, [0], [3])


COMPOSED = dict(seeds())
