"""Which rows of every tensor are new at a step, and which are those of steps before.

A row that depends on no padding is the same wherever the window lies: it is clean. Padding makes rows at the top and
at the bottom of a tensor dirty, and with them what is computed from them; they are new at every step. So a tensor of
`count` rows is `top` dirty rows, clean ones of which the last `step` are new, and `bottom` dirty ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import lcm, prod

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.known import Known
from nnbuild.streaming.along import Along, Each, Sliding, Whole, along

Span = tuple[int, int]
"""Rows from the first to before the last."""


@dataclass(frozen=True)
class Rows:
    axis: int
    count: int
    step: int
    top: int = 0
    bottom: int = 0

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
        first, last = max(span[0], self.top), min(span[1], self.count)
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


def flow(graph: Graph, axis: int, step: int) -> Flow:
    """With `step` new rows of the input at every step."""
    (source,) = graph.inputs
    rows = {source: Rows(axis, graph.tensors[source].shape[axis], step)}
    fixed: set[str] = set()
    ways: dict[str, Along] = {}
    whole: dict[str, str] = {}
    kept: dict[str, int] = {}
    for op in graph.ops:
        streamed = [rows[name] for name in op.inputs if name in rows]
        if isinstance(op.attributes, Known) or all(name in fixed for name in op.inputs):
            fixed.update(op.outputs)
            continue
        way = _way(graph, op, streamed)
        made = _made(graph, op, way, streamed) if not isinstance(way, Whole) else way
        if isinstance(made, Whole):
            way, whole[op.name] = made, made.reason if streamed else ""
        else:
            rows[op.outputs[0]] = made
        ways[op.name] = way
        for name in op.inputs:
            if name in rows:
                wanted = spans(rows[name], rows.get(op.outputs[0]), way)
                kept[name] = max([kept.get(name, 0), *(rows[name].reach(span) for span in wanted)])
    for name in graph.outputs:
        if name in rows:
            kept[name] = max(kept.get(name, 0), rows[name].reach((0, rows[name].count)))
    return Flow(rows, frozenset(fixed), ways, kept, whole)


def _way(graph: Graph, op: Op, streamed: list[Rows]) -> Along:
    if len(streamed) < len(op.inputs) or len(op.outputs) != 1:
        return Whole("it reads what needs all rows, too" if streamed else "")
    first = streamed[0]
    if any((each.axis, each.count, each.step) != (first.axis, first.count, first.step) for each in streamed):
        return Whole("its inputs move on at different rates")
    return along(graph, op, first.axis)


def _made(graph: Graph, op: Op, way: Each | Sliding, streamed: list[Rows]) -> Rows | Whole:
    """The rows of an operation's output."""
    first = streamed[0]
    count = graph.tensors[op.outputs[0]].shape[way.axis]
    top, bottom = max(each.top for each in streamed), max(each.bottom for each in streamed)
    step = first.step
    if isinstance(way, Sliding):
        if step % way.stride:
            return Whole(f"it takes every {way.stride} rows, and {step} are new")
        step //= way.stride
        top = max(-(-(top + way.before) // way.stride), 0)
        # A pad alone makes a row of nothing else: one row more, so that no part is empty.
        top += int(op.kind == "pad" and way.before > 0)
        last = (first.count - bottom - way.span + way.before) // way.stride
        bottom = max(count - 1 - last, 0) + int(op.kind == "pad" and way.after > 0)
    made = Rows(way.axis, count, step, top, bottom)
    if made.edge >= count or (isinstance(way, Sliding) and parts(first, made, way)[-1].inputs[0] < 0):
        return Whole("all its rows touch padding" if top or bottom else "its window is all there is")
    return made


def parts(source: Rows, made: Rows, way: Sliding) -> list[Part]:
    """The pieces in which a sliding operation computes what is new: the top, if that is dirty, and the rest."""
    found = []
    if made.top:
        last = (made.top - 1) * way.stride - way.before + way.span
        found.append(Part((0, made.top), (0, last), way.before, 0, -way.before))
    first = made.tail[0] * way.stride - way.before
    return [*found, Part(made.tail, (first, source.count), 0, way.after, 0)]


def spans(source: Rows, made: Rows | None, way: Along) -> list[Span]:
    """The rows of an input that an operation reads in one piece each; none where it goes by the rows of the step."""
    if made is None or isinstance(way, Whole):
        return [(0, source.count)]
    if isinstance(way, Sliding):
        return [part.inputs for part in parts(source, made, way)]
    if (source.top, source.bottom) == (made.top, made.bottom):
        return []
    return [(0, made.top), made.tail] if made.top else [made.tail]


def rates(graph: Graph, axis: int) -> list[int]:
    """After how many rows of the input parts of the model move on: products of strides."""
    (source,) = graph.inputs
    known, axes = {source: 1}, {source: axis}
    for op in graph.ops:
        if len(op.outputs) != 1 or not op.inputs or not all(name in known for name in op.inputs):
            continue
        way = along(graph, op, axes[op.inputs[0]])
        if isinstance(way, Whole):
            continue
        rate = lcm(*(known[name] for name in op.inputs))
        if isinstance(way, Sliding) and graph.tensors[op.outputs[0]].shape[way.axis] > 1:
            rate *= way.stride
        known[op.outputs[0]], axes[op.outputs[0]] = rate, way.axis
    return sorted(set(known.values()))


def macs_of(graph: Graph) -> int:
    """Of one run."""
    total = 0
    for op in graph.ops:
        inner = {name: graph.tensors[name].shape[len(op.outer) :] for name in (*op.inputs, *op.outputs)}
        inputs, outputs = [inner[name] for name in op.inputs], [inner[name] for name in op.outputs]
        constants = {role: graph.constants[name].data.shape for role, name in op.constants.items()}
        total += op.attributes.macs(inputs, outputs, constants) * prod(op.outer)
    return total
