"""Compares imported models with Keras itself, of either generation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.ops import interpret


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
