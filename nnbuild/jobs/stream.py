"""Samples of a model that is streamed: windows one after the other, or rows as a step takes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nnbuild.base.errors import UsageError
from nnbuild.jobs.drawn import drawn_samples
from nnbuild.model.samples import FloatArray, SampleSet, load_samples
from nnbuild.streaming import feed
from nnbuild.streaming.stream import Streamed

DRAWN = 3
"""Windows of rows that are drawn where no samples are given."""
LEFT = "golden outputs and labels belong to single windows: each step is held against the window that ends with it"


def stream_facts(found: Streamed) -> dict[str, Any]:
    """What a step takes and saves, as JSON has it. Outputs are those of the step's own last row: no step is waited
    for."""
    return {
        "axis": found.axis,
        "rows": found.rows,
        "rows_per_step": found.hop,
        "macs": found.macs,
        "window_macs": found.window_macs,
        "macs_without_padding": found.needed,
        "state_bytes": found.state_bytes,
        "sets_of_states": found.banks,
        "latency_steps": 0,
        "warm_up_steps": found.warm_up,
        "reasons": dict(found.reasons),
    }


def stream_samples(found: Streamed, path: Path | None) -> SampleSet:
    """Rows for every step. A file holds windows, whose rows follow each other, or what single steps take."""
    (name,) = found.window.inputs
    tensor = found.window.tensors[name]
    if path is None:
        drawn = drawn_samples(found.step)
        count = -(-max(len(drawn), DRAWN * found.warm_up) // len(drawn))
        return SampleSet({name: np.concatenate([drawn.inputs[name]] * count)}, drawn=True)
    try:
        given = load_samples(path, [tensor])
    except UsageError as error:
        try:
            return load_samples(path, [found.step.tensors[name]])
        except UsageError:
            raise error from None
    rows = feed.rows_of(given.inputs[name], found.axis)
    notes = (*given.notes, LEFT) if given.labels is not None else given.notes
    return SampleSet({name: feed.steps(rows, found.hop, found.axis)}, notes=notes)


def window_inputs(found: Streamed, inputs: Mapping[str, FloatArray], reset_each: bool) -> dict[str, FloatArray]:
    """The window that ends with each step."""
    (name,) = found.window.inputs
    rows = feed.rows_of(inputs[name], found.axis)
    tensor = found.window.tensors[name]
    return {name: feed.windows(tensor, rows, found.hop, found.axis, reset_each=reset_each)}
