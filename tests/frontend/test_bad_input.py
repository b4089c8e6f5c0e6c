"""What a user reads about a file that cannot be used: every text is pinned here."""

from __future__ import annotations

import io
import json
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from nnbuild.base.errors import NnbuildError
from nnbuild.base.names import identifier
from nnbuild.frontend import load
from tests.frontend.keras_files import (
    called,
    dense,
    functional,
    h5_bytes,
    input_layer,
    keras_bytes,
    layer,
    random_arrays,
    sequential,
    small,
    zip_bytes,
)

TEXTS = tomllib.loads(Path(__file__).with_name("bad_input.toml").read_text())

IMAGE = input_layer("x", [8, 8, 3])
KERNEL = random_arrays((4, 3), (3,))


def only(*layers: Any, weights: Any = None, version: str = "2.15.0") -> bytes:
    return h5_bytes(sequential(*layers), weights or {}, version)


def edited(change: Callable[[h5py.File], None]) -> bytes:
    buffer = io.BytesIO(h5_bytes(*small()))
    with h5py.File(buffer, "r+") as file:
        change(file)
    return buffer.getvalue()


def replaced(make: Callable[[h5py.Group, str], Any]) -> bytes:
    """The small model with its kernel taken out and something else in its place."""

    def change(file: h5py.File) -> None:
        group = file["model_weights/dense/dense"]
        del group["weight_0:0"]
        make(group, "weight_0:0")

    return edited(change)


def conv(**options: Any) -> dict[str, Any]:
    return layer("Conv2D", "conv", **{"filters": 4, "kernel_size": [3, 3], "strides": [1, 1], **options})


def wired(*layers: Any, outputs: Any = ("dense",)) -> bytes:
    return h5_bytes(functional([called(input_layer("x", [4])), *layers], ["x"], outputs), {"dense": KERNEL})


def virtual(group: h5py.Group, name: str) -> None:
    layout = h5py.VirtualLayout(shape=(4, 3), dtype="f4")
    layout[:] = h5py.VirtualSource("/etc/passwd", "data", shape=(4, 3))
    group.create_virtual_dataset(name, layout)


def zipped(**members: bytes) -> bytes:
    config, weights = small()
    arrays = {f"layers/dense/vars/{i}": array for i, array in enumerate(weights["dense"])}
    with zipfile.ZipFile(io.BytesIO(keras_bytes(config, arrays))) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    return zip_bytes({**found, **members})


def nested(depth: int) -> Any:
    model = sequential(input_layer("x", [4]), layer("Dropout", "drop", rate=0.1))
    for number in range(depth):
        model = sequential(input_layer("x", [4]), model, name=f"m{number}")
    return model


def doubling(depth: int) -> Any:
    """Each model calls the one inside it twice: 2 ** depth operations from a small file."""
    model = sequential(input_layer("x", [4]), layer("ReLU", "relu"), name="m")
    for number in range(depth):
        inner = {**model, "name": "m", "inbound_nodes": [[["x", 0, 0, {}]], [["m", 1, 0, {}]]]}
        model = functional([called(input_layer("x", [4])), inner], ["x"], [["m", 2, 0]])
        model["config"]["name"] = "m" if number < depth - 1 else "model"
    return model


LAMBDA = layer("Lambda", "evil", function=["4wEAAAAAAAAA", None, None], function_type="lambda")

