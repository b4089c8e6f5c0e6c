"""Decision trees and their ensembles, of the domain ai.onnx.ml.

All trees of an ensemble are traversed together, one level at a time: each tree has a current node, and tables of all
nodes give the feature to compare, the threshold, and the successors. A leaf is its own successor.
"""

from __future__ import annotations

import numpy as np

from nnbuild.frontend.builder import Form
from nnbuild.frontend.onnx.arithmetic import combined, compared
from nnbuild.frontend.onnx.call import FLOAT, INT32, TRUTH, Call
from nnbuild.frontend.onnx.data_movement import joined
from nnbuild.frontend.onnx.ml_common import labels_of, put_class, put_label, sample, transformed
from nnbuild.frontend.onnx.reducing import reduced
from nnbuild.model.graph import Array, Shape
from nnbuild.model.views import stored
from nnbuild.ops.compare import Compare
from nnbuild.ops.gather import Gather
from nnbuild.ops.known import Known
from nnbuild.ops.layout import Value
from nnbuild.ops.select import Select

COMPARED = {
    "BRANCH_EQ": "equal",
    "BRANCH_NEQ": "not_equal",
    "BRANCH_LEQ": "less_equal",
    "BRANCH_LT": "less",
    "BRANCH_GTE": "greater_equal",
    "BRANCH_GT": "greater",
}
DEEPEST = 64
LARGEST = np.finfo(np.float32).max


class _Trees:
    """Tables of the nodes of all trees, by index."""

    def __init__(self, call: Call) -> None:
        trees, nodes = (call.integers(f"nodes_{name}") for name in ("treeids", "nodeids"))
        self.place = {key: i for i, key in enumerate(zip(trees, nodes, strict=True))}
        count = len(self.place)
        call.expect(count == len(nodes) > 0, "two nodes of a tree have the same number, or there are no nodes.")
        modes = call.attribute("nodes_modes")
        kinds = modes.texts if modes is not None else ()
        self.features = np.array(call.integers("nodes_featureids"), np.int32)
        self.limits = np.array(call.floats("nodes_values"), np.float32)
        ways = [call.integers(f"nodes_{name}nodeids") for name in ("true", "false")]
        fits = {len(kinds), self.features.size, self.limits.size, *map(len, ways)} == {count}
        call.expect(fits, "its lists of nodes differ in length.")
        if call.has("nodes_values_as_tensor"):
            raise call.unsupported("it has limits in float64")
        missing = call.integers("nodes_missing_value_tracks_true")
        call.expect(len(missing) in (0, count), "its lists of nodes differ in length.")
        self.missing = np.array([bool(each) for each in missing or (0,) * count], np.int8)
        call.floats("nodes_hitrates")
        inner = {kind for kind in kinds if kind != "LEAF"}
        if unknown := sorted(inner - COMPARED.keys()):
            raise call.unsupported(f"its nodes use the comparison {unknown[0]!r}")
        self.compared = {kind: np.array([each == kind for each in kinds], np.int8) for kind in sorted(inner)}
        self.limits = np.clip(self.limits, -LARGEST, LARGEST)  # infinity: only what is missing goes the other way
        self.leaf = np.array([kind == "LEAF" for kind in kinds])
        self.next = [
            np.array([i if self.leaf[i] else self.at(call, trees[i], way[i]) for i in range(count)], np.int32)
            for way in ways
        ]
        if self.missing.any():  # what is missing differs from every limit, as in onnxruntime
            self.missing |= self.compared.get("BRANCH_NEQ", np.int8(0))
        self.missing[self.leaf] = 0
        self.features[self.leaf] = 0
        self.limits[self.leaf] = 0.0
        below = {int(i) for way in self.next for i in way[~self.leaf]}
        self.roots = np.array([i for i in range(count) if i not in below], np.int32)
        self.depth = self._depth(call)

    def at(self, call: Call, tree: int, node: int) -> int:
        found = self.place.get((tree, node))
        if found is None:
            raise call.error(f"its tree {tree} has no node {node}.")
        return found

    def _depth(self, call: Call) -> int:
        places, depth = self.roots, 0
        while not self.leaf[places].all():
            depth += 1
            call.expect(depth <= DEEPEST, f"its trees are deeper than {DEEPEST}, or contain a cycle.")
            places = np.unique(np.concatenate([way[places] for way in self.next]))
        return depth

    def walk(self, call: Call, x: Value) -> str:
        """The leaf of every tree, as an index into the tables."""
        row = call.plain(x)
        features = call.seen(row.name, (x.shape[1],))
        call.expect(int(self.features.max()) < x.shape[1], f"its nodes use more than {x.shape[1]} features.")
        places = call.add(Known(), [features], {"values": self.roots}, INT32)
        for _ in range(self.depth):

            def table(values: Array, form: Form, at: str = places) -> str:
                return call.add(Gather(0), [at], {"table": values}, form)

            value = call.add(Gather(0), [features, table(self.features, INT32)])
            limit = table(self.limits, FLOAT)
            first, *others = self.compared
            goes = call.add(Compare(COMPARED[first]), [value, limit], form=TRUTH)
            for kind in others:
                truth = call.add(Compare(COMPARED[kind]), [value, limit], form=TRUTH)
                goes = call.add(Select(), [table(self.compared[kind], TRUTH), truth, goes], form=TRUTH)
            if self.missing.any():
                absent = call.add(Compare("not_equal"), [value, value], form=TRUTH)
                goes = call.add(Select(), [absent, table(self.missing, TRUTH), goes], form=TRUTH)
            ways = [table(way, INT32) for way in self.next]
            places = call.add(Select(), [goes, *ways], form=INT32)
        return places


