"""Whole networks as people bring them: saved by Keras 3 and by the default call of TFLite's converter.

    python examples.py --out DIR

Of each model NAME.keras, NAME_float.tflite and NAME_int8.tflite, and beside each an .npz of the same name with samples
x (or x0, x1, in the file's order) and the outputs y of Keras or of TFLite's reference kernels. NAME_calibration.npz
holds all the samples.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter, OpResolverType

SAMPLES = 48
CHECKED = 8
m = keras.layers


def encoder() -> Any:
    """Two layers, 64 wide, 4 heads."""
    x = first = keras.Input((32, 64))
    for _ in range(2):
        x = m.LayerNormalization()(x + m.MultiHeadAttention(4, 16)(x, x))
        x = m.LayerNormalization()(x + m.Dense(64)(m.Dense(128, activation="gelu")(x)))
    return keras.Model(first, m.Dense(10)(m.GlobalAveragePooling1D()(x)))


def text() -> Any:
    """Tokens to one of four classes."""
    x = first = keras.Input((12,), dtype="int32")
    x = m.GRU(24, unroll=True)(m.Embedding(100, 16)(x))
    return keras.Model(first, m.Dense(4)(m.Dense(16, activation="relu")(x)))


def convolved(x: Any, filters: int, strides: int = 1) -> Any:
    x = m.Conv2D(filters, 3, strides, padding="same", use_bias=False)(x)
    return m.ReLU()(m.BatchNormalization()(x))


def u_net() -> Any:
    x = first = keras.Input((32, 32, 3))
    kept = []
    for filters in (8, 12):
        x = convolved(x, filters)
        kept.append(x)
        x = m.MaxPooling2D()(x)
    x = convolved(x, 16)
    x = m.Concatenate()([m.Conv2DTranspose(12, 2, strides=2, padding="same")(x), kept[1]])
    x = m.Concatenate()([m.UpSampling2D(interpolation="bilinear")(convolved(x, 12)), kept[0]])
    return keras.Model(first, m.Conv2D(3, 1, activation="softmax")(convolved(x, 8)))


def squeeze_excite() -> Any:
    x = first = keras.Input((24, 24, 3))
    x = convolved(x, 16, 2)
    for _ in range(2):
        y = convolved(x, 16)
        gate = m.Conv2D(4, 1, activation="silu")(m.GlobalAveragePooling2D(keepdims=True)(y))
        x = m.Add()([x, m.Multiply()([y, m.Conv2D(16, 1, activation="sigmoid")(gate)])])
    return keras.Model(first, m.Dense(6)(m.GlobalAveragePooling2D()(x)))


def prepared() -> Any:
    """A camera's bytes: normalized, resized, and augmented while it was trained."""
    x = first = keras.Input((30, 40, 3))
    x = m.Normalization(mean=[0.1, -0.2, 0.05], variance=[1.2, 0.8, 1.0])(x)
    x = m.RandomFlip("horizontal")(m.Resizing(24, 32)(x))
    x = convolved(convolved(x, 8, 2), 16, 2)
    return keras.Model(first, m.Dense(5)(m.GlobalMaxPooling2D()(x)))


def towers() -> Any:
    """How alike two things are: the cosine of what each tower makes of its own."""
    left, right = keras.Input((20,)), keras.Input((30,))
    ends = [m.Dense(16)(m.Dense(32, activation="relu")(x)) for x in (left, right)]
    return keras.Model([left, right], m.Dot(1, normalize=True)(ends))


def conv_lstm() -> Any:
    x = first = keras.Input((5, 12, 12, 2))
    x = m.ConvLSTM2D(8, 3, padding="same", unroll=True)(x)
    return keras.Model(first, m.Dense(4)(m.GlobalAveragePooling2D()(x)))


MODELS: dict[str, Callable[[], Any]] = {
    "encoder": encoder,
    "text": text,
    "u_net": u_net,
    "squeeze_excite": squeeze_excite,
    "prepared": prepared,
    "towers": towers,
    "conv_lstm": conv_lstm,
}


