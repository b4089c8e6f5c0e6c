"""More small sound files: operators of whole numbers and truth values, those that choose, and products of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.frontend.tflite_files import File, O, T

RNG = np.random.default_rng(6)
SHAPE = (1, 4, 3)
SCALED = {"int8": (0.1, 3), "int16": (0.1, 0), "uint8": (0.05, 100)}


def plain(name: str, shape: Sequence[int], dtype: str, data: Any = None) -> T:
    """A tensor; scaled where its type asks for it."""
    held = None if data is None else np.asarray(data, dtype)
    if dtype not in SCALED:
        return T(name, shape, dtype, (), (), data=held)
    scale, zero = SCALED[dtype]
    return T(name, shape, dtype, (scale,), (zero,), data=held)


def file(kind: str, inputs: Sequence[T], out: T, options: str = "NONE", version: int = 1, **values: Any) -> File:
    ends = [i for i, t in enumerate(inputs) if t.data is None]
    operator = O(kind, range(len(inputs)), [len(inputs)], options, values, version=version)
    return File([*inputs, out], [operator], ends, [len(inputs)])


def constant(name: str, shape: Sequence[int], dtype: str) -> T:
    data = RNG.integers(-5, 6, shape) if dtype != "float32" else RNG.normal(size=shape)
    return plain(name, shape, dtype, data)


def seeds() -> Iterator[tuple[str, File]]:
    yield from _lookups()
    yield from _comparisons()
    yield from _whole_numbers()
    yield from _products()
    yield from _resizes()
    yield from _composed()
    yield from _narrow()
    yield from _exported()
    yield from _composites()
    for kind, options in (("EXP", "NONE"), ("GELU", "GeluOptions"), ("ABS", "NONE")):
        x, out = plain("x", SHAPE, "int8"), T("out", SHAPE, "int8", (0.3,), (-20,))
        yield f"{kind}-int8", file(kind, [x], out, options, 2 if options == "GeluOptions" else 1)
    for name, kind, values in (
        *(("EXP", "EXP", {}), ("GELU", "GELU", {}), ("GELU-tanh", "GELU", {"Approximate": True})),
        *(("LOG-positive", "LOG", {}), ("RSQRT", "RSQRT", {})),
    ):
        x, out = T("x", SHAPE, "int16", (2.0**-12,), (0,)), T("out", SHAPE, "int16", (3.1e-4,), (0,))
        yield f"{name}-int16", file(kind, [x], out, "GeluOptions" if kind == "GELU" else "NONE", 2, **values)
    yield "SQRT-positive-int8", file("SQRT", [plain("x", SHAPE, "int8")], T("out", SHAPE, "int8", (0.013,), (-90,)))
    x, out = plain("x", SHAPE, "uint8"), T("out", SHAPE, "int8", (0.05,), (-28,))
    yield "QUANTIZE-uint8", file("QUANTIZE", [x], out, version=1)
    yield "DEQUANTIZE-uint8", file("DEQUANTIZE", [x], plain("out", SHAPE, "float32"), version=2)


EMPTY = np.array([0, 0, 1, 0, 0, 36, 1, 3, 36, 1], np.uint8)
"""An empty map, as the attributes of a composite are written."""


def composite(body: File, tensors: Sequence[T], inputs: Sequence[int], output: int, index: int = 1) -> File:
    """One operator, computed by a subgraph."""
    values = {"Name": "odml.rest", "DecompositionSubgraphIndex": index, "CompositeAttributes": EMPTY, "Version": 1}
    operator = O("STABLEHLO_COMPOSITE", inputs, [output], "StableHLOCompositeOptions", values)
    return File(tensors, [operator], inputs, [output], [body])


def _composites() -> Iterator[tuple[str, File]]:
    """Two inputs and a constant inside; and the same subgraph in the place of two operators, one behind the other."""
    for dtype in ("float32", "int8"):
        inside = [plain(name, SHAPE, dtype) for name in ("a", "b", "sum")] + [constant("k", (3,), dtype)]
        inside += [plain("out", SHAPE, dtype)]
        steps = [O("ADD", [0, 1], [2], "AddOptions"), O("MUL", [2, 3], [4], "MulOptions")]
        body = File(inside, steps, [0, 1], [4])
        once = composite(body, [plain(name, SHAPE, dtype) for name in ("x", "y", "z")], [0, 1], 2)
        yield f"STABLEHLO_COMPOSITE-{dtype}", once
        again = replace(once.operators[0], inputs=[2, 0], outputs=[3])
        tensors = [*once.tensors, plain("w", SHAPE, dtype)]
        yield f"STABLEHLO_COMPOSITE-twice-{dtype}", File(tensors, [once.operators[0], again], [0, 1], [3], [body])


def _exported() -> Iterator[tuple[str, File]]:
    """What PyTorch's exporter and LiteRT's quantizer write: masks of infinity, a layer by a tensor, tiny summands."""
    for dtype in ("float32", "int8"):
        pair = [plain("x", (1, 4, 8), dtype), plain("w", (5, 8), dtype)]
        out = plain("y", (1, 4, 5), dtype)
        dense = O("FULLY_CONNECTED", [0, 1, -1], [2], "FullyConnectedOptions", {"KeepNumDims": True})
        yield f"FULLY_CONNECTED-tensors-{dtype}", File([*pair, out], [dense], [0, 1], [2])
    for dtype in ("int8", "int16"):
        tiny = T("tiny", (3,), dtype, (2.0**-34,), (0,), data=np.array([127, -7, 90], dtype))
        out = plain("y", SHAPE, dtype)
        yield f"ADD-tiny-{dtype}", file("ADD", [plain("x", SHAPE, dtype), tiny], out, "AddOptions")
        near = T("near", (3,), dtype, (SCALED[dtype][0] * 2.0**-12,), (0,), data=np.array([127, -7, 90], dtype))
        yield f"ADD-near-{dtype}", file("ADD", [plain("x", SHAPE, dtype), near], out, "AddOptions")
    tensors = [plain(name, (1, 4, 3), "float32") for name in ("x", "counted", "y")]
    count = O("STABLEHLO_IOTA", [], [1], "StablehloIotaOptions", {"IotaDimension": 2})
    yield "STABLEHLO_IOTA-float32", File(tensors, [count, O("ADD", [0, 1], [2], "AddOptions")], [0], [2])
    mask = np.where(np.tri(4, 5, dtype=bool), 0.5, -np.inf).astype(np.float32)
    tensors = [plain("x", (1, 4, 5), "float32"), plain("mask", (1, 4, 5), "float32", mask[None])]
    tensors += [plain(name, (1, 4, 5), "float32") for name in ("scores", "shares")]
    steps = [O("ADD", [0, 1], [2], "AddOptions"), O("SOFTMAX", [2], [3], "SoftmaxOptions", {"Beta": 1.0})]
    yield "SOFTMAX-masked-float32", File(tensors, steps, [0], [3])
    tensors = [plain("x", (1, 6, 5, 2), "float32"), plain("around", (4, 2), "int32", [[0, 0], [1, 1], [1, 0], [0, 0]])]
    tensors += [plain("least", (1,), "float32", [-np.inf]), plain("padded", (1, 8, 6, 2), "float32")]
    tensors += [plain("y", (1, 3, 2, 2), "float32")]
    pool = {"FilterHeight": 3, "FilterWidth": 3, "StrideH": 2, "StrideW": 2, "Padding": 1}
    steps = [O("PADV2", [0, 1, 2], [3], "PadV2Options"), O("MAX_POOL_2D", [3], [4], "Pool2DOptions", pool)]
    yield "MAX_POOL_2D-padded-float32", File(tensors, steps, [0], [4])


def _narrow() -> Iterator[tuple[str, File]]:
    """Weights of a float layer, in few bits or in blocks, as younger converters write them."""
    x, out = plain("x", (1, 8), "float32"), plain("y", (1, 4), "float32")
    scales = T("scales", (4, 2), "float16", (), (), data=RNG.uniform(0.1, 0.2, (4, 2)).astype(np.float16))
    operator = O("FULLY_CONNECTED", [0, 1, -1], [3], "FullyConnectedOptions", younger=True)
    for name, bits, blocks in (("2bits", 2, None), ("blocks", 4, (2, 4))):
        data = RNG.integers(0, 256, 4 * bits).astype(np.uint8)
        w = T("w", (4, 8), f"int{bits}", () if blocks else (0.2,), () if blocks else (0,), data=data, blocks=blocks)
        yield f"FULLY_CONNECTED-{name}-float32", File([x, w, scales, out], [operator], [0], [3])


def _lookups() -> Iterator[tuple[str, File]]:
    for dtype in ("int8", "int16", "float32", "int32"):
        version = {"int16": 4, "int8": 2}.get(dtype, 1)
        table, rows = constant("table", (7, 4), dtype), plain("rows", (1, 5), "int32")
        out = plain("out", (1, 5, 4), dtype)
        yield f"GATHER-table-{dtype}", file("GATHER", [table, rows], out, "GatherOptions", version, Axis=0)
        x, places = plain("x", (1, 4, 5), dtype), plain("places", (3,), "int32", [4, 0, 4])
        out = plain("out", (1, 4, 3), dtype)
        yield f"GATHER-places-{dtype}", file("GATHER", [x, places], out, "GatherOptions", version, Axis=2)
        tables, rows = plain("x", (1, 2, 3, 4), dtype), np.array([[[2, 0], [1, 1]]])
        for axis, shape in ((2, (1, 2, 2, 4)), (3, (1, 2, 3, 2))):
            at, values = plain("at", (1, 2, 2), "int32", rows), {"Axis": axis, "BatchDims": 2}
            out = plain("out", shape, dtype)
            yield f"GATHER-rows-{axis}-{dtype}", file("GATHER", [tables, at], out, "GatherOptions", version, **values)
        chosen = plain("chosen", (2, 3), "int32", [[0, 1, 2], [0, 3, 0]])
        out = plain("out", (2,), dtype)
        yield f"GATHER_ND-{dtype}", file("GATHER_ND", [x, chosen], out, version={"int16": 3}.get(dtype, 1))
    rows = plain("rows", (1, 2), "int32")
    x, out = plain("x", (1, 4, 5), "float32"), plain("out", (1, 1, 2, 5), "float32")
    yield "GATHER-both", file("GATHER", [x, rows], out, "GatherOptions", Axis=1)
    for kind in ("ARG_MAX", "ARG_MIN"):
        for dtype in ("int8", "float32", "int32"):
            axis = plain("axis", (), "int32", np.int32(2))
            out = plain("out", (1, 4), "int32")
            options = "ArgMaxOptions" if kind == "ARG_MAX" else "ArgMinOptions"
            yield f"{kind}-{dtype}", file(kind, [plain("x", (1, 4, 5), dtype), axis], out, options, 2, OutputType=2)


def _comparisons() -> Iterator[tuple[str, File]]:
    kinds = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
    for kind in kinds:
        for dtype in ("int8", "float32", "int32"):
            x, y = plain("x", SHAPE, dtype), plain("y", (1, 1, 3), dtype)
            y = T("y", (1, 1, 3), "int8", (0.23,), (-9,)) if dtype == "int8" else y
            yield f"{kind}-{dtype}", file(kind, [x, y], plain("out", SHAPE, "bool"), version=2)
    x, zero = plain("x", SHAPE, "int32"), plain("zero", (), "int32", np.int32(0))
    yield "NOT_EQUAL-zero", file("NOT_EQUAL", [x, zero], plain("out", SHAPE, "bool"))
    for kind in ("LOGICAL_AND", "LOGICAL_OR"):
        pair = [plain("x", SHAPE, "bool"), plain("y", (1, 1, 3), "bool")]
        yield kind, file(kind, pair, plain("out", SHAPE, "bool"))
    yield "LOGICAL_NOT", file("LOGICAL_NOT", [plain("x", SHAPE, "bool")], plain("out", SHAPE, "bool"))
    for dtype in ("int8", "int16", "float32", "int32"):
        condition, x = plain("condition", (1, 4, 1), "bool"), plain("x", SHAPE, dtype)
        sides = [condition, x, constant("other", (1, 1, 3), dtype)]
        yield f"SELECT_V2-{dtype}", file("SELECT_V2", sides, plain("out", SHAPE, dtype))
        both = [plain("condition", SHAPE, "bool"), x, plain("y", SHAPE, dtype)]
        yield f"SELECT-{dtype}", file("SELECT", both, plain("out", SHAPE, dtype))


def _whole_numbers() -> Iterator[tuple[str, File]]:
    for kind, options, version in (
        ("ADD", "AddOptions", 1), ("SUB", "SubOptions", 1), ("MUL", "MulOptions", 1), ("DIV", "DivOptions", 1),
        ("MAXIMUM", "NONE", 1), ("MINIMUM", "NONE", 1), ("FLOOR_DIV", "NONE", 2), ("FLOOR_MOD", "NONE", 1),
    ):  # fmt: skip
        pair = [plain("x", SHAPE, "int32"), plain("y", (3,), "int32", [3, -2, 7])]
        yield f"{kind}-int32", file(kind, pair, plain("out", SHAPE, "int32"), options, version)
    for source, out in (("float32", "int32"), ("int32", "float32"), ("bool", "float32"), ("bool", "int32")):
        yield f"CAST-{source}-{out}", file("CAST", [plain("x", SHAPE, source)], plain("out", SHAPE, out))
    for source in ("float32", "int32"):
        yield f"CAST-{source}-bool", file("CAST", [plain("x", SHAPE, source)], plain("out", SHAPE, "bool"))
    x, to = plain("x", SHAPE, "int32"), plain("to", (2,), "int32", [1, 12])
    yield "RESHAPE-int32", file("RESHAPE", [x, to], plain("out", (1, 12), "int32"))


def _products() -> Iterator[tuple[str, File]]:
    for dtype in ("int8", "int16", "float32"):
        scales = {"int8": ((0.02, 5), (0.03, -9), (0.01, 2)), "int16": ((0.001, 0), (0.002, 0), (0.004, 0))}
        forms = scales.get(dtype, ((0.1, 0),) * 3)
        for index, (left, right, out, x, y) in enumerate((
            ((1, 2, 3, 5), (1, 2, 5, 4), (1, 2, 3, 4), False, False),
            ((1, 2, 5, 3), (1, 2, 5, 4), (1, 2, 3, 4), True, False),
            ((1, 3, 5), (1, 4, 5), (1, 3, 4), False, True),
            ((1, 2, 3, 5), (1, 1, 5, 4), (1, 2, 3, 4), False, False),
        )):  # fmt: skip
            shapes = zip(("x", "y", "out"), (left, right, out), forms, strict=True)
            a, b, c = (T(name, shape, dtype, (s,), (z,)) for name, shape, (s, z) in shapes)
            version = {"int16": 3, "int8": 2}.get(dtype, 1)
            options = {"AdjX": x, "AdjY": y}
            made = file("BATCH_MATMUL", [a, b], c, "BatchMatMulOptions", version, **options)
            yield f"BATCH_MATMUL-{index}-{dtype}", made
            if index != 2:
                b = replace(b, data=RNG.normal(0, 20, right).astype(dtype))
                made = file("BATCH_MATMUL", [a, b], c, "BatchMatMulOptions", version, **options)
                yield f"BATCH_MATMUL-held-{index}-{dtype}", made
    between = zip(("x", "y", "out"), ((1, 3, 5), (1, 5, 4), (1, 3, 4)), (8.256e-5, 8.256e-5, 2.233449e-4), strict=True)
    a, b, c = (T(name, shape, "int16", (scale,), (0,)) for name, shape, scale in between)
    yield "BATCH_MATMUL-between-int16", file("BATCH_MATMUL", [a, b], c, "BatchMatMulOptions", 3)


def _resizes() -> Iterator[tuple[str, File]]:
    """To sizes that are no multiples, in all modes."""
    for kind, version in (("RESIZE_BILINEAR", 3), ("RESIZE_NEAREST_NEIGHBOR", 3)):
        options = "ResizeBilinearOptions" if version == 3 and "BI" in kind else "ResizeNearestNeighborOptions"
        for size in ((7, 9), (3, 2), (1, 13), (6, 4)):
            for corners, centres in ((False, False), (True, False), (False, True)):
                values = {"AlignCorners": corners, "HalfPixelCenters": centres}
                for dtype in ("int8", "float32"):
                    to, out = plain("to", (2,), "int32", size), plain("out", (1, *size, 3), dtype)
                    name = f"{kind}-{size[0]}x{size[1]}-{corners:d}{centres:d}-{dtype}"
                    yield name, file(kind, [plain("x", (1, 5, 4, 3), dtype), to], out, options, version, **values)


def _composed() -> Iterator[tuple[str, File]]:
    for dtype in ("int8", "float32"):
        shapes = ("DEPTH_TO_SPACE", (1, 2, 3, 8), (1, 4, 6, 2)), ("SPACE_TO_DEPTH", (1, 4, 6, 3), (1, 2, 3, 12))
        for kind, shape, made in shapes:
            options = "DepthToSpaceOptions" if kind.startswith("D") else "SpaceToDepthOptions"
            x, out = plain("x", shape, dtype), plain("out", made, dtype)
            yield f"{kind}-{dtype}", file(kind, [x], out, options, 1, BlockSize=2)
    floats = [plain(name, SHAPE, "float32") for name in ("x", "y", "z")]
    yield "ADD_N-float32", file("ADD_N", floats, plain("out", SHAPE, "float32"))
    for shape in ((1, 2, 3, 5), (1, 100), (1, 1), (1, 4, 37)):
        x, out = plain("x", shape, "int8"), T("out", shape, "int8", (2.0**-7,), (0,))
        yield f"L2_NORMALIZATION-{shape[-1]}-int8", file("L2_NORMALIZATION", [x], out)
    yield "L2_NORMALIZATION-float32", file("L2_NORMALIZATION", floats[:1], plain("out", SHAPE, "float32"))
    pair = [plain("x", SHAPE, "int32"), plain("y", SHAPE, "int32")]
    yield "BITWISE_XOR-int32", file("BITWISE_XOR", pair, plain("out", SHAPE, "int32"))


CHOOSING = dict(seeds())
