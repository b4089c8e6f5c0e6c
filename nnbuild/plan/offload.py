"""Chooses the operations that the device computes: those with which a run takes the fewest cycles, copies and waiting
included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nnbuild.base.errors import UsageError
from nnbuild.model.graph import Graph, Op
from nnbuild.offload.device import Device
from nnbuild.offload.lower import Job, job_of, joinable, part_of, parts_of
from nnbuild.offload.shapes import Shape3, Split, as_image, extent, merge_splits
from nnbuild.ops.device_arithmetic import operator_name
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.site import Site, site_of
from nnbuild.plan.device_memory import Arrangement, BoundJob, TooLarge, arrange
from nnbuild.plan.device_regions import Region, regions_of
from nnbuild.plan.device_tasks import Action, Copy, Stream, Submit, stream_of
from nnbuild.plan.select import choose
from nnbuild.plan.target import Target

MAX_PASSES = 4
"""Passes in which every operation is tried in the other place."""
ALL = "*"
"""Stands for all layers that the device can compute."""
CONSTANTS_SHARE = 0.75
"""The share of a memory that constants may take."""
CYCLES_PER_GATHERED_BYTE = 2.0
"""Processor cycles per byte that is copied pixel by pixel."""


@dataclass(frozen=True, eq=False)
class Jobs:
    """What the device could compute: operation -> its job with its tensors; and why it cannot compute the others."""

    uses: Mapping[str, BoundJob]
    refused: Mapping[str, str]


def jobs_of(graph: Graph, roots: Mapping[str, str], device: Device) -> Jobs:
    ops = [op for op in graph.ops if not isinstance(op.attributes, Reshape)]
    kept = {roots[name] for state in graph.states for name in (state.before, state.after)}
    stored = _stored(graph, ops, roots, device)
    splits = _splits(graph, ops, roots, stored, device)
    uses, refused = {}, {}
    for op in ops:
        found = _use(graph, op, roots, stored, splits, device, kept)
        if isinstance(found, BoundJob):
            uses[op.name] = found
        else:
            refused[op.name] = found
    return Jobs(uses, refused)


def _stored(graph: Graph, ops: Sequence[Op], roots: Mapping[str, str], device: Device) -> dict[str, Shape3]:
    """Shape of each tensor in the device's memory: as its writer sees it, otherwise as its first reader does."""
    able = [op for op in ops if operator_name(op) in device.operators]
    stored: dict[str, Shape3] = {}
    for name in [op.outputs[0] for op in able]:
        _put(stored, roots[name], as_image(graph.tensors[name].shape))
    for op in able:
        for name in op.inputs if op.kind != "dense" else ():
            _put(stored, roots[name], as_image(graph.tensors[name].shape))
    for op in able:
        for name in op.inputs:
            _put(stored, roots[name], as_image(graph.tensors[roots[name]].shape))
    return stored


def _splits(
    graph: Graph, ops: Sequence[Op], roots: Mapping[str, str], stored: Mapping[str, Shape3], device: Device
) -> dict[str, Split]:
    """The channel groups of each tensor: of concatenated ones, and of what is computed from them channel by channel."""
    found: dict[str, Split] = {name: (shape[2],) for name, shape in stored.items()}
    for op in ops:
        name, out = operator_name(op), roots[op.outputs[0]]
        splits = [found[roots[each]] for each in op.inputs if roots[each] in found]
        if name not in device.operators or out not in found or len(splits) != len(op.inputs):
            continue
        if name == "concatenate" and joinable(site_of(graph, op)):
            found[out] = merge_splits(splits, device.channels)
        if name in ("depthwise_conv2d", "max_pool", "average_pool", "add") and len({*splits}) == 1:
            found[out] = splits[0] if sum(splits[0]) == sum(found[out]) else found[out]
    return found


def _put(stored: dict[str, Shape3], name: str, shape: Shape3 | None) -> None:
    if shape is not None:
        stored.setdefault(name, shape)


