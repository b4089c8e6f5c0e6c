"""Candidates: ways to compress each layer, with the bytes they save and the error they cause, tried on each layer
alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from nnbuild.compress.graph import compress_weights, observe, recorded
from nnbuild.compress.layer import Spec
from nnbuild.compress.patterns import PATTERNS, UNSTRUCTURED, Pattern
from nnbuild.compress.price import Board
from nnbuild.compress.values import LARGEST, uniform
from nnbuild.compress.weight_matrices import kernel_of, matrices, scale_blocks, weight_roles
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.ops.site import Site, site_of
from nnbuild.ops.softmax import Softmax
from nnbuild.quantize.calibrate import Batch
from nnbuild.quantize.report import as_float

DENSITIES = (0.6, 0.4, 0.25, 0.15, 0.08, 0.04)
VALUES = (16, 8, 4)
LIMITS = (31, 15, 11, 7, 5, 4, 3, 2)
"""Candidate limits of the weights' absolute values."""
NEGLIGIBLE_LOSS = 0.01
MAX_SIZE_RATIO = 0.97
"""A candidate must reduce a layer's bytes at least to this share."""
MAX_PROBES = 128
PROBE_MACS = 4e8
"""Multiplications spent on the samples that tell how much a layer's error matters."""
MIN_INPUTS, MIN_OUTPUTS, MIN_WEIGHTS = 16, 4, 256
"""Layers with fewer inputs, outputs or weights are not pruned: every weight counts, as in single-channel filters."""


@dataclass(frozen=True)
class Candidate:
    """One way to store an operation's weights: its bytes, and the error of the model's output that it causes."""

    op: str
    spec: Spec
    bytes: int
    error: float


def prunable(site: Site, role: str) -> bool:
    _, inputs, outputs = matrices(site, role, site.constant(role)).shape
    return bool(inputs >= MIN_INPUTS and outputs >= MIN_OUTPUTS and inputs * outputs >= MIN_WEIGHTS)


def roles_by_op(graph: Graph) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for op, role in weight_roles(graph):
        found.setdefault(op.name, []).append(role)
    return found


def approximate(site: Site, roles: list[str], spec: Spec) -> Site:
    """The operation with weights of this form, pruned and rounded by magnitude alone: sufficient for its price."""
    fresh = {}
    for role in roles:
        weights = matrices(site, role, site.constant(role)) * scale_blocks(site, role)
        if spec.density is not None:
            density = spec.density
            weights = weights * np.stack([spec.pattern.mask(np.square(each), density) for each in weights])
        most = spec.most if spec.values is None else LARGEST
        steps = uniform(weights, np.ones(weights.shape), most, np.zeros((1, 1, 1))).steps(weights)
        if spec.values is not None:
            steps = _few_values(steps, spec.values)
        data = kernel_of(site, role, steps).astype(np.int8)
        fresh[role] = replace(site.constants[role], data=data)
    return replace(site, constants={**site.constants, **fresh})


def _few_values(steps: Array, count: int) -> Array:
    """Reduces the weights to `count` different values, zero among them."""
    step = 2 * 127 // (count - 1) + 1
    return np.round(steps / step) * step


def pattern_for(site: Site, roles: list[str], density: float, board: Board) -> Pattern:
    """The cheapest pattern; the unstructured one where that makes no difference."""
    best, least = UNSTRUCTURED, board.site(approximate(site, roles, Spec(density)))
    for pattern in PATTERNS[1:]:
        found = board.site(approximate(site, roles, Spec(density, pattern)))
        if board.better(found, least):
            best, least = pattern, found
    return best


def find_candidates(
    graph: Graph,
    samples: Batch,
    families: Callable[[Site, list[str]], list[Spec]],
    board: Board,
    report: Callable[[str], None],
) -> dict[str, list[Candidate]]:
    """For every operation with weights: unchanged, and those specs of `families` that save enough."""
    roles = roles_by_op(graph)
    inputs = recorded(graph, samples, set(roles))
    forms = {op.name: families(site_of(graph, op), roles[op.name]) for op in graph.ops if op.name in roles}
    board = board.among(_typical(graph, roles, forms))
    found: dict[str, list[Candidate]] = {}
    for number, op in enumerate(op for op in graph.ops if op.name in roles):
        site = site_of(graph, op)
        plain = board.site(site)
        report(f"layer {number + 1} of {len(roles)}, {op.layer or op.name}: what could be done with its weights")
        wanted = [(spec, board.site(approximate(site, roles[op.name], spec))) for spec in forms[op.name]]
        saving = [(spec, price) for spec, price in wanted if price.bytes < MAX_SIZE_RATIO * plain.bytes]
        losses = _losses(site, roles[op.name], inputs[op.name], [spec for spec, _ in saving], report)
        weight = _weight(graph, samples, site, losses) if losses else 0.0
        found[op.name] = [Candidate(op.name, Spec(), plain.bytes, 0.0)]
        found[op.name] += [Candidate(op.name, spec, price.bytes, weight * losses[spec][0]) for spec, price in saving]
    return found


