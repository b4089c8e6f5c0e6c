"""The plan: the steps of a run, the place of every tensor, and every constant as it will be stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import lcm, prod

import numpy as np

from nnbuild.base.names import fragment
from nnbuild.isa.isa import Isa
from nnbuild.kernels.contract import Demand, Names
from nnbuild.model.graph import Array, Graph, Op, Tensor
from nnbuild.ops.site import Site
from nnbuild.plan.chain import Work, divide
from nnbuild.plan.device_program import DeviceProgram
from nnbuild.plan.lower import lower
from nnbuild.plan.place import THOROUGH, Buffer, Placement, place
from nnbuild.plan.regions import Region, regions_of, times_of
from nnbuild.plan.roots import divided, offsets_of, roots_of
from nnbuild.plan.select import Alternative, Choice, plain_names
from nnbuild.plan.settle import settle
from nnbuild.plan.split import Borders, pieces, shares, shortest, split
from nnbuild.plan.states import beginnings, state_places
from nnbuild.plan.target import Target
from nnbuild.plan.with_device import with_device


@dataclass(frozen=True)
class Location:
    """Where a tensor lies: in the "arena", which every run fills anew, or in the "state", which lasts.

    Where runs take turns with several values of a state, these lie `apart` bytes from each other.
    """

    space: str
    offset: int
    size: int
    apart: int = 0


@dataclass(frozen=True, eq=False)
class Version:
    """The function that computes a step with the instructions of one set."""

    isa: Isa
    choice: Choice
    function: str
    names: Names
    takes_weights: bool = False
    """It is told where the weights lie."""
    borders: Borders = ()
    """Where its parts begin, in pieces of work, and where the last one ends; nothing where it is computed whole."""

    @property
    def demand(self) -> Demand:
        return self.choice.demand

    @property
    def kernel_name(self) -> str:
        return self.choice.kernel.name


@dataclass(frozen=True, eq=False)
class Step:
    """One call of one kernel function: of the first version, or of another where the processor wants that."""

    site: Site
    versions: tuple[Version, ...]
    macs: int
    scratch: int | None
    shares_storage: bool
    scratch_bytes: int = 0
    """So far apart lies the scratch of its parts."""
    on_device: bool = False
    """Whether the device computes it; the versions are what the processor computes in its stead."""

    @property
    def parts(self) -> int:
        """In so many parts it may be computed at the same time, each with scratch of its own."""
        return max(1, len(self.versions[0].borders) - 1)

    @property
    def part_cycles(self) -> tuple[float, ...]:
        """What each of its parts is estimated to take, without what handing it out does."""
        first = self.versions[0]
        cycles = first.choice.price.cycles
        return tuple(cycles * share for share in shares(pieces(self.site, first.demand), first.borders)) or (cycles,)

    @property
    def choice(self) -> Choice:
        return self.versions[0].choice

    @property
    def function(self) -> str:
        return self.versions[0].function

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
        """What computes it: a kernel, or the device."""
        return "device" if self.on_device else self.choice.kernel.name

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        return self.choice.alternatives

    def extent(self, version: Version) -> int:
        """Pieces of work: those of the kernel, or one for each index of the axes it is applied along."""
        return prod(self.op.outer) if self.op.outer else version.demand.extent


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
    isas: tuple[Isa, ...]
    steps: tuple[Step, ...]
    locations: Mapping[str, Location]
    constants: Mapping[str, Array]
    arena: int
    arena_bound: int
    state: int
    alignment: int
    peak: Peak | None
    swappable: bool = False
    initial: Mapping[str, str] = field(default_factory=dict)
    """State -> the constant that it begins with, over and over, where that is not one number."""
    device: DeviceProgram | None = None
    """What the device beside the processor is given, where the plan was made for one."""

    @property
    def parallel(self) -> bool:
        return any(step.parts > 1 for step in self.steps)

    @property
    def banks(self) -> int:
        """How many runs take turns with values of their own of a state."""
        return max((state.banks for state in self.graph.states), default=1)

    @property
    def part(self) -> str:
        """The function that computes one step of the plan; in a stream a step is what takes rows."""
        return f"{self.prefix}_{'part' if self.graph.stream else 'step'}"

    @property
    def isa(self) -> Isa:
        """The set it is made for first of all."""
        return self.isas[0]

    def tensor(self, name: str) -> Tensor:
        return self.graph.tensors[name]


def make_plan(graph: Graph, prefix: str, target: Target) -> Plan:
    roots = roots_of(graph)

    def arena_size(work: list[Work], enough: int) -> int:
        return place(_buffers(graph, work, roots, target), target.alignment, enough).size

    def fullest(work: list[Work]) -> tuple[int, int]:
        buffers = _buffers(graph, work, roots, target)
        placed = place(buffers, target.alignment)
        times = times_of(len(work), _regions(graph, work, roots, target))
        peak = _peak(buffers, placed, times, [item.site.op.name for item in work])
        return placed.size, peak.step if peak else 0

    def lowered(work: list[Work]) -> list[Work]:
        return work if target.apart else lower(graph, work, fullest, target)

    def settled(on_device: frozenset[str] = frozenset()) -> list[Work]:
        divided = [shortest(item, target.cores) for item in divide(graph, target, on_device)]
        return settle(divided, arena_size, target, lowered)

    work, program = settled(), None
    if target.device is not None:
        work, program = with_device(graph, work, settled, roots, target)
    away = frozenset(name for region in program.regions for name in region.exits) if program else frozenset[str]()
    buffers = _buffers(graph, work, roots, target, away)
    arena = place(buffers, target.alignment, patience=THOROUGH)
    locations, state = _locations(graph, roots, arena, target.alignment)
    constants: dict[str, Array] = {}
    steps = [_step(prefix, index, item, target, arena, locations, constants) for index, item in enumerate(work)]
    initial = {
        name: _store(constants, f"{prefix}_initial_{fragment(name)}", values, target.swappable)
        for name, values in beginnings(graph).items()
    }
    times = times_of(len(work), _regions(graph, work, roots, target))
    peak = _peak(buffers, arena, times, [step.layer for step in steps])
    return Plan(
        graph,
        prefix,
        (target.isa, *target.also),
        tuple(steps),
        locations,
        constants,
        arena.size,
        arena.bound,
        state,
        target.alignment,
        peak,
        target.swappable,
        initial,
        program,
    )


def _regions(graph: Graph, work: list[Work], roots: dict[str, str], target: Target) -> tuple[Region, ...]:
    on_device = frozenset(index for index, item in enumerate(work) if item.on_device)
    return regions_of(graph, [item.site for item in work], on_device, roots, target.apart) if on_device else ()


def _buffers(
    graph: Graph, work: list[Work], roots: dict[str, str], target: Target, away: frozenset[str] = frozenset()
) -> list[Buffer]:
    """Every piece of the arena with its exact lifetime. Inputs are there from before the first step. `away` are tensors
    of the device that lie here because its memory has no room for them."""
    end = len(work)
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for name in graph.inputs:
        first[roots[name]], last[roots[name]] = -1, -1
    regions = _regions(graph, work, roots, target)
    times = times_of(len(work), regions)
    for index, item in sorted(enumerate(work), key=lambda pair: times[pair[0]]):
        for tensor in (*item.site.reads, *item.site.writes):
            first.setdefault(roots[tensor.name], times[index])
            last[roots[tensor.name]] = times[index]
    for region in regions:  # what the driver reads back must not lie over what the processor would begin anew with
        for name in {*region.exits, *away}.intersection(
            roots[tensor.name] for step in region.steps for tensor in work[step].site.writes
        ):
            first[name] = times[region.first]
    for name in first if target.apart else map(roots.__getitem__, graph.outputs):
        last[name] = end
    kept = {state.before for state in graph.states}
    overlaps = _overlaps(work, times, roots, divided(graph), first, last, target)
    buffers = [
        Buffer(
            name,
            graph.tensors[name].nbytes,
            first[name],
            last[name],
            {source: lead for source, (lead, _) in overlaps.get(name, {}).items()},
            {source: every for source, (_, every) in overlaps.get(name, {}).items()},
        )
        for name in first
        if name not in kept
    ]
    for index, item in enumerate(work):
        scratch = _scratch(item, target) * _parts(item, target)
        if scratch:
            buffers.append(Buffer(scratch_name(item.site.op), scratch, times[index], times[index]))
    return buffers


def _scratch(work: Work, target: Target) -> int:
    """Bytes of scratch for one part of a step."""
    size = max(demand.scratch for demand in work.demands)
    return -(-size // target.alignment) * target.alignment


def _parts(work: Work, target: Target) -> int:
    if work.on_device:
        return 1
    borders = split(work, target.cores)
    return len(borders[0]) - 1 if borders else 1


def scratch_name(op: Op) -> str:
    """What the plan calls the buffer of a step that begins with this operation."""
    return f"scratch of {op.name}"


def _overlaps(
    work: list[Work],
    times: Sequence[int],
    roots: dict[str, str],
    apart: frozenset[str],
    first: dict[str, int],
    last: dict[str, int],
    target: Target,
) -> dict[str, dict[str, tuple[int, int]]]:
    """Output -> the lead and the step before each input it may lie over: those that nothing needs after this step."""
    allowed: dict[str, dict[str, tuple[int, int]]] = {}
    for index, item in enumerate(work):
        site = item.site
        if site.op.outer or item.on_device or _parts(item, target) > 1:
            continue
        leads = _leads(item, target.pieces)
        for out, source in sorted({(output, site.reads[number].name) for output, number in leads}):
            a, b = roots[site.writes[out].name], roots[source]
            # A tensor may be read as several inputs; the output may lie over it only as all of these allow.
            reads = [number for number, tensor in enumerate(site.reads) if roots[tensor.name] == b]
            known = [leads[out, number] for number in reads if (out, number) in leads]
            if (
                {a, b}.isdisjoint(apart)
                and a != b
                and first[a] == times[index]
                and last[b] == times[index]
                and len(known) == len(reads)
            ):
                allowed.setdefault(a, {})[b] = max(known)
    return allowed


def _leads(work: Work, pieces: bool) -> dict[tuple[int, int], tuple[int, int]]:
    """(output, input) -> the lead and the step that serve all versions; pairs that some keep apart are left out."""
    each = [{(o.output, o.input): o for o in demand.overlaps} for demand in work.demands]
    pairs = set(each[0]).intersection(*each[1:])
    return {
        pair: (max(o[pair].lead_of(pieces) for o in each), lcm(*(o[pair].every for o in each)))
        for pair in sorted(pairs)
    }


def _locations(
    graph: Graph, roots: dict[str, str], arena: Placement, alignment: int
) -> tuple[dict[str, Location], int]:
    (states, state), begins = state_places(graph, alignment), offsets_of(graph)
    locations = {}
    for name, tensor in graph.tensors.items():
        root = roots[name]
        if root in states:
            locations[name] = Location("state", states[root][0] + begins[name], tensor.nbytes, states[root][1])
        elif root in arena.offsets:
            locations[name] = Location("arena", arena.offsets[root] + begins[name], tensor.nbytes)
    return locations, state


def _step(
    prefix: str,
    index: int,
    work: Work,
    target: Target,
    arena: Placement,
    locations: Mapping[str, Location],
    constants: dict[str, Array],
) -> Step:
    site = work.site
    function = f"{prefix}_{index:02d}_{fragment(site.op.name)}"
    isas, choices = (target.isa, *target.also), (work.choice, *work.others)
    borders = (split(work, target.cores) if not work.on_device else None) or ((),) * len(isas)
    versions = tuple(
        replace(
            _version(site, isa, choice, f"{function}_{isa.name}" if work.others else function, constants, target),
            borders=limits,
        )
        for isa, choice, limits in zip(isas, choices, borders, strict=True)
    )
    macs = sum(_macs(part) for part in (site, *site.tail))
    scratch = arena.offsets.get(scratch_name(work.site.op))
    return Step(site, versions, macs, scratch, _shares(site, locations), _scratch(work, target), work.on_device)


def _version(
    site: Site, isa: Isa, choice: Choice, function: str, constants: dict[str, Array], target: Target
) -> Version:
    plain, given = plain_names(site, choice.demand), choice.demand.packed
    packed = {role: _store(constants, f"{function}_{role}", data, target.swappable) for role, data in given.items()}
    names = Names(plain.inputs, plain.outputs, packed, plain.scratch)
    return Version(isa, choice, function, names, target.swappable and bool(packed))


def _macs(site: Site) -> int:
    """Of one operation, without its tail."""
    macs = site.attributes.macs(
        [site.shape(i) for i in range(len(site.inputs))],
        [site.output_shape(i) for i in range(len(site.outputs))],
        {role: constant.data.shape for role, constant in site.constants.items()},
    )
    return macs * prod(site.op.outer)


def _store(constants: dict[str, Array], name: str, data: Array, apart: bool) -> str:
    """Files a constant, or finds the one that holds the same already; what may be exchanged stays apart, since the next
    weights may differ where these are the same."""
    for known, there in () if apart else constants.items():
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


def _peak(buffers: list[Buffer], placed: Placement, times: Sequence[int], layers: list[str]) -> Peak | None:
    best: Peak | None = None
    for step, time in enumerate(times):
        alive = [b for b in buffers if b.first <= time <= b.last]
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
