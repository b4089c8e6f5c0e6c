"""Boxes of a detector, by the kernel and by the reference: equal scores, boxes alike, boxes without an area."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.nets import compiled_for
from nnbuild.backends.run_bound import run_bound
from nnbuild.board.tables import find
from nnbuild.jobs.job import Place, build_program
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.ops.detections import Detections
from tests.support.graphs import single
from tests.support.many import run_many

KINDS = {
    "together": Detections(4, 6, 1, 0, 0.3, 0.5),
    "two labels": Detections(5, 6, 2, 0, 0.3, 0.3),
    "each": Detections(4, 6, 1, 2, 0.3, 0.5),
    "each, all": Detections(5, 40, 1, 40, -1.0, 0.9),
    "one": Detections(1, 1, 1, 0, 0.0, 0.1, (10.0, 10.0, 5.0, 5.0)),
    "one of each": Detections(1, 1, 1, 1, 0.0, 0.1),
}


def detector(attributes: Detections, boxes: int, width: int = 4) -> Graph:
    chance = np.random.default_rng(boxes)
    anchors = np.concatenate([chance.uniform(0, 1, (boxes, 2)), chance.uniform(0.1, 0.6, (boxes, 2))], axis=1)
    anchors[::7] = anchors[0]
    anchors[3::11, 2] = 0.0
    return single(attributes, [(boxes, width), (boxes, 5)], {"anchors": anchors})


def given(boxes: int, width: int = 4) -> dict[str, Array]:
    chance = np.random.default_rng(1)
    codes, scores = chance.normal(size=(8, boxes, width)), chance.integers(0, 11, (8, boxes, 5)) / 10
    codes[:, ::7, :] = codes[:, :1, :]
    scores[0] = 0.5
    return {"x0": codes.astype(np.float32), "x1": scores.astype(np.float32)}


@pytest.mark.slow
def test_boxes_that_are_kept(tmp_path: Path) -> None:
    cases = [(attributes, boxes) for attributes in KINDS.values() for boxes in (1, 2, 33, 80)]
    runs = [(detector(*case), given(case[1])) for case in cases]
    runs += [(detector(attributes, 20, 6), given(20, 6)) for attributes in KINDS.values()]
    for (graph, inputs), found in zip(runs, run_many(runs, tmp_path), strict=True):
        wanted = interpret.run(graph, inputs)
        for name in graph.outputs:
            np.testing.assert_allclose(found[name], wanted[name], 1e-5, 1e-6, err_msg=str(graph.ops[0].attributes))


@pytest.mark.emulator
@pytest.mark.parametrize("name", ["together", "each"])
def test_the_longest_run_can_be_proved(name: str, tmp_path: Path) -> None:
    """Nothing is stored where an input tells, and every loop ends by itself."""
    program = build_program(compiled_for(detector(KINDS[name], 40), "mps2-an386"), Place(tmp_path))
    assert 10_000 < run_bound(find("mps2-an386"), program).instructions < 1_000_000
