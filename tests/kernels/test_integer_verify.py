"""Messages of the verifier and the kernels about invalid integer graphs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nnbuild.base.errors import ModelError
from nnbuild.model.graph import Constant, Graph, Quant
from nnbuild.model.verify import verify
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.lrn import LRN
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.transpose import Transpose
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.support.graphs import single
from tests.support.quantized import quantized

TANH = Activation("tanh")


def changed(graph: Graph, name: str, **changes: object) -> Graph:
    return replace(graph, tensors=dict(graph.tensors) | {name: replace(graph.tensors[name], **changes)})  # type: ignore[arg-type]


def int8(attributes: Attributes = TANH, shape: tuple[int, ...] = (4, 3), same_scale: bool = False) -> Graph:
    return quantized(single(attributes, [shape]), "int8", 1, same_scale)


@pytest.mark.parametrize(
    ("graph", "cause"),
    [
        (changed(int8(), "y0", quant=None), "the tensor 'y0' has integers (int8) but no scale."),
        (changed(int8(), "y0", dtype="float32"), "the tensor 'y0' has a scale although it holds floats."),
        (changed(int8(), "y0", dtype="int64"), "the tensor 'y0' has the unknown type 'int64'."),
        (changed(int8(), "y0", quant=Quant((0.1, 0.2))), "the tensor 'y0' has more than one scale."),
        (
            changed(int8(), "y0", quant=Quant((1e-12,))),
            "the tensor 'y0' has the scale 1e-12, which is not a number from 3.72529e-09 on.",
        ),
        (
            changed(int8(), "y0", quant=Quant((float("nan"),))),
            "the tensor 'y0' has the scale nan, which is not a number from 3.72529e-09 on.",
        ),
        (changed(int8(), "y0", quant=Quant((0.1,), 128)), "the tensor 'y0' has the zero point 128 in int8."),
        (
            changed(quantized(single(TANH, [(3,)]), "int16", 1), "y0", quant=Quant((0.1,), 1)),
            "the tensor 'y0' has the zero point 1 in int16.",
        ),
        (
            changed(int8(), "y0", dtype="int16", quant=Quant((0.1,))),
            "its tensors are of several types: int16, int8.",
        ),
        (
            changed(int8(), "y0", dtype="float32", quant=None),
            "its tensors are of several types: float32, int8.",
        ),
        (changed(int8(), "y0", quant=Quant((1e9,))), "its scales 0.0201783 and 1e+09 lie too far apart."),
        (
            changed(int8(Transpose((1, 0)), same_scale=True), "y0", quant=Quant((0.1,))),
            "it only moves or chooses values, but its output has another scale than its input.",
        ),
        (
            changed(int8(Softmax(1)), "y0", quant=Quant((0.1,))),
            "the output of a softmax in int8 has the scale 0.00390625 and the zero point -128.",
        ),
    ],
)
def test_an_illegal_integer_graph_is_refused(graph: Graph, cause: str) -> None:
    with pytest.raises(ModelError) as caught:
        verify(graph)
    assert caught.value.cause == cause


def test_a_float_constant_of_an_integer_operation_is_refused() -> None:
    graph = quantized(single(Binary("add"), [(3,)], {"right": np.ones(3)}), "int8", 1)
    graph = replace(graph, constants={"right": Constant("right", np.ones(3, np.float32), Quant((0.1,)))})
    with pytest.raises(ModelError, match="its right is not in integers although its input is"):
        verify(graph)


@pytest.mark.parametrize(
    ("graph", "cause"),
    [
        (
            quantized(single(Softmax(0), [(9000,)]), "int8", 1),
            "no kernel can compute this softmax (scalar: it computes float32 only, not int8; "
            "integer: a 32-bit sum holds the powers of fewer than 8192 values, not of 9000).",
        ),
        (
            quantized(single(Reduce("mean"), [(70000,)]), "int16", 1),
            "no kernel can compute this reduce (scalar: it computes float32 only, not int16; "
            "integer: a 32-bit sum holds 65535 of these values, not 70000).",
        ),
        (
            quantized(single(LRN(bias=-1.0), [(4,)]), "int8", 1),
            "no kernel can compute this lrn (scalar: it computes float32 only, not int8; "
            "integer: in integers its bias and alpha must not be negative).",
        ),
    ],
)
def test_unsupported_integer_operations_are_reported(graph: Graph, cause: str) -> None:
    with pytest.raises(ModelError) as caught:
        make_plan(graph, "net", Target())
    assert caught.value.cause == cause
