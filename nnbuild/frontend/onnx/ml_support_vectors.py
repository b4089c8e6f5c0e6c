"""Support vector machines of the domain ai.onnx.ml: scores are weighted sums of a kernel of sample and each vector.

A classifier has a score for every pair of classes. The class that wins most pairs is the answer.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from nnbuild.frontend.onnx.arithmetic import chosen, combined, compared, raised, times_plus
from nnbuild.frontend.onnx.call import FLOAT, Call
from nnbuild.frontend.onnx.data_movement import joined
from nnbuild.frontend.onnx.distances import from_differences, from_products
from nnbuild.frontend.onnx.ml_common import labels_of, put_class, sample, transformed
from nnbuild.frontend.onnx.products import weighted_sums
from nnbuild.model.graph import Array
from nnbuild.ops.layout import Value

LARGE_EXPONENT = 128.0
"""The exponent of a Gaussian kernel up to which products give its distances: their rounding changes it by 1e-5."""
LEAST_SHARE, NEAR, ROUNDS = 1e-7, 0.0025, 2
"""libsvm's bounds of a probability, its error at which the iteration ends, and the most rounds that takes."""
Pair = tuple[Value, Value]


def _vectors(call: Call, x: Value, count: int) -> Array:
    found = np.array(call.floats("support_vectors"), np.float32)
    call.expect(count > 0 and found.size == count * x.shape[1], f"it has not {count} vectors of {x.shape[1]} features.")
    return found.reshape(count, -1)


def _kernel(call: Call, x: Value, vectors: Array) -> Value:
    """The kernel of the sample and each vector."""
    gamma, offset, degree = call.floats("kernel_params", (0.0, 0.0, 3.0))
    kind, none = call.text("kernel_type", "LINEAR"), np.zeros(len(vectors))
    if kind == "LINEAR":
        return weighted_sums(call, x, vectors, none)
    if kind == "RBF":
        farthest = ((vectors - vectors.mean(axis=0)) ** 2).sum(axis=1).max()
        distances = from_products if gamma * farthest < LARGE_EXPONENT else from_differences
        return call.activated(times_plus(call, distances(call, x, vectors), -gamma), "exponential")
    inner = weighted_sums(call, x, vectors * np.float32(gamma), none + offset)
    if kind == "POLY":
        return raised(call, inner, degree)
    if kind == "SIGMOID":
        return call.activated(inner, "tanh")
    raise call.unsupported(f"its kernel_type is {kind!r}")


def support_vector_regressor(call: Call) -> None:
    x, count = sample(call), call.integer("n_supports")
    weights, rho = np.array(call.floats("coefficients")), np.array(call.floats("rho"))
    if count > 0:
        x = _kernel(call, x, _vectors(call, x, count))
    else:
        call.expect(call.text("kernel_type", "LINEAR") == "LINEAR", "it has no support vectors.")
        call.floats("kernel_params")
    call.expect(weights.size == x.shape[1] and rho.size == 1, "its coefficients do not match its vectors.")
    score = weighted_sums(call, x, weights.reshape(1, -1), rho)
    if call.integer("one_class"):
        above = compared(call, "greater", score, np.float32(0))
        score = chosen(call, above, np.float32(1), np.float32(-1))
    call.put(transformed(call, score))


def support_vector_classifier(call: Call) -> None:
    labels, members = labels_of(call, ("classlabels_ints", "classlabels_strings")), call.integers("vectors_per_class")
    if not members:
        _linear_classifier(call, labels)
        return
    call.expect(
        len(members) == labels.size > 1, f"its vectors are of {len(members)} classes, its labels {labels.size}."
    )
    x = sample(call)
    pairs = list(combinations(range(labels.size), 2))
    weights = _pair_weights(call, members, pairs)
    rho = np.array(call.floats("rho"))
    call.expect(rho.size == len(pairs), f"it has {rho.size} offsets for {len(pairs)} pairs of classes.")
    scores = weighted_sums(call, _kernel(call, x, _vectors(call, x, sum(members))), weights, rho)
    put_class(call, _votes(call, scores, pairs, labels.size), labels)
    if call.has("prob_a"):
        call.put(transformed(call, _shares(call, scores)), 1)
        return
    if labels.size == 2:
        if call.text("post_transform", "NONE") == "SOFTMAX":
            raise call.unsupported("its post_transform for two classes is 'SOFTMAX'")
        scores = combined(call, "multiply", scores, np.array([-1, 1], np.float32))
    call.put(transformed(call, scores), 1)


