"""The plan: the steps of a run, the address of every tensor, and every constant as it is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from nnbuild.base.names import distinct, fragment
from nnbuild.isa.encoding import ENCODINGS, Encoding, encoding_of
from nnbuild.isa.isa import Isa
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.parts.kernel_function import block_of
from nnbuild.model.graph import Array, Graph, Op, Tensor
from nnbuild.ops.site import Site
from nnbuild.plan.aliases import offsets_of, roots_of
from nnbuild.plan.buffers import buffers_of, regions_for, scratch_name, scratch_of, tiling_of
from nnbuild.plan.chain import Work, divide
from nnbuild.plan.code_size import total
from nnbuild.plan.core_memory import Tiling
from nnbuild.plan.device_choice import choose_device_work
from nnbuild.plan.device_program import DeviceProgram
from nnbuild.plan.device_regions import times_of
from nnbuild.plan.memory_fit import fit_memory
from nnbuild.plan.place import FULL_SEARCH_BUDGET, Buffer, Placement, place
from nnbuild.plan.printed import plain_names
from nnbuild.plan.ring_slack import add_ring_slack, ring_slack
from nnbuild.plan.row_fusion import fuse_rows
from nnbuild.plan.select import Alternative, Choice
from nnbuild.plan.split import Borders, divisible, fastest_on_cores, shares, split
from nnbuild.plan.state_layout import initial_patterns, state_places
from nnbuild.plan.target import Target
from nnbuild.plan.turned_softmax import turn_softmaxes

WEIGHTS = "weights"
"""The parameter for the block of constants, and the end of its name."""
MODEL_CODE = 50
"""Bytes of code of a model without steps."""


@dataclass(frozen=True)
class Location:
    """Where a tensor lies: in the "arena", which every run overwrites, or in the "state", which persists between runs.

    Where runs alternate between several copies of a state, the copies are `stride` bytes apart. If `previous_of` is
    set, there are that many copies, and this is the one of the previous run (before the first copy comes the last).
    """

    space: str
    offset: int
    size: int
    stride: int = 0
    previous_of: int = 0


@dataclass(frozen=True, eq=False)
class Version:
    """The function that computes a step with one instruction set."""

    isa: Isa
    choice: Choice
    function: str
    names: Names
    borders: Borders = ()
    """Work item at which each part begins, and the end of the last part; empty where the step is not split."""

    @property
    def demand(self) -> Demand:
        return self.choice.demand

    @property
    def kernel_name(self) -> str:
        return self.choice.kernel.name

    @property
    def takes_weights(self) -> bool:
        """Whether the function takes a pointer to the block of constants."""
        return bool(block_of(self.names, self.demand))


@dataclass(frozen=True, eq=False)
class Step:
    """One call of a kernel function: of the first version, or of another one that suits the processor better."""

    site: Site
    versions: tuple[Version, ...]
    macs: int
    scratch: int | None
    shares_storage: bool
    scratch_bytes: int = 0
    """Bytes of scratch per part."""
    on_device: bool = False
    """Whether the device computes it; the versions are then the processor's fallback."""
    tiling: Tiling | None = None
    """How it is tiled for core-local memories."""
    untiled: str = ""
    """Why it is not tiled, on cores that have local memories."""

    @property
    def parts(self) -> int:
        """Number of parts that may be computed concurrently, each with scratch of its own."""
        return max(1, len(self.versions[0].borders) - 1)

    @property
    def part_cycles(self) -> tuple[float, ...]:
        """Estimated cycles of each part, without the cost of dispatching it."""
        first = self.versions[0]
        cycles = first.choice.price.cycles
        return tuple(cycles * share for share in shares(divisible(self.site, first.demand), first.borders)) or (cycles,)

    @property
    def copied(self) -> tuple[int, ...]:
        """Bytes that each part copies to and from core-local memory."""
        return self.tiling.copied if self.tiling is not None else (0,) * self.parts

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
        """The layers it computes, by the model's names."""
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
        """The kernel's name, or "device"."""
        return "device" if self.on_device else self.choice.kernel.name

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        return self.choice.alternatives

    def extent(self, version: Version) -> int:
        """Number of work items: the kernel's, or one for each index of the outer axes."""
        return prod(self.op.outer) if self.op.outer else version.demand.extent


