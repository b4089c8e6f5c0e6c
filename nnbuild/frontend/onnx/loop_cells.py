"""Loops over one recurrent cell, as Keras exports its layers, become that cell.

The loop is read as it stands, apart from the model: over a sequence and initial states that are inputs. The weights are
those of its products in the first step; which cell it is, and with which functions, is known by its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from nnbuild.base.errors import NnbuildError
from nnbuild.frontend.onnx.call import FLOAT, Call, Item
from nnbuild.frontend.onnx.data_movement import as_shape
from nnbuild.frontend.onnx.records import GraphRecord
from nnbuild.frontend.onnx.scope import Scope
from nnbuild.frontend.recurrent_cells import LARGEST_ROW, SAMPLES, candidates, near, sizes
from nnbuild.model.graph import Array, Graph, Op, Tensor
from nnbuild.ops import interpret
from nnbuild.ops.binary import Binary
from nnbuild.ops.dense import Dense
from nnbuild.ops.layout import Value
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice

Results = tuple[list[Item], list[Item]]
"""What a loop carries at its end, and what it collects."""
Read = Callable[[Call, Sequence[Item]], Results]
"""Reads a loop that carries these at first."""


@dataclass(frozen=True, eq=False)
class _Apart:
    """A loop as a graph of its own: of the sequence and states, whose places among what is carried are given."""

    graph: Graph
    places: tuple[int, ...]
    carried: tuple[Item, ...]
    collected: tuple[Item, ...]

    @property
    def sequence(self) -> str:
        return self.graph.inputs[0]


@dataclass(frozen=True, eq=False)
class _Found:
    """A cell, and its states: places among what is carried."""

    attributes: Recurrent
    constants: dict[str, Array]
    states: tuple[int, ...]


def of_a_cell(call: Call, body: GraphRecord, carried: Sequence[Item], read: Read) -> Results | None:
    """What the loop carries and collects, by a cell's operation; None if it is no loop over one."""
    x = _sequence(call, body)
    if x is None:
        return None
    try:
        apart = _apart(call, *x, body, carried, read)
        found = None if apart is None else _cell(apart)
    except NnbuildError:
        return None  # what is wrong with it is told of its steps
    return None if apart is None or found is None else _added(call, x[1], carried, apart, found)


def _sequence(call: Call, body: GraphRecord) -> tuple[str, Value] | None:
    """The one run-time value from outside that the body reads: [steps, features] or [steps, 1, features]."""
    own = {port.name for port in body.inputs} | {name for node in body.nodes for name in node.outputs}
    given = {name for node in body.nodes for name in node.inputs if name and name not in own | body.constants.keys()}
    values = [(name, item) for name in sorted(given) if isinstance(item := call.scope.get(name), Value)]
    if len(values) != 1 or not values[0][1].is_number or call.importer.assembly.tensors[values[0][1].name].quant:
        return None
    shape = values[0][1].shape
    return values[0] if len(shape) == 2 or (len(shape) == 3 and shape[1] == 1) else None


def _apart(call: Call, name: str, x: Value, body: GraphRecord, carried: Sequence[Item], read: Read) -> _Apart | None:
    importer = type(call.importer)("loop", call.importer.model, call.importer.options)
    inner = Call(importer, Scope(call.scope), call.node)

    def input_like(title: str, shape: tuple[int, ...]) -> Value:
        held = importer.assembly.input(Tensor(title, tuple(n for n in shape if n > 1) or (1,)))
        return as_shape(inner, inner.of(inner.seen(held, shape), shape), shape)

    inner.scope.items[name] = input_like("x", x.shape)
    begins, places = list(carried), list[int]()
    for place, (item, before, after) in enumerate(zip(carried, body.inputs[2:], body.outputs[1:], strict=False)):
        real = item.is_number if isinstance(item, Value) else isinstance(item, np.ndarray) and item.dtype == np.float32
        if real and before.name != after.name and not isinstance(item, list):
            begins[place] = input_like(f"state {place}", tuple(item.shape))
            places.append(place)
    ends, collected = read(inner, begins)
    outputs = [ends[place] for place in places] + [rows for rows in collected if isinstance(rows, Value)]
    if not places or any(not isinstance(item, Value) for item in outputs):
        return None
    names = [inner.plain(item).name for item in outputs if isinstance(item, Value)]
    if len(set(names)) < len(names) or any(isinstance(e, Value) for i, e in enumerate(ends) if i not in places):
        return None
    return _Apart(importer.assembly.finish(names), tuple(places), tuple(ends), tuple(collected))


def _cell(apart: _Apart) -> _Found | None:
    graph, chance = apart.graph, np.random.default_rng(0)
    shapes = [graph.tensors[name].shape for name in graph.inputs]
    given = [
        chance.normal(size=(SAMPLES, *shape)) * sizes(3 if place else LARGEST_ROW, len(shape))
        for place, shape in enumerate(shapes)
    ]
    wanted = interpret.run(graph, dict(zip(graph.inputs, given, strict=True)), "float64")
    results = [wanted[name].reshape(SAMPLES, -1) for name in graph.outputs]
    rows = results[len(apart.places) :]
    for hidden, state in enumerate(graph.inputs[1:]):
        for attributes, constants in _candidates(graph, state):
            rest = [place for place in range(len(apart.places)) if place != hidden]
            for more in permutations(rest, attributes.states - 1):
                order = (hidden, *more)
                if len(order) == len(apart.places) and _computes(attributes, constants, order, given, results, rows):
                    return _Found(attributes, constants, tuple(apart.places[i] for i in order))
    return None