def _pair_weights(call: Call, members: tuple[int, ...], pairs: list[tuple[int, int]]) -> Array:
    """The coefficients of all vectors for each pair of classes; 0 for those of other classes."""
    ends = np.cumsum((0, *members))
    given = np.array(call.floats("coefficients"), np.float32)
    fits = given.size == (len(members) - 1) * ends[-1]
    call.expect(fits, f"its {given.size} coefficients do not match its {ends[-1]} vectors.")
    given, weights = given.reshape(len(members) - 1, -1), np.zeros((len(pairs), ends[-1]), np.float32)
    for row, (one, other) in zip(weights, pairs, strict=True):
        for own, at in ((one, other - 1), (other, one)):
            mine = slice(ends[own], ends[own + 1])
            row[mine] = given[at, mine]
    return weights


def _votes(call: Call, scores: Value, pairs: list[tuple[int, int]], classes: int) -> Value:
    """How many pairs each class wins."""
    first = call.converted(compared(call, "greater", scores, np.float32(0)), FLOAT, "float32")
    counts = np.zeros((classes, len(pairs)))
    for index, (one, other) in enumerate(pairs):
        counts[one, index], counts[other, index] = 1, -1
    return weighted_sums(call, first, counts, (counts < 0).sum(axis=1))


def _shares(call: Call, scores: Value) -> Value:
    """The probabilities of two classes, by libsvm's iteration, which takes at most two rounds and stops early."""
    slope, offset = call.floats("prob_a"), call.floats("prob_b")
    if scores.shape[1] != 1:
        raise call.unsupported("it computes probabilities of more than two classes (train it with probability=False)")
    call.expect(len(slope) == len(offset) == 1, "it has several slopes for one pair of classes.")
    ends = (LEAST_SHARE, 1 - LEAST_SHARE)
    line = times_plus(call, scores, -slope[0], -offset[0])
    first = call.activated(call.activated(line, "sigmoid"), "clamp", ends)
    rest = times_plus(call, first, -1.0, 1.0)
    shares: Pair = (times_plus(call, first, 0.0, 0.5),) * 2
    for _ in range(ROUNDS):
        shares = _round(call, first, rest, shares)
    return joined(call, shares, 1)


def _round(call: Call, first: Value, rest: Value, shares: Pair) -> Pair:
    """One round, unless the shares are near already."""
    distance = _distance(call, first, rest, shares)
    sides = combined(call, "subtract", rest, distance), combined(call, "add", first, distance)
    farthest = combined(call, "maximum", *(call.activated(side, "absolute") for side in sides))
    error = combined(call, "multiply", call.activated(distance, "absolute"), farthest)
    near = compared(call, "less", error, np.float32(NEAR))
    one, other = _step(call, shares, rest, distance)
    distance = _distance(call, first, rest, (one, other))
    other, one = _step(call, (other, one), first, call.activated(distance, "negative"))
    return chosen(call, near, shares[0], one), chosen(call, near, shares[1], other)


def _distance(call: Call, first: Value, rest: Value, shares: Pair) -> Value:
    products = (combined(call, "multiply", *both) for both in zip((rest, first), shares, strict=True))
    return combined(call, "subtract", *products)


def _step(call: Call, shares: Pair, factor: Value, distance: Value) -> Pair:
    """Changes the first share to its best value beside the other; their sum stays 1."""
    ratio = combined(call, "divide", distance, factor)
    change = combined(call, "subtract", call.activated(ratio, "square"), ratio)
    whole = times_plus(call, change, 1.0, 1.0)
    grown = combined(call, "add", shares[0], change)
    return combined(call, "divide", grown, whole), combined(call, "divide", shares[1], whole)


def _linear_classifier(call: Call, labels: Array) -> None:
    x = sample(call)
    call.expect(call.text("kernel_type", "LINEAR") == "LINEAR", "it has no support vectors.")
    weights, rho = np.array(call.floats("coefficients")), np.array(call.floats("rho"))
    call.floats("kernel_params")
    if labels.size == 2:
        raise call.unsupported("it is linear and of two classes")
    call.expect(weights.size == labels.size * x.shape[1] and rho.size > 0, "its coefficients do not match its classes.")
    scores = weighted_sums(call, x, weights.reshape(labels.size, -1), np.full(labels.size, rho[0]))
    put_class(call, scores, labels)
    call.put(transformed(call, scores), 1)
