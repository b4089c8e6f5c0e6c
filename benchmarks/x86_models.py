"""The models of benchmarks/x86.py, and their forms for the peers: .h5, SavedModel, .tflite and .onnx.

TensorFlow makes them, in a process of its own, once; they stay in build/x86.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "models"
WORK = ROOT / "build" / "x86"


@dataclass(frozen=True)
class Model:
    """`path` is the .h5; `integer` an int8 .tflite that is there already."""

    name: str
    path: Path
    integer: Path | None = None

    @property
    def folder(self) -> Path:
        return WORK / self.name

    @property
    def saved(self) -> Path:
        return self.folder / "saved"

    def tflite(self, form: str) -> Path:
        return self.integer if form == "int8" and self.integer else self.folder / f"{form}.tflite"


MADE = ("lstm32", "small_cnn", "lenet5", "autoencoder", "mobilenet_96", "mobilenet_224")
STANDARD = ("lstm32", "small_cnn", "lenet5", "autoencoder", "kws", "resnet8", "mobilenet_96", "mobilenet_224")


def standard() -> list[Model]:
    found = {name: Model(name, WORK / name / f"{name}.h5") for name in MADE}
    found["kws"] = Model("kws", SHARED / "kws_ref_model.h5", SHARED / "kws_ref_model.tflite")
    quantized = SHARED / "pretrainedResnet_quant.tflite"
    found["resnet8"] = Model("resnet8", SHARED / "pretrainedResnet.h5", quantized)
    return [found[name] for name in STANDARD]


def prepare(model: Model) -> str | None:
    """Makes what is missing; a reason when something cannot be made."""
    wanted = [model.path, model.saved, model.tflite("float")]
    wanted += [] if model.name == "lstm32" else [model.tflite("int8")]
    if all(path.exists() for path in wanted):
        return None
    if model.name not in MADE and not model.path.exists():
        return f"{model.path} is not there"
    model.folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(Path(__file__)), model.name, str(model.path)]
    done = subprocess.run(command, capture_output=True, text=True)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["failed"])[-1]


def main(name: str, path: Path) -> None:
    """In the process of its own."""
    import tensorflow as tf  # type: ignore[import-untyped]

    tf.keras.utils.set_random_seed(1)
    model = Model(name, path, next((m.integer for m in standard() if m.name == name), None))
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        build(tf, name).save(path)
    keras = loaded(tf, path)
    module = step_module(tf, keras) if name == "lstm32" else frozen_module(tf, keras)
    tf.saved_model.save(module, str(model.saved), signatures=module.call)
    model.tflite("float").write_bytes(converter(tf, model, keras).convert())
    if name != "lstm32" and not model.tflite("int8").exists():
        model.tflite("int8").write_bytes(integer_converter(tf, model, keras).convert())


def loaded(tf, path: Path):  # type: ignore[no-untyped-def]
    """By Keras 3; older files, which it cannot read, by the Keras that wrote them."""
    try:
        return tf.keras.models.load_model(path, compile=False)
    except Exception:
        import tf_keras  # type: ignore[import-untyped]

        return tf_keras.models.load_model(path, compile=False)


def build(tf, name: str):  # type: ignore[no-untyped-def]
    layers, sequential = tf.keras.layers, tf.keras.Sequential

    def conv(filters: int, size: int, padding: str = "same"):  # type: ignore[no-untyped-def]
        return layers.Conv2D(filters, size, padding=padding, activation="relu")

    if name == "lstm32":
        given = layers.Input(batch_shape=(1, 1, 8))
        result = layers.Dense(5, activation="softmax")(layers.LSTM(32, stateful=True)(given))
        return tf.keras.Model(given, result)
    if name == "autoencoder":
        sizes = (128, 128, 128, 128, 8, 128, 128, 128, 128)
        inner = [layers.Dense(size, activation="relu") for size in sizes]
        return sequential([layers.Input((640,)), *inner, layers.Dense(640)])
    if name == "mobilenet_96":
        given = {"weights": None, "input_shape": (96, 96, 3), "alpha": 0.25, "classes": 2}
        return lively(tf.keras.applications.MobileNet(**given))
    if name == "mobilenet_224":
        return lively(tf.keras.applications.MobileNet(weights=None, input_shape=(224, 224, 3)))
    if name == "small_cnn":
        blocks = [part for filters in (4, 16, 32) for part in (conv(filters, 3), layers.MaxPooling2D(2))]
        last = [layers.Flatten(), layers.Dense(2, activation="softmax")]
        return sequential([layers.Input((36, 18, 1)), *blocks, *last])
    first = [conv(6, 5), layers.MaxPooling2D(2), conv(16, 5, "valid"), layers.MaxPooling2D(2), layers.Flatten()]
    dense = [layers.Dense(n, activation="relu") for n in (120, 84)]
    return sequential([layers.Input((28, 28, 1)), *first, *dense, layers.Dense(10, activation="softmax")])


def lively(keras):  # type: ignore[no-untyped-def]
    """Weights with which signals neither vanish nor grow on the way, as those of a trained network."""
    import numpy as np

    chance = np.random.default_rng(1)
    for variable in keras.weights:
        if variable.path.endswith("kernel"):
            shape = tuple(variable.shape)
            inputs = np.prod(shape[:2] if "_dw_" in variable.path else shape[:-1])
            variable.assign(chance.normal(scale=np.sqrt(2 / inputs), size=shape))
    return keras


def whole_module(tf, keras):  # type: ignore[no-untyped-def]
    class Whole(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.keras = keras

        @tf.function(input_signature=[tf.TensorSpec((1, *keras.input_shape[1:]), name="x")])
        def call(self, x):  # type: ignore[no-untyped-def]
            return {"y": self.keras(x, training=False)}

    return Whole()


def frozen(tf, keras):  # type: ignore[no-untyped-def]
    """The model as a function of one sample without variables, which not every tool finds."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    module = whole_module(tf, keras)
    return convert_variables_to_constants_v2(module.call.get_concrete_function())


