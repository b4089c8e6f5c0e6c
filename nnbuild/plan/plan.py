"""The plan: the steps of a run, the place of every tensor, and every constant as it will be stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from nnbuild.graph import Array, Graph, Op, Tensor
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.registry import variant_name
from nnbuild.names import fragment
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.site import Site, site_of
from nnbuild.plan.place import Buffer, Placement, place
from nnbuild.plan.select import Alternative, Choice, choose, plain_names


@dataclass(frozen=True)
class Location:
    """Where a tensor lies: in the "arena", which every run fills anew, or in the "state", which lasts."""

    space: str
    offset: int
    size: int


@dataclass(frozen=True, eq=False)
class Step:
    """One call of one kernel function. `takes_weights` says that it is told where the weights lie."""

    site: Site
    choice: Choice
    function: str
    names: Names
    macs: int
    scratch: int | None
    shares_storage: bool
    takes_weights: bool = False

    @property
    def op(self) -> Op:
        return self.site.op

    @property
    def demand(self) -> Demand:
        return self.choice.demand

    @property
    def kernel_name(self) -> str:
        return variant_name(self.choice.kernel)

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        return self.choice.alternatives

    @property
    def extent(self) -> int:
        """Pieces of work: those of the kernel, or one for each index of the axes it is applied along."""
        return prod(self.op.outer) if self.op.outer else self.demand.extent


@dataclass(frozen=True)
class Peak:
    """The step at which most of the arena is in use: how much, and the tensors and scratch that are alive then."""

    step: int
    layer: str
    size: int
    alive: tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False)
class Plan:
    graph: Graph
    prefix: str
    steps: tuple[Step, ...]
    locations: Mapping[str, Location]
    constants: Mapping[str, Array]
    arena: int
    arena_bound: int
    state: int
    alignment: int
    peak: Peak | None
    swappable: bool = False

    def tensor(self, name: str) -> Tensor:
        return self.graph.tensors[name]


@dataclass(frozen=True)
class Target:
    """What the plan must know of the board. `apart` keeps every tensor until the end of the run, to be looked at;
    `swappable` hands the weights to every step, so that a run can be given others."""

    features: frozenset[str] = frozenset()
    alignment: int = 16
    apart: bool = False
    optimize: str = "speed"
    swappable: bool = False


def make_plan(graph: Graph, prefix: str, target: Target) -> Plan:
    work = [op for op in graph.ops if not isinstance(op.attributes, Reshape)]
    sites = [site_of(graph, op) for op in work]
    choices = [choose(site, target.features, target.optimize) for site in sites]
    roots = _roots(graph)
    buffers = _buffers(graph, work, choices, roots, target)
    arena = place(buffers, target.alignment)
    locations, state = _locations(graph, roots, arena, target.alignment)
    constants: dict[str, Array] = {}
    steps = [
        _step(graph, prefix, index, site, choice, arena, locations, constants, target.swappable)
        for index, (site, choice) in enumerate(zip(sites, choices, strict=True))
    ]
    peak = _peak(buffers, arena, [step.op.layer or step.op.name for step in steps])
    return Plan(
        graph=graph,
        prefix=prefix,
        steps=tuple(steps),
        locations=locations,
        constants=constants,
        arena=arena.size,
        arena_bound=arena.bound,
        state=state,
        alignment=target.alignment,
        peak=peak,
        swappable=target.swappable,
    )


def size_of(tensor: Tensor) -> int:
    return prod(tensor.shape) * np.dtype(tensor.dtype).itemsize


def _roots(graph: Graph) -> dict[str, str]:
    """Tensor -> the tensor whose storage it is: reshaped views, and states that are updated where they lie."""
    roots = {name: name for name in graph.tensors}
    for state in graph.states:
        roots[state.after] = state.before
    for op in graph.ops:
        if isinstance(op.attributes, Reshape):
            roots[op.outputs[0]] = roots[op.inputs[0]]
    return roots


def _buffers(
    graph: Graph, work: list[Op], choices: list[Choice], roots: dict[str, str], target: Target
) -> list[Buffer]:
    """Every piece of the arena with its exact lifetime. Inputs are there from before the first step."""
    end = len(work)
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for name in graph.inputs:
        first[roots[name]], last[roots[name]] = -1, -1
    for index, op in enumerate(work):
        for name in (*op.inputs, *op.outputs):
            first.setdefault(roots[name], index)
            last[roots[name]] = index
    for name in first if target.apart else map(roots.__getitem__, graph.outputs):
        last[name] = end
    kept = {state.before for state in graph.states}
    overlaps = _overlaps(work, choices, roots, first, last)
    buffers = [
        Buffer(name, size_of(graph.tensors[name]), first[name], last[name], frozenset(overlaps.get(name, ())))
        for name in first
        if name not in kept
    ]
    for index, choice in enumerate(choices):
        if choice.demand.scratch:
            buffers.append(Buffer(f"scratch of {work[index].name}", choice.demand.scratch, index, index))
    return buffers


def _overlaps(
    work: list[Op], choices: list[Choice], roots: dict[str, str], first: dict[str, int], last: dict[str, int]
) -> dict[str, set[str]]:
    """Output -> inputs it may overlap: those that the kernel names and that nothing needs after this step."""
    allowed: dict[str, set[str]] = {}
    for index, (op, choice) in enumerate(zip(work, choices, strict=True)):
        if op.outer:
            continue
        for out, source in choice.demand.in_place:
            a, b = roots[op.outputs[out]], roots[op.inputs[source]]
            if a != b and first[a] == index and last[b] == index:
                allowed.setdefault(a, set()).add(b)
    return allowed


def _locations(
    graph: Graph, roots: dict[str, str], arena: Placement, alignment: int
) -> tuple[dict[str, Location], int]:
    state, states = 0, {}
    for held in graph.states:
        states[held.before] = state
        state += -(-size_of(graph.tensors[held.before]) // alignment) * alignment
    locations = {}
    for name, tensor in graph.tensors.items():
        root = roots[name]
        if root in states:
            locations[name] = Location("state", states[root], size_of(tensor))
        elif root in arena.offsets:
            locations[name] = Location("arena", arena.offsets[root], size_of(tensor))
    return locations, state


def _step(
    graph: Graph,
    prefix: str,
    index: int,
    site: Site,
    choice: Choice,
    arena: Placement,
    locations: Mapping[str, Location],
    constants: dict[str, Array],
    swappable: bool,
) -> Step:
    op = site.op
    function = f"{prefix}_{index:02d}_{fragment(op.name)}"
    plain = plain_names(site, choice.demand)
    packed = {
        role: _store(constants, f"{function}_{role}", data, swappable) for role, data in choice.demand.packed.items()
    }
    macs = op.attributes.macs(
        [site.shape(i) for i in range(len(site.inputs))],
        [site.output_shape(i) for i in range(len(site.outputs))],
        {role: constant.data.shape for role, constant in site.constants.items()},
    ) * prod(op.outer)
    scratch = arena.offsets.get(f"scratch of {op.name}") if choice.demand.scratch else None
    names = Names(plain.inputs, plain.outputs, packed, plain.scratch)
    takes_weights = swappable and bool(packed)
    return Step(site, choice, function, names, macs, scratch, _shares(op, locations), takes_weights)


def _store(constants: dict[str, Array], name: str, data: Array, apart: bool) -> str:
    """Files a constant, or finds the one that holds the same already; what may be exchanged stays apart, since the next
    weights may differ where these are the same."""
    for known, there in constants.items():
        if apart:
            break
        if there.dtype == data.dtype and there.shape == data.shape and np.array_equal(there, data):
            return known
    constants[name] = data
    return name


def _shares(op: Op, locations: Mapping[str, Location]) -> bool:
    """Whether an output lies over an input, so that the pointers must not promise otherwise."""
    return any(
        a.space == b.space and a.offset < b.offset + b.size and b.offset < a.offset + a.size
        for a in (locations[name] for name in op.outputs)
        for b in (locations[name] for name in op.inputs)
    )


def _peak(buffers: list[Buffer], placed: Placement, layers: list[str]) -> Peak | None:
    best: Peak | None = None
    for step in range(len(layers)):
        alive = [b for b in buffers if b.first <= step <= b.last]
        size = _covered([(placed.offsets[b.name], b.size) for b in alive])
        if best is None or size > best.size:
            best = Peak(step, layers[step], size, tuple((b.name, b.size) for b in alive))
    return best


def _covered(places: list[tuple[int, int]]) -> int:
    """Bytes in use: what two buffers share counts once."""
    total, end = 0, 0
    for offset, size in sorted(places):
        total += max(0, offset + size - max(offset, end))
        end = max(end, offset + size)
    return total
