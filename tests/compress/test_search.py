"""Budgets of a search: what keeps to them is found though no choice before it does, refusals name what can be had."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from nnbuild.base.errors import CheckFailed
from nnbuild.compress.candidates import Candidate
from nnbuild.compress.graph import Compressed, Specs
from nnbuild.compress.layer import Spec
from nnbuild.compress.price import Price, Whole
from nnbuild.compress.search import Search
from nnbuild.model.graph import Graph
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site
from tests.support.graphs import single
from tests.support.quantized import quantized

CHOICES = {127: (1000, 0.0), 31: (800, 0.2), 15: (600, 2.0), 7: (400, 0.4), 3: (300, 5.0)}
"""By the largest weight: bytes, and points that it loses, which is partly chance."""
ERRORS = dict(zip(CHOICES, (0.0, 1.0, 3.0, 6.0, 20.0), strict=True))


def largest(graph: Graph) -> int:
    return int(graph.notes[-1]) if graph.notes else 127


class Listed:
    """A board where the largest weight says all."""

    def site(self, site: Site) -> Price:
        size = CHOICES[int(np.abs(site.constant("kernel")).max())][0]
        return Price(size, float(size))

    def among(self, graphs: Iterable[Graph]) -> Listed:
        return self

    def whole(self, graph: Graph) -> Whole:
        return Whole(CHOICES[largest(graph)][0], {})

    def better(self, one: Price, other: Price) -> bool:
        return one.bytes < other.bytes


def within(flash: int, drop: float | None, more: float = 0.0) -> int:
    """The largest weight of what is found. All choices lose so many points `more`."""
    kernel = np.random.default_rng(0).normal(size=(64, 8))
    graph = quantized(single(Dense(), [(64,)], {"kernel": kernel, "bias": np.ones(8)}), "int8", seed=1)
    (name,) = (op.name for op in graph.ops if op.kind == "dense")

    def made(specs: Specs, heard: Callable[[str], None]) -> Compressed:
        return Compressed(replace(graph, notes=(str(specs[name, "kernel"].most),)), specs, {})

    def drop_of(graph: Graph) -> float:
        return CHOICES[largest(graph)][1] + more

    found: Mapping[str, list[Candidate]] = {
        name: [Candidate(name, Spec(most=most), size, ERRORS[most]) for most, (size, _) in CHOICES.items()]
    }
    search = Search(graph, made, Listed(), drop_of, lambda _: None)
    return search.within(found, flash, drop).choice[name].spec.most


def test_choices_of_fewer_bytes_are_looked_at_before_a_budget_is_refused() -> None:
    assert within(650, None) == 7
    assert within(650, 0.5) == 7
    assert within(650, 2.5) == 15
    assert within(800, 0.5) == 31


def test_a_refusal_names_the_nearest_pairs() -> None:
    with pytest.raises(CheckFailed) as caught:
        within(650, 0.3)
    assert str(caught.value) == (
        "--accuracy-drop 0.3: within --flash 650 the model loses 0.40 points; losing no more than 0.3 takes 800 bytes. "
        "Give --flash 650 --accuracy-drop 0.40, or --flash 800 --accuracy-drop 0.3."
    )
    assert within(650, 0.4) == 7
    assert within(800, 0.3) == 31


def test_a_drop_that_is_named_is_enough() -> None:
    with pytest.raises(
        CheckFailed, match=r"loses 1\.00 points before any compression, more than 0\.5\. Give --accuracy-drop 1\.01, "
    ):
        within(650, 0.5, more=1.004)
    assert within(650, 1.5, more=1.004) == 7
