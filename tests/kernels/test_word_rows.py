"""Softmax, layer normalization, means and extremes of 16-bit rows: every set's kernels equal the reference, also for
strange rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Array, Graph
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.softmax import Softmax
from nnbuild.plan.target import Target
from tests.kernels.test_variants import candidates
from tests.support.graphs import single
from tests.support.quantized import quantized
from tests.support.references import equal_the_reference

SIZES = (16, 37, 65, 301)
PORTABLE = {"integer", "one_by_one", "one_by_one_short", "words"}


def rows(size: int) -> Array:
    """Constant ones, both ends, one that stands out, small steps, and drawn ones."""
    chance = np.random.default_rng(size)
    ends = np.resize(np.array([-32768, 32767]), size)
    alone = np.full(size, -32768)
    alone[size // 2] = 32767
    steps = 32767 - np.arange(size)
    drawn = [chance.normal(0, spread, size).clip(-32768, 32767) for spread in (0.4, 30, 3000, 40000)]
    found = [np.full(size, 5), np.full(size, -32768), ends, alone, -alone - 1, steps, *drawn]
    return np.stack(found).round().astype(np.int16)


def graphs() -> Iterator[tuple[Graph, int]]:
    chance = np.random.default_rng(0)
    for size in SIZES:
        for powers in ((-16.0, -13.0), (-10.0, -8.0), (-5.0, -3.0)):
            yield quantized(single(Softmax(0, 1), [(size,)]), "int16", size, powers=powers), size
            for function in ("mean", "sum", "max", "min"):
                same = function in ("max", "min")
                for shape, axis in (((size,), 0), ((5, size), 0)):
                    reduced = single(Reduce(function, axis, 1), [shape])
                    yield quantized(reduced, "int16", size, same_scale=same, powers=powers), size
            for epsilon in (1e-6, 1e-2, 30.0) if powers[0] == -10 else (1e-3,):
                constants = {role: chance.normal(0.3, 1, size).astype(np.float32) for role in ("scale", "shift")}
                for attributes in (LayerNorm(1, epsilon), LayerNorm(1, epsilon, centred=False)):
                    yield quantized(single(attributes, [(size,)], constants), "int16", size, powers=powers), size


@pytest.mark.slow
@pytest.mark.turns(6)
@pytest.mark.parametrize("share", range(4))
def test_rows_equal_the_reference(share: int, tmp_path: Path) -> None:
    runs: list[tuple[Graph, dict[str, Array]]] = []
    targets: list[Target] = []
    seen = set()
    for graph, size in graphs():
        for kernel, target in candidates(graph):
            if kernel not in PORTABLE:
                seen.add((graph.ops[0].kind, kernel))
                shape = graph.tensors[graph.inputs[0]].shape
                runs.append((graph, {graph.inputs[0]: np.resize(rows(size), (10 // len(shape), *shape))}))
                targets.append(target)
    for kind in ("softmax", "layer_norm", "reduce"):
        sets = {(kind, k.name) for k in variants(kind) if k.name.endswith(("_integers", "_across"))}
        assert sets - seen <= {("softmax", "sse2_integers")}, "SSE2 does not gather"
    equal_the_reference(runs[share::4], targets[share::4], tmp_path)
