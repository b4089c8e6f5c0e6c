"""Samples near a tie keep the class that the unchanged model gives them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from nnbuild.compress.classes import FORMS, class_shifts, classes_of
from nnbuild.compress.weight_matrices import scale_blocks
from nnbuild.model.graph import Graph
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import site_of
from nnbuild.quantize.data import Source
from nnbuild.quantize.quantize import Recipe, quantize_with, ranges_of
from tests.compress.nets import many


def dense(folder: Path) -> tuple[Graph, np.ndarray]:
    x = np.random.default_rng(3).normal(size=(96, 6, 6, 4)).astype(np.float32)
    np.savez(folder / "x.npz", x=x)
    graph = many()
    recipe = Recipe("int8", Source(folder / "x.npz"))
    return quantize_with(graph, recipe, ranges_of(graph, recipe)), x


def test_a_class_that_was_moved_is_moved_back(tmp_path: Path) -> None:
    graph, x = dense(tmp_path)
    found = classes_of(graph, {"x": x})
    assert found is not None
    assert len(found.right) == len(x) + FORMS * (len(x) // FORMS)
    site = site_of(graph, next(op for op in graph.ops if op.name == "last"))
    bias, steps = site.constants["bias"], quant_of(site.outputs[0]).scale * np.array([3, -3, 1.5, 0, -1.5])
    off = np.round(steps / quant_of(site.inputs[0]).scale / scale_blocks(site, "kernel").reshape(-1))
    wrong = replace(
        graph, constants={**graph.constants, bias.name: replace(bias, data=bias.data + off.astype(np.int32))}
    )

    def agree(other: Graph) -> float:
        right, given = (interpret.run(each, found.forms)["probs"].argmax(axis=1) for each in (graph, other))
        return float((right == given).mean())

    mended = verify(found.with_adjusted_bias(wrong))
    assert max(0.87, agree(wrong) + 0.05) < agree(mended)  # four of nine are within a step of a tie
    assert agree(found.with_adjusted_bias(graph)) > 0.9


def test_of_equal_ones_the_first_is_taken() -> None:
    chance = np.random.default_rng(1)
    scores = chance.normal(size=(4000, 2)) * 8
    right = np.round(scores).argmax(axis=1)
    assert not class_shifts(scores, right).any()
    moved = class_shifts(scores + np.array([0, 2.5]), right)
    assert abs(moved[0] - moved[1] - 2.5) <= 0.25


def test_what_has_no_classes_is_left_alone(tmp_path: Path) -> None:
    graph, x = dense(tmp_path)
    assert classes_of(replace(graph, outputs=("last",)), {"x": x}) is None
    bare = replace(
        graph,
        ops=tuple(op if op.name != "last" else replace(op, constants={"kernel": "last/kernel"}) for op in graph.ops),
    )
    assert classes_of(bare, {"x": x}) is None
