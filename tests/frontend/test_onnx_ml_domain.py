"""Models of scikit-learn by skl2onnx, against onnxruntime."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.ops import interpret
from tests.support.many import run_many

needed = ("onnxruntime", "skl2onnx")  # imported when they are used: that takes seconds
pytestmark = pytest.mark.skipif(not all(map(find_spec, needed)), reason=f"needs {' and '.join(needed)}")

KINDS = ("forest", "boosted", "logistic", "normalized", "mlp", "tree")


def trained(kind: str) -> tuple[Any, np.ndarray]:
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer, StandardScaler
    from sklearn.tree import DecisionTreeRegressor

    chance = np.random.default_rng(3)
    x = chance.normal(size=(120, 5)).astype(np.float32) * np.float32([1, 10, 0.1, 3, 1])
    y = (x[:, 0] + x[:, 1] / 5 > 0).astype(int) + (x[:, 3] > 1)
    model = {
        "forest": RandomForestClassifier(7, max_depth=5, random_state=1),
        "boosted": GradientBoostingRegressor(n_estimators=9, random_state=1),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
        "normalized": make_pipeline(Normalizer("l1"), Ridge()),
        "mlp": MLPClassifier((6,), max_iter=2000, random_state=1),
        "tree": DecisionTreeRegressor(random_state=1),
    }[kind]
    model.fit(x, y if kind not in ("boosted", "tree", "normalized") else x[:, 1] * x[:, 0])
    return model, x


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_models_equal_onnxruntime(kind: str, tmp_path: Path) -> None:
    import onnxruntime
    from skl2onnx import to_onnx

    model, x = trained(kind)
    options = {id(model): {"zipmap": False}} if hasattr(model, "predict_proba") else None
    path = tmp_path / "net.onnx"
    path.write_bytes(to_onnx(model, x[:1], options=options).SerializeToString())
    session = onnxruntime.InferenceSession(str(path))
    wanted = session.run(None, {"X": x})
    graph = passes.run(load(path))
    found = interpret.run(graph, {"X": x})
    (compiled,) = run_many([(graph, {"X": x})], tmp_path, flags=["-O1"])
    for name, values in zip(graph.outputs, wanted, strict=True):
        tolerance = 1e-5 * np.abs(values).max()
        np.testing.assert_allclose(found[name].reshape(values.shape), values, atol=tolerance)
        np.testing.assert_allclose(compiled[name].reshape(values.shape), values, atol=tolerance)
