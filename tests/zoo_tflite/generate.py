"""Makes the TFLite zoo: `python -m tests.zoo_tflite.generate DIRECTORY`.

It runs in its own process because it loads TensorFlow.

For every case it writes `<case>.tflite` and `<case>.npz`: random full-range inputs (`x`, or `x0`, `x1`
… for several, samples along a new first axis), the outputs of TFLite's reference kernels (`y` …) and
every tensor in between (`t<index>`), so that a test can check one operator at a time.
"""

from __future__ import annotations

import contextlib
import json
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nnbuild.numeric.multiplier import SMALLEST_SCALE
from tests.zoo_tflite import models, recurrent, surgery
from tests.zoo_tflite.quantization import set_quantization

SEED = 20
SAMPLES = 4

# How many models of each kind: int8, int16 activations with 8-bit weights, float32. In 16 bits the
# converter refuses PRELU and HARD_SWISH, the interpreter SQUARED_DIFFERENCE and so layer normalisation.
COUNTS: dict[str, tuple[int, int, int]] = {
    "conv2d": (30, 20, 3), "conv1d": (5, 4, 2), "depthwise": (20, 14, 2), "transpose_conv": (14, 8, 2),
    "dense": (24, 16, 2), "dense_rows": (6, 6, 0), "average_pool": (10, 6, 1), "max_pool": (6, 4, 1),
    "add": (14, 10, 1), "subtract": (12, 8, 1), "multiply": (12, 8, 1), "maximum": (5, 3, 1), "minimum": (5, 3, 1),
    "squared_difference": (5, 0, 0), "concatenate": (8, 4, 1), "fixed_scales": (6, 3, 0), "mean": (12, 8, 1),
    "reduce_max": (2, 1, 1), "softmax": (12, 10, 1), "logistic": (8, 14, 1), "tanh": (8, 14, 1), "relu": (5, 3, 1),
    "relu6": (5, 3, 1), "relu_n1_to_1": (3, 0, 1), "leaky_relu": (12, 8, 1), "hard_swish": (10, 0, 1),
    "prelu": (8, 0, 1), "pad": (4, 3, 1), "mirror_pad": (2, 1, 0), "crop": (3, 2, 1),
    "nearest": (3, 2, 1), "bilinear": (6, 3, 1), "reshape": (2, 1, 1), "transpose": (2, 1, 1), "split": (2, 1, 0),
    "rsqrt": (4, 0, 0), "layer_norm": (4, 0, 1),
    "small_cnn": (5, 4, 1), "small_mix": (4, 3, 1), "gru_like": (4, 3, 1),
}  # fmt: skip


@dataclass(frozen=True)
class Converted:
    name: str
    kind: str
    mode: str
    model: bytes


def ranges(rng: np.random.Generator) -> tuple[float, float]:
    """A calibration range: mostly on both sides of zero, sometimes on one side only."""
    low, high = -float(rng.uniform(0.05, 5)), float(rng.uniform(0.05, 5))
    side = rng.random()
    if side < 0.12:
        return 0.0, high
    return (low, 0.0) if side < 0.2 else (low, high)


def convert(tf: Any, function: models.Function, mode: str, rng: np.random.Generator) -> bytes:
    specs = [tf.TensorSpec(shape, tf.float32) for shape in function.shapes]
    concrete = tf.function(function.call).get_concrete_function(*specs)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete])
    bounds = [ranges(rng) for _ in function.shapes]

    def calibration() -> Iterator[list[np.ndarray[Any, Any]]]:
        for _ in range(6):
            yield [rng.uniform(*b, s).astype(np.float32) for b, s in zip(bounds, function.shapes, strict=True)]

    set_quantization(tf, converter, mode, calibration)
    return bytes(converter.convert())


def full_range(rng: np.random.Generator, shape: Any, dtype: Any, sample: int) -> np.ndarray[Any, Any]:
    if np.dtype(dtype).kind == "f":
        return rng.normal(size=shape).astype(dtype) * 2
    info = np.iinfo(dtype)
    if sample == 1:  # the corners, where saturation and the largest sums are
        return rng.choice(np.array([info.min, info.max, 0, info.min + 1], dtype), size=shape)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def run(case: Converted, rng: np.random.Generator) -> dict[str, np.ndarray[Any, Any]]:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=case.model,
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
    )
    interpreter.allocate_tensors()
    check_scales(interpreter)
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    produced = sorted({int(i) for op in interpreter._get_ops_details() for i in op["outputs"] if i >= 0})
    arrays: dict[str, list[np.ndarray[Any, Any]]] = {}
    for sample in range(SAMPLES):
        interpreter.reset_all_variables()
        for i, detail in enumerate(inputs):
            value = full_range(rng, detail["shape"], detail["dtype"], sample)
            interpreter.set_tensor(detail["index"], value)
            arrays.setdefault("x" if len(inputs) == 1 else f"x{i}", []).append(value)
        interpreter.invoke()
        for i, detail in enumerate(outputs):
            key = "y" if len(outputs) == 1 else f"y{i}"
            arrays.setdefault(key, []).append(interpreter.get_tensor(detail["index"]))
        for index in produced:
            with contextlib.suppress(ValueError):
                arrays.setdefault(f"t{index}", []).append(interpreter.get_tensor(index))
    return {key: np.stack(values) for key, values in arrays.items() if values}


def check_scales(interpreter: Any) -> None:
    for detail in interpreter.get_tensor_details():
        scales = detail["quantization_parameters"]["scales"]
        if detail["dtype"] in (np.int8, np.int16) and len(scales) == 1 and scales[0] < SMALLEST_SCALE:
            raise ValueError(f"the scale {scales[0]} of tensor {detail['name']} is too small")


def conversions(tf: Any) -> Iterator[Converted]:
    for kind, counts in COUNTS.items():
        for mode, count in zip(("int8", "int16", "float"), counts, strict=True):
            for number in range(count):
                name = f"{kind}_{mode}_{number:02d}"
                rng = np.random.default_rng([SEED, zlib.crc32(name.encode())])
                function = getattr(models, kind)(tf, rng)
                yield Converted(name, kind, mode, convert(tf, function, mode, rng))


def save(folder: Path, case: Converted) -> dict[str, Any]:
    rng = np.random.default_rng([SEED + 1, zlib.crc32(case.name.encode())])
    arrays = run(case, rng)
    (folder / f"{case.name}.tflite").write_bytes(case.model)
    np.savez(folder / f"{case.name}.npz", **arrays)
    return {"name": case.name, "kind": case.kind, "mode": case.mode, "inputs": SAMPLES}


def main(folder: Path) -> None:
    import tensorflow as tf

    folder.mkdir(parents=True, exist_ok=True)
    index, refused = [], []
    for case in conversions(tf):
        variants = [case, *(Converted(n, case.kind, case.mode, m) for n, m in surgery.variants(case, SEED))]
        for variant in variants:
            try:
                index.append(save(folder, variant))
            except (RuntimeError, ValueError) as error:
                refused.append({"name": variant.name, "why": str(error)[:300]})
    for name, mode, model in recurrent.conversions(tf, SEED):
        index.append(save(folder, Converted(name, name.split("_")[0], mode, model)))
    (folder / "index.json").write_text(json.dumps({"cases": index, "refused": refused}, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
