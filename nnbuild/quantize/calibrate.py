"""Measures the range of each tensor: runs the float graph over samples, batch by batch.

Methods: `minmax` takes the extremes, `percentile` drops the rarest values at both ends, `mse` takes the range with the
least total error from rounding and saturation. The last two read the samples twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from nnbuild.base.errors import UsageError
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.ops.interpret import traced
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.site import site_of

FAR = 1000.0
"""From here on, numbers may stand for what is to be left out."""
METHODS = ("minmax", "percentile", "mse")
BINS = 2048
TRACE_SUFFIX = " within"
"""Suffix to the name of a recurrent operation's final state: its values after every time step."""
OUTLIER_SHARE = 1e-4
"""The share of values that `percentile` drops, half at either end."""
BATCH_BYTES = 64 * 1024 * 1024

Batch = Mapping[str, Array]
Batches = Callable[[], Iterable[Batch]]
"""Returns the batches from the beginning each time it is called."""


@dataclass(frozen=True)
class Range:
    """A tensor's range, its mean for each index of the last axis, and its share of zeros. `usual` is the range of those
    values that are not FAR from zero, where others are. `finite`: whether it holds numbers alone; the range is theirs,
    and 0's. `spreads` are standard deviations of an input for each index of the last axis."""

    low: float
    high: float
    means: tuple[float, ...] = ()
    zeros: float = 0.0
    usual: tuple[float, float] | None = None
    finite: bool = True
    spreads: tuple[float, ...] = ()

    def union(self, other: Range) -> Range:
        return replace(self, low=min(self.low, other.low), high=max(self.high, other.high))


Ranges = Mapping[str, Range]


