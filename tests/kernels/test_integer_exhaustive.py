"""Functions of one integer for every possible input: the C against the reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.model.graph import Array, Graph, Quant
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Attributes
from nnbuild.ops.functions import FUNCTIONS
from nnbuild.ops.log_softmax import LogSoftmax
from nnbuild.ops.softmax import Softmax
from tests.kernels.cases import PARAMETERS
from tests.support.graphs import single
from tests.support.many import run_many
from tests.support.quantized import FIXED

pytestmark = pytest.mark.slow

ROW = {"int8": 256, "int16": 8192}
SCALES = (2.0**-12, 2.0**-11, 0.0003, 0.0011, 0.03)
"""Powers of two are a special case of TFLite's 16-bit logistic and tanh."""


def every(dtype: str) -> Array:
    info = np.iinfo(dtype)
    return np.arange(info.min, info.max + 1).astype(dtype).reshape(-1, ROW[dtype])


def with_formats(graph: Graph, dtype: str, x: Quant, y: Quant) -> Graph:
    formats = {"x0": x, "y0": y}
    tensors = {name: replace(t, dtype=dtype, quant=formats[name]) for name, t in graph.tensors.items()}
    return verify(replace(graph, tensors=tensors))


def models(dtype: str) -> Iterator[Graph]:
    unit = Quant((2.0**-8,), -128) if dtype == "int8" else Quant((2.0**-15,))
    symmetric = Quant((2.0**-7,)) if dtype == "int8" else Quant((2.0**-15,))
    for function in FUNCTIONS:
        for index, scale in enumerate(SCALES if function in ("sigmoid", "tanh") else SCALES[2:4]):
            wide = scale * (1 if dtype == "int16" else 100)
            x = Quant((float(np.float32(wide)),), 0 if dtype == "int16" else 7 * index - 20)
            y = {"sigmoid": unit, "tanh": symmetric}.get(function, Quant(x.scales, -x.zero_point))
            graph = single(Activation(function, PARAMETERS.get(function, ())), [(ROW[dtype],)])
            yield with_formats(graph, dtype, x, y)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_every_input_of_every_function(dtype: str, tmp_path: Path) -> None:
    runs = [(graph, {"x0": every(dtype)}) for graph in models(dtype)]
    for (graph, inputs), found in zip(runs, run_many(runs, tmp_path), strict=True):
        wanted = interpret.run(graph, inputs)["y0"]
        np.testing.assert_array_equal(found["y0"], wanted, err_msg=str(graph.ops[0].attributes))


@pytest.mark.parametrize(
    ("attributes", "out"), [(Softmax(0, 1), FIXED["int8"]), (LogSoftmax(), Quant((2.0**-4,), 127))]
)
def test_every_difference_in_a_softmax(attributes: Attributes, out: Quant, tmp_path: Path) -> None:
    """Including those at which exp becomes 0."""
    runs = []
    for scale in (0.01, 0.1, 0.15, 0.3, 1.0, 3.0):
        graph = with_formats(single(attributes, [(256,)]), "int8", Quant((scale,)), out)
        few = np.repeat(every("int8"), 8, axis=0)
        few[1:, :] = np.random.default_rng(0).permuted(few[1:, :], axis=1)
        few[2:, 2:] = -128
        runs.append((graph, {"x0": few}))
    for (graph, inputs), found in zip(runs, run_many(runs, tmp_path), strict=True):
        np.testing.assert_array_equal(found["y0"], interpret.run(graph, inputs)["y0"])
