"""What classifiers and regressors of the domain ai.onnx.ml share: their sample, their classes, their last function."""

from __future__ import annotations

import numpy as np

from nnbuild.frontend.onnx.call import FLOAT, INT32, Call
from nnbuild.frontend.onnx.reducing import extreme_place, softmax_of
from nnbuild.model.graph import Array
from nnbuild.model.views import stored
from nnbuild.ops.gather import Gather
from nnbuild.ops.layout import Value


def sample(call: Call, index: int = 0) -> Value:
    x = call.value(index)
    x = call.as_real(x) if x.is_number else call.converted(x, FLOAT, "float32")
    call.expect(len(x.shape) == 2 and x.shape[0] == 1, f"its input {list(x.shape)} is not a single sample of features.")
    return x


def labels_of(call: Call, names: tuple[str, str]) -> Array:
    """The class numbers; for strings, their indices."""
    numbers, texts = call.integers(names[0]), call.attribute(names[1])
    if texts is not None and texts.texts:
        call.assembly.note("The model's classes are strings: the output is the index of the class, from 0.")
        return np.arange(len(texts.texts), dtype=np.int32)
    return np.array(numbers, np.int32)


def put_class(call: Call, scores: Value, labels: Array) -> None:
    """The first output: the class of the highest score."""
    call.expect(scores.shape[1] == labels.size, f"its {scores.shape[1]} scores are for {labels.size} classes.")
    put_label(call, extreme_place(call, scores, "max", 1, keep=False), labels)


def put_label(call: Call, place: Value, labels: Array) -> None:
    """The first output: the class at this place."""
    index = call.seen(call.converted(place, INT32, "int64").name, (1,))
    if list(labels) != list(range(labels.size)):
        index = call.add(Gather(0), [index], {"table": labels}, INT32)
    call.put(Value(index, stored((1,)), "int64"))


def transformed(call: Call, scores: Value) -> Value:
    kind = call.text("post_transform", "NONE")
    if kind == "SOFTMAX":
        return softmax_of(call, scores, 1)
    if kind == "LOGISTIC":
        return call.activated(scores, "sigmoid")
    if kind != "NONE":
        raise call.unsupported(f"its post_transform is {kind!r}")
    return scores
