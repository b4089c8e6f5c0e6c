"""What single-shot detectors end with: boxes are decoded, and of those that overlap the best one is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect

Found = tuple[int, int, float]
"""The number of a box, its class and its score."""


@dataclass(frozen=True)
class Detections(Attributes):
    """Encoded boxes [n, 4 or more], scores [n, classes, perhaps behind others] and `anchors` [n, 4] -> the corners of
    `most` boxes, their classes, their scores, and how many of them are detections: the others are zeros.

    A box needs the score `least`. Among all boxes, or with `each` among those of one class, of which at most so many
    are kept, a box is left out whose share of the union with a better one is above `overlap`. Among all boxes, each is
    found with its `labels` best classes. Of equal scores the first counts more.
    """

    kind: ClassVar[str] = "detections"
    required: ClassVar[tuple[str, ...]] = ("anchors",)

    classes: int = 1
    most: int = 1
    labels: int = 1
    each: int = 0
    least: float = 0.0
    overlap: float = 0.5
    scales: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)
    """Of y, x, height and width in the encoded boxes."""

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        boxes, scores, anchors = *inputs, constants["anchors"]
        expect(len(boxes) == len(scores) == 2, f"its boxes {boxes} or scores {scores} have not two axes.")
        alike = boxes[0] == scores[0] == anchors[0] and anchors[1:] == (4,)
        expect(alike, f"its boxes {boxes}, scores {scores} and anchors {anchors} do not match.")
        expect(boxes[1] >= 4, f"its boxes have {boxes[1]} numbers.")
        expect(0 < self.classes <= scores[1], f"it has {self.classes} classes, and scores of {scores[1]}.")
        expect(self.most > 0 and 0 < self.labels <= self.classes, f"it finds {self.most} boxes, each of {self.labels}.")
        expect(self.each >= 0 and (self.labels == 1 or not self.each), "boxes of one class have one class.")
        rows = self.most * self.labels
        return (rows, 4), (rows,), (rows,), (1,)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        boxes, scores = inputs
        corners = self._corners(boxes, constants["anchors"])
        found = [list(self._found(*sample)) for sample in zip(corners, scores[..., -self.classes :], strict=True)]
        rows = self.most * self.labels
        made = [np.zeros((len(boxes), *shape), boxes.dtype) for shape in ((rows, 4), (rows,), (rows,))]
        for sample, listed in enumerate(found):
            for row, (at, label, score) in enumerate(listed):
                made[0][sample, row], made[1][sample, row], made[2][sample, row] = corners[sample, at], label, score
        counts = [[len(listed) // self.labels] for listed in found]
        return *made, np.array(counts, boxes.dtype).reshape(-1, 1)

    def magnitude(self, inputs: Sequence[Array], constants: Arrays, outputs: Sequence[Array]) -> tuple[Array, ...]:
        """A corner is the sum or the difference of a centre and half a side."""
        ends = np.abs(outputs[0]).reshape(*outputs[0].shape[:-1], 2, 2)
        return np.concatenate([ends.max(-2)] * 2, axis=-1), *(np.abs(y) for y in outputs[1:])

    def _corners(self, boxes: Array, anchors: Array) -> Array:
        """Lowest and highest y and x; anchors are centres and sides."""
        y, x, height, width = (boxes[..., i] / boxes.dtype.type(scale) for i, scale in enumerate(self.scales))
        centre = y * anchors[:, 2] + anchors[:, 0], x * anchors[:, 3] + anchors[:, 1]
        half = boxes.dtype.type(0.5)
        with np.errstate(over="ignore"):
            sides = half * np.exp(height) * anchors[:, 2], half * np.exp(width) * anchors[:, 3]
        low, high = ([c + sign * s for c, s in zip(centre, sides, strict=True)] for sign in (-1, 1))
        return np.stack([*low, *high], axis=-1)

    def _found(self, corners: Array, scores: Array) -> Iterator[Found]:
        if self.each:
            best = list[Found]()
            for label in range(self.classes):
                of_class = scores[:, label]
                least = best[-1][2] if len(best) == self.most else -np.inf
                kept = self._kept(corners, np.where(of_class > least, of_class, -np.inf), self.each)
                best = sorted(best + [(at, label, float(of_class[at])) for at in kept], key=_rank)[: self.most]
            yield from best
            return
        for at in self._kept(corners, scores.max(axis=1), self.most):
            for label in np.argsort(-scores[at], kind="stable")[: self.labels]:
                yield at, int(label), float(scores[at, label])

    def _kept(self, corners: Array, scores: Array, most: int) -> list[int]:
        """The best boxes, without those that overlap a better one."""
        order = np.argsort(-scores, kind="stable")
        order = order[scores[order] >= np.float32(self.least)]
        kept = list[int]()
        while len(order) and len(kept) < most:
            kept.append(int(order[0]))
            order = order[1:][~(_shared(corners[order[0]], corners[order[1:]]) > np.float32(self.overlap))]
        return kept


def _rank(found: Found) -> float:
    return -found[2]


def _shared(box: Array, others: Array) -> Array:
    """The area that a box shares with others, as a share of what both cover."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    both = (high - low).clip(0).prod(axis=-1)
    area, areas = (box[2:] - box[:2]).prod(), (others[:, 2:] - others[:, :2]).prod(axis=-1)
    with np.errstate(all="ignore"):
        return np.where((areas <= 0) | (area <= 0), 0, both / (area + areas - both))