@dataclass(frozen=True)
class Peak:
    """The step at which most of the arena is in use, the bytes in use, and the tensors and scratch alive then."""

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
    """State -> the constant whose repetition initializes it; for states that do not start as one repeated number."""
    device: DeviceProgram | None = None
    """The device's program, where the plan was made for a device."""
    in_block: bool = False
    """Whether the constants form one block, those of a step side by side, to which kernels take a pointer."""
    big_endian: bool = False
    encoding: Encoding = ENCODINGS[0]
    """How its code is estimated, and whether compilers are told to prefer few bytes."""

    @property
    def code(self) -> int:
        """Estimated bytes of its code: of all kernels, and of what calls them; the linker knows exactly."""
        kernels = total(version.choice.price.code for step in self.steps for version in step.versions)
        return kernels + MODEL_CODE + self.encoding.step * len(self.steps)

    @property
    def parallel(self) -> bool:
        return any(step.parts > 1 for step in self.steps)

    @property
    def local_bytes(self) -> int:
        """Bytes it needs of each core's local memory."""
        return max((step.tiling.size for step in self.steps if step.tiling is not None), default=0)

    @property
    def banks(self) -> int:
        """How many copies of the state successive runs alternate between."""
        turns = (spare.turns for spare in ring_slack(self.graph).values())
        return max((1, *(state.banks for state in self.graph.states), *turns))

    @property
    def step_function(self) -> str:
        """Name of the C function that computes one step of the plan; in a streaming model "step" already means taking
        rows."""
        return f"{self.prefix}_{'part' if self.graph.stream else 'step'}"

    @property
    def isa(self) -> Isa:
        """The primary instruction set."""
        return self.isas[0]

    def tensor(self, name: str) -> Tensor:
        return self.graph.tensors[name]


def make_plan(graph: Graph, prefix: str, target: Target) -> Plan:
    graph = turn_softmaxes(add_ring_slack(graph, target), target)
    roots = roots_of(graph)

    def arena_size(work: list[Work], enough: int) -> int:
        return place(buffers_of(graph, work, roots, target), target.alignment, enough).size

    def fullest(work: list[Work]) -> tuple[int, int]:
        buffers = buffers_of(graph, work, roots, target)
        placed = place(buffers, target.alignment)
        times = times_of(len(work), regions_for(graph, work, roots, target))
        peak = _peak(buffers, placed, times, [item.site.op.name for item in work])
        return placed.size, peak.step if peak else 0

    def lowered(work: list[Work]) -> list[Work]:
        return work if target.keep_tensors else fuse_rows(graph, work, fullest, target)

    def settled(on_device: frozenset[str] = frozenset(), chains: bool = True) -> list[Work]:
        divided = [fastest_on_cores(item, target.cores) for item in divide(graph, target, on_device, chains)]
        found = fit_memory(divided, arena_size, target, lowered)
        fits = target.max_ram is None or arena_size(found, target.max_ram) <= target.max_ram
        if fits or not chains or not any(item.site.tail for item in divided):
            return found
        return min(found, settled(on_device, chains=False), key=lambda work: arena_size(work, 0))

    work, program = settled(), None
    if target.device is not None:
        work, program = choose_device_work(graph, work, settled, roots, target)
    away = frozenset(name for region in program.regions for name in region.exits) if program else frozenset[str]()
    buffers = buffers_of(graph, work, roots, target, away)
    arena = place(buffers, target.alignment, patience=FULL_SEARCH_BUDGET)
    locations, state = _locations(graph, roots, arena, target.alignment)
    constants: dict[str, Array] = {}
    steps = [_step(prefix, index, item, target, arena, locations, constants) for index, item in enumerate(work)]
    patterns = initial_patterns(graph)
    initial = {
        name: _store(constants, f"{prefix}_initial_{label}", patterns[name], target.in_block)
        for name, label in distinct(patterns).items()
    }
    times = times_of(len(work), regions_for(graph, work, roots, target))
    peak = _peak(buffers, arena, times, [step.layer for step in steps])
    return Plan(
        graph,
        prefix,
        (target.isa, *target.extra_isas),
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
        target.in_block,
        target.big_endian,
        encoding_of(target.architecture, target.isa, target.compact),
    )


