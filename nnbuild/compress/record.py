"""Records what was done to the weights, layer by layer, and the accuracy at each stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from nnbuild.compress.candidates import MIN_WEIGHTS
from nnbuild.compress.graph import Compressed
from nnbuild.compress.weight_matrices import weight_roles
from nnbuild.model.graph import Array, Graph, Op

FEW = 16
"""Most distinct values of shared weights."""
SPARSE = 0.3
"""Least share of zeros of sparse weights; fewer occur by chance."""
NARROW = 7
"""The largest integer of 4 bits."""


@dataclass(frozen=True)
class Weights:
    """One matrix of weights as it is stored. `asked` is what was requested, `lost` the share of the layer's signal
    lost; `before` and `after` are bytes of flash."""

    layer: str
    role: str
    count: int
    zeros: int
    distinct: int
    largest: int
    asked: str = ""
    lost: float = 0.0
    before: int = 0
    after: int = 0

    @property
    def sparsity(self) -> float:
        return self.zeros / max(1, self.count)

    @property
    def kind(self) -> str:
        """A description of usable structure; empty for ordinary weights."""
        if self.zeros == self.count:
            return "all zeros"
        words = [f"{self.sparsity:.0%} zeros"] if self.sparsity >= SPARSE else []
        if self.largest <= NARROW:
            words.append("4 bits")
        elif self.distinct <= FEW < self.count:
            words.append(f"{self.distinct} values")
        return ", ".join(words)


@dataclass(frozen=True)
class Stage:
    """Quality of one form of the model on the samples."""

    name: str
    value: float


@dataclass(frozen=True)
class Compression:
    """`measure` names the stages' values, taken on `samples` samples; `apart` tells whether weights were fitted to
    other samples. Bytes are bytes of flash according to the plan. `rounded` are layers of floats whose weights were
    rounded to 8 bits."""

    weights: tuple[Weights, ...]
    measure: str = ""
    samples: int = 0
    apart: bool = False
    path: tuple[Stage, ...] = ()
    bytes_before: int = 0
    bytes_after: int = 0
    asked: str = ""
    unlabelled: str = ""
    rounded: tuple[str, ...] = ()


def described(
    graph: Graph,
    made: Compressed | None = None,
    before: Mapping[str, int] | None = None,
    after: Mapping[str, int] | None = None,
) -> tuple[Weights, ...]:
    """All weights of a graph, with what was done to them; an operation's bytes are listed with its first weights."""
    rows = []
    first = set[str]()
    for op, role in weight_roles(graph):
        row = _one(graph, op, role)
        if made is not None and (op.name, role) in made.lost:
            row = replace(row, asked=str(made.specs[op.name, role]), lost=made.lost[op.name, role])
        if op.name not in first:
            row = replace(row, before=(before or {}).get(op.name, 0), after=(after or {}).get(op.name, 0))
        first.add(op.name)
        rows.append(row)
    return tuple(rows)


def _one(graph: Graph, op: Op, role: str) -> Weights:
    data: Array = graph.constants[op.constants[role]].data
    largest = int(np.abs(data.astype(np.int64)).max(initial=0))
    zeros = int(np.count_nonzero(data == 0))
    return Weights(op.layer or op.name, role, data.size, zeros, len(np.unique(data)), largest)


def trained(graph: Graph, weights: tuple[Weights, ...]) -> tuple[Weights, ...]:
    """Those of layers with parameters of their own, not the constants of such as a MelSpectrogram."""
    return tuple(each for each in weights if graph.parameters.get(each.layer) != 0)


def notes(weights: tuple[Weights, ...]) -> Iterator[str]:
    """Notes on structure that the model already has; few weights, such as those of one input, have it by chance."""
    many = [each for each in weights if each.kind and each.count >= MIN_WEIGHTS]
    found = list(dict.fromkeys(f"{each.layer} ({each.kind})" for each in many))
    if found:
        listing = ", ".join(found[:6])
        more = f" and {len(found) - 6} more" if len(found) > 6 else ""
        yield f"the model has weights that can be stored in fewer bytes: {listing}{more}"
