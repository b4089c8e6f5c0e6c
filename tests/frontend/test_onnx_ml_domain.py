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
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.quantize import Recipe, quantize_with
from tests.support.many import run_many

needed = ("onnxruntime", "skl2onnx")  # imported when they are used: that takes seconds
pytestmark = pytest.mark.skipif(not all(map(find_spec, needed)), reason=f"needs {' and '.join(needed)}")

TARGETS = {"": 18, "ai.onnx.ml": 3}


def models() -> dict[str, tuple[Any, str]]:
    """Estimators, and what they learn: two or three classes, a number, or nothing."""
    from sklearn.ensemble import GradientBoostingRegressor, IsolationForest, RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.naive_bayes import CategoricalNB
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Binarizer, Normalizer, OrdinalEncoder, PowerTransformer, StandardScaler
    from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    return {
        "forest": (RandomForestClassifier(7, max_depth=5, random_state=1), "three"),
        "forest of two": (RandomForestClassifier(7, max_depth=5, random_state=1), "two"),
        "forest of three labels": (RandomForestClassifier(3, max_depth=4, random_state=1), "labels"),
        "tree of three labels": (DecisionTreeClassifier(max_depth=4, random_state=1), "labels"),
        "tree of two": (DecisionTreeClassifier(max_depth=5, random_state=1), "two"),
        "isolation forest": (IsolationForest(n_estimators=5, random_state=1), "nothing"),
        "boosted": (GradientBoostingRegressor(n_estimators=9, random_state=1), "number"),
        "logistic": (make_pipeline(StandardScaler(), LogisticRegression()), "three"),
        "normalized": (make_pipeline(Normalizer("l1"), Ridge()), "number"),
        "mlp": (MLPClassifier((6,), max_iter=2000, random_state=1), "three"),
        "tree": (DecisionTreeRegressor(random_state=1), "number"),
        "vectors": (SVC(), "three"),
        "vectors of two": (make_pipeline(StandardScaler(), SVC(kernel="poly", degree=2)), "two"),
        "far vectors": (SVC(gamma=3.0), "two"),
        "sigmoid vectors": (NuSVC(kernel="sigmoid", nu=0.2), "three"),
        "support vectors": (make_pipeline(StandardScaler(), SVR()), "number"),
        "outliers": (OneClassSVM(), "nothing"),
        "neighbours": (KNeighborsClassifier(3), "three"),
        "near numbers": (KNeighborsRegressor(4), "number"),
        "imputed": (make_pipeline(SimpleImputer(strategy="median"), Ridge()), "number"),
        "binary": (make_pipeline(Binarizer(threshold=0.3), Ridge()), "number"),
        "ordinal": (OrdinalEncoder(), "categories"),
        "categories": (CategoricalNB(), "categories"),
        "powers": (make_pipeline(PowerTransformer(), Ridge()), "number"),
    }


KINDS = (
    *(
        "forest",
        "forest of two",
        "forest of three labels",
        "tree of three labels",
        "tree of two",
        "isolation forest",
        "boosted",
        "logistic",
        "normalized",
        "mlp",
        "tree",
    ),
    *("vectors", "vectors of two", "far vectors", "sigmoid vectors", "support vectors", "outliers", "neighbours"),
    *("near numbers", "imputed", "binary", "ordinal", "categories", "powers"),
)


def trained(kind: str) -> tuple[Any, np.ndarray]:
    chance = np.random.default_rng(3)
    x = chance.normal(size=(120, 5)).astype(np.float32) * np.float32([1, 10, 0.1, 3, 1])
    two = (x[:, 0] + x[:, 1] / 5 > 0).astype(int)
    three, number = two + (x[:, 3] > 1), x[:, 1] * x[:, 0]
    model, learns = models()[kind]
    if learns == "categories":
        x = np.clip(np.round(x), 0, 2)
    labels = np.stack([two, x[:, 3] > 1, x[:, 4] > x[:, 2]], axis=1).astype(int)
    model.fit(x, {"two": two, "three": three, "labels": labels, "number": number}.get(learns, three))
    if kind == "imputed":
        x[::3, 1] = np.nan
    return model, x


