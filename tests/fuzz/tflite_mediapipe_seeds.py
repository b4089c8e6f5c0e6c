"""MediaPipe's custom operators: crops around landmarks, and transposed convolutions with a bias."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from flatbuffers import flexbuffers  # type: ignore[import-untyped]

from tests.frontend.tflite_files import File, O, T

ROWS, COLUMNS, CHANNELS = 6, 5, 3
LANDMARKS = ROWS * COLUMNS
OPTIONS: dict[str, Any] = {
    "left_rotation_idx": 4,
    "right_rotation_idx": 17,
    "output_height": 4,
    "output_width": 3,
    "scale_x": 1.5,
    "scale_y": 1.25,
    "subset_idxs": [4, 9, 17, 22, 3],
    "target_rotation_radians": 0.5,
}


def settings(**values: Any) -> bytes:
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in values.items():
            if isinstance(value, list):
                builder.TypedVectorFromElements(key, value)
            else:
                {int: builder.Int, float: builder.Float}[type(value)](key, value)
    return bytes(builder.Finish())


def custom(kind: str, inputs: list[int], output: int, options: bytes = b"", version: int = 2) -> O:
    return O("CUSTOM", inputs, [output], custom=kind, custom_options=options, version=version)


def cropped(depth: int = 2, **changes: Any) -> File:
    """An image, whose pixels are landmarks, too; the crop around some, and all of them moved by the same matrix."""
    options = {**OPTIONS, **changes}
    sides = {key: options[key] for key in ("output_height", "output_width")}
    plain = [
        ("x", (1, ROWS, COLUMNS, CHANNELS)), ("landmarks", (1, LANDMARKS, 3)), ("places", (1, LANDMARKS, 3)),
        ("matrix", (1, 4, 4)), ("crop", (1, *sides.values(), CHANNELS)), ("some", (1, LANDMARKS, depth)),
        ("moved", (1, LANDMARKS, depth)),
    ]  # fmt: skip
    tensors = [T(name, shape, "float32", ()) for name, shape in plain]
    tensors += [T("times", (3,), "float32", (), data=np.array([COLUMNS - 1, ROWS - 1, 1], np.float32))]
    tensors += [T(name, (3,), "int32", (), data=np.array(data, np.int32)) for name, data in _slices(depth)]
    operators = [
        O("RESHAPE", [0, 11], [1]), O("MUL", [1, 7], [2], "MulOptions"),
        custom("Landmarks2TransformMatrix", [2], 3, settings(**options)),
        custom("TransformTensorBilinear", [0, 3], 4, settings(**sides)),
        O("STRIDED_SLICE", [2, 8, 9, 10], [5], "StridedSliceOptions"),
        custom("TransformLandmarks", [5, 3], 6),
    ]  # fmt: skip
    return File(tensors, operators, [0], [3, 4, 6])


def _slices(depth: int) -> list[tuple[str, list[int]]]:
    return [("begin", [0, 0, 0]), ("end", [1, LANDMARKS, depth]), ("step", [1, 1, 1]), ("to", [1, LANDMARKS, 3])]


def enlarged(padding: int = 1, strides: tuple[int, int] = (2, 3), kernel: tuple[int, int] = (4, 3)) -> File:
    """A transposed convolution, rows and columns first."""
    chance = np.random.default_rng(8)
    weights = chance.normal(size=(2, *kernel, CHANNELS)).astype(np.float32)
    sizes = (ROWS, COLUMNS)
    padded = [
        max(0, k - (n - 1) % s - 1) if padding == 1 else 0 for n, k, s in zip(sizes, kernel, strides, strict=True)
    ]
    sides = [s * (n - 1) + k - p for n, k, s, p in zip(sizes, kernel, strides, padded, strict=True)]
    tensors = [
        T("x", (1, *sizes, CHANNELS), "float32", ()), T("w", weights.shape, "float32", (), data=weights),
        T("b", (2,), "float32", (), data=np.array([0.5, -1], np.float32)), T("y", (1, *sides, 2), "float32", ()),
    ]  # fmt: skip
    content = struct.pack("<3i", padding, strides[1], strides[0])
    return File(tensors, [custom("Convolution2DTransposeBias", [0, 1, 2], 3, content, version=1)], [0], [3])


SEEDS = {"MEDIAPIPE-crop-float32": cropped(), "MEDIAPIPE-enlarged-float32": enlarged()}