def batch_size(graph: Graph) -> int:
    """Samples computed at once, so that memory stays bounded for every model."""
    each = sum(prod(tensor.shape) for tensor in graph.tensors.values()) * 4
    return max(1, min(64, BATCH_BYTES // max(1, each)))


def calibrate(graph: Graph, batches: Batches, method: str, bits: int) -> Ranges:
    """The range of every tensor."""
    extremes = _extremes(graph, batches)
    if method == "minmax":
        return _with_traces(extremes)
    counts = _histograms(graph, batches, extremes)
    cut = _percentile if method == "percentile" else _least_error
    return _with_traces({name: cut(extremes[name], counts[name], bits) for name in extremes})


def _with_traces(ranges: Ranges) -> Ranges:
    """Extends each state's range to the values after every time step."""
    return {
        name: values.union(ranges[name + TRACE_SUFFIX]) if name + TRACE_SUFFIX in ranges else values
        for name, values in ranges.items()
        if not name.endswith(TRACE_SUFFIX)
    }


def _values(graph: Graph, batches: Batches) -> Iterable[tuple[str, Array]]:
    """Every tensor of every batch; states are carried from batch to batch."""
    carried: dict[str, Array] = {}
    seen = 0
    for batch in batches():
        with np.errstate(all="ignore"):  # what is not finite is judged by its tensor
            values = interpret.run(graph, batch, carried=carried)
        carried = {state.before: values[state.after][-1:] for state in graph.states}
        seen += 1
        yield from values.items()
        yield from _state_traces(graph, values)
    if not seen:
        raise UsageError("calibration", "there is no sample.", "Give at least one; a hundred or more is usual.")


def _state_traces(graph: Graph, values: Batch) -> Iterable[tuple[str, Array]]:
    """The states of recurrent operations after every time step."""
    for op in graph.ops:
        if isinstance(op.attributes, Recurrent) and graph.tensors[op.inputs[0]].shape[len(op.outer)] > 1:
            traces = traced(site_of(graph, op).of(Recurrent), [values[name] for name in op.inputs])
            names = [name + TRACE_SUFFIX for name in op.outputs[-op.attributes.states :]]
            yield from zip(names, traces, strict=True)


def _extremes(graph: Graph, batches: Batches) -> dict[str, Range]:
    lows: dict[str, float] = {}
    highs: dict[str, float] = {}
    sums: dict[str, Array] = {}
    counts: dict[str, int] = {}
    zeros: dict[str, int] = {}
    squares: dict[str, Array] = {}
    usual: dict[str, tuple[float, float]] = {}
    broken: set[str] = set()
    for name, value in _values(graph, batches):
        if not (finite := np.isfinite(value)).all():
            broken.add(name)
            _refuse_kept(graph, name, broken)
            value = np.where(finite, value, 0)
        rows = value.reshape(-1, value.shape[-1] if value.ndim > 1 else 1)
        least, most = float(value.min()), float(value.max())
        lows[name] = min(lows.get(name, np.inf), least)
        highs[name] = max(highs.get(name, -np.inf), most)
        sums[name] = sums.get(name, 0.0) + rows.sum(axis=0, dtype=np.float64)
        counts[name] = counts.get(name, 0) + len(rows)
        if name in graph.inputs:
            squares[name] = squares.get(name, 0.0) + np.square(rows, dtype=np.float64).sum(axis=0)
        zeros[name] = zeros.get(name, 0) + rows.size - int(np.count_nonzero(rows))
        near = np.array([least, most]) if max(most, -least) < FAR else rows[np.abs(rows) < FAR]
        if near.size:
            low, high = usual.get(name, (np.inf, -np.inf))
            usual[name] = min(low, float(near.min())), max(high, float(near.max()))
    means = {name: tuple(map(float, total / counts[name])) for name, total in sums.items()}
    shares = {name: zeros[name] / max(1, counts[name] * max(1, len(means[name]))) for name in lows}
    spreads = {
        name: tuple(map(float, np.sqrt((total / counts[name] - np.square(means[name])).clip(0))))
        for name, total in squares.items()
    }
    far = {name: usual.get(name) for name in lows if max(highs[name], -lows[name]) >= FAR}
    return {
        name: Range(
            lows[name], highs[name], means[name], shares[name], far.get(name), name not in broken, spreads.get(name, ())
        )
        for name in lows
    }


def _refuse_kept(graph: Graph, name: str, broken: Collection[str]) -> None:
    """Refuses what is not finite where nothing can select other values instead: an output, or a state. Names where it
    comes from."""
    states = {each for state in graph.states for each in (state.before, state.after)}
    if name in {*graph.outputs, *states} or name.endswith(TRACE_SUFFIX):
        makers = {made: op for op in graph.ops for made in op.outputs}
        while name in makers and (before := [each for each in makers[name].inputs if each in broken]):
            name = before[0]
        raise UsageError(
            f"calibration, tensor {name!r}",
            "the float model gives values there that are not finite.",
            "Look for samples far outside of what the model was trained on.",
        )


def _histograms(graph: Graph, batches: Batches, ranges: Ranges) -> dict[str, Array]:
    counts = {name: np.zeros(BINS, np.int64) for name in ranges}
    for name, value in _values(graph, batches):
        low, high = ranges[name].low, ranges[name].high
        if high > low:
            # In float64, since neighbouring float32 numbers leave no room for bins between them.
            counts[name] += np.histogram(value.astype(np.float64), BINS, (low, high))[0]
    return counts


def _percentile(extreme: Range, counts: Array, bits: int) -> Range:
    total = counts.sum()
    if total == 0:
        return extreme
    part = np.cumsum(counts) / total
    step = (extreme.high - extreme.low) / BINS
    first = int(np.searchsorted(part, OUTLIER_SHARE / 2, "right"))
    last = int(np.searchsorted(part, 1 - OUTLIER_SHARE / 2, "left"))
    return replace(extreme, low=extreme.low + first * step, high=extreme.low + (last + 1) * step)


def _least_error(extreme: Range, counts: Array, bits: int) -> Range:
    """Tries the range scaled down in steps of a fiftieth, symmetrically about zero."""
    if counts.sum() == 0:
        return extreme
    step = (extreme.high - extreme.low) / BINS
    centres = extreme.low + (np.arange(BINS) + 0.5) * step
    best, least = extreme, np.inf
    for share in np.linspace(0.3, 1.0, 36):
        low, high = min(0.0, extreme.low * share), max(0.0, extreme.high * share)
        quantum = (high - low) / (2**bits - 1)
        beyond = centres - centres.clip(low, high)
        error = float((counts * (np.square(beyond) + np.where(beyond == 0, quantum**2 / 12, 0.0))).sum())
        if error < least:
            best, least = replace(extreme, low=low, high=high), error
    return best