@pytest.mark.turns(2)
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_models_equal_onnxruntime(kind: str, tmp_path: Path) -> None:
    import onnxruntime
    from skl2onnx import to_onnx

    model, x = trained(kind)
    options = {id(model): {"zipmap": False}} if hasattr(model, "classes_") else None
    path = tmp_path / "net.onnx"
    path.write_bytes(to_onnx(model, x[:1], options=options, target_opset=TARGETS).SerializeToString())
    session = onnxruntime.InferenceSession(str(path))
    wanted = [np.stack(each) for each in zip(*(session.run(None, {"X": row[None]}) for row in x), strict=True)]
    graph = passes.run(load(path))
    found = interpret.run(graph, {"X": x})
    (compiled,) = run_many([(graph, {"X": x})], tmp_path, flags=["-O1"])
    for name, values in zip(graph.outputs, wanted, strict=True):
        tolerance = 2e-5 * np.abs(values).max()
        np.testing.assert_allclose(found[name].reshape(values.shape), values, atol=tolerance)
        np.testing.assert_allclose(compiled[name].reshape(values.shape), values, atol=tolerance)


@pytest.mark.slow
def test_classes_and_probabilities_may_be_zipped(tmp_path: Path) -> None:
    """The default of skl2onnx: a list of dictionaries, which is an array here."""
    from skl2onnx import to_onnx

    model, x = trained("forest of two")
    path = tmp_path / "net.onnx"
    path.write_bytes(to_onnx(model, x[:1], target_opset=TARGETS).SerializeToString())
    graph = passes.run(load(path))
    shares = interpret.run(graph, {"X": x})[graph.outputs[1]]
    np.testing.assert_allclose(shares.reshape(-1, 2), model.predict_proba(x), atol=1e-6)


