"""What became of the weights, layer by layer, and of the accuracy on the way from floats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from nnbuild.compress.layers import weighted
from nnbuild.model.graph import Array, Graph, Op

FEW = 16
"""Different values up to which weights are called shared."""
SPARSE = 0.3
"""The share of zeros from which on they are called sparse: chance makes fewer."""
NARROW = 7
"""The largest integer of 4 bits."""


@dataclass(frozen=True)
class Weights:
    """One matrix of weights as it is stored. `asked` is what was asked for, `lost` the part of the layer's signal that
    it cost."""

    layer: str
    role: str
    count: int
    zeros: int
    distinct: int
    largest: int
    asked: str = ""
    lost: float = 0.0

    @property
    def sparsity(self) -> float:
        return self.zeros / max(1, self.count)

    @property
    def kind(self) -> str:
        """What can be made use of, in words; nothing where they are weights as any."""
        words = [f"{self.sparsity:.0%} zeros"] if self.sparsity >= SPARSE and self.zeros < self.count else []
        words += ["all zeros"] if self.zeros == self.count else []
        if self.largest <= NARROW and self.zeros < self.count:
            words.append("4 bits")
        elif self.distinct <= FEW < self.count:
            words.append(f"{self.distinct} values")
        return ", ".join(words)


@dataclass(frozen=True)
class Stage:
    """How good one form of the model is on the samples."""

    name: str
    value: float


@dataclass(frozen=True)
class Compression:
    """`measure` says what the stages' values are; `samples` on how many, that the weights were not fitted to."""

    weights: tuple[Weights, ...]
    measure: str = ""
    samples: int = 0
    path: tuple[Stage, ...] = ()
    bytes_before: int = 0
    bytes_after: int = 0
    asked: str = ""


def described(
    graph: Graph,
    asked: Mapping[tuple[str, str], str] | None = None,
    lost: Mapping[tuple[str, str], float] | None = None,
) -> tuple[Weights, ...]:
    return tuple(
        _one(graph, op, role, (asked or {}).get((op.name, role), ""), (lost or {}).get((op.name, role), 0.0))
        for op, role in weighted(graph)
    )


def _one(graph: Graph, op: Op, role: str, asked: str, lost: float) -> Weights:
    data: Array = graph.constants[op.constants[role]].data
    return Weights(
        op.layer or op.name,
        role,
        data.size,
        int(np.count_nonzero(data == 0)),
        len(np.unique(data)),
        int(np.abs(data.astype(np.int64)).max(initial=0)),
        asked,
        lost,
    )


def notes(weights: tuple[Weights, ...]) -> Iterator[str]:
    """What a model brings with it, without having been asked."""
    found = [each for each in weights if each.kind]
    if found:
        listing = ", ".join(f"{each.layer} ({each.kind})" for each in found[:6])
        more = f" and {len(found) - 6} more" if len(found) > 6 else ""
        yield f"the training left weights that can be stored in fewer bytes: {listing}{more}"
