"""Operators of the domain ai.onnx.ml, to which scikit-learn models are exported."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nnbuild.frontend.onnx import ml_features
from nnbuild.frontend.onnx.call import Call
from nnbuild.frontend.onnx.ml_common import labels_of, put_class, sample, transformed
from nnbuild.frontend.onnx.ml_support_vectors import support_vector_classifier, support_vector_regressor
from nnbuild.frontend.onnx.ml_trees import tree_classifier, tree_regressor
from nnbuild.frontend.onnx.products import weighted_sums
from nnbuild.ops.layout import Value


def _weighted(call: Call, x: Value, rows: int) -> Value:
    weights = np.array(call.floats("coefficients"), np.float32)
    bias = np.array(call.floats("intercepts"), np.float32)
    fits = rows > 0 and weights.size == rows * x.shape[1] and bias.size in (0, rows)
    call.expect(fits, f"its {weights.size} coefficients are not {rows} rows for {x.shape[1]} features.")
    return weighted_sums(call, x, weights.reshape(rows, -1), bias if bias.size else None)


def linear_regressor(call: Call) -> None:
    call.put(transformed(call, _weighted(call, sample(call), call.integer("targets", 1))))


def linear_classifier(call: Call) -> None:
    labels = labels_of(call, ("classlabels_ints", "classlabels_strings"))
    call.integer("multi_class", 0)
    rows = len(call.floats("intercepts")) or labels.size
    if rows != labels.size:
        raise call.unsupported(f"it has {rows} rows of coefficients for {labels.size} classes")
    scores = _weighted(call, sample(call), rows)
    put_class(call, scores, labels)
    call.put(transformed(call, scores), 1)


def zip_map(call: Call) -> None:
    """A dictionary of probabilities by class: C has an array, whose places are the classes."""
    x, texts = call.value(0), call.attribute("classlabels_strings")
    count = len(call.integers("classlabels_int64s")) or (0 if texts is None else len(texts.texts))
    columns = x.shape[-1] if x.shape else 1
    call.expect(count == columns, f"it names {count} classes for {columns} columns.")
    call.put(x)


OPERATORS: dict[str, Callable[[Call], None]] = {
    "Scaler": ml_features.scaler,
    "Normalizer": ml_features.normalizer,
    "Imputer": ml_features.imputer,
    "Binarizer": ml_features.binarizer,
    "OneHotEncoder": ml_features.one_hot_encoder,
    "LabelEncoder": ml_features.label_encoder,
    "FeatureVectorizer": ml_features.feature_vectorizer,
    "ArrayFeatureExtractor": ml_features.extract,
    "LinearRegressor": linear_regressor,
    "LinearClassifier": linear_classifier,
    "SVMRegressor": support_vector_regressor,
    "SVMClassifier": support_vector_classifier,
    "TreeEnsembleRegressor": tree_regressor,
    "TreeEnsembleClassifier": tree_classifier,
    "ZipMap": zip_map,
}
