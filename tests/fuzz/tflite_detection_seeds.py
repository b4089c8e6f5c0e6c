"""Detectors of TensorFlow, which end with TFLite_Detection_PostProcess."""

from __future__ import annotations

from typing import Any

import numpy as np
from flatbuffers import flexbuffers  # type: ignore[import-untyped]

from nnbuild.model.graph import Array
from tests.frontend.tflite_files import File, O, T

BOXES, CLASSES = 60, 5
OPTIONS = {
    "max_detections": 8,
    "max_classes_per_detection": 1,
    "num_classes": CLASSES,
    "nms_score_threshold": 0.3,
    "nms_iou_threshold": 0.5,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
}


def settings(**changes: Any) -> bytes:
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in {**OPTIONS, **changes}.items():
            {bool: builder.Bool, int: builder.Int, float: builder.Float}[type(value)](key, value)
    return bytes(builder.Finish())


def anchors() -> Array:
    chance = np.random.default_rng(5)
    return np.concatenate([chance.uniform(0, 1, (BOXES, 2)), chance.uniform(0.1, 0.5, (BOXES, 2))], 1).astype("f")


def detector(content: bytes, dtype: str = "float32", sized: bool = True, rows: int = 8) -> File:
    given = {"dtype": dtype, "scales": (0.05,), "zeros": (0,)} if dtype == "int8" else {"dtype": dtype, "scales": ()}
    shapes = [(1, rows, 4), (1, rows), (1, rows), (1,)] if sized else [()] * 4
    made = [T(f"found{i}", shape, "float32", ()) for i, shape in enumerate(shapes)]
    tensors = [T("boxes", (1, BOXES, 4), **given), T("scores", (1, BOXES, CLASSES + 1), **given)]
    tensors.append(T("anchors", (BOXES, 4), "float32", (), data=anchors()))
    last = O("CUSTOM", [0, 1, 2], [3, 4, 5, 6], custom="TFLite_Detection_PostProcess", custom_options=content)
    return File([*tensors, *made], [last], [0, 1], [3, 4, 5, 6])
