"""Samples for a streamed model: windows one after the other, or rows as a step takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nnbuild.base.errors import UsageError
from nnbuild.jobs.generated_samples import generated_samples
from nnbuild.model.graph import Graph
from nnbuild.model.samples import FloatArray, SampleSet, load_samples
from nnbuild.ops.interpret import Values
from nnbuild.streaming import sample_rows
from nnbuild.streaming.options import StreamOptions
from nnbuild.streaming.reference import stream_outputs
from nnbuild.streaming.stream import Streamed, streamed

DRAWN = 3
"""Number of windows to generate where no samples are given."""
LEFT = "golden outputs and labels belong to single windows: each step is compared with "
AGAINST = {"window": "the window that ends with it", "stream": "the model run over the whole stream"}


def stream_facts(found: Streamed) -> dict[str, Any]:
    """A step's rows and savings, for JSON."""
    return {
        "meaning": found.meaning,
        "axis": found.axis,
        "rows": found.rows,
        "rows_per_step": found.hop,
        "macs": found.macs,
        "window_macs": found.window_macs,
        "macs_without_padding": found.needed,
        "state_bytes": found.state_bytes,
        "sets_of_states": found.banks,
        "macs_of_other_meaning": found.other,
        "latency_rows": found.late,
        "latency_steps": found.latency,
        "warm_up_steps": found.warm_up,
        "reasons": dict(found.reasons),
    }


def stream_samples(found: Streamed, path: Path | None) -> SampleSet:
    """Rows for every step. A file contains consecutive windows, or inputs of single steps."""
    (name,) = found.window.inputs
    tensor = found.window.tensors[name]
    if path is None:
        drawn = generated_samples(found.step)
        count = -(-max(len(drawn), DRAWN * found.warm_up) // len(drawn))
        return SampleSet({name: np.concatenate([drawn.inputs[name]] * count)}, drawn=True)
    try:
        given = load_samples(path, [replace(tensor, shape=found.shape)])
    except UsageError as error:
        try:
            given = load_samples(path, [found.step.tensors[name]])
        except UsageError:
            raise error from None
        return replace(given, notes=_stream_notes(found, given))
    windows = given.inputs[name].reshape(-1, *tensor.shape)
    rows = sample_rows.rows_of(windows, found.axis)
    steps = sample_rows.steps(rows, found.hop, found.axis)
    return SampleSet({name: steps}, notes=_stream_notes(found, given))


def _stream_notes(found: Streamed, given: SampleSet) -> tuple[str, ...]:
    """Says so where the file holds more than inputs."""
    more = given.labels is not None or given.beside
    return (*given.notes, LEFT + AGAINST[found.meaning]) if more else given.notes


def whole_stream(
    found: Streamed, floats: Graph, inputs: Mapping[str, FloatArray], reset_each: bool
) -> tuple[Values, Values]:
    """Outputs of the model over the whole stream after every step: of the computed model, and of the float model."""
    (name,) = found.window.inputs
    rows = sample_rows.rows_of(inputs[name], found.axis)
    known = streamed(floats, StreamOptions(found.axis, found.hop, found.meaning))

    def of(each: Streamed, dtype: str) -> Values:
        parts = rows.reshape(-1, found.hop, *rows.shape[1:]) if reset_each else rows[None]
        done = [stream_outputs(each.window, each.flow, each.hop, part, dtype) for part in parts]
        return {name: np.concatenate([values[name] for values in done]) for name in each.window.outputs}

    with np.errstate(all="ignore"):
        return of(found, "float32"), of(known, "float64")


def window_inputs(found: Streamed, inputs: Mapping[str, FloatArray], reset_each: bool) -> dict[str, FloatArray]:
    """The window that ends with each step."""
    (name,) = found.window.inputs
    rows = sample_rows.rows_of(inputs[name], found.axis)
    tensor = found.window.tensors[name]
    return {name: sample_rows.windows(tensor, rows, found.hop, found.axis, reset_each=reset_each)}
