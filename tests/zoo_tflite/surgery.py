"""Edits the scales and zero points of a converted model, to reach what a calibration never produces.

A converter chooses scales that fit the data, so multipliers above one, channels whose multiplier
vanishes and zero points at the ends of the range hardly occur. TFLite runs any of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import tflite

WEIGHTED = {"conv2d", "conv1d", "depthwise", "transpose_conv", "dense", "dense_rows"}
RESCALING = {"add", "subtract", "multiply", "mean", "leaky_relu", "prelu", "hard_swish", "relu", "relu6"}
INPUT_ONLY = {"softmax", "logistic", "tanh"}
SHARE = 0.6


class Editor:
    """Views into a model's quantization vectors; writing to them changes the bytes."""

    def __init__(self, model: bytes) -> None:
        self.data = bytearray(model)
        self.graph = tflite.Model.GetRootAs(self.data, 0).Subgraphs(0)

    def scale(self, tensor: int) -> np.ndarray[Any, Any]:
        return np.asarray(self.graph.Tensors(tensor).Quantization().ScaleAsNumpy())

    def zero_point(self, tensor: int) -> np.ndarray[Any, Any]:
        return np.asarray(self.graph.Tensors(tensor).Quantization().ZeroPointAsNumpy())

    def is_int8(self, tensor: int) -> bool:
        return int(self.graph.Tensors(tensor).Type()) == tflite.TensorType.INT8


def _stretch(editor: Editor, tensor: int, rng: np.random.Generator, low: float, high: float) -> None:
    editor.scale(tensor)[:] *= np.float32(2.0 ** rng.uniform(low, high))


def _move_zero_point(editor: Editor, tensor: int, rng: np.random.Generator) -> None:
    if editor.is_int8(tensor):
        editor.zero_point(tensor)[:] = rng.choice([-128, 127, int(rng.integers(-128, 128))])


def variants(case: Any, seed: int) -> Iterator[tuple[str, bytes]]:
    """Edited copies of a model of one operator: one with odd scales, one whose scales are powers of two."""
    rng = np.random.default_rng([seed, 7, zlib.crc32(case.name.encode())])
    editable = case.kind in WEIGHTED | RESCALING | INPUT_ONLY and case.mode != "float"
    if not editable or Editor(case.model).graph.OperatorsLength() != 1:
        return
    if rng.random() < SHARE:
        yield f"{case.name}_edited", _edited(case, rng)
    if rng.random() < SHARE and case.kind not in INPUT_ONLY:
        yield f"{case.name}_halves", _halves(case)


def _edited(case: Any, rng: np.random.Generator) -> bytes:
    editor = Editor(case.model)
    operator = editor.graph.Operators(0)
    inputs, output = [int(i) for i in operator.InputsAsNumpy()], int(operator.Outputs(0))
    if case.kind in WEIGHTED:
        _edit_weighted(editor, case.kind, inputs, output, rng)
    elif case.kind in RESCALING:
        _edit_rescaling(editor, inputs, output, rng)
    else:
        _edit_input(editor, inputs[0], rng)
    return bytes(editor.data)


def _halves(case: Any) -> bytes:
    """All scales powers of two: results then lie exactly on halves, where roundings differ."""
    editor = Editor(case.model)
    for tensor in range(editor.graph.TensorsLength()):
        quantization = editor.graph.Tensors(tensor).Quantization()
        if quantization is not None and quantization.ScaleLength():
            scale = editor.scale(tensor)
            scale[:] = np.exp2(np.floor(np.log2(scale))).astype(np.float32)
    return bytes(editor.data)


def _edit_weighted(editor: Editor, kind: str, inputs: list[int], output: int, rng: np.random.Generator) -> None:
    low = -10 if editor.is_int8(output) else -3
    _stretch(editor, output, rng, low, 2)
    _move_zero_point(editor, output, rng)
    weights = inputs[1]
    if kind == "transpose_conv":
        _move_zero_point(editor, inputs[2], rng)
    else:
        _move_zero_point(editor, inputs[0], rng)
        if editor.scale(weights).size > 1 and rng.random() < 0.5:  # a channel whose multiplier flushes to zero
            editor.scale(weights)[0] *= np.float32(2.0**-45)


def _edit_rescaling(editor: Editor, inputs: list[int], output: int, rng: np.random.Generator) -> None:
    for tensor in [*inputs, output]:
        quantization = editor.graph.Tensors(tensor).Quantization()
        if quantization is not None and quantization.ScaleLength() == 1:
            _stretch(editor, tensor, rng, -3, 3)
            _move_zero_point(editor, tensor, rng)


def _edit_input(editor: Editor, tensor: int, rng: np.random.Generator) -> None:
    if editor.is_int8(tensor):
        _stretch(editor, tensor, rng, -5, 4)
        _move_zero_point(editor, tensor, rng)
    elif rng.random() < 0.6:  # 16-bit tables treat powers of two apart, and what is near to one as one
        power, near = int(rng.choice([-10, -11, -12, -13])), float(rng.choice([1.0, 1.0003, 0.9997]))
        editor.scale(tensor)[:] = np.float32(2.0**power * near)
    else:
        _stretch(editor, tensor, rng, -6, 3)
