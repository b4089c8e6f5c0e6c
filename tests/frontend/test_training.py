"""Layers whose call was fixed to training=True: those that it makes random or dependent on the batch are refused."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from tests.frontend.keras_files import called, functional, h5_bytes, input_layer, layer, put

ONE = np.ones(3, np.float32)
LAYERS: dict[str, tuple[Any, list[np.ndarray], bool]] = {
    "dropout": (layer("Dropout", "d", rate=0.5), [], False),
    "dropout of nothing": (layer("Dropout", "d", rate=0.0), [], True),
    "noise": (layer("GaussianNoise", "d", stddev=0.1), [], False),
    "normalization": (layer("BatchNormalization", "d", axis=[1], epsilon=1e-3, momentum=0.9), [ONE] * 4, False),
    "frozen normalization": (
        layer("BatchNormalization", "d", axis=[1], epsilon=1e-3, momentum=0.9, trainable=False), [ONE] * 4, True),
}  # fmt: skip


@pytest.mark.parametrize(("name", "training"), list(itertools.product(LAYERS, [True, 1, False, None])))
def test_training_is_refused_where_it_matters(tmp_path: Path, name: str, training: Any) -> None:
    made, weights, harmless = LAYERS[name]
    entry = called(made, "x")
    entry["inbound_nodes"] = [[["x", 0, 0, {"training": training}]]]
    path = put(
        tmp_path / "net.h5", h5_bytes(functional([called(input_layer("x", [3])), entry], ["x"], ["d"]), {"d": weights})
    )
    if harmless or not training:
        assert load(path).outputs
        return
    with pytest.raises(ModelError, match="layer 'd': it is called with training=True, so it behaves at inference as"):
        load(path)
