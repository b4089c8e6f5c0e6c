"""A windowed model as one of steps: which axis is time, how many rows a step takes, and what that brings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm

from nnbuild.base.errors import ModelError
from nnbuild.model.graph import Graph, Stream
from nnbuild.model.verify import verify
from nnbuild.ops.reshape import Reshape
from nnbuild.streaming.build import step_of
from nnbuild.streaming.rows import Flow, flow, macs_of, rates
from nnbuild.streaming.wish import Wish

MOST_BANKS = 16
NEXT = "Leave --stream out, or give a model whose input is a window over time."


@dataclass(frozen=True, eq=False)
class Streamed:
    """`window` is the model as it was, `step` what a step computes of it.

    hop: rows of the input that a step takes. banks: sets of states that take turns. needed: what of the window a step
    would have to compute were it trained without padding along time.
    """

    window: Graph
    step: Graph
    axis: int
    hop: int
    banks: int
    macs: int
    window_macs: int
    needed: int
    reasons: tuple[tuple[str, str], ...]

    @property
    def rows(self) -> int:
        """Of the whole window."""
        return self.window.tensors[self.window.inputs[0]].shape[self.axis]

    @property
    def warm_up(self) -> int:
        """Steps until the window holds nothing but what came in."""
        return -(-self.rows // self.hop)

    @property
    def state_bytes(self) -> int:
        return sum(self.step.tensors[state.before].nbytes * state.banks for state in self.step.states)


def streamed(graph: Graph, wish: Wish) -> Streamed:
    graph = _unflattened(graph)
    _refuse(graph, wish)
    found = [each for axis in _axes(graph, wish) for each in _offers(graph, axis, wish)]
    best = min(found, key=lambda each: (each.macs / each.hop, each.banks, each.hop))
    if best.macs >= best.window_macs and wish.axis is None:
        why = "; ".join(f"{name}: {reason}" for name, reason in best.reasons[:3])
        cause = f"no step of it would compute less than the whole window ({why})."
        raise ModelError(f"model {graph.name!r}", cause, NEXT)
    flowing = Stream(best.axis, best.hop, best.warm_up)
    return replace(best, step=verify(replace(best.step, notes=(*graph.notes, *_notes(best)), stream=flowing)))


def _refuse(graph: Graph, wish: Wish) -> None:
    where = f"model {graph.name!r}"
    if graph.states:
        raise ModelError(where, "it carries states from run to run, so it is a stream already.", "Leave --stream out.")
    if len(graph.inputs) != 1:
        raise ModelError(where, f"it has {len(graph.inputs)} inputs, and nnbuild streams models of one.", NEXT)
    shape = graph.tensors[graph.inputs[0]].shape
    if wish.axis is not None and wish.axis >= len(shape):
        raise ModelError(where, f"its input {list(shape)} has no axis {wish.axis}.", "Count from 0, without the batch.")
    size = shape[wish.axis] if wish.axis is not None else max(shape)
    if size < 2 or (wish.hop is not None and wish.hop >= size):
        cause = f"its input {list(shape)} has too few rows along that axis for steps of {wish.hop or 1}."
        raise ModelError(where, cause, "Take another axis, or a smaller hop.")


def _axes(graph: Graph, wish: Wish) -> list[int]:
    """Those of the input that may be time: the last holds features, unless it is alone."""
    if wish.axis is not None:
        return [wish.axis]
    shape = graph.tensors[graph.inputs[0]].shape
    able = [axis for axis in range(max(1, len(shape) - 1)) if shape[axis] > (wish.hop or 1)]
    return able or [0]


def _offers(graph: Graph, axis: int, wish: Wish) -> list[Streamed]:
    count = graph.tensors[graph.inputs[0]].shape[axis]
    found = []
    for rate in rates(graph, axis):
        hop = wish.hop or rate
        banks = lcm(hop, rate) // hop
        if hop * banks < count and banks <= MOST_BANKS:
            found.append(_offer(graph, axis, hop, banks))
    return found or [_offer(graph, axis, wish.hop or 1, 1)]


def _offer(graph: Graph, axis: int, hop: int, banks: int) -> Streamed:
    found = flow(graph, axis, hop * banks)
    step = step_of(graph, found, hop)
    return Streamed(
        window=graph,
        step=step,
        axis=axis,
        hop=hop,
        banks=banks,
        macs=macs_of(step),
        window_macs=macs_of(graph),
        needed=_needed(graph, found),
        reasons=_reasons(graph, found),
    )


def _needed(graph: Graph, found: Flow) -> int:
    """Multiplications of the rows that are new at a step, without those that only padding makes new."""
    total = 0.0
    for op in graph.ops:
        macs = macs_of(replace(graph, ops=(op,)))
        rows = found.rows.get(op.outputs[0])
        total += macs * rows.step / rows.count if rows is not None else macs
    return round(total)


def _reasons(graph: Graph, found: Flow) -> tuple[tuple[str, str], ...]:
    """Layer -> what keeps it from being cheaper."""
    reasons: dict[str, str] = {}
    for op in graph.ops:
        rows = found.rows.get(op.outputs[0])
        if found.whole.get(op.name):
            reasons.setdefault(op.layer or op.name, found.whole[op.name])
        elif rows is not None and rows.top + rows.bottom and macs_of(replace(graph, ops=(op,))) > 0:
            dirty = f"padding makes {rows.top + rows.bottom} of its {rows.count} rows new at every step"
            reasons.setdefault(op.layer or op.name, f"{dirty}, beside {rows.step}")
    return tuple(reasons.items())


def _notes(best: Streamed) -> list[str]:
    name, turns = best.window.inputs[0], f" in {best.banks} sets that take turns" if best.banks > 1 else ""
    notes = [
        f"a step takes {best.hop} of the {best.rows} rows of {name!r} along axis {best.axis} and {best.macs:,} MACs, "
        f"{best.window_macs / max(1, best.macs):.1f} times fewer than the window's {best.window_macs:,}; "
        f"{best.state_bytes:,} bytes of state{turns}",
        "every step gives the bits that the window would, with zeros before the first row; outputs depend on nothing "
        f"but what came in after {best.warm_up} steps",
    ]
    if best.needed < best.macs:
        times = best.macs / max(1, best.needed)
        notes.append(
            f"trained without padding along time (valid or causal), a step would take {best.needed:,} MACs, "
            f"{times:.1f} times fewer"
        )
    return [*notes, *(f"layer {layer!r} is not cheaper: {reason}" for layer, reason in best.reasons)]


def _unflattened(graph: Graph) -> Graph:
    """An input that is only seen in another shape comes in that shape."""
    if len(graph.inputs) != 1 or len(graph.tensors[graph.inputs[0]].shape) > 1:
        return graph
    (source,) = graph.inputs
    readers = [op for op in graph.ops if source in op.inputs]
    if len(readers) != 1 or not isinstance(readers[0].attributes, Reshape) or source in graph.outputs:
        return graph
    (made,) = readers[0].outputs
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name not in (source, made)}
    tensors[source] = replace(graph.tensors[source], shape=graph.tensors[made].shape)
    ops = tuple(
        replace(op, inputs=tuple(source if name == made else name for name in op.inputs))
        for op in graph.ops
        if op is not readers[0]
    )
    if made in graph.outputs:
        return graph
    return replace(graph, tensors=tensors, ops=ops)
