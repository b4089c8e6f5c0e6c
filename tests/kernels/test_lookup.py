"""Look-ups of bytes: every entry is found, by every set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.model.graph import Graph, Op, Quant, Tensor
from nnbuild.model.verify import ModelError, verify
from nnbuild.ops.lookup import Lookup
from tests.kernels.test_variants import candidates
from tests.support.many import run_many

SIZES = (256, 1, 15, 16, 131)
ENTRIES = tuple(map(int, np.random.default_rng(7).permutation(256) - 128))


def graph_of(entries: tuple[int, ...], size: int) -> Graph:
    tensors = {
        "x": Tensor("x", (size,), "int8", Quant((0.5,), 3)),
        "y": Tensor("y", (size,), "int8", Quant((1e9,), -7)),
    }
    return verify(Graph("net", tensors, {}, (Op("op", Lookup(entries), ("x",), ("y",)),), ("x",), ("y",)))


@pytest.mark.slow
def test_every_byte_is_found(tmp_path: Path) -> None:
    runs, targets = [], []
    for size in SIZES:
        graph = graph_of(ENTRIES, size)
        x = np.resize(np.arange(-128, 128), (3, size)).astype(np.int8)
        for _, target in candidates(graph):
            runs.append((graph, {"x": x}))
            targets.append(target)
    assert len({target.isa.name for target in targets}) > 5
    results = run_many(runs, tmp_path, targets=targets, flags=["-DNN_PORTABLE"])
    for (_, inputs), found in zip(runs, results, strict=True):
        np.testing.assert_array_equal(found["y"], np.array(ENTRIES)[inputs["x"].astype(int) + 128])


def test_a_table_has_256_entries() -> None:
    with pytest.raises(ModelError, match="255 entries instead of 256"):
        graph_of(ENTRIES[:255], 4)
