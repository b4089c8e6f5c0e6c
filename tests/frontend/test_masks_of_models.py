"""Inner models that are called with masks, in both generations of Keras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.ops import interpret

pytestmark = pytest.mark.oracle

SHAPE = (6, 3)


def _recurrent(keras: Any, inputs: int) -> Any:
    given = [keras.Input(SHAPE) for _ in range(inputs)]
    return keras.Model(given if inputs > 1 else given[0], [keras.layers.LSTM(4)(each) for each in given])


def _around(keras: Any, x: Any, other: Any, mask: Any) -> list[Any]:
    """The mask holds for the inner model alone."""
    return [*_flat(_recurrent(keras, 1)(x, mask=mask)), keras.layers.LSTM(5)(x)]


def _instead(keras: Any, x: Any, other: Any, mask: Any) -> list[Any]:
    """The input has a mask before and after."""
    hidden = keras.layers.Masking(0.0)(x)
    return [*_flat(_recurrent(keras, 1)(hidden, mask=mask)), keras.layers.LSTM(5)(hidden)]


def _second(keras: Any, x: Any, other: Any, mask: Any) -> list[Any]:
    """The first of two inputs has none."""
    return _flat(_recurrent(keras, 2)([x, other], mask=[None, mask]))


def _flat(found: Any) -> list[Any]:
    return [*found] if isinstance(found, (list, tuple)) else [found]


@pytest.mark.turns(3)
@pytest.mark.parametrize("build", [_around, _instead, _second])
@pytest.mark.parametrize("generation", ["keras", "tf_keras"])
def test_a_mask_holds_within_the_call_alone(build: Any, generation: str, tmp_path: Path) -> None:
    keras = pytest.importorskip(generation)
    x, other = keras.Input(SHAPE, name="x"), keras.Input(SHAPE, name="other")
    mask = keras.Input((6,), dtype="bool", name="mask")
    made = build(keras, x, other, mask)
    chance = np.random.default_rng(5)
    data: dict[str, Any] = {name: chance.normal(size=(4, *SHAPE)).astype(np.float32) for name in ("x", "other")}
    data["x"][:, 4:] = 0
    data["mask"] = np.array([[1, 1, 1, 0, 0, 0], [1] * 6, [1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 1, 0]], bool)
    used = [data["x"], data["other"], data["mask"]]
    model = keras.Model([x, other, mask], [*made, keras.layers.Flatten()(other)])
    path = tmp_path / "model.keras"
    model.save(path)
    golden = model(used, training=False)
    graph = load(path)
    given = {name: data[name].astype("int8" if name == "mask" else "float32") for name in graph.inputs}
    found = interpret.run(graph, given)
    for output, wanted in zip(graph.outputs, golden, strict=True):
        np.testing.assert_allclose(found[output], np.asarray(wanted), atol=1e-5, err_msg=output)


def test_comparisons_of_tensors_of_different_ranks_are_refused(tmp_path: Path) -> None:
    """TensorFlow would align the batch with an axis of the other tensor."""
    keras = pytest.importorskip("keras")
    x, y = keras.Input((3,)), keras.Input((3, 3))
    for number, made in enumerate((keras.ops.greater(x, y), keras.ops.where(x > 0, y, -y))):
        path = tmp_path / f"model{number}.keras"
        keras.Model([x, y], made).save(path)
        with pytest.raises(ModelError, match="its tensors have a different number of axes"):
            load(path)
