"""Kernels of sums on Cortex-M4 give the same results for single work items, in any order."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.emit.artifact import Artifact
from nnbuild.emit.emit import emit
from nnbuild.ops import interpret
from nnbuild.plan.plan import Plan
from tests.kernels.cases import cases
from tests.kernels.test_variants import candidates
from tests.support import many
from tests.support.quantized import full_range, quantized
from tests.support.shares import in_shares

pytestmark = pytest.mark.slow

ORDERS = {
    "singly and backwards": r"for (int32_t piece = \3; piece-- > 0;) \1(\2, piece, piece + 1);",
    "by threes": r"for (int32_t piece = 0; piece < \3; piece += 3)"
    r" \1(\2, piece, piece + 3 < \3 ? piece + 3 : \3);",
}

SHARES = 4


@pytest.mark.turns(4)
@pytest.mark.parametrize("order", ORDERS)
@in_shares(SHARES)
def test_single_work_items(order: str, share: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed: list[bool] = []

    def by_work_items(plan: Plan) -> Artifact:
        made = emit(plan)
        whole = made.files[f"{plan.prefix}.c"].decode()
        text = re.sub(r"(\w+)\((.*), 0, (\d+)\);", ORDERS[order], whole)
        changed.append(text != whole)
        return replace(made, files={**made.files, f"{plan.prefix}.c": text.encode()})

    monkeypatch.setattr(many, "emit", by_work_items)
    runs, targets = [], []
    found = [(name, maker) for name, maker in cases() if name.startswith(("conv2d-", "dense-"))]
    for name, maker in found[share::SHARES]:
        graph = quantized(maker(), "int8", seed=len(name))
        for _, target in candidates(graph):
            if target.isa.name == "armv7em_dsp":
                runs.append((graph, full_range(graph, 2, seed=2)))
                targets.append(replace(target, keep_tensors=True))
    results = many.run_many(runs, tmp_path, targets=targets)
    assert len(runs) > 60 // SHARES and all(changed)
    for (graph, inputs), result in zip(runs, results, strict=True):
        output = graph.outputs[0]
        np.testing.assert_array_equal(result[output], interpret.run(graph, inputs)[output])
