"""TFLite_Detection_PostProcess, with which TensorFlow's detectors end: their boxes are decoded, and the best kept."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

import numpy as np

from nnbuild.frontend.tflite.call import Call
from nnbuild.frontend.tflite.flex_options import flex_options
from nnbuild.frontend.tflite.records import CONVERT_AGAIN, Tensor
from nnbuild.model.graph import Shape
from nnbuild.ops.convert import Convert
from nnbuild.ops.detections import Detections

KIND = "CUSTOM TFLite_Detection_PostProcess"
MOST = 2**12
"""Detections, of a class and of all."""
EACH = 100
"""Of a class, where the file does not say."""
SCALES = ("y_scale", "x_scale", "h_scale", "w_scale")


def detections(call: Call) -> None:
    attributes = _attributes(call)
    inputs = [_floats(call, index) for index in (0, 1)]
    for name in inputs:
        call.expect(len(call.shape(name)) == 2, f"its input {name!r} has the shape {list(call.shape(name))}.")
    anchors = call.weights(2).astype(np.float32)
    (boxes, width), (_, classes) = map(call.shape, inputs)
    fits = anchors.shape == (boxes, 4) and width >= 4
    call.expect(fits, f"its anchors {list(anchors.shape)} do not match boxes of {[boxes, width]}.")
    fits = classes - 1 <= attributes.classes <= classes
    call.expect(fits, f"it has {attributes.classes} classes, and scores of {classes}.")
    held = {"anchors": call.constant(2, anchors)}
    likes = [replace(call.like(index), quant=None) for index in range(len(call.operator.outputs))]
    call.expect(
        len(likes) == 4 and {like.dtype for like in likes} == {"float32"}, "its outputs are not four of floats."
    )
    rows = attributes.most * attributes.labels
    wholes = ((1, rows, 4), (1, rows), (1, rows), (1,))
    outputs = [_sized(call, index, whole) for index, whole in enumerate(wholes)]
    call.operator = replace(call.operator, outputs=tuple(outputs))
    for index, made in enumerate(call.adds(attributes, inputs, likes, held)):
        call.reshaped(made, index, wholes[index])


def _sized(call: Call, index: int, whole: Shape) -> Tensor:
    """An output, whose shape the file leaves open or does not give."""
    out = call.output(index)
    call.expect(
        bool(out.open) or out.shape in ((), whole), f"its output {index} is {list(out.shape)}, not {list(whole)}."
    )
    return replace(out, shape=whole, open=())


def _attributes(call: Call) -> Detections:
    found = flex_options(call)

    def number(name: str, low: float, high: float, default: float | None = None) -> float:
        value = found.get(name, default)
        if value is None:
            raise call.error(f"its option {name!r} is missing.", CONVERT_AGAIN)
        call.expect(isfinite(value) and low <= value <= high, f"its option {name!r} is {value:g}.", CONVERT_AGAIN)
        return float(np.float32(value))

    classes, most = int(number("num_classes", 1, 2**16)), int(number("max_detections", 1, MOST))
    regular = bool(number("use_regular_nms", 0, 1, 0))
    return Detections(
        classes,
        most,
        1 if regular else int(number("max_classes_per_detection", 1, classes)),
        int(number("detections_per_class", 1, MOST, EACH)) if regular else 0,
        number("nms_score_threshold", -1e30, 1e30),
        number("nms_iou_threshold", 0, 1),
        tuple(number(name, 1e-6, 1e6) for name in SCALES),
    )


def _floats(call: Call, index: int) -> str:
    name = call.value(index)
    tensor = call.tensor(name)
    plain = replace(tensor, dtype="float32", quant=None)
    return name if tensor.quant is None else call.add(Convert(), [name], like=plain)
