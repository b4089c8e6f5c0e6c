"""The kernels of Helium with native instructions, on an emulated Cortex-M55: bit-exact.

Other tests run the meanings of their operations (`test_variants`); this one runs the instructions.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.ops import interpret
from tests.kernels.test_float import samples
from tests.kernels.test_values import drawn
from tests.kernels.test_variants import BATCH, Case, candidates, found
from tests.support.compiled import STRICT
from tests.support.emulators import IMAGE, are_here, cortex_m
from tests.support.many import run_many
from tests.support.quantized import full_range
from tests.support.shares import in_shares

COMPILER, RUNNER = cortex_m("cortex-m55")
SHARES = 9

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(
        not are_here((COMPILER, RUNNER)),
        reason="no arm-none-eabi-gcc or no qemu-system-arm",
    ),
]


def compare(cases: list[Case], form: str, folder: Path, level: str = "-O2") -> None:
    folder.mkdir()
    runs = [
        (graph, samples(graph, name.endswith("positive")) if form == "float" else full_range(graph, 6, seed=1))
        for name, _, graph, _ in cases
    ]
    targets = [target for _, _, _, target in cases]
    outputs = run_many(
        runs, folder, compiler=COMPILER, flags=(level, *IMAGE), targets=targets, runner=RUNNER.split(), strict=STRICT
    )
    for (name, kernel, graph, _), (_, inputs), result in zip(cases, runs, outputs, strict=True):
        wanted = interpret.run(graph, inputs, *(["float64"] if form == "float" else []))
        for output in graph.outputs:
            if form == "float":
                close = {"rtol": 1e-5, "atol": 1e-5}
                np.testing.assert_allclose(result[output], wanted[output], **close, err_msg=f"{name}, {kernel}")
            else:
                np.testing.assert_array_equal(result[output], wanted[output], err_msg=f"{name}, {kernel}")


@pytest.mark.turns(2)
@pytest.mark.parametrize("form", ["int8", pytest.param("int16", marks=pytest.mark.full), "float", "real"])
@in_shares(SHARES)
def test_kernels_equal_the_reference(form: str, share: int, tmp_path: Path) -> None:
    mine = found(form, "mve")[share::SHARES]
    assert mine
    for begin in range(0, len(mine), BATCH):
        compare(mine[begin : begin + BATCH], form, tmp_path / str(begin))


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.parametrize("level", ["-O0", "-O1", "-Os"])
@in_shares(SHARES)
def test_sums_survive_where_little_is_inlined(share: int, level: str, tmp_path: Path) -> None:
    """They stay in registers that no call preserves."""
    mine = found("int8", "mve")[share::SHARES]
    for begin in range(0, len(mine), BATCH):
        compare(mine[begin : begin + BATCH], "int8", tmp_path / str(begin), level)


@in_shares(SHARES)
def test_values_do_not_matter(share: int, tmp_path: Path) -> None:
    """Dead, nearly dead and dominating channels, which expose rounding errors that usual weights hide."""
    mine = [
        (what, kernel, graph, target)
        for what, graph, target in drawn("int8")
        if target.isa.name == "mve" and (kernel := what.rpartition(": ")[2]) in dict(candidates(graph))
    ][share::SHARES]
    assert mine
    compare(mine, "int8", tmp_path / "drawn")