def _use(
    graph: Graph,
    op: Op,
    roots: Mapping[str, str],
    stored: Mapping[str, Shape3],
    splits: Mapping[str, Split],
    device: Device,
    kept: set[str],
) -> BoundJob | str:
    names = (*op.inputs, op.outputs[0])
    if operator_name(op) not in device.operators:
        return f"the device has no {operator_name(op) or op.kind}"
    if kept & {roots[name] for name in names}:
        return "it reads or writes what is kept from run to run"
    shapes, own = [], []
    for name in names:
        lies, seen = stored.get(roots[name]), as_image(graph.tensors[name].shape)
        if lies is None or seen is None:
            return f"its tensors have more than three axes: {graph.tensors[name].shape}"
        split = splits[roots[name]]
        whole = lies[2] % device.channels == 0 and seen[2] % device.channels == 0 and len(split) == 1
        if lies != seen and not whole and not (op.kind == "dense" and name in op.inputs):
            return f"what lies in the device's memory as {lies} is seen as {seen}"
        as_it_lies = lies == seen or (op.kind == "dense" and name in op.inputs)
        shapes.append(lies if as_it_lies else seen)
        own.append(split if as_it_lies else (seen[2],))
    found = job_of(site_of(graph, op), tuple(shapes), tuple(own), device)
    if not isinstance(found, Job):
        return found
    groups = tuple(splits[roots[name]] for name in names)
    sizes = [stored[roots[name]] for name in names]
    lie = tuple((*size[:2], extent(group, device.channels)) for size, group in zip(sizes, groups, strict=True))
    return BoundJob(found, tuple(roots[name] for name in op.inputs), roots[op.outputs[0]], lie, groups)


@dataclass(frozen=True, eq=False)
class PricedRegion:
    """A region, its tasks and its cost: cycles of the device, and of the processor including all waiting."""

    region: Region
    arranged: Arrangement
    stream: Stream
    cycles: float
    host_cycles: float
    exits: tuple[str, ...]
    """Includes tensors that lie in the processor's memory because the device has no room for them."""


def price_region(
    region: Region, uses: Sequence[BoundJob], device: Device, constants: int, beside: float = 0.0, written: float = 0.0
) -> PricedRegion:
    """`beside`: cycles of the processor's steps meanwhile; `written`: cycles spent writing constants."""
    arranged = arrange(uses, region.inputs, region.exits, device, constants)
    stream = stream_of(uses, region.inputs, region.exits, arranged, device)
    made = [use.writes for use in uses]
    away = [
        name for name in made if not device.stages_tensors and name not in arranged.near and name not in region.exits
    ]
    actions = [action for step in stream.actions for action in step]
    submitted = device.copying.submit * sum(isinstance(action, Submit) for action in actions)
    busy = max(stream.cycles * device.clock, beside + submitted + written)
    host = _copied(actions, device) + busy + _copied(stream.ending, device) + device.copying.wait
    return PricedRegion(region, arranged, stream, stream.cycles, host - beside, (*region.exits, *away))


def written_cycles(sizes: Sequence[int], store: ConstantStore, device: Device) -> float:
    """Processor cycles for writing constants, if they do not stay in the device's memory."""
    if store.slots == 0:
        return 0.0
    speed = max(device.copying.bytes_per_cycle, 1e-6)
    return sum(device.copying.setup + size / speed for size in sizes if size)


def _copied(actions: Iterable[Action], device: Device) -> float:
    total = 0.0
    for action in actions:
        if isinstance(action, Copy):
            gathered = CYCLES_PER_GATHERED_BYTE * action.size if action.pixels > 1 else 0.0
            times, size = (action.pixels, action.pixels * action.channels) if action.single else (1, action.size)
            total += times * device.copying.setup + size / max(device.copying.bytes_per_cycle, 1e-6) + gathered
    return total


@dataclass(frozen=True)
class ConstantStore:
    """Bytes reserved for constants, and the number and size of the slots they are written to in turn; no slots where
    all constants stay."""

    size: int
    slots: int
    slot: int


@dataclass
class _Search:
    graph: Graph
    device: Device
    roots: Mapping[str, str]
    apart: bool
    sites: tuple[Site, ...]
    uses: dict[str, BoundJob]
    costs: Mapping[str, float]
    store: ConstantStore
    packed: Mapping[str, int]
    known: dict[Region, PricedRegion] = field(default_factory=dict)

    def price(self, chosen: frozenset[str]) -> float:
        """Processor cycles for a whole run."""
        on_device = frozenset(i for i, site in enumerate(self.sites) if site.op.name in chosen)
        regions = regions_of(self.graph, self.sites, on_device, self.roots, self.apart)
        alone = sum(self.costs[site.op.name] for i, site in enumerate(self.sites) if i not in on_device)
        return alone + sum(self.region(region).host_cycles for region in regions)

    def region(self, region: Region) -> PricedRegion:
        if region not in self.known:
            names = [self.sites[step].op.name for step in region.steps]
            beside = sum(self.costs[self.sites[step].op.name] for step in region.beside)
            try:
                uses = [self.uses[name] for name in names]
                written = written_cycles([self.packed[name] for name in names], self.store, self.device)
                found = price_region(region, uses, self.device, self.store.size, beside, written)
            except TooLarge as over:
                raise _NoRoom(names[over.job]) from None
            self.known[region] = found
        return self.known[region]