@pytest.mark.parametrize(
    ("names", "count"), [({"classlabels_int64s": [0, 1, 2]}, 3), ({"classlabels_strings": ["a"]}, 1), ({}, 0)]
)
def test_zipped_classes_are_as_many_as_the_columns(names: dict[str, Any], count: int, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(of_node("ZipMap", {"x": [1, 2]}, 1, **names).SerializeToString())
    with pytest.raises(ModelError, match=f"it names {count} classes for 2 columns. The file is damaged; export"):
        load(path)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize("scaled", [False, True])
def test_trees_compare_features_in_floats(form: str, scaled: bool, tmp_path: Path) -> None:
    """One scale for features in different units blurs the small ones: 8 bits left two thirds of the classes right."""
    from skl2onnx import to_onnx
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    chance = np.random.default_rng(2)
    x = chance.normal(size=(300, 4)).astype(np.float32) * np.float32([0.01, 1000, 1, 30])
    forest = RandomForestClassifier(9, max_depth=6, random_state=1)
    model = make_pipeline(StandardScaler(), forest) if scaled else forest
    model.fit(x, x[:, 0] * 100 + x[:, 2] > 0)
    path = tmp_path / "net.onnx"
    options = {id(model): {"zipmap": False}}
    path.write_bytes(to_onnx(model, x[:1], options=options, target_opset=TARGETS).SerializeToString())
    graph = passes.run(load(path))
    ranges = calibrate(graph, lambda: [{"X": x}], "minmax", 8)
    made = quantize_with(graph, Recipe(form=form), ranges)
    assert made.tensors["X"].dtype == "float32" and made.tensors[made.outputs[1]].dtype == form
    assert (interpret.run(made, {"X": x})[made.outputs[0]].reshape(-1) == model.predict(x)).mean() > 0.99


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
        "nodes_modes": [compare.split()[tree % len(compare.split())] if node < 2 else "LEAF" for tree, node in nodes],
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


@pytest.mark.parametrize("missing", [0, 1, None])
@pytest.mark.parametrize("compare", ["BRANCH_EQ BRANCH_LEQ", "BRANCH_GT BRANCH_NEQ BRANCH_LT"])
def test_trees_of_categories_and_numbers(compare: str, missing: int | None, tmp_path: Path) -> None:
    """LightGBM splits categories by equality; scikit-learn's boosted trees split what is missing off at infinity."""
    limits = [0.0, 1.0, 0.0, 0.0, 0.0, float("inf"), 2.0, 0.0, 0.0, 0.0] * 2
    model = boosted(False, missing, compare, nodes_values=limits, post_transform="LOGISTIC")
    x = np.random.default_rng(2).integers(-2, 3, (60, 4)).astype(np.float32)
    x[::5, 1] = x[::7, 2] = np.nan
    equal_onnxruntime(model, x, tmp_path)


def test_unknown_comparisons_and_a_base_for_some_targets_are_told(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(boosted(True, 0, "BRANCH_MEMBER").SerializeToString())
    with pytest.raises(ModelError, match="its nodes use the comparison 'BRANCH_MEMBER'"):
        load(path)
    more = {"class_ids": [0, 1] * 6, "base_values": [0.5]}
    path.write_bytes(boosted(True, 0, "BRANCH_LEQ", **more).SerializeToString())
    with pytest.raises(ModelError, match="it has 1 base values for 2 targets"):
        load(path)


@pytest.mark.slow
@pytest.mark.parametrize("quantize", ["float", "int8"])
def test_missing_values_reach_the_program(quantize: str, tmp_path: Path) -> None:
    """Filled in floats, in the integer model, too: no integer is NaN. They were refused as samples."""
    import nnbuild

    fields = {"imputed_value_floats": [1.0, -2.0, 3.0, 0.5], "replaced_value_float": float("nan")}
    path = tmp_path / "net.onnx"
    path.write_bytes(of_node("Imputer", {"x": [1, 4]}, 1, **fields).SerializeToString())
    x = np.random.default_rng(2).normal(size=(40, 4)).astype(np.float32)
    calibrate = {} if quantize == "float" else {"calibrate": x}
    holes = np.where(x > 0.8, np.float32(np.nan), x)
    network = nnbuild.compile(path, quantize=quantize, **calibrate)
    (found,) = network.run(holes).values()
    np.testing.assert_allclose(found, np.where(x > 0.8, np.float32(fields["imputed_value_floats"]), x), atol=1e-6)
    assert network.check(holes)


def test_trees_for_the_second_of_two_classes_are_told(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(boosted(True, 0, "BRANCH_LEQ", class_ids=[1] * 12).SerializeToString())
    with pytest.raises(ModelError, match="weights for the second of two classes only"):
        load(path)


def of_node(kind: str, inputs: dict[str, Any], outputs: int, domain: str = "ai.onnx.ml", **fields: Any) -> Any:
    """A network of one node. Arrays among the inputs are constants, shapes are inputs of floats."""
    from onnx import TensorProto, ValueInfoProto, helper, numpy_helper

    given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items() if isinstance(s, list)]
    held = [numpy_helper.from_array(a, n) for n, a in inputs.items() if isinstance(a, np.ndarray)]
    names = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(kind, list(inputs), names, domain=domain, **fields)
    ends = [ValueInfoProto(name=name) for name in names]
    graph = helper.make_graph([node], "net", given, ends, held)
    domains = [
        helper.make_opsetid("", 15),
        helper.make_opsetid("ai.onnx.ml", 2),
        helper.make_opsetid("com.microsoft", 1),
    ]
    return helper.make_model(graph, opset_imports=domains, ir_version=8)


def equal_onnxruntime(model: Any, x: np.ndarray, tmp_path: Path, tolerance: float = 2e-6) -> None:
    import onnxruntime

    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    session = onnxruntime.InferenceSession(str(path))
    wanted = [np.stack(each) for each in zip(*(session.run(None, {"x": row[None]}) for row in x), strict=True)]
    graph = passes.run(load(path))
    found = interpret.run(graph, {"x": x})
    for name, values in zip(graph.outputs, wanted, strict=True):
        np.testing.assert_allclose(found[name].reshape(values.shape), values, atol=tolerance)


def vectors_of(classes: int, **more: Any) -> dict[str, Any]:
    chance, members = np.random.default_rng(classes), [3, 2, 4, 1][:classes]

    def drawn(count: int) -> list[float]:
        return [float(value) for value in chance.normal(size=count)]

    pairs, count = classes * (classes - 1) // 2, sum(members)
    shape = {"coefficients": drawn((classes - 1) * count), "support_vectors": drawn(3 * count), "rho": drawn(pairs)}
    return {
        "classlabels_ints": [2 * i + 1 for i in range(classes)],
        "vectors_per_class": members,
        "kernel_type": "RBF",
        "kernel_params": [0.3, 0.1, 3.0],
        **shape,
        **more,
    }


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("post", ["NONE", "LOGISTIC"])
def test_support_vectors(classes: int, kernel: str, post: str, tmp_path: Path) -> None:
    fields = vectors_of(classes, kernel_type=kernel, post_transform=post)
    x = np.random.default_rng(1).normal(size=(30, 3)).astype(np.float32)
    equal_onnxruntime(of_node("SVMClassifier", {"x": [1, 3]}, 2, **fields), x, tmp_path, 1e-5)


def test_probabilities_of_two_classes(tmp_path: Path) -> None:
    """Of samples near the border and far from it: libsvm's iteration takes none, one or two rounds."""
    fields = vectors_of(2, kernel_type="POLY", prob_a=[-1.3], prob_b=[0.2])
    x = np.random.default_rng(1).normal(size=(200, 3)).astype(np.float32) * np.geomspace(0.01, 20, 200)[:, None]
    model = of_node("SVMClassifier", {"x": [1, 3]}, 2, **fields)
    equal_onnxruntime(model, x.astype(np.float32), tmp_path, 1e-4)


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        (
            vectors_of(3, prob_a=[-1.0] * 3, prob_b=[0.0] * 3),
            r"more than two classes \(train it with probability=False\)",
        ),
        (vectors_of(2, post_transform="SOFTMAX"), "its post_transform for two classes is 'SOFTMAX'"),
        (vectors_of(3, rho=[0.0]), "it has 1 offsets for 3 pairs of classes"),
        (vectors_of(3, support_vectors=[0.0] * 8), "it has not 9 vectors of 3 features"),
        (vectors_of(2, kernel_type="CUBIC"), "its kernel_type is 'CUBIC'"),
    ],
)
def test_refused_support_vectors(fields: dict[str, Any], cause: str, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(of_node("SVMClassifier", {"x": [1, 3]}, 2, **fields).SerializeToString())
    with pytest.raises(ModelError, match=cause):
        load(path)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances(metric: str, tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    points = chance.normal(size=(900, 7)).astype(np.float32)  # more than are computed at a time
    model = of_node("CDist", {"x": [1, 7], "points": points}, 1, "com.microsoft", metric=metric)
    equal_onnxruntime(model, chance.normal(size=(20, 7)).astype(np.float32), tmp_path, 1e-4)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("Imputer", {"imputed_value_floats": [0.5, 1.5, 2.5], "replaced_value_float": float("nan")}),
        ("Imputer", {"imputed_value_floats": [7.0], "replaced_value_float": 2.0}),
        ("Binarizer", {"threshold": 1.0}),
        ("OneHotEncoder", {"cats_int64s": [0, 2, 3]}),
        ("LabelEncoder", {"keys_floats": [0.0, 1.0, 2.0], "values_floats": [0.5, -2.5, 1e6], "default_float": 9.25}),
        ("LabelEncoder", {"keys_floats": [0.0, 1.0, 3.0], "values_int64s": [5, 70_000, -3]}),
        ("FeatureVectorizer", {"inputdimensions": [3]}),
    ],
)
def test_features(kind: str, fields: dict[str, Any], tmp_path: Path) -> None:
    x = np.random.default_rng(1).integers(0, 4, size=(30, 3)).astype(np.float32)
    if kind == "Imputer":
        x[::4, 1] = np.nan
    equal_onnxruntime(of_node(kind, {"x": [1, 3]}, 1, **fields), x, tmp_path)


def test_categories_that_a_file_refuses_give_zeros(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    model = of_node("OneHotEncoder", {"x": [1, 1]}, 1, cats_int64s=[0, 2, 3], zeros=0)
    path.write_bytes(model.SerializeToString())
    graph = load(path)
    found = interpret.run(graph, {"x": np.float32([[[2]], [[1]]])})[graph.outputs[0]]
    assert found.reshape(2, 3).tolist() == [[0, 1, 0], [0, 0, 0]]
    assert any("gives zeros for an unknown category" in note for note in graph.notes)
