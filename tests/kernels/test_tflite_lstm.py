"""TFLite's 8-bit LSTM in C, in all of its forms, against the reference: bit-exact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa import registry
from nnbuild.isa.registry import isas
from nnbuild.model.graph import Constant, Graph, Op, Quant, Tensor
from nnbuild.model.verify import verify
from nnbuild.numeric.multiplier import quantize_multiplier
from nnbuild.ops import interpret
from nnbuild.ops.tflite_lstm import GATES, Four, TfliteLstm
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.kernels import made_up_set
from tests.kernels.test_integer_recurrent import extreme
from tests.support.batch import SANITIZED, Entry, run_batch

pytestmark = pytest.mark.slow

SHAPES = ((5, 3, 4), (1, 1, 1), (4, 7, 9), (3, 16, 17))
"""Steps, features, units."""
LOUDNESS = (1e-4, 3e-3, 0.2)
"""Scales of sums at the gates: nearly closed, in the middle, saturated."""


def layer(steps: int, features: int, units: int, loud: float, seed: int) -> Graph:
    chance = np.random.default_rng(seed)

    def four() -> Four:
        a, b, c, d = (quantize_multiplier(loud * 4096 * 2.0 ** chance.normal(-6, 1)) for _ in range(GATES))
        return a, b, c, d

    zeros = [int(chance.integers(-128, 128)) for _ in range(2)]
    hidden = quantize_multiplier(float(2.0 ** chance.normal(-23, 0.3)))
    power = int(chance.integers(-15, -9))
    clip = int(chance.integers(0, 2)) * 20000
    lstm = TfliteLstm(units, four(), four(), hidden, zeros[1], zeros[1], power, clip)
    constants = {
        "kernel": chance.integers(-127, 128, (GATES, features, units)).astype(np.int8),
        "recurrent": chance.integers(-127, 128, (GATES, units, units)).astype(np.int8),
        "bias": chance.integers(-3000, 3000, (GATES, units)).astype(np.int32),
    }
    made = {
        "x": Tensor("x", (steps, features), "int8", Quant((0.02,), zeros[0])),
        "y": Tensor("y", (steps, units), "int8", Quant((1 / 128,), zeros[1])),
        "cell": Tensor("cell", (units,), "int16", Quant((2.0**power,), 0)),
    }
    op = Op("op", lstm, ("x",), ("y", "cell"), {role: role for role in constants}, layer="op")
    held = {role: Constant(role, values, Quant((1.0,), 0)) for role, values in constants.items()}
    return verify(Graph("net", made, held, (op,), ("x",), ("y", "cell")))


def compare(target: Target, kernel: str, folder: Path, flags: tuple[str, ...] = ()) -> None:
    graphs = [layer(*shape, loud, seed) for seed, shape in enumerate(SHAPES) for loud in LOUDNESS]
    wish = replace(target, forced_kernels={"op": kernel})
    entries = [Entry(make_plan(graph, f"net{index}", wish), extreme(graph, 4)) for index, graph in enumerate(graphs)]
    assert all(entry.plan.steps[0].versions[0].choice.kernel.name == kernel for entry in entries)
    for entry, found in zip(entries, run_batch(entries, folder, (*SANITIZED, *flags)), strict=True):
        wanted = interpret.run(entry.plan.graph, entry.inputs)
        for output in entry.plan.graph.outputs:
            np.testing.assert_array_equal(found[output], wanted[output])


@pytest.mark.parametrize("kernel", ["scalar", "pairs", "pairs_wide"])
def test_forms_equal_the_reference(kernel: str, tmp_path: Path) -> None:
    compare(Target(isas()["armv7em_dsp"]), kernel, tmp_path)


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", ["sse2", "avx512_vnni", "neon"])
def test_vectors_equal_the_reference(name: str, tmp_path: Path) -> None:
    found = isas()[name]
    compare(Target(found), f"{name}_integers", tmp_path, ("-DNN_PORTABLE",))


def test_a_set_that_is_added_has_them(tmp_path: Path) -> None:
    with registry.added(made_up_set.ISA, made_up_set.VECTORS):
        compare(Target(isas()["made_up"]), "made_up_integers", tmp_path)
