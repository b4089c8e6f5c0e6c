"""Whole models of other origins as compiled C: old files, real networks, long sequences, a very large one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nnbuild import cli, passes
from nnbuild.frontend import load
from nnbuild.model.graph import Array, Graph
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.end_to_end.zoo_batches import differences, read
from tests.support.batch import SANITIZED, Entry, run_batch
from tests.zoo import TFKERAS, WRITERS, long_lstm, names, vgg16, zoo
from tests.zoo.legacy import DIALECTS, Dialect, rewrite

SHARED = Path(__file__).resolve().parents[3] / "shared" / "models"
OPTIMIZED = ("gcc", "-O2")


def computed(graph: Graph, x: Array, folder: Path, tool: tuple[str, ...]) -> Array:
    """The only output of a model with one input."""
    graph = passes.run(graph)
    (found,) = run_batch([Entry(make_plan(graph, "net", Target()), {graph.inputs[0]: x})], folder, tool)
    return found[graph.outputs[0]]


@pytest.mark.slow
@pytest.mark.turns(2)
@pytest.mark.parametrize("tool", [SANITIZED, OPTIMIZED], ids=["sanitized", "optimized"])
@pytest.mark.parametrize(
    ("model", "samples"),
    [
        ("pretrainedResnet.h5", "pretrainedResnet_golden.npz"),
        ("kws_ref_model.h5", "kws_ref_model_golden.npz"),
        ("kws_ref_model.h5", "kws_ref_model_real.npz"),
    ],
)
def test_real_networks(model: str, samples: str, tool: tuple[str, ...], tmp_path: Path) -> None:
    """Trained by others, saved by Keras 2; their golden outputs are Keras' own."""
    if not (SHARED / model).is_file():
        pytest.skip(f"needs ../shared/models/{model}")
    with np.load(SHARED / samples) as file:
        x, y = file["x"], file["y"]
    found = computed(load(SHARED / model), x, tmp_path, tool)
    assert np.abs(found - y).max() <= 2e-5
    assert (found.argmax(axis=1) == y.argmax(axis=1)).all()


@pytest.mark.turns(2)
@pytest.mark.oracle
@pytest.mark.parametrize("writer", WRITERS)
def test_a_long_sequence_carries_its_state(writer: str, tmp_path: Path) -> None:
    directory = long_lstm(writer)
    with np.load(directory / "long_lstm.npz") as file:
        x, y = file["x"], file["y"]
    assert len(x) == 200
    found = computed(load(directory / "long_lstm.h5"), x, tmp_path, OPTIMIZED)
    assert (np.abs(found - y) <= 1e-5 * (1 + np.abs(y))).all(), np.abs(found - y).max()
    assert np.abs(y[150:]).max() > 0.1, "it has not died away"


NEWER = ("tfop", "ops")
"""Single operations came with TensorFlow 2.4: no older file holds one."""


@pytest.mark.turns(9)
@pytest.mark.oracle
@pytest.mark.parametrize("index", range(len(DIALECTS)), ids=[dialect.name for dialect in DIALECTS])
def test_files_of_old_versions(index: int, tmp_path: Path) -> None:
    """Every dialect of Keras 2 with a share of the zoo; importing all of it is tested with the frontend."""
    dialect: Dialect = DIALECTS[index]
    directory = zoo(TFKERAS)
    old = [name for name in names(TFKERAS) if not name.startswith(NEWER)]
    subjects = []
    for name in old[index :: len(old) // 48]:
        rewrite(directory / f"{name}.h5", tmp_path / f"{name}.h5", dialect)
        subjects.append(read(name, tmp_path / f"{name}.h5", directory / f"{name}.npz"))
    assert len(subjects) >= 48
    assert differences(subjects, tmp_path, SANITIZED) == []


@pytest.mark.oracle
@pytest.mark.full
def test_vgg16(tmp_path: Path) -> None:
    """138 million parameters, from the command line."""
    directory, report = vgg16(), tmp_path / "report.json"
    status = cli.main(
        ["check", str(directory / "vgg16.h5"), "--inputs", str(directory / "vgg16.npz"), "--json", str(report)]
    )
    facts = json.loads(report.read_text())
    assert facts["misses"] == []
    assert status == 0
    assert facts["memory"]["flash_weights"] >= 4 * 138_000_000
    golden = [c for output in facts["outputs"] for c in output["comparisons"] if c["against"] == "golden"]
    assert golden
