"""IntegerLookup, compared with Keras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
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


def test_of_an_adapted_vocabulary_the_error_says_what_to_give(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    lookup = keras.layers.IntegerLookup()
    lookup.adapt(np.array([3, 3, 5]))
    x, path = keras.Input((1,), dtype="int64"), tmp_path / "model.keras"
    keras.Model(x, lookup(x)).save(path)
    with pytest.raises(ModelError, match=r"vocabulary=adapted.get_vocabulary\(\)"):
        load(path)
