"""Loops over one recurrent cell, which become that cell's operator.

The weights are those of the products with a step's input and with a state. Which cell it is, and with which functions,
is known by its values: the body of the loop must compute what the cell computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from nnbuild.base.errors import NnbuildError
from nnbuild.frontend.other_arithmetic import DYNAMIC_RANGE, EXPANDED
from nnbuild.frontend.recurrent_cells import LARGEST_ROW, SAMPLES, candidates, near, sizes
from nnbuild.frontend.tflite.call import Call
from nnbuild.frontend.tflite.loops import Fresh, Loop, number
from nnbuild.frontend.tflite.records import Model, Operator, Tensor, as_float
from nnbuild.model.graph import Array, Graph
from nnbuild.model.graph import Tensor as Made
from nnbuild.ops import interpret
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice

KIND = "LOOP_OF_CELL"
Imported = Callable[[Model], Graph]
WEIGHTS = ("float32", "float16", "int8")
LIKE = Made("", (1,))
"""The format of every result."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The options of a loop's operator, whose inputs are the steps, the initial states and perhaps a mask; and by
    output whether it is the sequence, its last row or the state of a number."""

    attributes: Recurrent
    constants: Mapping[str, Array]
    steps: tuple[int, int]
    outputs: tuple[str | int, ...]
    of_bytes: bool
    """Whether weights are stored in 8 bits."""


@dataclass(frozen=True, eq=False)
class _Body:
    """A loop's body as a function: of a row, perhaps a mark that it counts, and arguments; places are the loop's."""

    loop: Loop
    steps: Tensor
    row: Tensor
    mark: Tensor | None
    marks: Tensor | None
    arguments: tuple[int, ...]
    """Those that are read; the others hold the last row."""

    @property
    def products(self) -> list[tuple[Tensor, Array, Array | None]]:
        """(vector, weights [inputs, outputs], bias) of every product with constants."""
        found = []
        for operator in self.loop.needed:
            if operator.kind != "FULLY_CONNECTED" or len(operator.inputs) < 2:
                continue
            vector, *constants = (*operator.inputs, None)[:3]
            weights, bias = map(self.constant, constants)
            if vector is None or weights is None or weights.ndim != 2:
                continue
            if bias is None or bias.shape == weights.shape[:1]:
                found.append((vector, weights.T, bias))
        return found

    @property
    def has_bytes(self) -> bool:
        """Whether a product's weights are stored in 8 bits."""
        given = (operator.inputs[1:2] for operator in self.loop.needed if operator.kind == "FULLY_CONNECTED")
        return any(each is not None and each.dtype == "int8" for inputs in given for each in inputs)

    def constant(self, tensor: Tensor | None) -> Array | None:
        """A constant's numbers; those of half precision have an operator of their own."""
        halves = {each.outputs[0].index: each.inputs[0] for each in self.loop.needed if each.kind == "DEQUANTIZE"}
        held = None if tensor is None else halves.get(tensor.index, tensor)
        return None if held is None or held.data is None or held.dtype not in WEIGHTS else as_float(held)

    def model(self) -> Model:
        body = self.loop.body
        inputs = [self.row, *([self.mark] if self.mark else []), *(body.inputs[place] for place in self.arguments)]
        operators = tuple(each for each in self.loop.needed if each.outputs[0] not in (self.row, self.mark))
        return Model(tuple(inputs), tuple(self.results.values()), operators, body.tensors)

    @property
    def results(self) -> Mapping[int, Tensor]:
        return {**self.loop.changed, **self.loop.rows}


def of_a_cell(loop: Loop, imported: Imported, fresh: Fresh) -> list[Operator | dict[int, Tensor]] | None:
    """The operator of a loop over one cell, and the loop's results that are other tensors."""
    try:
        body = _body(loop)
        cells = None if body is None else _cells(body, imported)
    except NnbuildError:
        return None  # what is wrong with it is told of its steps
    if body is None or cells is None:
        return None
    return _operator(body, *cells, fresh)


