"""No kernel reads what nobody wrote, or writes where it may not.

The arena is NaN before every run, the bytes around the context are watched, and the sanitizers look on.
"""

from __future__ import annotations

import numpy as np
import pytest

from nnbuild.ops import interpret
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.kernels.cases import cases
from tests.support.batch import CLANG, SANITIZED, Entry, run_batch

pytestmark = pytest.mark.slow

LOTS = 4
CASES = list(cases())


def entries(lot: int, apart: bool) -> list[Entry]:
    made = []
    for index, (name, maker) in list(enumerate(CASES))[lot::LOTS]:
        graph = maker()
        chance = np.random.default_rng(1)
        values = {n: chance.normal(scale=2.0, size=(3, *graph.tensors[n].shape)) for n in graph.inputs}
        positive = name.endswith("positive")
        inputs = {n: (np.abs(v) + 0.2 if positive else v).astype(np.float32) for n, v in values.items()}
        made.append(Entry(make_plan(graph, f"k{index}", Target(keep_tensors=apart)), inputs, everything=apart))
    return made


@pytest.mark.turns(6)
@pytest.mark.parametrize("lot", range(LOTS))
@pytest.mark.parametrize("apart", [False, True])
def test_kernels_in_a_poisoned_arena(lot: int, apart: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    made = entries(lot, apart)
    tool = CLANG if apart else SANITIZED
    for entry, found in zip(made, run_batch(made, tmp_path_factory.mktemp("batch"), tool), strict=True):
        wanted = interpret.run(entry.plan.graph, entry.inputs, "float64")
        for name, values in found.items():
            kind = entry.plan.graph.ops[0].attributes
            np.testing.assert_allclose(values, wanted[name], rtol=1e-5, atol=1e-5, err_msg=f"{kind}: {name}")
