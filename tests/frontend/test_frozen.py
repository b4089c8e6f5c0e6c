"""Models with frozen parts, as transfer learning leaves them: Keras lists their weights in another order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nnbuild.frontend import load
from nnbuild.ops import interpret

pytestmark = pytest.mark.oracle

SCRIPT = """
import sys
from pathlib import Path
import numpy as np
writer, out = sys.argv[1], Path(sys.argv[2])
if writer == "keras3":
    import keras
else:
    import tf_keras as keras
L = keras.layers

def base():
    x = first = keras.Input((5,))
    for number in range(2):
        x = L.BatchNormalization(name=f"bn{number}")(L.Dense(5, name=f"dense{number}")(x))
    return keras.Model(first, x, name="base")

def freeze(which, model):
    inner = model.get_layer("base")
    if which == "base":
        inner.trainable = False
    elif which == "bn0":
        inner.get_layer("bn0").trainable = False
    elif which == "dense1":
        inner.get_layer("dense1").trainable = False
    elif which == "thawed":
        inner.trainable = False
        inner.get_layer("bn1").trainable = True
    elif which == "all":
        model.trainable = False
    elif which == "wrapped":
        model.get_layer("td").layer.get_layer("bn0").trainable = False
    elif which == "direction":
        model.get_layer("both").forward_layer.trainable = False

for which in ("none", "base", "bn0", "dense1", "thawed", "all", "wrapped", "direction"):
    first = keras.Input((3, 5))
    x = L.TimeDistributed(keras.models.clone_model(base()), name="td")(first)
    x = L.Bidirectional(L.LSTM(5, return_sequences=True), name="both", merge_mode="sum")(x)
    x = base()(L.Flatten()(L.Conv1D(5, 3)(x)))
    model = keras.Model(first, L.Dense(2)(x))
    rng = np.random.default_rng(1)
    model.set_weights([rng.uniform(0.2, 1.0, w.shape).astype("float32") for w in model.get_weights()])
    freeze(which, model)
    for suffix in ("h5", "keras"):
        model.save(out / f"{which}.{suffix}")
    x = rng.normal(size=(2, 3, 5)).astype("float32")
    np.savez(out / f"{which}.npz", x=x, y=np.asarray(model(x, training=False)))
"""

WHICH = ("none", "base", "bn0", "dense1", "thawed", "all", "wrapped", "direction")


@pytest.mark.turns(4)
@pytest.mark.parametrize("writer", ["keras3", pytest.param("tfkeras", marks=pytest.mark.full)])
def test_frozen_weights_are_found(writer: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    quiet = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    command = [sys.executable, "-c", SCRIPT, writer, str(tmp_path)]
    result = subprocess.run(command, env=quiet, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    for which in WHICH:
        with np.load(tmp_path / f"{which}.npz") as file:
            x, y = file["x"], file["y"]
        for suffix in ("h5", "keras"):
            if (writer, which, suffix) == ("tfkeras", "direction", "h5"):
                continue  # tf-keras does not say in an .h5 that it was frozen, and reads its own file wrongly
            graph = load(tmp_path / f"{which}.{suffix}")
            found = interpret.run(graph, {graph.inputs[0]: x})[graph.outputs[0]]
            np.testing.assert_allclose(found, y, rtol=1e-5, atol=1e-5, err_msg=f"{which}.{suffix}")
