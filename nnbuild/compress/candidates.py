"""What could be done to each layer, what it would save and what it would cost: tried on each layer alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from nnbuild.compress.graph import changed, recorded, seen
from nnbuild.compress.layer import Spec
from nnbuild.compress.patterns import PATTERNS, UNSTRUCTURED, Pattern
from nnbuild.compress.price import Board
from nnbuild.compress.values import LARGEST, uniform
from nnbuild.compress.weight_matrices import kernel_of, matrices, scale_blocks, weighted
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.ops.site import Site, site_of
from nnbuild.ops.softmax import Softmax
from nnbuild.quantize.calibrate import Batch
from nnbuild.quantize.report import as_float

DENSITIES = (0.6, 0.4, 0.25, 0.15, 0.08, 0.04)
VALUES = (16, 8, 4)
LIMITS = (31, 15, 11, 7, 5, 4, 3, 2)
"""The largest integers that weights may be."""
LITTLE = 0.01
WORTH = 0.97
"""What a layer's bytes may be of what they were, for a change to be looked at."""
PROBED = 128
WORK = 4e8
"""Multiplications of all samples that tell how much a layer's error matters."""
FEWEST_INPUTS, FEWEST_OUTPUTS, FEWEST = 16, 4, 256
"""With fewer inputs or outputs, or weights, every one counts and none is pruned: filters of single channels, say."""


@dataclass(frozen=True)
class Trial:
    """One way to store an operation's weights: its bytes, and the error of the model's output that it leads to."""

    op: str
    spec: Spec
    bytes: int
    error: float


def prunable(site: Site, role: str) -> bool:
    _, inputs, outputs = matrices(site, role, site.constant(role)).shape
    return bool(inputs >= FEWEST_INPUTS and outputs >= FEWEST_OUTPUTS and inputs * outputs >= FEWEST)


def roles_by_op(graph: Graph) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for op, role in weighted(graph):
        found.setdefault(op.name, []).append(role)
    return found


def roughly(site: Site, roles: list[str], spec: Spec) -> Site:
    """The operation with weights of this form, cut and rounded by their size: what they cost is the same."""
    fresh = {}
    for role in roles:
        weights = matrices(site, role, site.constant(role)) * scale_blocks(site, role)
        if spec.density is not None:
            density = spec.density
            weights = weights * np.stack([spec.pattern.mask(np.square(each), density) for each in weights])
        most = spec.most if spec.values is None else LARGEST
        steps = uniform(weights, np.ones(weights.shape), most, np.zeros((1, 1, 1))).steps(weights)
        if spec.values is not None:
            steps = _few(steps, spec.values)
        data = kernel_of(site, role, steps).astype(np.int8)
        fresh[role] = replace(site.constants[role], data=data)
    return replace(site, constants={**site.constants, **fresh})


def _few(steps: Array, count: int) -> Array:
    """As many different values, zero among them."""
    step = 2 * 127 // (count - 1) + 1
    return np.round(steps / step) * step


def pattern_for(site: Site, roles: list[str], density: float, board: Board) -> Pattern:
    """The one that costs least where it is used; the free one where that makes no difference."""
    best, least = UNSTRUCTURED, board.site(roughly(site, roles, Spec(density)))
    for pattern in PATTERNS[1:]:
        found = board.site(roughly(site, roles, Spec(density, pattern)))
        if board.better(found, least):
            best, least = pattern, found
    return best


def trials(
    graph: Graph,
    samples: Batch,
    families: Callable[[Site, list[str]], list[Spec]],
    board: Board,
    heard: Callable[[str], None],
) -> dict[str, list[Trial]]:
    """For every operation with weights, as it is and what is worth a thought of what `families` gives for it."""
    roles = roles_by_op(graph)
    inputs = recorded(graph, samples, set(roles))
    forms = {op.name: families(site_of(graph, op), roles[op.name]) for op in graph.ops if op.name in roles}
    board = board.among(_typical(graph, roles, forms))
    found: dict[str, list[Trial]] = {}
    for number, op in enumerate(op for op in graph.ops if op.name in roles):
        site = site_of(graph, op)
        plain = board.site(site)
        heard(f"layer {number + 1} of {len(roles)}, {op.layer or op.name}: what could be done with its weights")
        wanted = [(spec, board.site(roughly(site, roles[op.name], spec))) for spec in forms[op.name]]
        saving = [(spec, price) for spec, price in wanted if price.bytes < WORTH * plain.bytes]
        losses = _losses(site, roles[op.name], inputs[op.name], [spec for spec, _ in saving], heard)
        weight = _weight(graph, samples, site, losses) if losses else 0.0
        found[op.name] = [Trial(op.name, Spec(), plain.bytes, 0.0)]
        found[op.name] += [Trial(op.name, spec, price.bytes, weight * losses[spec][0]) for spec, price in saving]
    return found


def repriced(graph: Graph, made: Graph, found: Mapping[str, list[Trial]], board: Board) -> dict[str, list[Trial]]:
    """The same trials with the bytes that they take in a program that has the routines of `made`."""
    board, roles = board.among([made]), roles_by_op(graph)

    def bytes_of(site: Site, spec: Spec) -> int:
        return board.site(roughly(site, roles[site.op.name], spec) if spec.changes else site).bytes

    sites = {op.name: site_of(graph, op) for op in graph.ops if op.name in found}
    return {op: [replace(trial, bytes=bytes_of(sites[op], trial.spec)) for trial in found[op]] for op in found}