SUMMED = ("towers",)
"""Their integers are summed by SUM, whose reference kernel reads beyond its data; the usual kernels are asked."""


def drawn(tensor: Any, chance: np.random.Generator) -> np.ndarray:
    shape = (SAMPLES, *tensor.shape[1:])
    if tensor.dtype == "int32":
        return chance.integers(0, 100, shape).astype(np.int32)
    return chance.normal(size=shape).astype(np.float32)


def numbered(arrays: list[np.ndarray]) -> dict[str, np.ndarray]:
    return {"x" if len(arrays) == 1 else f"x{i}": array for i, array in enumerate(arrays)}


def converted(model: Any, given: list[np.ndarray], integers: bool) -> bytes:
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if not integers:
        return bytes(converter.convert())

    def samples() -> Iterator[list[np.ndarray]]:
        yield from ([array[i : i + 1] for array in given[::-1]] for i in range(SAMPLES))  # in the file's order

    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = samples
    converter.inference_output_type = tf.int8
    if all(array.dtype == np.float32 for array in given):
        converter.inference_input_type = tf.int8
    return bytes(converter.convert())


def reference(content: bytes, given: list[np.ndarray], summed: bool) -> dict[str, np.ndarray]:
    """The samples, rounded as the file takes them, and what the reference kernels make of them."""
    kernels = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if summed else OpResolverType.BUILTIN_REF
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    ends = interpreter.get_input_details()
    by_shape = {array.shape[1:]: array for array in given}
    taken = [as_input(by_shape[tuple(end["shape"][1:])], end)[:CHECKED] for end in ends]
    rows = []
    for i in range(CHECKED):
        for array, given_end in zip(taken, ends, strict=True):
            interpreter.set_tensor(given_end["index"], array[i : i + 1])
        interpreter.invoke()
        (end,) = interpreter.get_output_details()
        rows.append(in_units(interpreter.get_tensor(end["index"])[0], end))
    shown = [in_units(array, end) for array, end in zip(taken, ends, strict=True)]
    return {**numbered(shown), "y": np.stack(rows)}


def in_units(values: np.ndarray, end: dict[str, Any]) -> np.ndarray:
    """The model's own units, exactly."""
    if end["dtype"] != np.int8:
        return values
    scale, zero = end["quantization"]
    return (values.astype(np.float32) - np.float32(zero)) * np.float32(scale)


def as_input(values: np.ndarray, end: dict[str, Any]) -> np.ndarray:
    if end["dtype"] != np.int8:
        return values
    scale, zero = end["quantization"]
    return np.clip(np.round(values / np.float32(scale)) + zero, -128, 127).astype(np.int8)


def write(name: str, out: Path) -> None:
    keras.utils.set_random_seed(1)
    model, chance = MODELS[name](), np.random.default_rng(1)
    given = [drawn(tensor, chance) for tensor in model.inputs]
    wanted = chance.normal(size=(SAMPLES, *model.output.shape[1:])).astype(np.float32)
    model.compile("adam", "mse")
    model.fit(given, wanted, epochs=2, batch_size=16, verbose=0)
    model.save(out / f"{name}.keras")
    some = [array[:CHECKED] for array in given]
    y = model(some if len(some) > 1 else some[0], training=False).numpy()
    np.savez(out / f"{name}.npz", **numbered([array[:CHECKED] for array in given]), y=y)
    np.savez(out / f"{name}_calibration.npz", **numbered(given))
    for form in ("float", "int8"):
        content = converted(model, given, form == "int8")
        (out / f"{name}_{form}.tflite").write_bytes(content)
        np.savez(out / f"{name}_{form}.npz", **reference(content, given, form == "int8" and name in SUMMED))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    arguments = parser.parse_args()
    for name in arguments.models:
        write(name, arguments.out)


if __name__ == "__main__":
    main()
