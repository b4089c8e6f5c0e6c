"""Converts a windowed model to a streaming one: chooses the time axis and rows per step, and reports the gain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import lcm

from nnbuild.base.errors import ModelError
from nnbuild.model.graph import Graph, Stream
from nnbuild.model.verify import verify
from nnbuild.ops.reshape import Reshape
from nnbuild.streaming.build import step_of
from nnbuild.streaming.options import MEANINGS, StreamOptions
from nnbuild.streaming.rows import Flow, flow, macs_of, rates, receptive_field
from nnbuild.streaming.time_axis import Sliding, Stateful

MOST_BANKS = 16
CARRIED = "Leave --stream out, or add meaning=stream: what is recurrent then goes on from step to step."
SUMMED = "averages over time are running sums: what comes in is added, what leaves is taken off"
NEXT = "Leave --stream out, or give a model whose input is a window over time."


@dataclass(frozen=True, eq=False)
class Streamed:
    """`window` is the original model, `step` the graph of a step. shape: of the model's input in its file. hop: input
    rows per step. banks: sets of states used in turn. needed: multiply-accumulates of a step if the model had been
    trained without padding along time. other: those with the other meaning, None where both are the same.
    """

    window: Graph
    step: Graph
    shape: tuple[int, ...]
    axis: int
    hop: int
    banks: int
    macs: int
    window_macs: int
    needed: int
    reasons: tuple[tuple[str, str], ...]
    flow: Flow
    meaning: str = MEANINGS[0]
    other: int | None = None
    running: Graph | None = None
    """An equivalent step that uses running sums in averages of integers, if there are any."""

    @property
    def late(self) -> int:
        """Rows that arrive before the last row of an output is known."""
        source = self.flow.rows[self.window.inputs[0]]
        return max(each.late * (source.step // each.step) for each in self.flow.rows.values())

    @property
    def latency(self) -> int:
        """Delay of outputs in steps."""
        return -(-self.late // self.hop)

    @property
    def rows(self) -> int:
        """Rows of the whole window."""
        return self.window.tensors[self.window.inputs[0]].shape[self.axis]

    @property
    def warm_up(self) -> int:
        """Steps until the window, or all rows that an output depends on, are received rows."""
        most = self.rows if self.meaning == MEANINGS[0] else max(self.rows, receptive_field(self.window, self.flow))
        return -(-most // self.hop)

    @property
    def state_bytes(self) -> int:
        return sum(self.step.tensors[state.before].nbytes * state.banks for state in self.step.states)


def streamed(graph: Graph, wish: StreamOptions) -> Streamed:
    shape = graph.tensors[graph.inputs[0]].shape if graph.inputs else ()
    graph = _unflattened(graph)
    _refuse(graph, wish)
    best = _cheapest(graph, _axes(graph, wish), wish)
    last = len(graph.tensors[graph.inputs[0]].shape) - 1
    if best.macs >= best.window_macs and wish.axis is None and best.axis != last:
        best = min(best, _cheapest(graph, [last], wish), key=lambda each: each.macs >= each.window_macs)
    best = replace(best, other=_other(graph, best))
    if best.macs >= best.window_macs and wish.axis is None:
        why = "; ".join(f"{name}: {reason}" for name, reason in best.reasons[:3])
        cause = f"no step of it would compute less than the whole window{why and f' ({why})'}."
        cheaper = best.meaning == MEANINGS[0] and best.other is not None and best.other < best.window_macs
        raise ModelError(f"model {graph.name!r}", cause, CARRIED if cheaper else NEXT)
    flowing = Stream(best.axis, best.hop, best.warm_up)

    def finished(step: Graph, *more: str) -> Graph:
        notes = (*graph.notes, *_notes(replace(best, step=step)), *more)
        return verify(replace(step, notes=notes, stream=flowing))

    sums = flow(graph, best.axis, best.hop * best.banks, best.meaning == MEANINGS[1], running=True)
    running = finished(step_of(graph, sums, best.hop), SUMMED) if sums.sums else None
    return replace(best, shape=shape, step=finished(best.step), running=running)


def _cheapest(graph: Graph, axes: Sequence[int], wish: StreamOptions) -> Streamed:
    found = [each for axis in axes for each in _offers(graph, axis, wish)]
    return min(found, key=lambda each: (each.macs / each.hop, each.banks, each.hop))


def _refuse(graph: Graph, wish: StreamOptions) -> None:
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
        other = "Take another axis." if max(shape) > 1 else NEXT
        raise ModelError(where, cause, f"Take a hop of less than {size} rows, or another axis." if size > 1 else other)


def _axes(graph: Graph, wish: StreamOptions) -> list[int]:
    """Input axes that are probably time: not the last, which holds features, unless it is the only one. PyTorch's
    signals of [channels, time] are found when these save nothing."""
    if wish.axis is not None:
        return [wish.axis]
    shape = graph.tensors[graph.inputs[0]].shape
    able = [axis for axis in range(max(1, len(shape) - 1)) if shape[axis] > (wish.hop or 1)]
    return able or [0]


def _offers(graph: Graph, axis: int, wish: StreamOptions) -> list[Streamed]:
    count = graph.tensors[graph.inputs[0]].shape[axis]
    if wish.meaning == MEANINGS[1]:
        return [_offer(graph, axis, _whole_hop(graph, axis, wish.hop), 1, wish.meaning)]
    found = []
    for rate in rates(graph, axis):
        hop = wish.hop or rate
        banks = lcm(hop, rate) // hop
        if hop * banks < count and banks <= MOST_BANKS:
            found.append(_offer(graph, axis, hop, banks))
    return found or [_offer(graph, axis, wish.hop or 1, 1)]


def _whole_hop(graph: Graph, axis: int, wished: int | None) -> int:
    """With meaning=stream every part of the model must advance at every step."""
    rate = lcm(*rates(graph, axis, whole_stream=True))
    if wished is not None and wished % rate:
        cause = f"its strides want steps of {rate} rows, or of a multiple of that, where the whole stream is meant."
        raise ModelError(f"model {graph.name!r}", cause, f"Take hop={rate}, or the meaning of the window.")
    return wished or rate


def _other(graph: Graph, best: Streamed) -> int | None:
    """Multiply-accumulates of a step with the other meaning, if they differ."""
    whole = best.flow if best.meaning == MEANINGS[1] else flow(graph, best.axis, best.hop * best.banks, True)
    padded = any(isinstance(way, Sliding) and (way.before > 0 or way.after > 0) for way in whole.ways.values())
    carried = any(isinstance(way, Stateful) for way in whole.ways.values())
    if not padded and not carried:
        return None
    if best.meaning == MEANINGS[1]:
        return _offer(graph, best.axis, best.hop, 1).macs
    rate = lcm(*rates(graph, best.axis, whole_stream=True))
    return _offer(graph, best.axis, best.hop, 1, MEANINGS[1]).macs if best.hop % rate == 0 else None


def _offer(graph: Graph, axis: int, hop: int, banks: int, meaning: str = MEANINGS[0]) -> Streamed:
    found = flow(graph, axis, hop * banks, meaning == MEANINGS[1])
    step = step_of(graph, found, hop)
    return Streamed(
        window=graph,
        step=step,
        shape=graph.tensors[graph.inputs[0]].shape,
        axis=axis,
        hop=hop,
        banks=banks,
        macs=macs_of(step),
        window_macs=macs_of(graph),
        needed=_needed(graph, found),
        reasons=_reasons(graph, found),
        flow=found,
        meaning=meaning,
    )


def _needed(graph: Graph, found: Flow) -> int:
    """Multiply-accumulates of the rows that are new at a step, without those that are new only because of padding."""
    total = 0.0
    for op in graph.ops:
        macs = macs_of(replace(graph, ops=(op,)))
        carried = isinstance(found.ways.get(op.name), Stateful)
        rows = found.rows.get(op.inputs[0] if carried else op.outputs[0])
        total += macs * rows.step / rows.count if rows is not None else macs
    return round(total)


def _reasons(graph: Graph, found: Flow) -> tuple[tuple[str, str], ...]:
    """(layer, why it is not cheaper)"""
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
        *(_as_window(best) if best.meaning == MEANINGS[0] else _as_stream(best)),
    ]
    return [*notes, *(f"layer {layer!r} is not cheaper: {reason}" for layer, reason in best.reasons)]


def _as_window(best: Streamed) -> Iterator[str]:
    yield (
        "every step gives the bits that the window would, with zeros before the first row; outputs depend on nothing "
        f"but what came in after {best.warm_up} steps"
    )
    if best.needed < best.macs:
        times = best.macs / max(1, best.needed)
        yield (
            f"trained without padding along time (valid or causal), a step would take {best.needed:,} MACs, "
            f"{times:.1f} times fewer"
        )
    if best.other is not None:
        yield (
            f"meaning=stream would take {best.other:,} MACs and give other numbers: layers then see the rows before "
            "and after where the window has padding, and recurrent ones go on from step to step"
        )


def _as_stream(best: Streamed) -> Iterator[str]:
    if best.other is None:
        yield "the whole stream and the window mean the same here: no layer pads along time or is recurrent"
    else:
        yield (
            "every step gives what the model gives that has run since the stream began, with the rows before and after "
            "where windows have padding, and recurrent layers that go on: other numbers than those of a window, which "
            f"would take {best.other:,} MACs"
        )
    carried = any(isinstance(way, Stateful) for way in best.flow.ways.values())
    after = "; recurrent layers remember for longer" if carried else ""
    yield f"rings hold nothing but what came in after {best.warm_up} steps{after}"
    if best.late:
        yield f"outputs are {best.late} rows ({best.latency} steps) late: layers with padding wait for rows to come"


def _unflattened(graph: Graph) -> Graph:
    """Gives an input that is only used reshaped that shape, without axes of size 1 in front."""
    if len(graph.inputs) != 1 or len(graph.tensors[graph.inputs[0]].shape) > 1:
        return graph
    (source,) = graph.inputs
    readers = [op for op in graph.ops if source in op.inputs]
    if len(readers) != 1 or not isinstance(readers[0].attributes, Reshape) or source in graph.outputs:
        return graph
    shape = graph.tensors[readers[0].outputs[0]].shape
    while len(shape) > 2 and shape[0] == 1:
        shape = shape[1:]
    return replace(graph, tensors={**graph.tensors, source: replace(graph.tensors[source], shape=shape)})
