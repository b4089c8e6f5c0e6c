"""Weights of float layers rounded to 8 bits: kernels store them as bytes and a factor for each output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nnbuild.compress.weight_matrices import kernel_of, matrices, roles
from nnbuild.model.graph import Array, Constant, Graph
from nnbuild.numeric.whole_multiples import FEWEST, rounded_to_bytes, whole_multiples
from nnbuild.ops.site import Site, site_of


@dataclass(frozen=True)
class Rounded:
    """The graph, the layers that changed, and what the worst of them lost: its name, and a share of its weights'
    signal."""

    graph: Graph
    layers: tuple[str, ...]
    worst: tuple[str, float]


def layers_of(graph: Graph) -> tuple[str, ...]:
    """The layers with such weights."""
    return tuple(dict.fromkeys(site.op.layer or site.op.name for site, _ in _weights(graph)))


def rounded(graph: Graph, layers: frozenset[str]) -> Rounded:
    """The graph with the weights of these layers rounded, unless they have 8 bits already."""
    constants, losses = dict(graph.constants), dict[str, float]()
    for site, role in _weights(graph):
        layer, given, name = site.op.layer or site.op.name, columns(site, role), site.op.constants[role]
        if layer in layers and whole_multiples(given) is None:
            found = rounded_to_bytes(given)
            constants[name] = Constant(name, _kernel_of(site, role, found))
            off = np.square(found.astype(np.float64) - given).sum()
            losses[layer] = max(losses.get(layer, 0.0), float(off / np.square(given.astype(np.float64)).sum()))
    worst = max(losses.items(), key=lambda each: each[1], default=("", 0.0))
    return Rounded(replace(graph, constants=constants), tuple(losses), worst)


def columns(site: Site, role: str) -> Array:
    """Weights as [inputs, outputs]."""
    blocks = matrices(site, role, site.constant(role))
    return blocks.transpose(1, 0, 2).reshape(blocks.shape[1], -1)


def _kernel_of(site: Site, role: str, columns: Array) -> Array:
    groups, inputs, _ = matrices(site, role, site.constant(role)).shape
    return kernel_of(site, role, columns.reshape(inputs, groups, -1).transpose(1, 0, 2))


def _weights(graph: Graph) -> Iterator[tuple[Site, str]]:
    """An operation, and the role of its weights. A recurrent layer of few features has enough of its states'."""
    for op in graph.ops:
        site = site_of(graph, op)
        found = {role: columns(site, role) for role in roles(op)}
        if any(len(data) >= FEWEST for data in found.values()):
            yield from ((site, role) for role, data in found.items() if data.dtype == np.float32 and data.any())