def _ensemble(call: Call, kind: str, targets: int) -> Value:
    """The sums of the leaves' weights for each target."""
    trees = _Trees(call)
    ids, own_trees, nodes = (call.integers(f"{kind}_{name}") for name in ("ids", "treeids", "nodeids"))
    weights = call.floats(f"{kind}_weights")
    fits = len(ids) == len(own_trees) == len(nodes) == len(weights) and all(0 <= i < targets for i in ids)
    call.expect(fits, "its weights do not match its leaves and targets.")
    table = np.zeros((len(trees.leaf), targets), np.float32)
    for target, tree, node, weight in zip(ids, own_trees, nodes, weights, strict=True):
        table[trees.at(call, tree, node), target] += weight
    way = call.text("aggregate_function", "SUM")
    if way not in ("SUM", "AVERAGE"):
        raise call.unsupported(f"its aggregate_function is {way!r}")
    if way == "AVERAGE":
        table /= np.float32(len(trees.roots))
    found = call.add(Gather(0), [trees.walk(call, sample(call))], {"table": table})
    shape: Shape = (len(trees.roots), targets)
    total = reduced(call, Value(found, stored(shape), "float32"), "sum", [0], True)
    base = np.array(call.floats("base_values"), np.float32)
    call.expect(base.size in (0, targets), f"it has {base.size} base values for {targets} targets.")
    return combined(call, "add", total, base) if base.any() else total


def tree_regressor(call: Call) -> None:
    call.put(transformed(call, _ensemble(call, "target", call.integer("n_targets", 1))))


def tree_classifier(call: Call) -> None:
    labels = labels_of(call, ("classlabels_int64s", "classlabels_strings"))
    ids = set(call.integers("class_ids"))
    if len(labels) == 2 and len(ids) == 1:
        _one_of_two(call, labels, ids)
        return
    scores = _ensemble(call, "class", labels.size)
    put_class(call, scores, labels)
    call.put(transformed(call, scores), 1)


def _one_of_two(call: Call, labels: Array, ids: set[int]) -> None:
    """Trees that weigh one of two classes only, as gradient boosting writes them; computed as onnxruntime does."""
    if ids != {0} or len(call.floats("base_values")) > 1:
        raise call.unsupported("it has weights for the second of two classes only, or several base values")
    score = _ensemble(call, "class", 1)
    shares = min(call.floats("class_weights"), default=0.0) >= 0
    put_label(call, compared(call, "greater", score, np.float32(0.5 if shares else 0)), labels)
    if call.text("post_transform", "NONE") == "LOGISTIC":
        pair = [call.activated(combined(call, "multiply", score, np.float32(sign)), "sigmoid") for sign in (-1, 1)]
    else:
        rest = combined(call, "subtract", np.float32(1 if shares else 0), score)
        pair = [rest, score]
    call.put(joined(call, pair, 1), 1)
