"""Measured costs: named by the work alone, and above the bill."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.paths import generator_files, measured_costs
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import site_of
from nnbuild.plan import measured
from nnbuild.plan.select import choose
from nnbuild.plan.target import Target
from tests.support.graphs import single


def dense(units: int, seed: int = 0):
    kernel = np.random.default_rng(seed).normal(size=(7, units)).astype(np.float32)
    graph = single(Dense(), [(7,)], {"kernel": kernel})
    return site_of(graph, graph.ops[0])


def test_weights_do_not_name_the_work_but_shapes_do() -> None:
    assert measured.work_name(dense(4)) == measured.work_name(dense(4, seed=1))
    assert measured.work_name(dense(4)) != measured.work_name(dense(5))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    measured.table.cache_clear()
    measured_costs().mkdir(parents=True)
    yield measured_costs()
    measured.table.cache_clear()


def test_what_was_measured_outranks_the_bill(folder: Path) -> None:
    assert not choose(dense(4), Target()).price.measured
    (folder / "c99.json").write_text(json.dumps({measured.work_name(dense(4)): {"scalar": 12345}}))
    measured.table.cache_clear()
    assert (choose(dense(4), Target()).price.cycles, choose(dense(4), Target()).price.measured) == (12345, True)
    assert not choose(dense(5), Target()).price.measured


def test_new_figures_replace_old_ones_in_a_fixed_order() -> None:
    known = {"b": {"scalar": 3, "dsp": 2}}
    new = {"a": {"scalar": 1}, "b": {"scalar": 4}}
    assert measured.text(measured.merged(known, new)) == measured.text(
        {"a": {"scalar": 1}, "b": {"dsp": 2, "scalar": 4}}
    )


def test_builds_see_when_something_was_measured(folder: Path) -> None:
    (folder / "c99.json").write_text("{}")
    assert folder / "c99.json" in generator_files()