class _NoRoom(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(frozen=True, eq=False)
class DevicePlacement:
    """The operations that the device computes, every job it could take, and why it cannot take the others."""

    chosen: frozenset[str]
    uses: Mapping[str, BoundJob]
    refused: Mapping[str, str]
    store: ConstantStore
    packed: Mapping[str, int]


def _packed(use: BoundJob, device: Device) -> int:
    """Bytes of an operation's constants in the device's memory, summed over the parts of its channels."""
    task, alignment = use.job.task, device.memory("constants").alignment
    if task.weights is None and not task.scales:
        return 0
    parts = {part.channels: part for part in parts_of(use.job, (0, task.output.shape[0]), device)}
    sizes = [len(device.functions.pack(part_of(task, part)[0])) for part in parts.values()]
    return sum(-(-size // alignment) * alignment for size in sizes)


def _stores(packed: Mapping[str, int], device: Device) -> list[ConstantStore]:
    """Possible stores, largest first: all constants stay in the device's memory, or there is room for those of two
    operations, or of one, written before it runs."""
    memory = device.memory("constants")
    room = int((memory.size - memory.reserved) * CONSTANTS_SHARE)
    fitting = [size for size in packed.values() if size <= room]
    most = max(fitting, default=0)
    stores = [ConstantStore(2 * most, 2, most), ConstantStore(most, 1, most)]
    if len(fitting) == len(packed):
        stores.insert(0, ConstantStore(sum(fitting), 0, room))
    return [store for store in stores if store.size <= room]


def place_on_device(graph: Graph, roots: Mapping[str, str], target: Target) -> DevicePlacement:
    device = target.device
    assert device is not None
    jobs = jobs_of(graph, roots, device)
    sites = tuple(site_of(graph, op) for op in graph.ops if not isinstance(op.attributes, Reshape))
    wishes = _forced(graph, target)
    usual = target.forced_places.get(ALL)
    able = {name: use for name, use in jobs.uses.items() if wishes.get(name, usual) != "cpu"}
    refused = dict(jobs.refused)
    costs = {site.op.name: choose(site, target).price.cycles for site in sites}
    packed = {name: _packed(use, device) for name, use in able.items()}
    stores = _stores(packed, device)
    for name in [name for name in able if packed[name] > stores[-1].slot]:
        have = stores[-1].slot
        refused[name] = f"its constants take {packed[name]:,} bytes of the device's memory, which has {have:,} for them"
        del able[name]
    while True:
        wanted = frozenset(name for name, place in wishes.items() if place == "device")
        for name in sorted(wanted - able.keys()):
            raise UsageError(f"--place {name}=device", f"the device cannot take it: {refused[name]}.", "Leave it out.")
        everything = frozenset(able) if target.forced_places.get(ALL) == "device" else frozenset[str]()
        search = _Search(graph, device, roots, target.keep_tensors, sites, able, costs, stores[0], packed)
        try:
            return DevicePlacement(
                _best(search, frozenset(able), wanted | everything), able, refused, stores[0], packed
            )
        except _NoRoom as over:
            if len(stores) > 1 and "tensors" in device.memory("constants").holds:
                stores = stores[1:]
            else:
                refused[over.name] = "not even a row of it fits into the device's memory"
                del able[over.name]


def _forced(graph: Graph, target: Target) -> dict[str, str]:
    """Forced places by operation name; a layer's name covers all its operations."""
    return {
        op.name: place
        for op in graph.ops
        for name, place in target.forced_places.items()
        if name in (op.name, op.layer) and not isinstance(op.attributes, Reshape)
    }


def _best(search: _Search, able: frozenset[str], wanted: frozenset[str]) -> frozenset[str]:
    """Local search, from all that the device can take and from the least: single operations and neighbours change place
    as long as that saves cycles."""
    chosen = min((able, wanted), key=search.price)
    price = search.price(chosen)
    names = [site.op.name for site in search.sites if site.op.name in able - wanted]
    for _ in range(MAX_PASSES):
        before = price
        for count in (1, 2, 4):
            for first in range(len(names) - count + 1):
                changed = chosen ^ frozenset(names[first : first + count])
                found = search.price(changed)
                if found < price:
                    chosen, price = changed, found
        if price == before:
            break
    return chosen
