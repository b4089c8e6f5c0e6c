"""The zoo itself: that it is complete, that Keras writes it, and that old dialects are what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.zoo import KERAS3, WRITERS, chosen_part, names, zoo
from tests.zoo.case import PART, PARTS
from tests.zoo.cases import all_cases, cases_of
from tests.zoo.legacy import DIALECTS, Dialect, rewrite

# fmt: off
REQUIRED_LAYERS = frozenset(
    {
        "Conv1D", "Conv2D", "DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D",
        "Conv1DTranspose", "Conv2DTranspose", "Dense", "BatchNormalization", "LayerNormalization",
        "Normalization", "Rescaling", "Activation", "ReLU", "LeakyReLU", "PReLU", "ELU", "Softmax",
        "MaxPooling1D", "MaxPooling2D", "AveragePooling1D", "AveragePooling2D", "GlobalMaxPooling1D",
        "GlobalMaxPooling2D", "GlobalAveragePooling1D", "GlobalAveragePooling2D", "ZeroPadding1D",
        "ZeroPadding2D", "Cropping1D", "Cropping2D", "UpSampling1D", "UpSampling2D", "Add", "Subtract",
        "Multiply", "Maximum", "Minimum", "Average", "Concatenate", "Flatten", "Reshape", "Permute",
        "RepeatVector", "Dropout", "SpatialDropout1D", "SpatialDropout2D", "AlphaDropout", "GaussianDropout",
        "GaussianNoise", "ActivityRegularization", "LSTM", "GRU", "SimpleRNN", "Bidirectional",
        "TimeDistributed", "Functional", "Sequential", "LRN",
    }
)
# fmt: on

# A difference with itself, and softmaxes of a single value.
CONSTANT_CASES = frozenset({"subtract_with_itself", "dense_one_unit_softmax", "softmax_one_value"})


def test_case_names_are_distinct_file_names() -> None:
    cases = all_cases()
    assert len(cases) == len({case.name for case in cases}) > 1000
    assert [case.name for case in cases if not re.fullmatch(r"[a-z0-9_]+", case.name)] == []


def test_each_writer_leaves_out_few_cases() -> None:
    everything = {case.name for case in all_cases()}
    written = [{case.name for case in cases_of(writer)} for writer in WRITERS]
    assert set().union(*written) == everything
    assert min(map(len, written)) > 0.9 * len(everything)


def test_parts_are_all_of_the_zoo_and_about_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = []
    for part in range(PARTS):
        monkeypatch.setenv(PART, str(part))
        parts.append(names(KERAS3))
    monkeypatch.delenv(PART)
    assert sorted(name for part in parts for name in part) == sorted(names(KERAS3))
    assert max(map(len, parts)) < 1.3 * min(map(len, parts))


@pytest.mark.oracle
@pytest.mark.parametrize("writer", WRITERS)
def test_keras_writes_every_case(writer: str) -> None:
    directory = zoo(writer)
    index = json.loads((directory / "index.json").read_text())
    assert index["failures"] == {}
    assert list(index["cases"]) == names(writer)
    layers = set().union(*(entry["layers"] for entry in index["cases"].values()))
    assert layers >= REQUIRED_LAYERS or chosen_part() is not None
    for name, entry in index["cases"].items():
        assert entry["files"] == ["h5", "keras"], name
        with np.load(directory / f"{name}.npz") as arrays:
            assert sum(key.startswith("x") for key in arrays) == len(entry["inputs"]), name
            assert sum(key.startswith("y") for key in arrays) == entry["outputs"], name
            assert all(np.isfinite(arrays[key]).all() for key in arrays), name
            assert max(np.abs(arrays[key]).max() for key in arrays) < 1000, name
            moves = [float(np.ptp(arrays[key], axis=0).max()) for key in arrays if key.startswith("y")]
            assert min(moves) > 1e-3 or name in CONSTANT_CASES, f"{name}: an output hardly depends on the input"


def write_keras2_file(path: Path) -> None:
    """A file as tf-keras writes it, made by hand: a Sequential model of Conv2D and BatchNormalization."""
    initializer = {"module": "keras.initializers", "class_name": "HeNormal", "config": {"seed": None}}
    conv = {"name": "conv", "dtype": "float32", "groups": 1, "filters": 2, "kernel_initializer": initializer}
    normal = {"name": "bn", "dtype": "float32", "axis": [3], "scale": True, "center": True}
    first = {"batch_input_shape": [None, 4, 4, 1], "dtype": "float32", "ragged": False, "name": "input_1"}
    layers = [
        {"class_name": "InputLayer", "config": first},
        {"class_name": "Conv2D", "config": conv},
        {"class_name": "BatchNormalization", "config": normal},
    ]
    with h5py.File(path, "w") as file:
        model = {"class_name": "Sequential", "config": {"name": "net", "layers": layers}}
        file.attrs["model_config"] = json.dumps(model)
        weights = file.create_group("model_weights")
        weights.attrs["layer_names"] = ["conv", "bn"]
        for layer, roles in (("conv", ("kernel", "bias")), ("bn", ("gamma", "beta", "moving_mean"))):
            group = weights.create_group(layer)
            group.attrs["weight_names"] = [f"{layer}/{role}:0" for role in roles]
            for index, role in enumerate(roles):
                group[f"{layer}/{role}:0"] = np.full(3, index, np.float32)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_dialects_keep_weights_and_change_the_words(dialect: Dialect, tmp_path: Path) -> None:
    write_keras2_file(tmp_path / "new.h5")
    rewrite(tmp_path / "new.h5", tmp_path / "old.h5", dialect)
    with h5py.File(tmp_path / "new.h5") as new, h5py.File(tmp_path / "old.h5") as old:
        assert _decoded(old.attrs["keras_version"]) == dialect.keras_version
        for path in ("conv/conv/kernel:0", "conv/conv/bias:0", "bn/bn/moving_mean:0"):
            assert np.array_equal(new["model_weights"][path], old["model_weights"][path])
        config = json.loads(_decoded(old.attrs["model_config"]))["config"]
        attributes = set(old["model_weights/bn"].attrs)
    layers = config if dialect.sequential_as_list else config["layers"]
    conv, normal = (layer["config"] for layer in layers)
    assert conv["batch_input_shape"] == [None, 4, 4, 1]
    assert ("groups" in conv) == (dialect.name == "tf_2_4_chunked")
    assert conv["kernel_initializer"]["class_name"] == "VarianceScaling"
    assert layers[1]["class_name"] == dialect.batch_normalization_class
    assert normal["axis"] == ([3] if dialect.axis_in_list else 3)
    assert type(normal["scale"]) is (int if dialect.flags_as_integers else bool)
    assert ("weight_names" in attributes) == (dialect.names_per_chunk is None)
    assert ("weight_names1" in attributes) == (dialect.names_per_chunk is not None)


def _decoded(text: str | bytes) -> str:
    return text.decode() if isinstance(text, bytes) else str(text)