def _locations(
    graph: Graph, roots: dict[str, str], arena: Placement, alignment: int
) -> tuple[dict[str, Location], int]:
    (states, state), begins, spare = state_places(graph, alignment), offsets_of(graph), ring_slack(graph)
    locations = {}
    for name, tensor in graph.tensors.items():
        root = roots[name]
        if root in states:
            before = spare[name].turns if name in spare else 0
            locations[name] = Location("state", states[root][0] + begins[name], tensor.nbytes, states[root][1], before)
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
    isas, choices = (target.isa, *target.extra_isas), (work.choice, *work.others)
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
    own = tiling_of(work, target)
    return Step(
        site,
        versions,
        macs,
        scratch,
        _shares(site, locations),
        scratch_of(work, target),
        work.on_device,
        own if isinstance(own, Tiling) else None,
        own if isinstance(own, str) else "",
    )


def _version(
    site: Site, isa: Isa, choice: Choice, function: str, constants: dict[str, Array], target: Target
) -> Version:
    plain, given = plain_names(site, choice.demand), choice.demand.packed
    packed = {role: _store(constants, f"{function}_{role}", data, target.in_block) for role, data in given.items()}
    names = replace(plain, packed=packed, block=WEIGHTS if target.in_block else None)
    return Version(isa, choice, function, names)


def _macs(site: Site) -> int:
    """Multiply-accumulates of one operation, without the operations chained to it."""
    macs = site.attributes.macs(
        [site.shape(i) for i in range(len(site.inputs))],
        [site.output_shape(i) for i in range(len(site.outputs))],
        {role: constant.data.shape for role, constant in site.constants.items()},
    )
    return macs * prod(site.op.outer)


def _store(constants: dict[str, Array], name: str, data: Array, apart: bool) -> str:
    """Adds a constant, or reuses an equal one. With `apart` nothing is shared: exchangeable weights that are equal now
    may differ later."""
    for known, there in () if apart else constants.items():
        if there.dtype == data.dtype and there.shape == data.shape and np.array_equal(there, data):
            return known
    constants[name] = data
    return name


def _shares(site: Site, locations: Mapping[str, Location]) -> bool:
    """Whether an output overlaps an input, so that the pointers must not be `restrict`."""
    return any(
        a.space == b.space and a.offset < b.offset + b.size and b.offset < a.offset + a.size
        for a in (locations[tensor.name] for tensor in site.writes)
        for b in (locations[tensor.name] for tensor in site.reads)
    )


def _peak(buffers: list[Buffer], placed: Placement, times: Sequence[int], layers: list[str]) -> Peak | None:
    best: Peak | None = None
    for step, time in enumerate(times):
        alive = [b for b in buffers if b.first <= time <= b.last]
        size = _bytes_in_use([(placed.offsets[b.name], b.size) for b in alive])
        if best is None or size > best.size:
            best = Peak(step, layers[step], size, tuple((b.name, b.size) for b in alive))
    return best


def _bytes_in_use(places: list[tuple[int, int]]) -> int:
    """Bytes in use; bytes that two buffers share count once."""
    total, end = 0, 0
    for offset, size in sorted(places):
        total += max(0, offset + size - max(offset, end))
        end = max(end, offset + size)
    return total
