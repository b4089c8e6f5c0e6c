"""Compresses an integer graph layer by layer, each fitted to what the compressed layers before it produce."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from nnbuild.compress.layer import THOROUGH, Fit, Spec, fit, input_blocks
from nnbuild.compress.solve import Moments
from nnbuild.compress.weight_matrices import bias_of, input_rows, kernel_of, matrices, quant_like, scale_blocks
from nnbuild.model.graph import Array, Constant, Graph
from nnbuild.ops import interpret
from nnbuild.ops.integer import gives_floats, quant_of
from nnbuild.ops.site import Site, site_of
from nnbuild.quantize.calibrate import Batch

ROWS = 16
"""Input rows used per weight of an output."""
LEAST_ROWS = 4096
DAMPED = 0.05
"""How strongly a layer's weights compensate for changes in the layers before it; low, since samples are few."""
BIAS_BITS = 30
FEW, HARDLY_ZERO = 64, 0.7
"""Number of distinct values, and share of nonzero ones, beyond which weights get no special storage."""

Name = tuple[str, str]
"""Identifies weights: operation and role."""
Specs = Mapping[Name, Spec]


@dataclass(frozen=True, eq=False)
class Compressed:
    """`lost` is the share of each layer's signal that its weights lose."""

    graph: Graph
    specs: Specs
    lost: Mapping[Name, float]


def compressed(
    graph: Graph, samples: Batch, specs: Specs, report: Callable[[str], None] = lambda _: None
) -> Compressed:
    """The graph with its weights compressed as `specs` require."""
    dense = recorded(graph, samples, {op for op, _ in specs})
    maker = _Compressor(graph, specs, dense, report)
    if graph.states:  # samples form a sequence, so every layer is fitted to its original inputs
        for op in graph.ops:
            maker.site(site_of(graph, op), dense.get(op.name, []))
    else:
        interpret.run(graph, samples, how=maker.compute)
    return Compressed(replace(graph, constants=maker.constants), specs, maker.lost)


def recorded(graph: Graph, samples: Batch, wanted: set[str]) -> dict[str, list[Array]]:
    """The inputs of these operations."""
    observe: dict[str, list[list[Array]]] = {}

    def note(site: Site, inputs: list[Array], dtype: str) -> tuple[Array, ...]:
        if site.op.name in wanted:
            observe.setdefault(site.op.name, []).append(inputs)
        return interpret.compute(site, inputs, dtype)

    interpret.run(graph, samples, how=note)
    return {name: [np.concatenate(each) for each in zip(*parts, strict=True)] for name, parts in observe.items()}


class _Compressor:
    """Walks over a graph while it is computed, and changes weights before they are used.

    Behind a compressed layer, the other weights compensate for its loss without taking more bytes.
    """

    def __init__(
        self, graph: Graph, specs: Specs, dense: Mapping[str, list[Array]], report: Callable[[str], None]
    ) -> None:
        self.specs, self.dense, self.report, self.follows = specs, dense, report, not graph.states
        self.constants = dict(graph.constants)
        self.lost: dict[Name, float] = {}
        self.moved = False

    def compute(self, site: Site, inputs: list[Array], dtype: str) -> tuple[Array, ...]:
        return interpret.compute(self.site(site, inputs), inputs, dtype)

    def site(self, site: Site, inputs: list[Array]) -> Site:
        for role in ("kernel", "recurrent"):
            spec = self.specs.get((site.op.name, role))
            if spec is not None and spec.changes:
                self.report(f"weights of {site.op.layer or site.op.name}: {spec}")
                site = self._changed(site, role, spec, inputs)
            elif spec is not None and self.moved and _is_plain(site, role):
                site = self._changed(site, role, spec, inputs)
        return site

    def _changed(self, site: Site, role: str, spec: Spec, inputs: list[Array]) -> Site:
        known = observe(site, role, inputs, self.dense[site.op.name])
        fresh, lost = compress_weights(site, role, spec, known)
        if spec.changes:
            self.lost[site.op.name, role] = lost
        self.moved = self.follows
        self.constants |= {constant.name: constant for constant in fresh.values()}
        return replace(site, constants={**site.constants, **fresh})


def _is_plain(site: Site, role: str) -> bool:
    """Whether any weights would take the same bytes as these: none are shared, and few are zero."""
    data = site.constant(role)
    return len(np.unique(data)) > FEW and int(np.count_nonzero(data)) > HARDLY_ZERO * data.size