def _body(loop: Loop) -> _Body | None:
    gathered: list[tuple[Tensor, Tensor]] = []
    for operator in loop.needed:
        if operator.kind == "GATHER":
            if operator.options_kind == "GatherOptions" and (operator.options.Axis() or operator.options.BatchDims()):
                return None
            places = [_place(loop, given) for given in operator.inputs]
            if len(places) != 2 or places[0] not in loop.kept or places[1] not in loop.counters:
                return None
            source = loop.operator.inputs[places[0]]
            if list(loop.counters[places[1]][:-1]) != list(range(loop.count)) or source is None:
                return None
            gathered.append((source, operator.outputs[0]))
    rows = [pair for pair in gathered if pair[0].dtype == "float32"]
    marks = [pair for pair in gathered if pair[0].dtype == "bool"]
    if len(rows) != 1 or len(marks) > 1 or len(gathered) != len(rows) + len(marks):
        return None
    read = {given.index for operator in loop.needed for given in operator.inputs if given is not None}
    arguments = tuple(place for place in loop.changed if loop.body.inputs[place].index in read)
    source, mark = marks[0] if marks else (None, None)
    return _Body(loop, rows[0][0], rows[0][1], mark, source, arguments)


def _place(loop: Loop, tensor: Tensor | None) -> int:
    """The place of an argument; -1 for any other tensor."""
    return next((place for place, given in enumerate(loop.body.inputs) if given is tensor), -1)


def _cells(body: _Body, imported: Imported) -> tuple[Cells, tuple[int, ...]] | None:
    """The cell and the arguments that are its states."""
    if body.steps.shape[1:] != body.row.shape or len(body.row.shape) != 2 or body.row.shape[0] != 1:
        return None
    features, found = body.row.shape[1], body.products
    of_row = [each for each in found if each[0] is body.row]
    hidden = {place for place in body.arguments for each in found if each[0] is body.loop.body.inputs[place]}
    if len(of_row) != 1 or len(hidden) != 1 or body.steps.shape[0] != body.loop.count:
        return None
    (place,) = hidden
    units = (body.loop.body.inputs[place].shape or (0,))[-1]
    of_state = [each for each in found if each[0] is body.loop.body.inputs[place]]
    others = [each for each in found if not any(each is known for known in (*of_row, *of_state))]
    possible = list(_candidates(body, units, of_row[0], of_state, others))
    if not possible:
        return None
    graph = imported(body.model())
    samples = _samples(body, graph)
    wanted = interpret.run(graph, dict(zip(graph.inputs, samples, strict=True)), "float64")
    results = {p: wanted[n].reshape(SAMPLES, -1) for p, n in zip(body.results, graph.outputs, strict=True)}
    rest = [each for each in body.arguments if each != place]
    for attributes, constants in possible:
        for more in permutations(rest):
            outputs = _explained(body, attributes, constants, (place, *more), samples, results)
            if outputs is not None:
                size = (body.loop.count, features)
                cells = Cells(outputs[0], constants, size, outputs[1], body.has_bytes)
                return cells, (place, *more[: attributes.states - 1])
    return None


def _samples(body: _Body, graph: Graph) -> list[Array]:
    """A row, a mark and arguments for each sample."""
    chance = np.random.default_rng(0)
    found = []
    for name in graph.inputs:
        tensor = graph.tensors[name]
        if tensor.is_whole:
            found.append(np.arange(SAMPLES).reshape(-1, *(1,) * len(tensor.shape)) % 2 + np.zeros(tensor.shape))
        else:
            large = sizes(3 if found else LARGEST_ROW, len(tensor.shape))
            found.append(chance.normal(size=(SAMPLES, *tensor.shape)) * large)
    return found


def _candidates(
    body: _Body,
    units: int,
    of_row: tuple[Tensor, Array, Array | None],
    of_state: Sequence[tuple[Tensor, Array, Array | None]],
    others: Sequence[tuple[Tensor, Array, Array | None]],
) -> Iterator[tuple[Recurrent, dict[str, Array]]]:
    kernel = of_row[1]
    if kernel.shape[0] != body.row.shape[-1]:
        return
    biases = _biases(body, kernel.shape[1], [of_row[2], *(each[2] for each in (*of_state, *others))])
    yield from candidates(units, kernel, [each[1] for each in of_state], [each[1] for each in others], biases)


def _biases(body: _Body, width: int, own: Sequence[Array | None]) -> Array:
    """What is added to the products of the row, or to all, and what to those of the state."""
    total = np.zeros((2, width), np.float32)
    if own[0] is not None:
        total[0] += own[0]
    given = [each for each in own[1:] if each is not None]
    if len(given) == len(own) - 1 and sum(each.size for each in given) == width:
        with np.errstate(all="ignore"):  # what is no number is told of the steps
            total[1] += np.concatenate(given)
    from_row = {body.row.index}
    for operator in body.loop.needed:
        if any(each is not None and each.index in from_row for each in operator.inputs):
            from_row.update(made.index for made in operator.outputs)
        added = [held for t in operator.inputs if (held := body.constant(t)) is not None]
        if operator.kind == "ADD" and added and added[0].size == width:
            total[0 if operator.outputs[0].index in from_row else 1] += added[0].reshape(-1)
    return total


