"""Every integer kernel against the integer reference: bit-exact, over the whole range of its inputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.lrn import LRN
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.softmax import Softmax
from tests.kernels.cases import Maker, cases
from tests.support.graphs import single
from tests.support.many import run_many
from tests.support.quantized import full_range, quantized

pytestmark = pytest.mark.slow

RECURRENT = ("lstm", "gru", "simple_rnn")
MOVES = ("pool", "transpose", "slice", "repeat", "pad", "resize", "pick", "shift")
SAMPLES = 12
SEEDS = {"int8": 0, "int16": 1000}


def groups() -> dict[str, dict[str, Maker]]:
    """The cases by the operation they begin with; one program per group."""
    found: dict[str, dict[str, Maker]] = {}
    for name, maker in cases():
        if not name.startswith(RECURRENT):
            found.setdefault(name.partition("-")[0], {})[name] = maker
    return found


GROUPS = groups()


def made(name: str, maker: Maker, dtype: str, seed: int) -> Graph:
    return quantized(maker(), dtype, seed=seed + len(name), same_scale=name.startswith(MOVES))


@pytest.mark.turns(9)
@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("group", GROUPS)
def test_kernels_equal_the_reference(group: str, dtype: str, tmp_path: Path) -> None:
    graphs = {name: made(name, maker, dtype, SEEDS[dtype]) for name, maker in GROUPS[group].items()}
    runs = [(graph, full_range(graph, SAMPLES, seed=1)) for graph in graphs.values()]
    found = run_many(runs, tmp_path)
    for name, (graph, inputs), outputs in zip(graphs, runs, found, strict=True):
        wanted = interpret.run(graph, inputs)
        for output in graph.outputs:
            np.testing.assert_array_equal(outputs[output], wanted[output], err_msg=name)


ELEMENTWISE = ("activation", "prelu", "binary", "concatenate", "reduce", "softmax", "layer_norm", "lrn")
FURTHER: dict[str, Maker] = {
    "clamp, one scale": lambda: single(Activation("clamp", (0.0, 6.0)), [(40,)]),
    "concatenate, one scale": lambda: single(Concatenate(0), [(40,), (3,)]),
    "maximum, one scale": lambda: single(Binary("maximum"), [(40,), (40,)]),
    "mean, one scale": lambda: single(Reduce("mean", 0, 1), [(40,)]),
    "relu6": lambda: single(Activation("relu", (6.0, 0.0, 0.0)), [(300,)]),
    "relu, slope": lambda: single(Activation("relu", (float("inf"), 0.3, 0.0)), [(300,)]),
    "relu, threshold": lambda: single(Activation("relu", (float("inf"), 0.0, 0.7)), [(300,)]),
    "relu, all": lambda: single(Activation("relu", (2.0, 0.3, -0.7)), [(300,)]),
    "leaky_relu, negative": lambda: single(Activation("leaky_relu", (-0.4,)), [(300,)]),
    "long softmax": lambda: single(Softmax(0, 1), [(3000,)]),
    "long mean": lambda: single(Reduce("mean", 0, 1), [(3000,)]),
    "long layer_norm": lambda: single(LayerNorm(1, 1e-3), [(3000,)]),
    "lrn without bias": lambda: single(LRN(1, 0.0, 0.1, 0.5), [(20, 5)]),
}


def extremes(dtype: str) -> Iterator[tuple[str, Graph]]:
    """Scales far apart, so that every rule shifts far in both directions and saturates."""
    for index, (name, maker) in enumerate(cases()):
        if name.startswith(ELEMENTWISE) and index % 2 == (dtype == "int8"):
            yield name, quantized(maker(), dtype, seed=index, powers=(-20, 6))
    for name, maker in FURTHER.items():
        yield name, quantized(maker(), dtype, seed=len(name), same_scale=name.endswith("one scale"))


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_kernels_equal_the_reference_at_the_extremes(dtype: str, tmp_path: Path) -> None:
    graphs = dict(extremes(dtype))
    runs = [(graph, full_range(graph, SAMPLES, seed=2)) for graph in graphs.values()]
    for name, (graph, inputs), outputs in zip(graphs, runs, run_many(runs, tmp_path), strict=True):
        np.testing.assert_array_equal(outputs["y0"], interpret.run(graph, inputs)["y0"], err_msg=name)
