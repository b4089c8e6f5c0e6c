"""The samples that weights are fitted to, and others for measuring the loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.base.errors import UsageError
from nnbuild.model.graph import Array, Graph
from nnbuild.quantize.calibrate import Batch
from nnbuild.quantize.data import Source, batches, labels

FITTED = 512
MEASURED = 1000
READ = 4000
APART = 128
"""With fewer samples, the same ones serve for both."""
ROOM = 256 * 1024 * 1024
"""Limit of bytes of all tensors over all samples."""


@dataclass(frozen=True, eq=False)
class Samples:
    fitted: Batch
    measured: Batch
    labels: Array | None
    apart: bool
    """Whether the samples for measuring are separate from those for fitting."""
    unlabelled: str = ""
    """Why existing labels are not used."""

    @property
    def count(self) -> int:
        return len(next(iter(self.measured.values())))


def samples_of(source: Source, graph: Graph) -> Samples:
    """Keeps every fourth sample for measuring; for models with states the last quarter, since samples form a
    sequence."""
    parts: list[Batch] = []
    count = 0
    for batch in batches(source, graph):
        parts.append(batch)
        count += len(next(iter(batch.values())))
        if count >= READ:
            break
    whole = {name: np.concatenate([part[name] for part in parts]) for name in graph.inputs}
    try:
        known, unlabelled = labels(source, graph), ""
    except UsageError as error:  # class names, for example
        known, unlabelled = None, str(error)
    known = None if known is None else known[:count]
    each = max(1, sum(tensor.nbytes for tensor in graph.tensors.values()))
    most = max(16, ROOM // each)
    apart = count >= APART
    places = np.arange(count)
    held = places >= count - count // 4 if graph.states else places % 4 == 3
    fitted, measured = (places[~held], places[held]) if apart else (places, places)
    fitted = fitted[np.linspace(0, len(fitted) - 1, min(FITTED, most, len(fitted))).astype(int)]
    measured = measured[np.linspace(0, len(measured) - 1, min(MEASURED, most, len(measured))).astype(int)]
    if graph.states:
        fitted, measured = (
            np.arange(fitted[0], fitted[0] + len(fitted)),
            np.arange(measured[0], measured[0] + len(measured)),
        )
    return Samples(
        {name: values[fitted] for name, values in whole.items()},
        {name: values[measured] for name, values in whole.items()},
        None if known is None else known[measured],
        apart,
        unlabelled,
    )
