"""Models whose weights were saved in 16 bits, or in parts: they are computed in float32, with the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.frontend.other_arithmetic import HALF_PRECISION, ROUNDED_INPUTS
from nnbuild.ops import interpret
from tests.frontend.keras_oracle import expect_same

pytestmark = pytest.mark.oracle


def _model(keras: Any, kind: str) -> Any:
    x = keras.Input((6, 2))
    y = keras.layers.Conv1D(3, 2, activation="relu", dtype=kind)(x)
    return keras.Model(x, keras.layers.Dense(2, dtype=kind)(y))


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "mixed_bfloat16"])
def test_weights_are_those_of_the_file(kind: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    model, same, path = _model(keras, kind), _model(keras, "float32"), tmp_path / "model.keras"
    model.save(path)
    same.set_weights([np.asarray(weight).astype(np.float32) for weight in model.get_weights()])
    graph, given = load(path), np.random.default_rng(1).normal(size=(4, 6, 2)).astype(np.float32)
    found = interpret.run(graph, {graph.inputs[0]: given})[graph.outputs[0]]
    np.testing.assert_allclose(found, np.asarray(same(given)), atol=1e-6)
    assert graph.unlike == HALF_PRECISION  # which the check tells of where golden outputs miss their gate
    assert any(f"saved to be computed as '{kind}'" in note for note in graph.notes)


def test_what_keras_rounds_in_quantized_layers_is_told(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    model, path = _model(keras, "float32"), tmp_path / "model.keras"
    model.save(path)
    assert load(path).unlike == ""
    model.quantize("int8")
    model.save(path)
    assert load(path).unlike == ROUNDED_INPUTS


def test_bfloat16_without_its_type_is_refused(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    path = tmp_path / "model.h5"
    _model(keras, "bfloat16").save(path)
    with pytest.raises(ModelError, match=r"layer 'conv1d.*bytes without a type.*Save the model as .keras"):
        load(path)


def test_weights_of_low_rank_are_read_where_keras_merges_them(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    model.layers[0].enable_lora(2)
    model.set_weights([np.full(weight.shape, 0.5, np.float32) for weight in model.get_weights()])
    expect_same(model, tmp_path, np.eye(4, dtype=np.float32))
    model.save(tmp_path / "model.h5")
    with pytest.raises(ModelError, match=r"LoRA.*Save the model as .keras"):
        load(tmp_path / "model.h5")
