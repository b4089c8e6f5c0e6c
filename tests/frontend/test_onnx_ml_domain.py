"""Models of scikit-learn by skl2onnx, against onnxruntime."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.base.errors import ModelError
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


def boosted(positive: bool, missing: int | None, compare: str, **more: Any) -> Any:
    """Trees that weigh the first of two classes, as XGBoost and LightGBM write them."""
    from onnx import TensorProto, helper

    chance, count = np.random.default_rng(5), 4
    nodes = [(tree, node) for tree in range(count) for node in range(5)]
    weights = chance.normal(size=3 * count) if not positive else chance.uniform(0, 0.25, 3 * count)
    tracks = [0 if node >= 2 else int(chance.integers(2)) if missing is None else missing for _, node in nodes]
    fields: dict[str, Any] = {
        "nodes_treeids": [tree for tree, _ in nodes],
        "nodes_nodeids": [node for _, node in nodes],
        "nodes_featureids": [int(chance.integers(4)) if node < 2 else 0 for _, node in nodes],
        "nodes_values": [float(chance.normal()) if node < 2 else 0.0 for _, node in nodes],
        "nodes_modes": [compare if node < 2 else "LEAF" for _, node in nodes],
        "nodes_truenodeids": [{0: 1, 1: 3}.get(node, 0) for _, node in nodes],
        "nodes_falsenodeids": [{0: 2, 1: 4}.get(node, 0) for _, node in nodes],
        "nodes_missing_value_tracks_true": tracks,
        "class_treeids": [tree for tree, node in nodes if node >= 2],
        "class_nodeids": [node for _, node in nodes if node >= 2],
        "class_ids": [0] * len(weights),
        "class_weights": [float(weight) for weight in weights],
        "classlabels_int64s": [3, 7],
    }
    node = helper.make_node("TreeEnsembleClassifier", ["x"], ["label", "p"], domain="ai.onnx.ml", **(fields | more))
    ends = [("x", TensorProto.FLOAT, [1, 4]), ("label", TensorProto.INT64, [1]), ("p", TensorProto.FLOAT, [1, 2])]
    x, *results = (helper.make_tensor_value_info(*end) for end in ends)
    graph = helper.make_graph([node], "net", [x], results)
    domains = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=8)


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize(
    ("missing", "compare", "base"), [(0, "BRANCH_LEQ", []), (1, "BRANCH_LT", [0.3]), (None, "BRANCH_GT", [-0.4])]
)
def test_boosted_trees_of_two_classes(
    positive: bool, post: str, missing: int | None, compare: str, base: list[float], tmp_path: Path
) -> None:
    import onnxruntime

    path = tmp_path / "net.onnx"
    more = {"post_transform": post, **({"base_values": base} if base else {})}
    path.write_bytes(boosted(positive, missing, compare, **more).SerializeToString())
    x = np.random.default_rng(2).normal(size=(40, 4)).astype(np.float32)
    x[::5, 1] = x[::7, 2] = np.nan  # a value that is missing
    session = onnxruntime.InferenceSession(str(path))
    labels, shares = (
        np.concatenate(each) for each in zip(*(session.run(None, {"x": row[None]}) for row in x), strict=True)
    )
    graph = passes.run(load(path))
    found = interpret.run(graph, {"x": x})
    np.testing.assert_array_equal(found[graph.outputs[0]].reshape(-1), labels)
    np.testing.assert_allclose(found[graph.outputs[1]].reshape(shares.shape), shares, atol=1e-6)
    assert len(set(labels)) == 2 or (base and positive)


def test_trees_for_the_second_of_two_classes_are_told(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(boosted(True, 0, "BRANCH_LEQ", class_ids=[1] * 12).SerializeToString())
    with pytest.raises(ModelError, match="weights for the second of two classes only"):
        load(path)
