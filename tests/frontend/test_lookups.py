"""IntegerLookup, compared with Keras."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.ops import interpret
from tests.frontend.keras_oracle import expect_same

pytestmark = pytest.mark.oracle

ONE = np.array([[3], [5], [-1], [9], [1000], [0], [4]], np.int32)
THREE = np.array([[3, 5, 3], [9, 9, 9], [-1, 0, 4], [4, 3, 1000]], np.int32)
VOCABULARIES: dict[str, dict[str, Any]] = {
    "plain": {"vocabulary": [3, 5, 1000, 4]},
    "as adapted": {"vocabulary": [-1, 3, 5, 4]},
    "another word for unknown ones": {"vocabulary": [3, 0, 4], "oov_token": 7},
}


@pytest.mark.parametrize("writer", ["keras", "tf_keras"])
@pytest.mark.parametrize("mode", ["int", "one_hot", "multi_hot", "count"])
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_places_are_keras(writer: str, mode: str, vocabulary: str, tmp_path: Path) -> None:
    keras = pytest.importorskip(writer)
    for given in [ONE] if mode == "one_hot" else [ONE, THREE]:
        x = keras.Input(given.shape[1:], dtype="int32")
        y = keras.layers.IntegerLookup(output_mode=mode, **VOCABULARIES[vocabulary])(x)
        expect_same(keras.Model(x, y), tmp_path, given)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "mask": ({"vocabulary": [3, 4], "mask_token": 0}, "it has a mask_token, or not one index for unknown numbers"),
    "hashed": ({"vocabulary": [3, 4], "num_oov_indices": 2}, "Use mask_token=None and num_oov_indices=1"),
    "inverted": ({"vocabulary": [3, 4], "invert": True}, "its option 'invert' is True"),
    "too large": ({"vocabulary": [3, 1 << 40]}, "no vocabulary of 1 to 65536 whole numbers of 32 bits"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_others_are_refused(case: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    options, cause = REFUSED[case]
    x, path = keras.Input((1,), dtype="int64"), tmp_path / "model.keras"
    keras.Model(x, keras.layers.IntegerLookup(**options)(x)).save(path)
    with pytest.raises(ModelError, match=cause):
        load(path)


@pytest.mark.parametrize("writer", ["keras", "tf_keras"])
@pytest.mark.parametrize("mode", ["int", "multi_hot"])
def test_adapted_vocabularies_are_read(writer: str, mode: str, tmp_path: Path) -> None:
    """Each layer's from its own file, also inside a model."""
    keras = pytest.importorskip(writer)
    lookups = [keras.layers.IntegerLookup(output_mode=mode, max_tokens=most) for most in (None, 3)]
    for lookup, numbers in zip(lookups, ([3, 3, 5, 1000, -7], [4, 4, 9, 9, 5]), strict=True):
        lookup.adapt(np.array(numbers))
    x = keras.Input((3,), dtype="int32")
    inner = keras.Model(x, lookups[1](x))
    y = keras.layers.Concatenate()([lookups[0](x), inner(x)])
    path = tmp_path / "model.keras"
    model = keras.Model(x, y)
    model.save(path)
    graph = load(path)
    found = interpret.run(graph, {graph.inputs[0]: THREE})[graph.outputs[0]]
    np.testing.assert_array_equal(found, np.asarray(model(THREE)))


def test_a_feature_space_is_read(tmp_path: Path) -> None:
    keras, tf = pytest.importorskip("keras"), pytest.importorskip("tensorflow")
    chance, kinds = np.random.default_rng(1), keras.utils.FeatureSpace
    data = {"age": chance.normal(30, 9, 64).astype(np.float32), "kind": chance.integers(5, 20, 64)}
    space = kinds({"age": kinds.float_normalized(), "kind": kinds.integer_categorical()}, output_mode="concat")
    space.adapt(tf.data.Dataset.from_tensor_slices(data))
    model = keras.Model(space.get_inputs(), space.get_encoded_features())
    path = tmp_path / "model.keras"
    model.save(path)
    graph = load(path)
    given = {name: data[name].reshape(-1, 1) for name in graph.inputs}
    found = interpret.run(graph, given)[graph.outputs[0]]
    np.testing.assert_allclose(found, np.asarray(model(given)), atol=1e-6)


@pytest.mark.parametrize("kind", ["StringLookup", "Hashing"])
def test_layers_of_words_say_where_to_begin(kind: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    layer = keras.layers.StringLookup(vocabulary=["a"]) if kind == "StringLookup" else keras.layers.Hashing(4)
    x, path = keras.Input((1,), dtype="string" if kind == "StringLookup" else "int64"), tmp_path / "model.keras"
    keras.Model(x, layer(x)).save(path)
    with pytest.raises(ModelError, match=r"[Ss]ave what comes behind it, keras.Model\(layer.output, model.output\)"):
        load(path)


def test_a_vocabulary_that_is_too_long_or_no_numbers_is_refused(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    lookup = keras.layers.IntegerLookup()
    lookup.adapt(np.array([3, 3, 5]))
    x, path = keras.Input((1,), dtype="int64"), tmp_path / "model.keras"
    keras.Model(x, lookup(x)).save(path)
    for lines in (b"-1\n3\nx", b"-1\n" + b"3\n" * (1 << 20), b""):
        with zipfile.ZipFile(path) as archive, zipfile.ZipFile(tmp_path / "other.keras", "w") as other:
            for name in archive.namelist():
                other.writestr(name, lines if name.startswith("assets/") else archive.read(name))
        with pytest.raises(ModelError, match="it has no vocabulary of 1 to 65536 whole numbers"):
            load(tmp_path / "other.keras")


def test_of_an_adapted_vocabulary_the_error_says_what_to_give(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    lookup = keras.layers.IntegerLookup()
    lookup.adapt(np.array([3, 3, 5]))
    x, path = keras.Input((1,), dtype="int64"), tmp_path / "model.h5"
    keras.Model(x, lookup(x)).save(path)
    with pytest.raises(
        ModelError,
        match=r"Save the model as .keras, which keeps what adapt\(\) found, .*vocabulary=adapted.get_vocabulary\(\)",
    ):
        load(path)