def _explained(
    body: _Body,
    attributes: Recurrent,
    constants: Mapping[str, Array],
    places: tuple[int, ...],
    samples: Sequence[Array],
    results: Mapping[int, Array],
) -> tuple[Recurrent, tuple[str | int, ...]] | None:
    """The cell and what each result is, where the cell's states are these arguments; one more is the previous row."""
    masked = body.mark is not None
    given = dict(zip(body.arguments, (x.reshape(SAMPLES, -1) for x in samples[1 + masked :]), strict=True))
    if not attributes.states <= len(places) <= attributes.states + masked:
        return None
    if any(given[place].shape[1] != attributes.units for place in places):
        return None
    before = tuple(given[place] for place in places[: attributes.states])
    valid = samples[1].reshape(SAMPLES, 1) != 0 if masked else np.ones((SAMPLES, 1), bool)
    held = {role: values.astype(np.float64) for role, values in constants.items()}
    with np.errstate(all="ignore"):
        after = attributes.cell(samples[0].reshape(SAMPLES, -1), before, held)
    states = [np.where(valid, new, old) for new, old in zip(after, before, strict=True)]
    kept = given[places[-1]] if len(places) > attributes.states else None
    row = np.where(valid, after[0], 0.0 if kept is None else kept)
    known = {**dict(zip(places, states, strict=False)), **({places[-1]: row} if kept is not None else {})}
    outputs: list[str | int] = []
    for place, found in results.items():
        if not near(found, known.get(place, row)):
            return None
        is_state = place in places[: attributes.states]
        outputs.append(places.index(place) if is_state else "rows" if place in body.loop.rows else "last")
    sequences = "rows" in outputs or (masked and "last" in outputs)
    return replace(attributes, sequences=sequences, masked=masked, zero_rows=masked and kept is None), tuple(outputs)


def _operator(
    body: _Body, cells: Cells, states: tuple[int, ...], fresh: Fresh
) -> list[Operator | dict[int, Tensor]] | None:
    """The initial value of the previous row must be zeros, as everywhere."""
    loop, operator = body.loop, body.loop.operator
    others = [place for place in body.arguments if place not in states]
    if any((held := operator.inputs[place]) is None or held.data is None or held.values().any() for place in others):
        return None
    inputs = (body.steps, *(operator.inputs[place] for place in states), *([body.marks] if body.marks else []))
    outputs = tuple(operator.outputs[place] for place in body.results)
    same: dict[int, Tensor] = {}
    for place in loop.kept:
        if (given := operator.inputs[place]) is not None:
            same[operator.outputs[place].index] = given
    for place, values in loop.counters.items():
        same[operator.outputs[place].index] = fresh(number(loop.body.inputs[place], values[-1]), "end")
    return [replace(operator, kind=KIND, inputs=inputs, outputs=outputs, options_kind=KIND, options=cells), same]


def loop_of_cell(call: Call) -> None:
    cells: Cells = call.operator.options
    attributes, constants = cells.attributes, {}
    if cells.of_bytes:
        call.assembly.note(EXPANDED)
        call.assembly.unlike = DYNAMIC_RANGE
    names = [call.value(0, cells.steps)]
    states = range(1, 1 + attributes.states)
    if not all(call.is_constant(i) and not call.stored(i).values().any() for i in states):
        names += [call.value(i, (attributes.units,)) for i in states]
    if attributes.masked:
        names.append(call.value(1 + attributes.states, cells.steps[:1]))
    for role, values in cells.constants.items():
        constants[role] = call.assembly.constant(
            call.operator, f"{call.layer}/{role}", np.ascontiguousarray(values), None
        )
    made = call.adds(attributes, names, [LIKE] * (attributes.states + attributes.sequences), constants)
    after, known = made[-attributes.states :], {name: name for name in made}
    for index, what in enumerate(cells.outputs):
        own = made[0] if isinstance(what, str) else after[what]
        name = _last(call, known[own], cells) if what == "last" else known[own]
        found = call.reshaped(name, index)
        known[own] = known[own] if known[own] in call.assembly.tensors else found


def _last(call: Call, rows: str, cells: Cells) -> str:
    """The last row of a sequence, which is the state where no steps are masked."""
    if not cells.attributes.sequences:
        return rows
    units = cells.attributes.units
    last = call.add(Slice((cells.steps[0] - 1, 0), (1, 1), (1, units)), [rows], like=LIKE)
    return call.add(Reshape((units,)), [last], like=LIKE)