def _typical(graph: Graph, roles: Mapping[str, list[str]], forms: Mapping[str, list[Spec]]) -> Iterator[Graph]:
    """The graph as it is, and with a first, a middle and a last form of all weights: between them they have the
    routines of most choices."""
    yield graph
    for share in (0.0, 0.5, 1.0):
        constants = dict(graph.constants)
        for op in (op for op in graph.ops if forms.get(op.name)):
            spec = forms[op.name][round(share * (len(forms[op.name]) - 1))]
            made = roughly(site_of(graph, op), roles[op.name], spec)
            constants |= {constant.name: constant for constant in made.constants.values()}
        yield replace(graph, constants=constants)


def sparsest(
    graph: Graph, samples: Batch, forms: Callable[[Site, list[str]], list[Spec]], heard: Callable[[str], None]
) -> dict[str, Spec]:
    """For every operation the last of its forms that loses no more than LITTLE of its own signal, else the first."""
    roles = roles_by_op(graph)
    inputs = recorded(graph, samples, set(roles))
    chosen = {}
    for op in (op for op in graph.ops if op.name in roles):
        site = site_of(graph, op)
        options = forms(site, roles[op.name])
        known = _losses(site, roles[op.name], inputs[op.name], options[1:], heard)
        fine = [spec for spec in options[1:] if known[spec][0] <= LITTLE * len(roles[op.name])]
        chosen[op.name] = fine[-1] if fine else options[0]
    return chosen


def _losses(
    site: Site, roles: list[str], inputs: list[Array], specs: list[Spec], heard: Callable[[str], None]
) -> dict[Spec, tuple[float, Site]]:
    """The part of the layer's signal that each form loses, and the operation with it."""
    known = {role: seen(site, role, inputs, inputs) for role in roles} if specs else {}
    found = {}
    for spec in specs:
        heard(f"trying {site.op.layer or site.op.name}: {spec}")
        made, lost = site, 0.0
        for role in roles:
            fresh, part = changed(made, role, spec, known[role], tries=1)
            made, lost = replace(made, constants={**made.constants, **fresh}), lost + part
        found[spec] = lost, made
    return found


def _weight(graph: Graph, samples: Batch, site: Site, losses: Mapping[Spec, tuple[float, Site]]) -> float:
    """How much of the outputs' spread is error, for each part of the layer's signal that is lost."""
    lost, made = min(losses.values(), key=lambda each: abs(np.log(max(each[0], 1e-9) / 0.02)))
    fresh = {constant.name: constant for constant in made.constants.values()}
    few = {name: values[: _probes(graph)] for name, values in samples.items()}
    exact = _scores(graph, few)
    found = _scores(replace(graph, constants={**graph.constants, **fresh}), few)
    spread = float(np.square(exact - exact.mean(axis=0)).sum())
    return float(np.square(found - exact).sum()) / max(spread, 1e-30) / max(lost, 1e-9)


def _probes(graph: Graph) -> int:
    work = sum(_macs(graph, op.name) for op in graph.ops)
    return int(min(PROBED, max(8, WORK / max(1, work))))


def _macs(graph: Graph, name: str) -> int:
    site = site_of(graph, next(op for op in graph.ops if op.name == name))
    return site.attributes.macs(
        [site.shape(i) for i in range(len(site.inputs))],
        [site.output_shape(i) for i in range(len(site.outputs))],
        {role: constant.data.shape for role, constant in site.constants.items()},
    )


def _scores(graph: Graph, samples: Batch) -> Array:
    """The outputs; of a softmax, what goes into it, since its own values hide what is nearly turned over."""
    values = interpret.run(graph, samples)
    makers = {op.outputs[0]: op for op in graph.ops}
    parts = []
    for name in graph.outputs:
        op = makers.get(name)
        name = op.inputs[0] if op is not None and isinstance(op.attributes, Softmax) else name
        parts.append(as_float(graph.tensors[name], values[name]).reshape(len(values[name]), -1).astype(np.float64))
    return np.concatenate(parts, axis=1)


def frontier(found: Mapping[str, list[Trial]]) -> list[dict[str, Trial]]:
    """Every operation's form, from all as they are to the fewest bytes: always the step that costs least a byte."""
    moves = sorted((move for each in found.values() for move in _hull(each)), key=lambda move: move[0])
    now = {op: each[0] for op, each in found.items()}
    steps = [now]
    for _, trial in moves:
        now = {**now, trial.op: trial}
        steps.append(now)
    return steps


def _hull(options: list[Trial]) -> Iterator[tuple[float, Trial]]:
    """(error for each byte that is saved, trial) along the lower edge of errors over bytes."""
    now = options[0]
    while smaller := [each for each in options if each.bytes < now.bytes]:
        slope, following = min(
            (((each.error - now.error) / (now.bytes - each.bytes), each) for each in smaller),
            key=lambda pair: (pair[0], pair[1].bytes),
        )
        yield slope, following
        now = following
