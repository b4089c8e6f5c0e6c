"""Which rows of every tensor are new at a step, and which are those of steps before.

A row that depends on no padding is the same wherever the window lies: it is clean. Padding makes rows at the top and
at the bottom of a tensor dirty, and with them what is computed from them; they are new at every step. So a tensor of
`count` rows is `top` dirty rows, clean ones of which the last `step` are new, and `bottom` dirty ones.

Where the whole stream is meant nothing is dirty: instead of padding stand the rows before and after. What looks at rows
to come is `late`: its last row is as many rows behind that of the window. Rows then count from the last one that is
there, number `count - 1`, and those before the first have numbers below 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import lcm, prod

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.known import Known
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.streaming.time_axis import Along, Carried, Each, Sliding, Whole, along

Span = tuple[int, int]
"""Rows from the first to before the last."""


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
        """Rows that are computed at every step: those at the top, then the others."""
        return self.top + self.step + self.bottom

    @property
    def tail(self) -> Span:
        """Those of them that are not at the top."""
        return self.count - self.bottom - self.step, self.count

    def reach(self, span: Span) -> int:
        """How far back clean rows must be kept to have these rows; 0 where those of this step do."""
        first, last = span[0] if self.endless else max(span[0], self.top), min(span[1], self.count)
        return self.count - self.bottom - first if first < min(last, self.tail[0]) else 0


@dataclass(frozen=True)
class Part:
    """Of a sliding operation: these output rows from these input rows, with these pads."""

    outputs: Span
    inputs: Span
    before: int
    after: int
    begin: int


@dataclass(frozen=True)
class Flow:
    """Tensors that are streamed, those that never change, and what is held of the former; of every other operation,
    why it needs all rows."""

    rows: Mapping[str, Rows]
    fixed: frozenset[str]
    ways: Mapping[str, Along]
    kept: Mapping[str, int]
    whole: Mapping[str, str] = field(default_factory=dict)
    late: Mapping[int, int] = field(default_factory=dict)
    """Rows by step: how late are those that are read all at once, all of them for the sake of one."""
    sums: frozenset[str] = frozenset()
    """Operations that are computed by running sums."""

    def clean(self, name: str) -> Span:
        """The rows of what is read all at once that change by those of a step alone."""
        rows, (first, last) = self.rows[name], self.all_of(name)
        return first + rows.top, last - rows.bottom

    def leaving(self, name: str) -> Span:
        """The rows that were clean a step ago and are no longer."""
        first, _ = self.clean(name)
        return first - self.rows[name].step, first

    def all_of(self, name: str) -> Span:
        """The rows of a tensor as the window has them."""
        rows = self.rows[name]
        early = max(0, self.late.get(rows.step, 0) - rows.late)
        return -early, rows.count - early


def flow(graph: Graph, axis: int, step: int, whole_stream: bool = False, running: bool = False) -> Flow:
    """With `step` new rows of the input at every step; averages of integers by running sums, if so wished."""
    (source,) = graph.inputs
    rows = {source: Rows(axis, graph.tensors[source].shape[axis], step, endless=whole_stream)}
    fixed: set[str] = set()
    ways: dict[str, Along] = {}
    whole: dict[str, str] = {}
    kept: dict[str, int] = {}
    for op in graph.ops:
        streamed = [rows[name] for name in op.inputs if name in rows]
        if isinstance(op.attributes, Known) or all(name in fixed for name in op.inputs):
            fixed.update(op.outputs)
            continue
        way = _way(graph, op, streamed, whole_stream)
        made = _made(graph, op, way, streamed) if not isinstance(way, Whole) else way
        if isinstance(made, Whole):
            way, whole[op.name] = made, made.reason if streamed else ""
        elif made is not None:
            rows[op.outputs[0]] = made
        ways[op.name] = way
    found = Flow(rows, frozenset(fixed), ways, kept, whole, _lateness(graph, rows, ways))
    if running:
        found = replace(found, sums=frozenset(op.name for op in graph.ops if sums_up(graph, op, found)))
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


def sums_up(graph: Graph, op: Op, found: Flow) -> bool:
    """Whether an operation is an average or a sum of integers over all rows of which some stay."""
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


def _lateness(graph: Graph, rows: Mapping[str, Rows], ways: Mapping[str, Along]) -> dict[int, int]:
    """How late the latest rows are that are read all at once, by the rows of a step."""
    late: dict[int, int] = {}
    for op in graph.ops:
        if isinstance(ways.get(op.name), Whole):
            for each in (rows[name] for name in op.inputs if name in rows):
                late[each.step] = max(late.get(each.step, 0), each.late)
    return late


def _way(graph: Graph, op: Op, streamed: list[Rows], whole_stream: bool) -> Along:
    if len(streamed) < len(op.inputs):
        return Whole("it reads what needs all rows, too" if streamed else "")
    first = streamed[0]
    if any((each.axis, each.count, each.step) != (first.axis, first.count, first.step) for each in streamed):
        return Whole("its inputs move on at different rates")
    way = along(graph, op, first.axis, whole_stream)
    several = len(op.outputs) != 1 and not isinstance(way, Whole | Carried)
    return Whole("it reads what needs all rows, too") if several else way


def _made(graph: Graph, op: Op, way: Each | Sliding | Carried, streamed: list[Rows]) -> Rows | Whole | None:
    """The rows of an operation's output; none where only a state comes out."""
    first = streamed[0]
    if isinstance(way, Carried) and not op.attributes.sequences:  # type: ignore[attr-defined]
        return None
    count = graph.tensors[op.outputs[0]].shape[way.axis]
    top, bottom, late = (max(getattr(each, side) for each in streamed) for side in ("top", "bottom", "late"))
    step = first.step
    if isinstance(way, Sliding):
        if first.endless and count == 1 and way.stride > 1:
            return Whole("its window is all there is")
        if step % way.stride:
            return Whole(f"it takes every {way.stride} rows, and {step} are new")
        step //= way.stride
        if first.endless:
            late = max(count - 1 - (first.count - late - way.span + way.before) // way.stride, 0)
            return Rows(way.axis, count, step, late=late, endless=True)
        top = max(-(-(top + way.before) // way.stride), 0)
        # A pad alone makes a row of nothing else: one row more, so that no part is empty.
        top += int(op.kind == "pad" and way.before > 0)
        last = (first.count - bottom - way.span + way.before) // way.stride
        bottom = max(count - 1 - last, 0) + int(op.kind == "pad" and way.after > 0)
    made = Rows(way.axis, count, step, top, bottom, late, first.endless)
    if made.endless:
        return made
    if made.edge >= count or (isinstance(way, Sliding) and parts(first, made, way)[-1].inputs[0] < 0):
        return Whole("all its rows touch padding" if top or bottom else "its window is all there is")
    return made


def parts(source: Rows, made: Rows, way: Sliding) -> list[Part]:
    """The pieces in which a sliding operation computes what is new: the top, if that is dirty, and the rest."""
    found = []
    if made.top:
        last = (made.top - 1) * way.stride - way.before + way.span
        found.append(Part((0, made.top), (0, last), way.before, 0, -way.before))
    first = (made.tail[0] - made.late) * way.stride - way.before + source.late
    last = first + (made.step - 1) * way.stride + way.span if made.endless else source.count
    return [*found, Part(made.tail, (first, last), 0, 0 if made.endless else way.after, 0)]


def spans(found: Flow, name: str, made: Rows | None, way: Along) -> list[Span]:
    """The rows of an input that an operation reads in one piece each; none where it goes by the rows of the step."""
    source = found.rows[name]
    if isinstance(way, Carried):
        return []
    if made is None or isinstance(way, Whole):
        return [found.all_of(name)]
    if isinstance(way, Sliding):
        return [part.inputs for part in parts(source, made, way)]
    if (source.top, source.bottom, source.late) == (made.top, made.bottom, made.late):
        return []
    return alike(source, made)


def alike(source: Rows, made: Rows) -> list[Span]:
    """Of a tensor the rows that belong to those of this step of another."""
    first, last = made.tail
    early = made.late - source.late
    return [(0, made.top), made.tail] if made.top else [(first - early, last - early)]


def rates(graph: Graph, axis: int, whole_stream: bool = False) -> list[int]:
    """After how many rows of the input parts of the model move on: products of strides."""
    (source,) = graph.inputs
    known, axes = {source: 1}, {source: axis}
    for op in graph.ops:
        if not op.inputs or not all(name in known for name in op.inputs):
            continue
        way = along(graph, op, axes[op.inputs[0]], whole_stream)
        if isinstance(way, Whole) or (len(op.outputs) != 1 and not isinstance(way, Carried)):
            continue
        if isinstance(way, Carried) and not op.attributes.sequences:  # type: ignore[attr-defined]
            continue
        rate = lcm(*(known[name] for name in op.inputs))
        if isinstance(way, Sliding) and graph.tensors[op.outputs[0]].shape[way.axis] > 1:
            rate *= way.stride
        known[op.outputs[0]], axes[op.outputs[0]] = rate, way.axis
    return sorted(set(known.values()))


def seen(graph: Graph, found: Flow) -> int:
    """How many rows of the input, back from the last, lead to what a step gives; of recurrent layers the new ones."""
    (source,) = graph.inputs
    whole = found.rows[source].step
    back = {source: 0}
    for op in graph.ops:
        way, made, reach = found.ways.get(op.name, Whole("")), found.rows.get(op.outputs[0]), 0
        for name in op.inputs:
            if name in found.rows:
                rate, rows = whole // found.rows[name].step, found.rows[name]
                first = min((span[0] for span in spans(found, name, made, way)), default=rows.tail[0])
                reach = max(reach, back[name] + (rows.count - 1 - first) * rate)
            elif name in back:
                reach = max(reach, back[name])
        # Of several rows of a step the first needs most: what is behind it counts once.
        if made is not None and reach:
            reach -= (made.step - 1) * (whole // made.step)
        back |= dict.fromkeys(op.outputs, reach)
    return max(back.values()) + 1


def macs_of(graph: Graph) -> int:
    """Of one run."""
    total = 0
    for op in graph.ops:
        inner = {name: graph.tensors[name].shape[len(op.outer) :] for name in (*op.inputs, *op.outputs)}
        inputs, outputs = [inner[name] for name in op.inputs], [inner[name] for name in op.outputs]
        constants = {role: graph.constants[name].data.shape for role, name in op.constants.items()}
        total += op.attributes.macs(inputs, outputs, constants) * prod(op.outer)
    return total