def _computes(
    attributes: Recurrent,
    constants: dict[str, Array],
    order: tuple[int, ...],
    given: Sequence[Array],
    results: Sequence[Array],
    rows: Sequence[Array],
) -> bool:
    """Whether the cell's states and its sequence are what the loop computes."""
    x = given[0].reshape(SAMPLES, -1, constants["kernel"].shape[0])
    states = tuple(given[1 + place].reshape(SAMPLES, -1) for place in order)
    if any(state.shape[1] != attributes.units for state in states):
        return False
    held = {role: values.astype(np.float64) for role, values in constants.items()}
    sequence, with_rows = list[Array](), all(each.shape[1] == x.shape[1] * attributes.units for each in rows)
    with np.errstate(all="ignore"):
        for step in range(x.shape[1]):
            states = attributes.cell(x[:, step], states, held)
            sequence.append(states[0])
            shown = slice(step * attributes.units, (step + 1) * attributes.units)
            if not with_rows or not all(near(each[:, shown], states[0]) for each in rows):
                return False
    return all(near(results[place], state) for place, state in zip(order, states, strict=True))


def _candidates(graph: Graph, state: str) -> Iterator[tuple[Recurrent, dict[str, Array]]]:
    """Cells with the weights of the first step, whose hidden state is this input."""
    makers = {name: op for op in graph.ops for name in op.outputs}

    def root(name: str) -> str:
        while (op := makers.get(name)) is not None and isinstance(op.attributes, Reshape):
            name = op.inputs[0]
        return name

    def is_row(name: str) -> bool:
        op = makers.get(root(name))
        first = op is not None and isinstance(op.attributes, Slice) and root(op.inputs[0]) == graph.inputs[0]
        return root(name) == graph.inputs[0] or first

    known, products = set[bytes](), list[Op]()
    for op in graph.ops:
        data = graph.constants[op.constants["kernel"]].data.tobytes() if isinstance(op.attributes, Dense) else b""
        if data and data not in known:
            known.add(data)
            products.append(op)
    of_row = [op for op in products if is_row(op.inputs[0])]
    of_state = [op for op in products if root(op.inputs[0]) == state]
    others = [op for op in products if op not in of_row and op not in of_state]
    if len(of_row) != 1 or not of_state:
        return
    kernels = {op.name: graph.constants[op.constants["kernel"]].data for op in products}
    units = graph.tensors[state].shape[-1]
    biases = _biases(graph, of_row[0], [*of_state, *others], is_row)
    of_states, of_others = ([kernels[op.name] for op in ops] for ops in (of_state, others))
    yield from candidates(units, kernels[of_row[0].name], of_states, of_others, biases)


def _biases(graph: Graph, of_row: Op, others: Sequence[Op], is_row: Callable[[str], bool]) -> Array:
    """What is added to the products of the row, or to all, and what to those of the state."""
    width = graph.constants[of_row.constants["kernel"]].data.shape[1]
    total, known, from_row = np.zeros((2, width), np.float32), set[bytes](), set[str]()
    own = [graph.constants[op.constants["bias"]].data for op in others if "bias" in op.constants]
    if own and sum(each.size for each in own) == width:
        total[1] += np.concatenate(own)
    if "bias" in of_row.constants:
        total[0] += graph.constants[of_row.constants["bias"]].data
    for op in graph.ops:
        if any(name in from_row or is_row(name) for name in op.inputs):
            from_row.update(op.outputs)
        held = [graph.constants[name].data for name in op.constants.values()]
        added = isinstance(op.attributes, Binary) and op.attributes.function == "add" and len(held) == 1
        if added and held[0].size == width and held[0].tobytes() not in known:
            known.add(held[0].tobytes())
            total[0 if op.outputs[0] in from_row else 1] += held[0].reshape(-1)
    return total


def _added(call: Call, x: Value, carried: Sequence[Item], apart: _Apart, found: _Found) -> Results:
    attributes = replace(found.attributes, sequences=True)
    steps, features, units = x.shape[0], x.shape[-1], attributes.units
    names = [call.seen(call.plain(call.as_real(x)).name, (steps, features))]
    begins = [carried[place] for place in found.states]
    if any(not isinstance(item, np.ndarray) or item.any() for item in begins):
        for item in begins:
            assert not isinstance(item, list)
            names.append(call.seen(call.plain(call.as_real(call.as_value(item))).name, (units,)))
    made = call.adds(attributes, names, [FLOAT] * (1 + attributes.states), found.constants)
    states = dict(zip(found.states, made[1:], strict=True))
    ends = list(apart.carried)
    for place, name in states.items():
        item = carried[place]
        assert not isinstance(item, list)
        ends[place] = call.of(name, tuple(item.shape))
    rows: list[Item] = [call.of(made[0], item.shape) if isinstance(item, Value) else item for item in apart.collected]
    return ends, rows
