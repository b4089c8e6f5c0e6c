"""Builds the graph of one step: its input is the new rows, its states are the rows of earlier steps that are still
needed."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from nnbuild.model.graph import WHOLE, Array, Constant, Graph, Op, State, Tensor
from nnbuild.ops import interpret
from nnbuild.ops.base import Attributes
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.pick import copy_of
from nnbuild.ops.running import Running
from nnbuild.ops.shift import Shift
from nnbuild.ops.slice import Slice
from nnbuild.streaming.reference import before_the_first
from nnbuild.streaming.rows import Flow, Rows, Span, matching_rows, parts
from nnbuild.streaming.time_axis import AllRows, Behaviour, Sliding, Stateful, for_part


def step_of(graph: Graph, found: Flow, hop: int) -> Graph:
    """`hop` rows arrive per step; parts of the model that advance by more rows, as in `found`, take turns."""
    return _Build(graph, found, hop).graph()


class _Build:
    def __init__(self, graph: Graph, found: Flow, hop: int) -> None:
        self.old, self.flow, self.hop = graph, found, hop
        (self.source,) = graph.inputs
        self.banks = found.rows[self.source].step // hop
        self.tensors: dict[str, Tensor] = {}
        self.constants = dict(graph.constants)
        self.ops: list[Op] = []
        self.states: list[State] = []
        self.edges: dict[str, str] = {}
        self.rings: dict[str, str] = {}
        self.pieces: dict[tuple[str, Span], str] = {}
        self.reserved = {op.name for op in graph.ops}
        self.used: set[str] = set()

    def graph(self) -> Graph:
        self._begin()
        for op in self.old.ops:
            self._op(op, self.flow.ways.get(op.name, AllRows("")))
        outputs = tuple(self._output(name) for name in self.old.outputs)
        return replace(
            self.old,
            tensors=self.tensors,
            constants=self.constants,
            ops=tuple(self.ops),
            inputs=(self.source,),
            outputs=outputs,
            states=tuple(self.states),
        )

    @cached_property
    def silence(self) -> interpret.Values:
        """A row of every tensor after zero input only: the initial value of states."""
        tensor, rows = self.old.tensors[self.source], self.flow.rows
        zero = tensor.quant.zero_point if tensor.quant is not None else 0
        if rows[self.source].endless:
            shape = (self.hop, *tensor.shape[: rows[self.source].axis], *tensor.shape[rows[self.source].axis + 1 :])
            return before_the_first(self.old, self.flow, self.hop, np.full(shape, zero, tensor.dtype))
        values = interpret.run(self.old, {self.source: np.full((1, *tensor.shape), zero, tensor.dtype)})
        return {name: values[name][0].take([each.top], each.axis) for name, each in rows.items()}

    # Tensors.

    def _tensor(self, like: str, name: str, axis: int | None = None, size: int = 0) -> str:
        """Adds a tensor; its name is varied if it is taken or another one's of the window."""
        tensor = self.old.tensors[like]
        shape = tensor.shape if axis is None else (*tensor.shape[:axis], size, *tensor.shape[axis + 1 :])
        made, number = name, 0
        while made in self.tensors or (made != like and made in self.old.tensors):
            number += 1
            made = f"{name}_{number}"
        layer = tensor.layer if axis is None else None
        self.tensors[made] = replace(tensor, name=made, shape=shape, layer=layer)
        return made

    def _add(self, name: str, op: Op) -> None:
        """Adds an operation; its name is varied if it is taken or belongs to another one."""
        made, number = name, 0
        while made in self.used or (made in self.reserved and made != op.name):
            number += 1
            made = f"{name}_{number}"
        self.used.add(made)
        self.ops.append(replace(op, name=made))

    def _begin(self) -> None:
        """Adds the input; where parts of the model take turns, the rows of all of them."""
        rows = self.flow.rows[self.source]
        made = self._tensor(self.source, self.source, rows.axis, self.hop)
        if self.banks == 1:
            self.edges[self.source] = made
            return
        size = max(self.flow.kept.get(self.source, 0), rows.step)
        self._ring(self.source, made, size, 1)
        self.edges[self.source] = self._slice(self.rings[self.source], self.source, rows.axis, size - rows.step, size)

    def _ring(self, name: str, new: str, size: int, banks: int) -> None:
        """Adds a ring of a tensor's last clean rows, including those of this step."""
        rows = self.flow.rows[name]
        before = self._tensor(name, f"{name}/before", rows.axis, size)
        after = self._tensor(name, f"{name}/held", rows.axis, size)
        self._add(f"{name}/hold", Op("", Shift(rows.axis), (before, new), (after,), layer=self._layer(name)))
        self.states.append(State(before, after, self._initial(name, before, rows), banks))
        self.rings[name] = after

    def _initial(self, name: str, before: str, rows: Rows) -> str | None:
        """The initial value of a ring: while only zeros arrive, every clean row is the same."""
        tensor = self.tensors[before]
        values: Array = np.repeat(self.silence[name], tensor.shape[rows.axis], rows.axis).astype(tensor.dtype)
        zero = tensor.quant.zero_point if tensor.quant is not None else 0
        if (values == zero).all():
            return None
        made = f"{before}/initial"
        self.constants[made] = Constant(made, values, tensor.quant)
        return made

    def _layer(self, name: str) -> str:
        return next((op.layer for op in self.old.ops if name in op.outputs), name)

    def _held(self, name: str) -> str:
        """The ring of a tensor, created on first use."""
        if name not in self.rings:
            rows = self.flow.rows[name]
            new = self.edges[name]
            if rows.edge > rows.step:
                new = self._slice(new, name, rows.axis, rows.top, rows.top + rows.step)
            self._ring(name, new, self.flow.kept[name], self.banks)
        return self.rings[name]

    def _slice(self, source: str, name: str, axis: int, first: int, last: int) -> str:
        shape = self.tensors[source].shape
        if (first, last) == (0, shape[axis]):
            return source
        begins = tuple(first if i == axis else 0 for i in range(len(shape)))
        counts = tuple(last - first if i == axis else n for i, n in enumerate(shape))
        made = self._tensor(name, f"{name}/part", axis, last - first)
        slice_ = Slice(begins, (1,) * len(shape), counts)
        self._add(f"{name}/take", Op("", slice_, (source,), (made,), layer=self._layer(name)))
        return made

    def _piece(self, name: str, span: Span) -> str:
        """Rows of a tensor as one tensor, assembled from the rows of this step and those held."""
        if (name, span) not in self.pieces:
            self.pieces[name, span] = self._joined(name, span)
        return self.pieces[name, span]

    def _joined(self, name: str, span: Span) -> str:
        rows, (first, last) = self.flow.rows[name], span
        axis, tail = rows.axis, rows.tail
        if first >= tail[0]:
            at = rows.top - tail[0]
            return self._slice(self.edges[name], name, axis, first + at, last + at)
        if 0 < last <= rows.top:
            return self._slice(self.edges[name], name, axis, first, last)
        found, held = [], first
        if 0 <= first < rows.top:
            held = rows.top
            found.append(self._slice(self.edges[name], name, axis, first, rows.top))
        ring, clean = self._held(name), rows.count - rows.bottom
        at = self.tensors[ring].shape[axis] - clean
        found.append(self._slice(ring, name, axis, held + at, min(last, clean) + at))
        if last > clean:
            behind = rows.top + rows.step
            found.append(self._slice(self.edges[name], name, axis, behind, behind + last - clean))
        return self._concatenated(found, name, axis, last - first)

    def _concatenated(self, found: list[str], name: str, axis: int, size: int) -> str:
        if len(found) == 1:
            return found[0]
        made = self._tensor(name, f"{name}/rows", axis, size)
        self._add(f"{name}/join", Op("", Concatenate(axis), tuple(found), (made,), layer=self._layer(name)))
        return made

    def _all(self, name: str) -> str:
        """A tensor with all rows of the window."""
        return self._piece(name, self.flow.all_of(name)) if name in self.flow.rows else name

    # Operations.

    def _op(self, op: Op, way: Behaviour) -> None:
        if isinstance(way, Stateful):
            self._carried(op)
            return
        if op.name in self.flow.sums:
            self._summed(op)
            return
        if op.outputs[0] not in self.flow.rows or isinstance(way, AllRows):
            for name in op.outputs:
                self.tensors[name] = self.old.tensors[name]
            known = all(name in self.flow.fixed for name in op.outputs)
            inputs = tuple(self.source if known and name == self.source else self._all(name) for name in op.inputs)
            self._add(op.name, replace(op, inputs=inputs))
            return
        (name,), made = op.outputs, self.flow.rows[op.outputs[0]]
        if not isinstance(way, Sliding):
            inputs = tuple(self._rows_like(each, made) for each in op.inputs)
            self.edges[name] = self._part(op, for_part(op, way, made.edge, 0, 0), inputs, made.edge)
            return
        source = self.flow.rows[op.inputs[0]]
        found = []
        for part in parts(source, made, way):
            count = part.outputs[1] - part.outputs[0]
            attributes = for_part(op, way, count, part.before, part.after, part.begin)
            found.append(self._part(op, attributes, (self._piece(op.inputs[0], part.inputs),), count))
        self.edges[name] = self._concatenated(found, name, made.axis, made.edge)

    def _summed(self, op: Op) -> None:
        """Computes a running sum: adds new rows and subtracts leaving ones; dirty rows are added anew at every step."""
        (name,), (out,), rows = op.inputs, op.outputs, self.flow.rows[op.inputs[0]]
        (first, last), tensor = self.flow.clean(name), self.old.tensors[name]
        ring, clean = self._held(name), rows.count - rows.bottom
        at = self.tensors[ring].shape[rows.axis] - clean
        spans = [self.flow.leaving(name), (last - rows.step, last)]
        given = [self._slice(ring, name, rows.axis, begin + at, end + at) for begin, end in spans]
        if rows.top:
            given.append(self._slice(self.edges[name], name, rows.axis, 0, rows.top))
        if rows.bottom:
            given.append(self._slice(self.edges[name], name, rows.axis, rows.edge - rows.bottom, rows.edge))
        attributes = Running(op.attributes, rows.axis, rows.count)  # type: ignore[arg-type]
        self.tensors[out] = self.old.tensors[out]
        before, after = (f"{out}/{word}" for word in ("sum_before", "sum"))
        for each in (before, after):
            self.tensors[each] = Tensor(each, self.tensors[out].shape, "int32", WHOLE)
        shape = (*tensor.shape[: rows.axis], last - first, *tensor.shape[rows.axis + 1 :])
        size, beyond = attributes.sizes(shape)
        row: Array = np.repeat(self.silence[name], last - first, rows.axis).astype(np.int64)
        start = row.reshape(size, beyond).sum(axis=0).reshape(self.tensors[out].shape).astype(np.int32)
        self.constants[f"{before}/initial"] = Constant(f"{before}/initial", start, WHOLE)
        self.states.append(State(before, after, f"{before}/initial", self.banks))
        inputs = (before, *given)
        self._add(op.name, Op("", attributes, inputs, (out, after), layer=op.layer))

    def _carried(self, op: Op) -> None:
        """Computes new rows only; the final states are those with which the next step begins."""
        befores = []
        for name in op.outputs[-op.attributes.states :]:  # type: ignore[attr-defined]
            befores.append(self._tensor(name, f"{name}/before"))
            self.tensors[name] = self.old.tensors[name]
            self.states.append(State(befores[-1], name))
        outputs = list(op.outputs)
        if op.outputs[0] in self.flow.rows:
            rows = self.flow.rows[op.outputs[0]]
            made = op.outputs[0] if op.outputs[0] not in self.old.outputs else f"{op.outputs[0]}/rows"
            outputs[0] = self._tensor(op.outputs[0], made, rows.axis, rows.edge)
            self.edges[op.outputs[0]] = outputs[0]
        self._add(op.name, replace(op, inputs=(self.edges[op.inputs[0]], *befores), outputs=tuple(outputs)))

    def _rows_like(self, name: str, made: Rows) -> str:
        """The rows of this step, with the same number of dirty rows and the same delay as a tensor computed from
        them."""
        rows = self.flow.rows[name]
        if (rows.top, rows.bottom, rows.late) == (made.top, made.bottom, made.late):
            return self.edges[name]
        return self._concatenated([self._piece(name, s) for s in matching_rows(rows, made)], name, rows.axis, made.edge)

    def _part(self, op: Op, attributes: Attributes, inputs: tuple[str, ...], count: int) -> str:
        (name,), rows = op.outputs, self.flow.rows[op.outputs[0]]
        made = self._tensor(name, name if name not in self.old.outputs else f"{name}/rows", rows.axis, count)
        outer = tuple(count if i == rows.axis else n for i, n in enumerate(op.outer))
        self._add(op.name, replace(op, attributes=attributes, inputs=inputs, outputs=(made,), outer=outer))
        return made

    def _output(self, name: str) -> str:
        """All rows of an output, or for a whole stream those of this step, under its own name and in its own memory."""
        if name not in self.flow.rows:
            return name
        rows = self.flow.rows[name]
        whole = self.edges[name] if rows.endless else self._all(name)
        self.tensors[name] = replace(self.old.tensors[name], shape=self.tensors[whole].shape)
        self._add(f"{name}:op", Op("", copy_of(self.tensors[whole]), (whole,), (name,), layer=self._layer(name)))
        return name
