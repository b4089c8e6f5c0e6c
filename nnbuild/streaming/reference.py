"""Reference for meaning=stream, without rings or steps: all rows at once, after unlimited silence.

Layers that work along time compute all of it at once; neighbouring rows replace padding. Operations that need all rows
of a window get as many of the latest ones. Recurrent layers begin with zeros at the first step and continue to the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nnbuild.model.graph import Array, Graph, Op
from nnbuild.ops import interpret
from nnbuild.ops.site import Site, site_of
from nnbuild.streaming.rows import Flow, Rows
from nnbuild.streaming.time_axis import AllRows, RowWise, Sliding, Stateful, for_part


def stream_outputs(graph: Graph, found: Flow, hop: int, rows: Array, dtype: str = "float32") -> interpret.Values:
    """The outputs after every step; time is the first axis of `rows`."""
    run = _LongRun(graph, found, hop, dtype)
    values = run.values(rows)
    return {name: values[name] if name not in found.rows else run.new(name, values[name]) for name in graph.outputs}


def before_the_first(graph: Graph, found: Flow, hop: int, rows: Array) -> interpret.Values:
    """The row of every tensor before those of the first step."""
    run = _LongRun(graph, found, hop, "float32")
    values = run.values(rows)
    return {name: values[name][0].take([run.first(each) - 1], each.axis) for name, each in found.rows.items()}


@dataclass
class _LongRun:
    graph: Graph
    flow: Flow
    hop: int
    dtype: str
    steps: int = 0

    @property
    def source(self) -> Rows:
        return self.flow.rows[self.graph.inputs[0]]

    @property
    def silence(self) -> int:
        """Rows of silence before the first: more than any later row depends on, in whole steps of the slowest part."""
        most = self.source.count + sum(self._reach(op) for op in self.graph.ops)
        return self.source.count + most * self.source.step

    def _reach(self, op: Op) -> int:
        way = self.flow.ways.get(op.name)
        held = max((self.flow.kept.get(name, 0) for name in op.inputs), default=0)
        return held + (way.span + abs(way.before) if isinstance(way, Sliding) else 0)

    def start(self, rows: Rows) -> int:
        """First row of the first step's window, in rows of a tensor."""
        return (self.silence + self.hop - self.source.count) // (self.source.step // rows.step)

    def first(self, rows: Rows) -> int:
        """The first row that the first step computes."""
        return self.start(rows) + rows.count - rows.late - rows.step

    def values(self, rows: Array) -> interpret.Values:
        name = self.graph.inputs[0]
        tensor = self.graph.tensors[name]
        self.steps = len(rows) // self.hop
        given = interpret.as_input(tensor, rows[: self.steps * self.hop], self.dtype)
        zero = tensor.quant.zero_point if tensor.quant is not None else 0
        before = np.full((self.silence, *given.shape[1:]), zero, given.dtype)
        values = {name: np.moveaxis(np.concatenate([before, given]), 0, self.source.axis)[None]}
        for op in self.graph.ops:
            values |= zip(op.outputs, self._computed(op, values), strict=True)
        return values

    def _computed(self, op: Op, values: interpret.Values) -> tuple[Array, ...]:
        way, given = self.flow.ways.get(op.name), [values[name] for name in op.inputs]
        if way is None:  # it never changes
            return interpret.compute(site_of(self.graph, op), given, self.dtype)
        if isinstance(way, AllRows):
            whole = [self._whole(name, values[name]) for name in op.inputs]
            return interpret.compute(site_of(self.graph, op), whole, self.dtype)
        if isinstance(way, Stateful):
            return self._carried(op, given[0])
        return self._all_at_once(op, way, given)

    def _whole(self, name: str, values: Array) -> Array:
        """The rows of a tensor that each step sees."""
        if name in self.flow.fixed:
            return np.repeat(values, self.steps, 0)
        if name not in self.flow.rows:
            return values
        rows, (first, last) = self.flow.rows[name], self.flow.all_of(name)
        return self._windows(values, rows, first - rows.late, last - rows.late)

    def _windows(self, values: Array, rows: Rows, first: int, last: int) -> Array:
        begins = self.start(rows) + np.arange(self.steps) * rows.step
        at = begins[:, None] + np.arange(first, last)
        return np.moveaxis(np.moveaxis(values[0], rows.axis, 0)[at], 1, rows.axis + 1)

    def new(self, name: str, values: Array) -> Array:
        """The rows that each step computes."""
        rows = self.flow.rows[name]
        last = rows.count - rows.late
        return self._windows(values, rows, last - rows.step, last)

    def _all_at_once(self, op: Op, way: RowWise | Sliding, given: list[Array]) -> tuple[Array, ...]:
        source = self.flow.rows[op.inputs[0]]
        count = size = min(values.shape[source.axis + 1] for values in given)
        given = [values.take(range(size), source.axis + 1) for values in given]
        if isinstance(way, Sliding):
            count = (size + way.before + way.after - way.span) // way.stride + 1
        attributes = for_part(op, way, count, way.before, way.after) if isinstance(way, Sliding) else op.attributes
        if isinstance(way, RowWise):
            attributes = for_part(op, way, count, 0, 0)
        outer = tuple(count if way.axis == i else n for i, n in enumerate(op.outer))
        long = replace(op, attributes=attributes, outer=outer)
        site = self._site(long, {name: values.shape[1:] for name, values in zip(op.inputs, given, strict=True)})
        return interpret.compute(site, given, self.dtype)

    def _carried(self, op: Op, given: Array) -> tuple[Array, ...]:
        """Computes step by step, from zero states."""
        attributes = op.attributes
        rows = self.flow.rows[op.inputs[0]]
        first, held = self.first(rows), op.outputs[-attributes.states :]  # type: ignore[attr-defined]
        site = self._site(replace(op, inputs=(*op.inputs, *held)), {op.inputs[0]: (rows.step, *given.shape[2:])})
        states = [np.zeros((1, *self.graph.tensors[name].shape), given.dtype) for name in held]
        for place, name in enumerate(held):
            if self.graph.tensors[name].quant is not None:
                states[place] = states[place].astype(self.graph.tensors[name].dtype)
        made = []
        for step in range(self.steps):
            new = given[:, first + step * rows.step : first + (step + 1) * rows.step]
            made.append(interpret.compute(site, [new, *states], self.dtype))
            states = list(made[-1][-len(held) :])
        outputs = [np.concatenate(each) for each in zip(*made, strict=True)]
        if op.outputs[0] in self.flow.rows:
            after = outputs[0].reshape(1, -1, *outputs[0].shape[2:])
            outputs[0] = np.concatenate([np.zeros((1, first, *after.shape[2:]), after.dtype), after], axis=1)
        return tuple(outputs)

    def _site(self, op: Op, shapes: dict[str, tuple[int, ...]]) -> Site:
        """The operation over all rows at once."""
        constants = {role: self.graph.constants[name].data.shape for role, name in op.constants.items()}
        inner = [shapes.get(name, self.graph.tensors[name].shape)[len(op.outer) :] for name in op.inputs]
        made = op.attributes.shapes(inner, constants)
        new = {**shapes, **{name: (*op.outer, *shape) for name, shape in zip(op.outputs, made, strict=True)}}
        tensors = {**self.graph.tensors, **{n: replace(self.graph.tensors[n], shape=s) for n, s in new.items()}}
        return site_of(replace(self.graph, tensors=tensors, ops=(op,)), op)
