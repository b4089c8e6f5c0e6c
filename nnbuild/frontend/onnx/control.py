"""Control flow with conditions that are constant: branches are resolved, loops are unrolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nnbuild.frontend.onnx.call import Call, Item
from nnbuild.frontend.onnx.data_movement import as_shape, every, joined, part
from nnbuild.frontend.onnx.distances import scanned
from nnbuild.frontend.onnx.loop_cells import of_a_cell
from nnbuild.frontend.onnx.records import GraphRecord
from nnbuild.frontend.onnx.scope import Scope
from nnbuild.model.graph import Array
from nnbuild.ops.layout import Value

MOST_TRIPS = 1024


def body(call: Call, graph: GraphRecord, inputs: Sequence[Item]) -> list[Item]:
    """Reads a node's inner graph with these inputs."""
    scope = Scope(call.scope)
    call.expect(len(inputs) <= len(graph.inputs), "its body has fewer inputs than it receives.")
    for port, item in zip(graph.inputs, inputs, strict=False):
        scope.items[port.name] = item
    call.importer.graph(graph, scope)
    return [scope.find(call.node, port.name) for port in graph.outputs]


def if_(call: Call) -> None:
    condition = call.constant(0)
    call.expect(condition.size == 1, "its condition is not a single truth value.")
    branch = "then_branch" if condition.reshape(-1)[0] else "else_branch"
    for index, item in enumerate(body(call, call.graph(branch), [])):
        call.put(item, index)


def _is_true(call: Call, item: Item) -> bool:
    if isinstance(item, Value):
        raise call.unsupported("its condition is computed at run time")
    return bool(np.asarray(item).reshape(-1)[0]) if not isinstance(item, list) else False


def loop(call: Call) -> None:
    trips = int(call.constant(0).reshape(-1)[0]) if call.given(0) else MOST_TRIPS + 1
    going = bool(call.constant(1).reshape(-1)[0]) if call.given(1) else True
    graph, begins = call.graph("body"), [call.any(i) for i in range(2, call.count)]

    def read(within: Call, carried: Sequence[Item]) -> tuple[list[Item], list[Item]]:
        return unrolled(within, graph, carried, trips, going)

    ends, collected = of_a_cell(call, graph, begins, read) or read(call, begins)
    for index, item in enumerate([*ends, *collected]):
        call.put(item, index)


def unrolled(
    call: Call, graph: GraphRecord, begins: Sequence[Item], trips: int, going: bool
) -> tuple[list[Item], list[Item]]:
    """What a loop carries at its end, and what it collects."""
    carried = list(begins)
    scanned: list[list[Value | Array]] = [[] for _ in range(len(graph.outputs) - 1 - len(carried))]
    trip = 0
    while going and trip < trips:
        call.expect(trip < MOST_TRIPS, f"its trip count is unknown, or above {MOST_TRIPS}.")
        made = body(call, graph, [np.array(trip, np.int64), np.array(True), *carried])
        going = _is_true(call, made[0])
        carried = made[1 : 1 + len(carried)]
        for rows, row in zip(scanned, made[1 + len(carried) :], strict=True):
            if isinstance(row, list):
                raise call.error("its body accumulates sequences.")
            rows.append(row)
        trip += 1
    return carried, [stacked(call, rows, 0) for rows in scanned]


def stacked(call: Call, rows: Sequence[Value | Array], axis: int) -> Value | Array:
    call.expect(bool(rows), "it never runs, so its accumulated output is empty.")
    if all(isinstance(row, np.ndarray) for row in rows):
        return np.stack([np.asarray(row) for row in rows], axis)
    values = [call.as_value(row) for row in rows]
    rank = len(values[0].shape)
    place = call.axis(axis, rank + 1)
    return joined(call, [as_shape(call, v, (*v.shape[:place], 1, *v.shape[place:])) for v in values], place)


def scan(call: Call) -> None:
    call.expect(call.opset >= 9, "nnbuild supports it from opset 9 on.", "Export the model with a newer opset.")
    graph, count = call.graph("body"), call.integer("num_scan_inputs", 0)
    state_count = call.count - count
    call.expect(0 < count <= call.count, f"it has {call.count} inputs, {count} of them to scan.")
    states: list[Item] = [call.any(i) for i in range(state_count)]
    inputs = [call.item(i) for i in range(state_count, call.count)]
    axes = call.integers("scan_input_axes") or (0,) * count
    backwards = call.integers("scan_input_directions") or (0,) * count
    if state_count == count == 1 and not any((*axes, *backwards)) and scanned(call, graph):
        return
    call.expect(len(axes) == len(backwards) == count, "its options do not match its inputs.")
    places = [call.axis(a, len(i.shape)) for a, i in zip(axes, inputs, strict=True)]
    lengths = {i.shape[a] for a, i in zip(places, inputs, strict=True)}
    call.expect(len(lengths) == 1 and max(lengths) <= MOST_TRIPS, f"it scans {sorted(lengths)} steps.")
    (steps,) = lengths
    outputs = len(graph.outputs) - state_count
    rows: list[list[Value | Array]] = [[] for _ in range(outputs)]
    for step in range(steps):
        taken = [
            sliced(call, item, place, steps - 1 - step if back else step)
            for item, place, back in zip(inputs, places, backwards, strict=True)
        ]
        made = body(call, graph, [*states, *taken])
        states = made[:state_count]
        for kept, row in zip(rows, made[state_count:], strict=True):
            if isinstance(row, list):
                raise call.error("its body accumulates sequences.")
            kept.append(row)
    for index, item in enumerate(states):
        call.put(item, index)
    ends = call.integers("scan_output_axes") or (0,) * outputs
    turned = call.integers("scan_output_directions") or (0,) * outputs
    for index, kept in enumerate(rows):
        call.put(stacked(call, kept[::-1] if turned[index] else kept, ends[index]), state_count + index)


def sliced(call: Call, item: Value | Array, axis: int, place: int) -> Value | Array:
    """One index of an axis, which is removed."""
    if isinstance(item, np.ndarray):
        return np.asarray(item.take(place, axis))
    ranges = every(item.shape)
    ranges[axis] = (place, 1, 1)
    return as_shape(call, part(call, item, ranges), tuple(n for i, n in enumerate(item.shape) if i != axis))


OPERATORS: dict[str, Callable[[Call], None]] = {"If": if_, "Loop": loop, "Scan": scan}
