"""The plan: the steps of a run, the place of every tensor, and every constant as it will be stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from nnbuild.graph import Array, Graph, Op, Tensor
from nnbuild.isa.isa import Isa
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.registry import variant_name
from nnbuild.names import fragment
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.site import Site
from nnbuild.plan.chain import Work, divide
from nnbuild.plan.place import Buffer, Placement, place, roughly
from nnbuild.plan.select import Alternative, Choice, plain_names
from nnbuild.plan.settle import settle
from nnbuild.plan.target import Target


@dataclass(frozen=True)
class Location:
    """Where a tensor lies: in the "arena", which every run fills anew, or in the "state", which lasts."""

    space: str
    offset: int
    size: int


@dataclass(frozen=True, eq=False)
class Step:
    """One call of one kernel function."""

    site: Site
    choice: Choice
    function: str
    names: Names
    macs: int
    scratch: int | None
    shares_storage: bool

    @property
    def op(self) -> Op:
        return self.site.op

    @property
    def layer(self) -> str:
        """The layers it computes, as the model calls them."""
        return " + ".join(op.layer or op.name for op in self.site.ops)

    @property
    def kind(self) -> str:
        return " + ".join(op.kind for op in self.site.ops)

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(tensor.name for tensor in self.site.reads)

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(tensor.name for tensor in self.site.writes)

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
    isa: Isa
    steps: tuple[Step, ...]
    locations: Mapping[str, Location]
    constants: Mapping[str, Array]
    arena: int
    arena_bound: int
    state: int
    alignment: int
    peak: Peak | None

    def tensor(self, name: str) -> Tensor:
        return self.graph.tensors[name]


def make_plan(graph: Graph, prefix: str, target: Target) -> Plan:
    roots = _roots(graph)

    def arena_size(work: list[Work]) -> int:
        return roughly(_buffers(graph, work, roots, target), target.alignment)

    work = settle(divide(graph, target), arena_size, target)
    buffers = _buffers(graph, work, roots, target)
    arena = place(buffers, target.alignment)
    locations, state = _locations(graph, roots, arena, target.alignment)
    constants: dict[str, Array] = {}
    steps = [_step(prefix, index, item, arena, locations, constants) for index, item in enumerate(work)]
    peak = _peak(buffers, arena, [step.layer for step in steps])
    return Plan(
        graph,
        prefix,
        target.isa,
        tuple(steps),
        locations,
        constants,
        arena.size,
        arena.bound,
        state,
        target.alignment,
        peak,
    )


def _roots(graph: Graph) -> dict[str, str]:
    """Tensor -> the tensor whose storage it is: reshaped views, and states that are updated where they lie."""
    roots = {name: name for name in graph.tensors}
    for state in graph.states:
        roots[state.after] = state.before
    for op in graph.ops:
        if isinstance(op.attributes, Reshape):
            roots[op.outputs[0]] = roots[op.inputs[0]]
    return roots


def _buffers(graph: Graph, work: list[Work], roots: dict[str, str], target: Target) -> list[Buffer]:
    """Every piece of the arena with its exact lifetime. Inputs are there from before the first step."""
    end = len(work)
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for name in graph.inputs:
        first[roots[name]], last[roots[name]] = -1, -1
    for index, item in enumerate(work):
        for tensor in (*item.site.reads, *item.site.writes):
            first.setdefault(roots[tensor.name], index)
            last[roots[tensor.name]] = index
    for name in first if target.apart else map(roots.__getitem__, graph.outputs):
        last[name] = end
    kept = {state.before for state in graph.states}
    overlaps = _overlaps(work, roots, first, last, target.pieces)
    buffers = [
        Buffer(name, graph.tensors[name].nbytes, first[name], last[name], overlaps.get(name, {}))
        for name in first
        if name not in kept
    ]
    for index, item in enumerate(work):
        if item.choice.demand.scratch:
            buffers.append(Buffer(_scratch_name(item), item.choice.demand.scratch, index, index))
    return buffers


def _scratch_name(work: Work) -> str:
    return f"scratch of {work.site.op.name}"


def _overlaps(
    work: list[Work], roots: dict[str, str], first: dict[str, int], last: dict[str, int], pieces: bool
) -> dict[str, dict[str, int]]:
    """Output -> the lead before each input it may lie over: those that nothing needs after this step."""
    allowed: dict[str, dict[str, int]] = {}
    for index, item in enumerate(work):
        site = item.site
        if site.op.outer:
            continue
        for overlap in item.choice.demand.overlaps:
            a, b = roots[site.writes[overlap.output].name], roots[site.reads[overlap.input].name]
            if a != b and first[a] == index and last[b] == index:
                allowed.setdefault(a, {})[b] = overlap.lead_of(pieces)
    return allowed


def _locations(
    graph: Graph, roots: dict[str, str], arena: Placement, alignment: int
) -> tuple[dict[str, Location], int]:
    state, states = 0, {}
    for held in graph.states:
        states[held.before] = state
        state += -(-graph.tensors[held.before].nbytes // alignment) * alignment
    locations = {}
    for name, tensor in graph.tensors.items():
        root = roots[name]
        if root in states:
            locations[name] = Location("state", states[root], tensor.nbytes)
        elif root in arena.offsets:
            locations[name] = Location("arena", arena.offsets[root], tensor.nbytes)
    return locations, state


def _step(
    prefix: str,
    index: int,
    work: Work,
    arena: Placement,
    locations: Mapping[str, Location],
    constants: dict[str, Array],
) -> Step:
    site, choice = work.site, work.choice
    function = f"{prefix}_{index:02d}_{fragment(site.op.name)}"
    plain = plain_names(site, choice.demand)
    packed = {role: _store(constants, f"{function}_{role}", data) for role, data in choice.demand.packed.items()}
    macs = sum(_macs(part) for part in (site, *site.tail))
    scratch = arena.offsets.get(_scratch_name(work)) if choice.demand.scratch else None
    names = Names(plain.inputs, plain.outputs, packed, plain.scratch)
    return Step(site, choice, function, names, macs, scratch, _shares(site, locations))


def _macs(site: Site) -> int:
    """Of one operation, without its tail."""
    macs = site.op.attributes.macs(
        [site.shape(i) for i in range(len(site.inputs))],
        [site.output_shape(i) for i in range(len(site.outputs))],
        {role: constant.data.shape for role, constant in site.constants.items()},
    )
    return macs * prod(site.op.outer)


def _store(constants: dict[str, Array], name: str, data: Array) -> str:
    """Files a constant, or finds the one that holds the same already."""
    for known, there in constants.items():
        if there.dtype == data.dtype and there.shape == data.shape and np.array_equal(there, data):
            return known
    constants[name] = data
    return name


def _shares(site: Site, locations: Mapping[str, Location]) -> bool:
    """Whether an output lies over an input, so that the pointers must not promise otherwise."""
    return any(
        a.space == b.space and a.offset < b.offset + b.size and b.offset < a.offset + a.size
        for a in (locations[tensor.name] for tensor in site.writes)
        for b in (locations[tensor.name] for tensor in site.reads)
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