def reprice(
    graph: Graph, made: Graph, found: Mapping[str, list[Candidate]], board: Board
) -> dict[str, list[Candidate]]:
    """The same candidates with their bytes in a program that has the routines of `made`."""
    board, roles = board.among([made]), roles_by_op(graph)

    def bytes_of(site: Site, spec: Spec) -> int:
        return board.site(approximate(site, roles[site.op.name], spec) if spec.changes else site).bytes

    sites = {op.name: site_of(graph, op) for op in graph.ops if op.name in found}
    return {op: [replace(trial, bytes=bytes_of(sites[op], trial.spec)) for trial in found[op]] for op in found}


def _typical(graph: Graph, roles: Mapping[str, list[str]], forms: Mapping[str, list[Spec]]) -> Iterator[Graph]:
    """The graph unchanged, and with a first, a middle and a last form of all weights: together they have the routines
    of most choices."""
    yield graph
    for share in (0.0, 0.5, 1.0):
        constants = dict(graph.constants)
        for op in (op for op in graph.ops if forms.get(op.name)):
            spec = forms[op.name][round(share * (len(forms[op.name]) - 1))]
            made = approximate(site_of(graph, op), roles[op.name], spec)
            constants |= {constant.name: constant for constant in made.constants.values()}
        yield replace(graph, constants=constants)


def sparsest(
    graph: Graph, samples: Batch, forms: Callable[[Site, list[str]], list[Spec]], report: Callable[[str], None]
) -> dict[str, Spec]:
    """For every operation the last of its forms that loses no more than NEGLIGIBLE_LOSS of its signal, else the
    first."""
    roles = roles_by_op(graph)
    inputs = recorded(graph, samples, set(roles))
    chosen = {}
    for op in (op for op in graph.ops if op.name in roles):
        site = site_of(graph, op)
        options = forms(site, roles[op.name])
        known = _losses(site, roles[op.name], inputs[op.name], options[1:], report)
        fine = [spec for spec in options[1:] if known[spec][0] <= NEGLIGIBLE_LOSS * len(roles[op.name])]
        chosen[op.name] = fine[-1] if fine else options[0]
    return chosen


def _losses(
    site: Site, roles: list[str], inputs: list[Array], specs: list[Spec], report: Callable[[str], None]
) -> dict[Spec, tuple[float, Site]]:
    """The share of the layer's signal that each form loses, and the operation in that form."""
    known = {role: observe(site, role, inputs, inputs) for role in roles} if specs else {}
    found = {}
    for spec in specs:
        report(f"trying {site.op.layer or site.op.name}: {spec}")
        made, lost = site, 0.0
        for role in roles:
            fresh, part = compress_weights(made, role, spec, known[role], tries=1)
            made, lost = replace(made, constants={**made.constants, **fresh}), lost + part
        found[spec] = lost, made
    return found


def _weight(graph: Graph, samples: Batch, site: Site, losses: Mapping[Spec, tuple[float, Site]]) -> float:
    """The model's output error relative to the outputs' spread, per share of the layer's signal lost."""
    lost, made = min(losses.values(), key=lambda each: abs(np.log(max(each[0], 1e-9) / 0.02)))
    fresh = {constant.name: constant for constant in made.constants.values()}
    few = {name: values[: _probes(graph)] for name, values in samples.items()}
    exact = _scores(graph, few)
    found = _scores(replace(graph, constants={**graph.constants, **fresh}), few)
    spread = float(np.square(exact - exact.mean(axis=0)).sum())
    return float(np.square(found - exact).sum()) / max(spread, 1e-30) / max(lost, 1e-9)


def _probes(graph: Graph) -> int:
    work = sum(_macs(graph, op.name) for op in graph.ops)
    return int(min(MAX_PROBES, max(8, PROBE_MACS / max(1, work))))


def _macs(graph: Graph, name: str) -> int:
    site = site_of(graph, next(op for op in graph.ops if op.name == name))
    return site.attributes.macs(
        [site.shape(i) for i in range(len(site.inputs))],
        [site.output_shape(i) for i in range(len(site.outputs))],
        {role: constant.data.shape for role, constant in site.constants.items()},
    )


def _scores(graph: Graph, samples: Batch) -> Array:
    """The outputs; of a softmax its inputs, since its own values hide near ties."""
    values = interpret.run(graph, samples)
    makers = {op.outputs[0]: op for op in graph.ops}
    parts = []
    for name in graph.outputs:
        op = makers.get(name)
        name = op.inputs[0] if op is not None and isinstance(op.attributes, Softmax) else name
        parts.append(as_float(graph.tensors[name], values[name]).reshape(len(values[name]), -1).astype(np.float64))
    return np.concatenate(parts, axis=1)


def frontier(found: Mapping[str, list[Candidate]]) -> list[dict[str, Candidate]]:
    """Choices for all operations, from all unchanged to the fewest bytes; each step costs the least error per byte."""
    moves = sorted((move for each in found.values() for move in _hull(each)), key=lambda move: move[0])
    now = {op: each[0] for op, each in found.items()}
    steps = [now]
    for _, trial in moves:
        now = {**now, trial.op: trial}
        steps.append(now)
    return steps


def _hull(options: list[Candidate]) -> Iterator[tuple[float, Candidate]]:
    """(error per byte saved, candidate) along the lower convex hull of errors over bytes."""
    now = options[0]
    while smaller := [each for each in options if each.bytes < now.bytes]:
        slope, following = min(
            (((each.error - now.error) / (now.bytes - each.bytes), each) for each in smaller),
            key=lambda pair: (pair[0], pair[1].bytes),
        )
        yield slope, following
        now = following