CASES: dict[str, Callable[[], bytes]] = {
    "an empty file": lambda: b"",
    "a text": lambda: b"once upon a time",
    "an architecture alone": lambda: b'{"class_name": "Functional"}',
    "a TensorFlow Lite file": lambda: b"\x1c\0\0\0TFL3" + b"\0" * 100,
    "cut in half": lambda: h5_bytes(*small())[:3000],
    "only the first bytes": lambda: h5_bytes(*small())[:100],
    "no Keras model": lambda: edited(lambda file: (file.attrs.__delitem__("model_config"), None)[1]),
    "only weights": lambda: edited(
        lambda file: (file.attrs.__delitem__("model_config"), file.attrs.__setitem__("layer_names", [b"dense"]))[1]
    ),
    "only an architecture": lambda: edited(lambda file: file.__delitem__("model_weights")),
    "a configuration that is no JSON": lambda: h5_bytes("{nothing", {}),
    "a configuration that is a number": lambda: h5_bytes("7", {}),
    "a configuration nested deeply": lambda: h5_bytes("[" * 500 + "]" * 500, {}),
    "Keras 1": lambda: h5_bytes(*small(), "1.2.2"),
    "another version": lambda: h5_bytes(*small(), "twelve"),
    "Theano": lambda: edited(lambda file: file.attrs.__setitem__("backend", "theano")),
    "a subclassed model": lambda: h5_bytes({"class_name": "MyModel", "config": {"name": "mine"}}, {}),
    "weights missing": lambda: h5_bytes(small()[0], {}),
    "an array missing": lambda: h5_bytes(small()[0], {"dense": KERNEL[:1]}),
    "an array too many": lambda: h5_bytes(small()[0], {"dense": [*KERNEL, KERNEL[1]]}),
    "a listed array gone": lambda: replaced(lambda group, name: None),
    "weights of the wrong shape": lambda: h5_bytes(small()[0], {"dense": random_arrays((3, 4), (3,))}),
    "NaN": lambda: h5_bytes(small()[0], {"dense": [KERNEL[0], np.full(3, np.nan, np.float32)]}),
    "infinity": lambda: h5_bytes(small()[0], {"dense": [np.full((4, 3), np.inf), KERNEL[1]]}),
    "integers for weights": lambda: h5_bytes(small()[0], {"dense": [np.ones((4, 3), np.int8), KERNEL[1]]}),
    "a compressed array": lambda: replaced(lambda g, n: g.create_dataset(n, data=KERNEL[0], compression="gzip")),
    "a huge array": lambda: replaced(
        lambda g, n: g.create_dataset(n, shape=(2**20, 2**20), dtype="f4", chunks=(64, 64))
    ),
    "an array in pieces": lambda: replaced(lambda g, n: g.create_dataset(n, shape=(4, 3), dtype="f4", chunks=(4, 3))),
    "an array never written": lambda: replaced(lambda g, n: g.create_dataset(n, shape=(4, 3), dtype="f4")),
    "a soft link": lambda: replaced(lambda group, name: group.__setitem__(name, h5py.SoftLink("/model_weights"))),
    "an external link": lambda: replaced(lambda g, n: g.__setitem__(n, h5py.ExternalLink("/etc/passwd", "/"))),
    "an array in another file": lambda: replaced(
        lambda g, n: g.create_dataset(n, shape=(4, 3), dtype="f4", external=[("/etc/passwd", 0, 48)])
    ),
    "a virtual array": lambda: replaced(virtual),
    "an unknown layer": lambda: only(input_layer("x", [4]), layer("Capsule", "caps")),
    "a class of one's own": lambda: only(input_layer("x", [4]), layer("mine>Softmax", "mine")),
    "a class of one's own, not registered": lambda: only(
        input_layer("x", [4]), {**layer("Softmax", "mine"), "module": None, "registered_name": "Softmax"}
    ),
    "an image without end": lambda: only(
        input_layer("x", [5, 4, 3]),
        layer("Resizing", "resizing", height=7, width=30_000_000, interpolation="bicubic"),
    ),
    "a bias along no axis": lambda: h5_bytes(
        sequential(
            input_layer("x", [5, 4]),
            layer("EinsumDense", "einsum", equation="abc,cd->abd", output_shape=[None, 3], bias_axes="z"),
        ),
        {"einsum": [np.zeros((4, 3), np.float32), np.zeros(3, np.float32)]},
        "3.5.0",
    ),
    "a long list for a layer": lambda: only([[["x" * 50] * 6] * 6] * 6),
    "an unknown operation": lambda: wired(
        {**layer("TFOpLambda", "fft", function="signal.fft"), "name": "fft", "inbound_nodes": [["x", 0, 0, {}]]},
        outputs=("fft",),
    ),
    "an unknown argument": lambda: wired(
        {**layer("TFOpLambda", "add", function="math.add"), "name": "add", "inbound_nodes": [["x", 0, 0, {"z": 1}]]},
        outputs=("add",),
    ),
    "an operation that Keras named": lambda: wired(
        {**called(layer("Slogdet", "slogdet"), "x"), "module": "keras.src.ops.linalg"}, outputs=("slogdet",)
    ),
    "a decomposition": lambda: wired(
        {**called(layer("SVD", "svd"), "x"), "module": "keras.src.ops.linalg"}, outputs=("svd",)
    ),
    "a Lambda": lambda: only(input_layer("x", [4]), LAMBDA),
    "a Lambda within a wrapper": lambda: only(input_layer("x", [6, 4]), layer("TimeDistributed", "td", layer=LAMBDA)),
    "a Lambda as an activation": lambda: only(
        input_layer("x", [4]), dense("dense", 3, activation=LAMBDA), weights={"dense": KERNEL}
    ),
    "an unknown activation": lambda: only(
        input_layer("x", [4]), dense("dense", 3, activation="snake"), weights={"dense": KERNEL}
    ),
    "an activation of one's own": lambda: only(
        input_layer("x", [4]), dense("dense", 3, activation="mine>gelu"), weights={"dense": KERNEL}
    ),
    "no input shape": lambda: only(dense("dense", 3), weights={"dense": KERNEL}),
    "an open input shape": lambda: only(input_layer("x", [None, 4]), dense("dense", 3), weights={"dense": KERNEL}),
    "a shape that is no shape": lambda: only(input_layer("x", ["four"]), dense("dense", 3), weights={"dense": KERNEL}),
    "a huge shape": lambda: only(input_layer("x", [2**20, 2**20, 4]), dense("dense", 3), weights={"dense": KERNEL}),
    "a window that does not fit": lambda: only(
        IMAGE, conv(kernel_size=[9, 9]), weights={"conv": random_arrays((9, 9, 3, 4), (4,))}
    ),
    "groups that do not divide": lambda: only(IMAGE, conv(groups=2), weights={"conv": KERNEL}),
    "a name that is no text": lambda: only(input_layer("x", [4]), dense("\ud800", 3)),
    "a name that is too long": lambda: only(input_layer("x", [4]), dense("d" * 5000, 3)),
    "an option of the wrong type": lambda: only(IMAGE, conv(filters="four"), weights={"conv": KERNEL}),
    "an option out of range": lambda: only(IMAGE, conv(strides=[0, 1]), weights={"conv": KERNEL}),
    "an option with an unknown word": lambda: only(IMAGE, conv(padding="reflect"), weights={"conv": KERNEL}),
    "a reshape that does not fit": lambda: only(IMAGE, layer("Reshape", "shape", target_shape=[5, -1])),
    "tensors that do not fit": lambda: wired(
        called(dense("dense", 3), "x"), called(layer("Add", "add"), "dense", "x"), outputs=("add",)
    ),
    "tensors of other ranks": lambda: wired(
        called(layer("Reshape", "rows", target_shape=[4, 1]), "x"),
        called(layer("Flatten", "flat"), "x"),
        called(layer("Concatenate", "join", axis=2), "rows", "flat"),
        outputs=("join",),
    ),
    "a normalization of samples": lambda: only(
        IMAGE, layer("BatchNormalization", "bn", axis=0), weights={"bn": random_arrays((3,), (3,), (3,), (3,))}
    ),
    "a mask": lambda: only(
        input_layer("x", [5, 6, 4]),
        layer("Masking", "mask", mask_value=0.0),
        layer("ConvLSTM1D", "rnn", filters=3, kernel_size=[2]),
        weights={"rnn": random_arrays((2, 4, 12), (2, 3, 12), (12,))},
    ),
    "a circle": lambda: wired(called(dense("dense", 3), "again"), called(layer("ReLU", "again"), "dense")),
    "a dangling layer": lambda: wired(called(dense("dense", 3), "nowhere")),
    "a dangling call": lambda: wired(called(dense("dense", 3), ["x", 4, 0])),
    "a dangling output": lambda: wired(called(dense("dense", 3), ["x", 0, 2])),
    "an unknown model output": lambda: wired(called(dense("dense", 3), "x"), outputs=("gone",)),
    "two layers of one name": lambda: wired(called(dense("dense", 3), "x"), called(dense("dense", 3), "x")),
    "wiring that is none": lambda: wired({**dense("dense", 3), "name": "dense", "inbound_nodes": [7]}),
    "models nested too deeply": lambda: h5_bytes(nested(20), {}),
    "models that multiply": lambda: h5_bytes(doubling(15), {}),
    "a quantized layer": lambda: only(
        input_layer("x", [4]),
        dense("dense", 3, dtype={"class_name": "QuantizedDTypePolicy", "config": {"name": "int8_from_float32"}}),
        weights={"dense": KERNEL},
    ),
    "a layer quantized to another format": lambda: only(
        input_layer("x", [4]),
        dense("dense", 3, dtype={"class_name": "QuantizedDTypePolicy", "config": {"mode": "float8"}}),
        weights={"dense": KERNEL},
    ),
    "a layer quantized to float8": lambda: only(
        input_layer("x", [4]),
        dense("dense", 3, dtype={"class_name": "QuantizedFloat8DTypePolicy", "config": {"mode": "float8"}}),
        weights={"dense": KERNEL},
    ),
    "integers that the layer does not know of": lambda: keras_bytes(
        sequential(input_layer("x", [4]), dense("dense", 3)),
        {
            "layers/dense/vars/0": np.ones((4, 3), np.int8),
            "layers/dense/vars/1": np.ones(3, np.float32),
            "layers/dense/vars/2": np.ones((1, 3), np.float32),
        },
    ),
    "arrays behind one that is missing": lambda: keras_bytes(
        sequential(input_layer("x", [4]), dense("dense", 3)),
        {f"layers/dense/vars/{number}": np.ones(3, np.float32) for number in (1, 2)},
    ),
    "a layer that Keras does not quantize": lambda: only(
        input_layer("x", [8, 8, 3]),
        conv(dtype={"class_name": "QuantizedDTypePolicy", "config": {"mode": "int8"}}),
        weights={"conv": KERNEL},
    ),
    "a zip without a model": lambda: zip_bytes({"readme.txt": b"hello"}),
    "a zip cut short": lambda: zipped()[:-40],
    "a zip with a path upwards": lambda: zipped(**{"../../etc/cron.d/evil": b"x"}),
    "a zip with an absolute path": lambda: zipped(**{"/etc/cron.d/evil": b"x"}),
    "a zip bomb": lambda: zip_bytes(
        {"metadata.json": b"{}", "config.json": b" " * 2**25, "model.weights.h5": b""}, zipfile.ZIP_DEFLATED
    ),
    "a zip with weights that are no HDF5": lambda: zipped(**{"model.weights.h5": b"weights"}),
    "a zip without a version": lambda: zipped(**{"metadata.json": b"[]"}),
    "a zip without weights for a layer": lambda: keras_bytes(small()[0], {}),
    "a class from another module": lambda: zipped(
        **{"config.json": json.dumps({"module": "os", "class_name": "system", "config": "touch /tmp/pwned"}).encode()}
    ),
}


