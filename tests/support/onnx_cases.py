"""The `onnx` package's own cases of its operators: each is read here, computed by the reference, and compared.

What a case gives as an input but a network has as a constant (weights, axes, sizes) becomes one where it must.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from nnbuild import passes
from nnbuild.base.errors import NnbuildError
from nnbuild.frontend.onnx import load_bytes
from nnbuild.model.graph import Array, Graph
from nnbuild.model.verify import verify
from nnbuild.ops import interpret

TOLERANCE = 1e-5
TOLERANCES = {"float16": 2e-3, "bfloat16": 1.6e-2}
"""What numbers of half the bits tell apart."""
ANCHOR = "anchor"


@dataclass(frozen=True)
class Outcome:
    """`refused` is why it is not read, `wrong` how it differs; neither where it passes. So many inputs are `frozen`."""

    case: str
    operators: tuple[str, ...]
    refused: str = ""
    wrong: str = ""
    frozen: int = 0

    @property
    def passed(self) -> bool:
        return not self.refused and not self.wrong


@cache
def cases() -> Mapping[str, Any]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return {case.name: case for case in collect_testcases(None)}


def operators(case: Any) -> tuple[str, ...]:
    return tuple(sorted({f"{n.domain}.{n.op_type}" if n.domain else n.op_type for n in case.model.graph.node}))


def expanded(name: str) -> bool:
    """Whether an operator is written out as the function that defines it."""
    return "_expanded" in name


def outcome(case: Any) -> Outcome:
    """The first way of reading it that passes: as it is, with constants behind the first input, with constants only."""
    inputs, outputs = ([_plain(value) for value in values] for values in case.data_sets[0])
    kinds = operators(case)
    last = Outcome(case.name, kinds, "nobody tried")
    empty = {i for i, value in enumerate(inputs) if isinstance(value, np.ndarray) and value.size == 0}
    for way in _ways(case, inputs):
        frozen = way | empty
        try:
            graph = read(case.model, inputs, frozen)
            found = Outcome(case.name, kinds, "", difference(graph, case.model, inputs, outputs), len(frozen))
        except NnbuildError as error:
            found = Outcome(case.name, kinds, str(error))
        except _Unfit as error:
            return Outcome(case.name, kinds, f"the case {error}")
        if found.passed:
            return found
        if found.wrong or not last.wrong:
            last = found
    return last


class _Unfit(Exception):
    pass


def _plain(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, (np.generic, float, int)) else value


def _ways(case: Any, inputs: Sequence[Any]) -> Iterator[frozenset[int]]:
    every = range(len(inputs))
    yield frozenset()
    if len(inputs) > 2:
        yield frozenset(every[2:])
    if len(inputs) > 1:
        yield frozenset(every[1:])
        yield frozenset(i for i in every if i != 1)
    yield frozenset(every)


def read(model: Any, inputs: Sequence[Any], frozen: frozenset[int]) -> Graph:
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    ports = list(graph.input)
    del graph.input[:]
    for index, (port, value) in enumerate(zip(ports, inputs, strict=False)):
        if not isinstance(value, np.ndarray):
            raise _Unfit("is of sequences")
        if index in frozen:
            graph.initializer.append(numpy_helper.from_array(value, port.name))
        elif value.size == 0:
            raise _Unfit("has an empty input")
        else:
            dtype = port.type.tensor_type.elem_type
            graph.input.append(onnx.helper.make_tensor_value_info(port.name, dtype, value.shape))
    if len(frozen) >= len(ports):
        graph.input.append(onnx.helper.make_tensor_value_info(ANCHOR, 1, (1, 1)))
    return passes.run(verify(load_bytes(changed.SerializeToString(), "net")))


def difference(graph: Graph, model: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> str:
    """How the outputs differ, in words; empty where they do not."""
    given = {ANCHOR: np.zeros((1, 1), np.float32)}
    for port, value in zip(model.graph.input, inputs, strict=False):
        given[port.name] = value
    tensors = graph.tensors
    values = {n: given[n].reshape(1, *tensors[n].shape) for n in graph.inputs}
    with np.errstate(all="ignore"):
        found = interpret.run(graph, values)
    for name, wanted in zip(graph.outputs, outputs, strict=True):
        if not isinstance(wanted, np.ndarray):
            raise _Unfit("gives sequences")
        made = found[name][0]
        if prod_differs(made, wanted):
            return f"its shape is {made.shape}, not {wanted.shape}"
        if text := _off(made.reshape(wanted.shape), wanted, graph.tensors[name].quant):
            return text
    return ""


def _printed(values: Array) -> float:
    """Half a unit of the last decimal of numbers that a case gives with four of them."""
    return 5e-4 if values.size and np.allclose(values, np.round(values, 4), rtol=1e-6, atol=0) else 0.0


def prod_differs(made: Array, wanted: Array) -> bool:
    own = made.shape if made.ndim == wanted.ndim else (1, *made.shape) if made.shape != (1,) else wanted.shape
    return own != wanted.shape and not (made.size == wanted.size == 1)


def _off(made: Array, wanted: Array, quant: Any) -> str:
    if quant is not None and wanted.dtype == np.uint8 and made.dtype == np.int8:
        made = made.astype(np.int32) + 128
    if wanted.dtype.kind in "biu":
        steps = np.abs(made.astype(np.int64) - wanted.astype(np.int64)).max(initial=0)
        return f"it is off by {steps}" if steps > (1 if quant is not None and quant.scale != 1.0 else 0) else ""
    kind, wanted = wanted.dtype.name, wanted.astype(np.float64)
    if (np.isnan(wanted) != np.isnan(made)).any():
        return "it is NaN elsewhere"
    with np.errstate(all="ignore"):
        sure = np.isfinite(wanted)
        largest = np.abs(wanted[sure]).max(initial=0.0)
        off = np.abs(made[sure] - wanted[sure]).max(initial=0.0)
        if not np.array_equal(np.sign(made[~sure & ~np.isnan(wanted)]), np.sign(wanted[~sure & ~np.isnan(wanted)])):
            return "it is infinite elsewhere"
    limit = max(TOLERANCES.get(kind, TOLERANCE), _printed(wanted))
    return f"it is off by {off:.3g} of {largest:.3g}" if off > limit * max(largest, 1e-30) else ""
