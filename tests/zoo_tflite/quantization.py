"""How a converter is told to quantise."""

from __future__ import annotations

from typing import Any


def set_quantization(tf: Any, converter: Any, mode: str, calibration: Any) -> None:
    if mode == "float":
        return
    sets = tf.lite.OpsSet
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = calibration
    integer = sets.TFLITE_BUILTINS_INT8
    if mode == "int16":
        integer = sets.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
    converter.target_spec.supported_ops = [integer]
    converter.inference_input_type = converter.inference_output_type = tf.int8 if mode == "int8" else tf.int16
