"""Programs of many targets against the reference, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.plan.target import Target
from tests.support.compiled import SANITIZE
from tests.support.many import run_many

TOGETHER = 100
"""Networks in one program."""
Run = tuple[Graph, Mapping[str, Array]]


def equal_the_reference(runs: Sequence[Run], targets: Sequence[Target], folder: Path, here: bool = False) -> None:
    """By the meanings of all operations, with sanitizers; or by the instructions of this processor."""
    flags = ["-O2"] if here else [*SANITIZE, "-DNN_PORTABLE"]
    for start in range(0, len(runs), TOGETHER):
        some = slice(start, start + TOGETHER)
        (where := folder / str(start)).mkdir()
        results = run_many(runs[some], where, targets=targets[some], flags=flags)
        for (graph, inputs), target, result in zip(runs[some], targets[some], results, strict=True):
            expected = interpret.run(graph, inputs)
            for output in graph.outputs:
                said = f"{graph.ops[0]} {target.forced_kernels}"
                np.testing.assert_array_equal(result[output], expected[output], err_msg=said)
