"""Compares imported models with Keras itself, of either generation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import nnbuild
from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.ops import interpret
from tests.support.many import run_many


def expect_same(model: Any, folder: Path, *given: np.ndarray, atol: float = 1e-5, ending: str = "keras") -> None:
    """Keras' outputs and ours, sample by sample, as Keras ties some results to the batch."""
    path = folder / f"model.{ending}"
    model.save(path)
    graph = passes.run(load(path))
    for sample in range(len(given[0])):
        single = [array[sample : sample + 1] for array in given]
        golden = model(single if len(single) > 1 else single[0], training=False)
        wanted = golden if isinstance(golden, (list, tuple)) else [golden]
        feeds = {
            name: array.astype(graph.tensors[name].dtype) for name, array in zip(graph.inputs, single, strict=True)
        }
        found = interpret.run(graph, feeds)
        assert len(graph.outputs) == len(wanted)
        for name, value in zip(graph.outputs, wanted, strict=True):
            expected = np.asarray(value).astype(np.float64)
            actual = found[name].reshape(expected.shape).astype(np.float64)
            np.testing.assert_allclose(actual, expected, atol=atol, rtol=1e-4, err_msg=name)


def expect_integers(path: Path, given: Mapping[str, np.ndarray], folder: Path, errors: tuple[float, float]) -> None:
    """The compiled C in int8 and int16 is the reference, and their shares of noise lie below these."""
    exact = load(path)
    wanted = interpret.run(exact, given, "float64")
    runs = []
    for form in ("int8", "int16"):
        graph = nnbuild.compile(path, quantize=form, calibrate=given, io="float").compiled.graph
        runs.append((graph, dict(given)))
    for (graph, inputs), found, error in zip(runs, run_many(runs, folder), errors, strict=True):
        whole = interpret.run(graph, inputs)
        for name, true in zip(graph.outputs, exact.outputs, strict=True):
            np.testing.assert_array_equal(found[name], whole[name])
            assert np.square(whole[name] - wanted[true]).mean() < error * wanted[true].var()
