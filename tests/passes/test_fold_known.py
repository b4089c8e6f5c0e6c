"""What is known before the model runs is computed then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nnbuild.model.graph import WHOLE, Constant, Graph, Op, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.known import Known
from nnbuild.ops.select import Select
from nnbuild.passes.fold_known import fold_known
from nnbuild.passes.remove_dead import remove_dead


def joined(attributes: Attributes, *inputs: str) -> Graph:
    """Ones times -2, joined with x."""
    shape = (3, 4)
    tensors = {name: Tensor(name, shape) for name in ("x", "ones", "low", "y")}
    tensors["b"] = Tensor("b", shape, "int8", WHOLE)
    if isinstance(attributes, Compare):
        tensors["y"] = Tensor("y", shape, "int8", WHOLE)
    ops = (
        Op("ones", Known(), ("x",), ("ones",), {"values": "one"}),
        Op("low", Binary("multiply"), ("ones",), ("low",), {"right": "two"}),
        Op("b", Compare("greater"), ("x",), ("b",), {"right": "two"}),
        Op("y", attributes, inputs, ("y",)),
    )
    held = {"one": np.ones(shape, np.float32), "two": np.full((1,), -2, np.float32)}
    constants = {name: Constant(name, value) for name, value in held.items()}
    return verify(Graph("net", tensors, constants, ops, ("x",), ("y",)))


@pytest.mark.parametrize(
    ("attributes", "inputs", "role"),
    [
        (Binary("subtract"), ("x", "low"), "right"),
        (Binary("divide"), ("low", "x"), "left"),
        (Select(), ("b", "x", "low"), "other"),
        (Select(), ("b", "low", "x"), "chosen"),
        (Compare("less"), ("low", "x"), "left"),
    ],
    ids=str,
)
def test_known_operands_are_constants(attributes: Attributes, inputs: tuple[str, ...], role: str) -> None:
    graph = joined(attributes, *inputs)
    made = verify(remove_dead(fold_known(graph)))
    assert "known" not in [op.kind for op in made.ops]
    assert list(made.ops[-1].constants) == [role]
    assert (made.constants[made.ops[-1].constants[role]].data == -2).all()
    x = np.random.default_rng(1).normal(scale=3, size=(5, 3, 4)).astype(np.float32)
    np.testing.assert_array_equal(interpret.run(made, {"x": x})["y"], interpret.run(graph, {"x": x})["y"])


def test_an_output_and_what_two_known_values_give_stay_known() -> None:
    graph = joined(Binary("add"), "low", "ones")
    made = fold_known(replace(graph, outputs=("y", "low")))
    x = np.zeros((1, 3, 4), np.float32)
    found = interpret.run(verify(made), {"x": x})
    assert (found["y"] == -1).all() and (found["low"] == -2).all()