@pytest.mark.turns(2)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "models that multiply")) for name in CASES]
)
def test_the_text_says_where_why_and_what_next(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    path.write_bytes(CASES[name]())
    with pytest.raises(NnbuildError) as caught:
        load(path)
    assert str(caught.value) == TEXTS[name]
    assert caught.value.exit_code == 2
    assert caught.value.next_step
    assert list(tmp_path.iterdir()) == [path]


def test_every_text_belongs_to_a_case() -> None:
    assert TEXTS.keys() == CASES.keys()


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(NnbuildError) as caught:
        load(tmp_path / "gone.h5")
    assert str(caught.value).endswith("it cannot be read (No such file or directory). Check the path.")


SAVED = (
    "it is a SavedModel folder; nnbuild does not read TensorFlow's own graph format. Save the model itself with "
    "model.save('model.keras'); or in Python: open('model.tflite', 'wb').write("
    "tf.lite.TFLiteConverter.from_saved_model('net').convert())."
)
FOLDERS = {
    "saved_model.pb": SAVED,
    "config.json": "it is an unpacked .keras file. Pack it again: cd net && zip -0 ../model.keras *",
    "checkpoint": "it is a folder of checkpoints: the weights of a model, without its architecture. "
    "Load them into their model in Python, and save it: model.save('model.keras').",
    "notes.txt": "it is a folder, not a model. "
    "Give a .h5 or .keras file written by model.save(), or a .tflite or .onnx file.",
}


@pytest.mark.parametrize("held", FOLDERS)
def test_a_folder(held: str, tmp_path: Path) -> None:
    folder = tmp_path / "net"
    folder.mkdir()
    (folder / held).write_bytes(b"something")
    for given in (folder, folder / held) if held == "saved_model.pb" else (folder,):
        with pytest.raises(NnbuildError) as caught:
            load(given)
        assert str(caught.value) == f"{folder}: {FOLDERS[held]}"
        assert caught.value.exit_code == 2


def test_a_model_may_not_be_named_so_that_its_c_code_breaks(tmp_path: Path) -> None:
    path = tmp_path / "2fast.h5"
    path.write_bytes(h5_bytes(*small()))
    assert load(path).name == identifier("model_2fast")
    assert load(path, "fast").name == "fast"


def test_sound_files_of_the_same_kind_import(tmp_path: Path) -> None:
    """The cases above fail for what is wrong with them, not for what they have in common."""
    path = tmp_path / "model.h5"
    for data in (
        h5_bytes(*small()),
        zipped(),
        edited(lambda file: None),
        wired(called(dense("dense", 3), "x")),
        h5_bytes(nested(3), {}),
        h5_bytes(doubling(4), {}),
        only(IMAGE, conv(), weights={"conv": random_arrays((3, 3, 3, 4), (4,))}),
    ):
        path.write_bytes(data)
        assert load(path).outputs
