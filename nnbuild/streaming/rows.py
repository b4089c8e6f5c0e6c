"""Determines which rows of every tensor are new at a step, and which are kept from earlier steps.

A row that depends on no padding is the same wherever the window lies: it is clean. Padding makes rows at the top and
bottom of a tensor dirty, and everything computed from them; these are computed anew at every step. So a tensor of
`count` rows has `top` dirty rows, clean rows of which the last `step` are new, and `bottom` dirty rows.

With meaning=stream nothing is dirty: neighbouring rows replace padding. A tensor that depends on later rows is `late`:
its last row lags that of the window by as many rows. Rows then count from the last available one, number `count - 1`,
and those before the first have negative numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import lcm, prod

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.known import Known
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.streaming.time_axis import AllRows, Behaviour, RowWise, Sliding, Stateful, time_behaviour

Span = tuple[int, int]
"""A half-open range of rows."""


@dataclass(frozen=True)
class Rows:
    axis: int
    count: int
    step: int
    top: int = 0
    bottom: int = 0
    late: int = 0
    endless: bool = False

    @property
    def edge(self) -> int:
        """Rows computed at every step: first those at the top, then the others."""
        return self.top + self.step + self.bottom

    @property
    def tail(self) -> Span:
        """The rows computed at every step that are not at the top."""
        return self.count - self.bottom - self.step, self.count

    def reach(self, span: Span) -> int:
        """How far back clean rows must be kept to provide these rows; 0 if those of this step suffice."""
        first, last = span[0] if self.endless else max(span[0], self.top), min(span[1], self.count)
        return self.count - self.bottom - first if first < min(last, self.tail[0]) else 0


@dataclass(frozen=True)
class Part:
    """Part of a sliding operation: output rows, input rows and padding."""

    outputs: Span
    inputs: Span
    before: int
    after: int
    begin: int


@dataclass(frozen=True)
class Flow:
    """The streamed tensors, the constant ones, and the rows held of the former; and for each operation that needs all
    rows, the reason."""

    rows: Mapping[str, Rows]
    fixed: frozenset[str]
    ways: Mapping[str, Behaviour]
    kept: Mapping[str, int]
    whole: Mapping[str, str] = field(default_factory=dict)
    late: Mapping[int, int] = field(default_factory=dict)
    """Step of the rows -> delay of tensors that are read as a whole; all of them wait for the latest."""
    sums: frozenset[str] = frozenset()
    """Operations computed by running sums."""

    def clean(self, name: str) -> Span:
        """The clean rows of a tensor that is read as a whole: each step adds only its own."""
        rows, (first, last) = self.rows[name], self.all_of(name)
        return first + rows.top, last - rows.bottom

    def leaving(self, name: str) -> Span:
        """The rows that were clean a step ago and no longer are."""
        first, _ = self.clean(name)
        return first - self.rows[name].step, first

    def all_of(self, name: str) -> Span:
        """All rows that the window has of a tensor."""
        rows = self.rows[name]
        early = max(0, self.late.get(rows.step, 0) - rows.late)
        return -early, rows.count - early


def flow(graph: Graph, axis: int, step: int, whole_stream: bool = False, running: bool = False) -> Flow:
    """Analyses a graph with `step` new input rows per step; with `running`, averages of integers become running
    sums."""
    (source,) = graph.inputs
    rows = {source: Rows(axis, graph.tensors[source].shape[axis], step, endless=whole_stream)}
    fixed: set[str] = set()
    ways: dict[str, Behaviour] = {}
    whole: dict[str, str] = {}
    kept: dict[str, int] = {}
    for op in graph.ops:
        streamed = [rows[name] for name in op.inputs if name in rows]
        if isinstance(op.attributes, Known) or all(name in fixed for name in op.inputs):
            fixed.update(op.outputs)
            continue
        way = _way(graph, op, streamed, whole_stream)
        made = _made(graph, op, way, streamed) if not isinstance(way, AllRows) else way
        if isinstance(made, AllRows):
            way, whole[op.name] = made, made.reason if streamed else ""
        elif made is not None:
            rows[op.outputs[0]] = made
        ways[op.name] = way
    found = Flow(rows, frozenset(fixed), ways, kept, whole, _lateness(graph, rows, ways))
    if running:
        found = replace(found, sums=frozenset(op.name for op in graph.ops if is_running_sum(graph, op, found)))
    for op in graph.ops:
        if op.name in found.sums:
            (name,) = op.inputs
            kept[name] = max(kept.get(name, 0), rows[name].count - rows[name].bottom - found.leaving(name)[0])
            continue
        for name in op.inputs:
            if name in rows and op.name in ways:
                wanted = spans(found, name, rows.get(op.outputs[0]), ways[op.name])
                kept[name] = max([kept.get(name, 0), *(rows[name].reach(span) for span in wanted)])
    for name in graph.outputs:
        if name in rows and not whole_stream:
            kept[name] = max(kept.get(name, 0), rows[name].reach((0, rows[name].count)))
    return found


def is_running_sum(graph: Graph, op: Op, found: Flow) -> bool:
    """Whether an operation averages or sums integers over all rows, some of which stay from step to step."""
    if op.outer or len(op.inputs) != 1 or op.inputs[0] not in found.rows:
        return False
    (name,), attributes = op.inputs, op.attributes
    rows, tensor = found.rows[name], graph.tensors[name]
    first, last = found.clean(name)
    if tensor.dtype not in ("int8", "int16") or last - first <= rows.step or tensor.quant is None:
        return False
    if isinstance(attributes, Reduce):
        over = range(attributes.axis, attributes.axis + attributes.count)
        return attributes.function in ("mean", "sum") and attributes.axis == 0 and rows.axis in over
    if not isinstance(attributes, Pool2D) or attributes.function != "average" or rows.axis > 1:
        return False
    return attributes.window == tensor.shape[:2] and not any(map(any, attributes.padding))


def _lateness(graph: Graph, rows: Mapping[str, Rows], ways: Mapping[str, Behaviour]) -> dict[int, int]:
    """Step of the rows -> the largest delay of tensors that are read as a whole."""
    late: dict[int, int] = {}
    for op in graph.ops:
        if isinstance(ways.get(op.name), AllRows):
            for each in (rows[name] for name in op.inputs if name in rows):
                late[each.step] = max(late.get(each.step, 0), each.late)
    return late


def _way(graph: Graph, op: Op, streamed: list[Rows], whole_stream: bool) -> Behaviour:
    if len(streamed) < len(op.inputs):
        return AllRows("it reads what needs all rows, too" if streamed else "")
    first = streamed[0]
    if any((each.axis, each.count, each.step) != (first.axis, first.count, first.step) for each in streamed):
        return AllRows("its inputs move on at different rates")
    way = time_behaviour(graph, op, first.axis, whole_stream)
    several = len(op.outputs) != 1 and not isinstance(way, AllRows | Stateful)
    return AllRows("it reads what needs all rows, too") if several else way


def _made(graph: Graph, op: Op, way: RowWise | Sliding | Stateful, streamed: list[Rows]) -> Rows | AllRows | None:
    """The rows of an operation's output; None where only a state results."""
    first = streamed[0]
    if isinstance(way, Stateful) and not op.attributes.sequences:  # type: ignore[attr-defined]
        return None
    count = graph.tensors[op.outputs[0]].shape[way.axis]
    top, bottom, late = (max(getattr(each, side) for each in streamed) for side in ("top", "bottom", "late"))
    step = first.step
    if isinstance(way, Sliding):
        if first.endless and count == 1 and way.stride > 1:
            return AllRows("its window is all there is")
        if step % way.stride:
            return AllRows(f"it takes every {way.stride} rows, and {step} are new")
        step //= way.stride
        if first.endless:
            late = max(count - 1 - (first.count - late - way.span + way.before) // way.stride, 0)
            return Rows(way.axis, count, step, late=late, endless=True)
        top = max(-(-(top + way.before) // way.stride), 0)
        # Where padding alone makes these rows: one row more, so that no part is empty.
        top += int(top > 0 and (top - 1) * way.stride - way.before + way.span <= 0)
        last = (first.count - bottom - way.span + way.before) // way.stride
        bottom = max(count - 1 - last, 0) + int(op.kind == "pad" and way.after > 0)
    made = Rows(way.axis, count, step, top, bottom, late, first.endless)
    if made.endless:
        return made
    if made.edge >= count or (isinstance(way, Sliding) and parts(first, made, way)[-1].inputs[0] < 0):
        return AllRows("all its rows touch padding" if top or bottom else "its window is all there is")
    return made


def parts(source: Rows, made: Rows, way: Sliding) -> list[Part]:
    """The parts in which a sliding operation computes new rows: the top if it is dirty, and the rest."""
    found = []
    if made.top:
        last = (made.top - 1) * way.stride - way.before + way.span
        found.append(Part((0, made.top), (0, last), way.before, 0, -way.before))
    first = (made.tail[0] - made.late) * way.stride - way.before + source.late
    last = first + (made.step - 1) * way.stride + way.span if made.endless else source.count
    return [*found, Part(made.tail, (first, last), 0, 0 if made.endless else way.after, 0)]


def spans(found: Flow, name: str, made: Rows | None, way: Behaviour) -> list[Span]:
    """The ranges of an input's rows that an operation reads, one per part; empty where it only reads the rows of the
    step."""
    source = found.rows[name]
    if isinstance(way, Stateful):
        return []
    if made is None or isinstance(way, AllRows):
        return [found.all_of(name)]
    if isinstance(way, Sliding):
        return [part.inputs for part in parts(source, made, way)]
    if (source.top, source.bottom, source.late) == (made.top, made.bottom, made.late):
        return []
    return matching_rows(source, made)


def matching_rows(source: Rows, made: Rows) -> list[Span]:
    """The rows of a tensor that correspond to another one's rows of this step."""
    first, last = made.tail
    early = made.late - source.late
    return [(0, made.top), made.tail] if made.top else [(first - early, last - early)]


def rates(graph: Graph, axis: int, whole_stream: bool = False) -> list[int]:
    """After how many input rows parts of the model advance: products of strides."""
    (source,) = graph.inputs
    known, axes = {source: 1}, {source: axis}
    for op in graph.ops:
        if not op.inputs or not all(name in known for name in op.inputs):
            continue
        way = time_behaviour(graph, op, axes[op.inputs[0]], whole_stream)
        if isinstance(way, AllRows) or (len(op.outputs) != 1 and not isinstance(way, Stateful)):
            continue
        if isinstance(way, Stateful) and not op.attributes.sequences:  # type: ignore[attr-defined]
            continue
        rate = lcm(*(known[name] for name in op.inputs))
        if isinstance(way, Sliding) and graph.tensors[op.outputs[0]].shape[way.axis] > 1:
            rate *= way.stride
        known[op.outputs[0]], axes[op.outputs[0]] = rate, way.axis
    return sorted(set(known.values()))


def receptive_field(graph: Graph, found: Flow) -> int:
    """How many of the latest input rows a step's outputs depend on; for recurrent layers only the new ones."""
    (source,) = graph.inputs
    whole = found.rows[source].step
    back = {source: 0}
    for op in graph.ops:
        way, made, reach = found.ways.get(op.name, AllRows("")), found.rows.get(op.outputs[0]), 0
        for name in op.inputs:
            if name in found.rows:
                rate, rows = whole // found.rows[name].step, found.rows[name]
                first = min((span[0] for span in spans(found, name, made, way)), default=rows.tail[0])
                reach = max(reach, back[name] + (rows.count - 1 - first) * rate)
            elif name in back:
                reach = max(reach, back[name])
        # The first of a step's rows reaches back furthest; later layers count once.
        if made is not None and reach:
            reach -= (made.step - 1) * (whole // made.step)
        back |= dict.fromkeys(op.outputs, reach)
    return max(back.values()) + 1


def macs_of(graph: Graph) -> int:
    """Multiply-accumulates of one run."""
    total = 0
    for op in graph.ops:
        inner = {name: graph.tensors[name].shape[len(op.outer) :] for name in (*op.inputs, *op.outputs)}
        inputs, outputs = [inner[name] for name in op.inputs], [inner[name] for name in op.outputs]
        constants = {role: graph.constants[name].data.shape for role, name in op.constants.items()}
        total += op.attributes.macs(inputs, outputs, constants) * prod(op.outer)
    return total