@dataclass(frozen=True, eq=False)
class LayerStats:
    """Statistics of a layer from samples: covariances of its inputs, the weights that would restore the original
    model's outputs, and the shift of the mean output by the present ones."""

    moments: list[Moments]
    wanted: Array
    means: Array
    aim: Array


def observe(site: Site, role: str, inputs: list[Array], before: list[Array]) -> LayerStats:
    """Statistics for `inputs` that replace those `before`."""
    weights = matrices(site, role, site.constant(role)) * scale_blocks(site, role)
    most = max(LEAST_ROWS, ROWS * weights.shape[1])
    rows, old = input_rows(site, role, inputs, most), input_rows(site, role, before, most)
    means, old_means = rows.mean(axis=0), old.mean(axis=0)
    if bias_of(site, role) is not None:
        rows, old = rows - means, old - old_means
    return LayerStats(*_moments(rows, old, weights), means, np.einsum("gi,gio->go", old_means, weights))


def compress_weights(
    site: Site, role: str, spec: Spec, known: LayerStats, tries: int = THOROUGH
) -> tuple[dict[str, Constant], float]:
    """The compressed weights and the bias, and the share of signal lost."""
    found = fit(known.wanted, known.moments, spec, _least_scales(site, role, known), tries)
    dead = ~found.integers.any(axis=1, keepdims=True)
    scales = np.where(dead, np.maximum(scale_blocks(site, role), found.scales), found.scales)
    found = replace(found, scales=scales.astype(np.float32).astype(np.float64))
    kernel, place = site.constants[role], bias_of(site, role)
    data = kernel_of(site, role, found.integers).astype(np.int8)
    fresh = {role: replace(kernel, data=data, quant=quant_like(site, role, found.scales))}
    if place is not None:
        moved = known.aim - np.einsum("gi,gio->go", known.means, found.integers * found.scales)
        fresh["bias"] = _adjusted_bias(site, role, place, moved, found)
    return fresh, found.lost


def _adjusted_bias(site: Site, role: str, place: tuple[int, ...], moved: Array, found: Fit) -> Constant:
    """The bias in steps of the new weights, or in floats, adjusted to keep the outputs' mean."""
    bias = site.constants["bias"]
    channels = len(bias.data[place])
    scales, before = (np.resize(each.reshape(-1), channels) for each in (found.scales, scale_blocks(site, role)))
    own, now = (_bias_unit(site, each) for each in (before, scales))
    data = bias.data.copy()
    fresh = (bias.data[place] * own + np.resize(moved.reshape(-1), channels)) / now
    data[place] = fresh if gives_floats(site) else np.round(fresh)
    return replace(bias, data=data)


def _bias_unit(site: Site, scales: Array) -> Array:
    """What 1 in the bias counts in steps of the input: weights of these scales, or a real number."""
    return np.full(scales.shape, 1 / quant_of(site.inputs[0]).scale) if gives_floats(site) else scales


def _least_scales(site: Site, role: str, known: LayerStats) -> Array:
    """Smallest scales at which the bias still fits, including all that may be added to it."""
    blocks = scale_blocks(site, role)
    place = bias_of(site, role)
    if place is None:
        return np.zeros(blocks.shape)
    bias = np.abs(np.resize(site.constant("bias")[place], blocks.size)).reshape(blocks.shape) * _bias_unit(site, blocks)
    means = (np.abs(known.means)[:, :, None] * np.abs(known.wanted)).sum(axis=1)
    found: Array = (bias + (np.abs(known.aim) + means)[:, None]) / 2.0**BIAS_BITS
    return found


def _moments(rows: Array, old: Array, weights: Array) -> tuple[list[Moments], Array]:
    """Covariances of the inputs, block by block, and weights that compensate for changes since the `old` rows."""
    moments, wanted = [], []
    for part in input_blocks(weights.shape[1]):
        now, share = rows[:, :, part], weights[:, part]
        each = _products(now, now)
        moments.append(Moments(each))
        if np.array_equal(now, old[:, :, part]):
            wanted.append(share)
            continue
        size = np.trace(each, axis1=1, axis2=2)[:, None, None] / each.shape[1]
        ridge = each + (DAMPED * size + np.where(size > 0, 0.0, 1.0)) * np.eye(each.shape[1])
        wanted.append(share + np.linalg.solve(ridge, _products(now, old[:, :, part] - now) @ share))
    return moments, np.concatenate(wanted, axis=1)


def _products(left: Array, right: Array) -> Array:
    found: Array = left.transpose(1, 2, 0) @ right.transpose(1, 0, 2) / len(left)
    return found