def frozen_module(tf, keras):  # type: ignore[no-untyped-def]
    whole = frozen(tf, keras)

    class Frozen(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec((1, *keras.input_shape[1:]), name="x")])
        def call(self, x):  # type: ignore[no-untyped-def]
            return {"y": whole(x)[0]}

    return Frozen()


def step_module(tf, keras):  # type: ignore[no-untyped-def]
    """One step of the LSTM and the layer behind it, its states given and taken: what peers run for a stateful one."""
    weights = [tf.constant(value.numpy()) for value in keras.weights if "lstm" in value.path or "dense" in value.path]

    class Step(tf.Module):
        @tf.function(
            input_signature=[
                tf.TensorSpec((1, 8), name="x"),
                tf.TensorSpec((1, 32), name="h"),
                tf.TensorSpec((1, 32), name="c"),
            ]
        )
        def call(self, x, h, c):  # type: ignore[no-untyped-def]
            kernel, recurrent, bias, last, last_bias = weights[:5]
            let_in, forget, value, let_out = tf.split(x @ kernel + h @ recurrent + bias, 4, 1)
            cell = tf.sigmoid(forget) * c + tf.sigmoid(let_in) * tf.tanh(value)
            hidden = tf.sigmoid(let_out) * tf.tanh(cell)
            return {"y": tf.nn.softmax(hidden @ last + last_bias), "h_next": hidden, "c_next": cell}

    return Step()


def converter(tf, model: Model, keras):  # type: ignore[no-untyped-def]
    if model.name == "lstm32":
        return tf.lite.TFLiteConverter.from_saved_model(str(model.saved))
    return tf.lite.TFLiteConverter.from_concrete_functions([frozen(tf, keras)])


def integer_converter(tf, model: Model, keras):  # type: ignore[no-untyped-def]
    import numpy as np

    made = converter(tf, model, keras)
    chance = np.random.default_rng(0)
    shape = (1, *keras.input_shape[1:])
    made.optimizations = [tf.lite.Optimize.DEFAULT]
    made.representative_dataset = lambda: ([chance.random(shape, np.float32)] for _ in range(8))
    made.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    made.inference_input_type = made.inference_output_type = tf.int8
    return made


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
