"""The device's program for a plan: constants in its memory, descriptors, and the driver's actions at each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nnbuild.base.errors import UsageError
from nnbuild.offload.device import Device
from nnbuild.plan.device_tasks import Action, Copy, QueuedTask, Submit, Wait
from nnbuild.plan.offload import ConstantStore, PricedRegion

TAGS = 1 << 16


@dataclass(frozen=True)
class WriteConstants:
    """The driver writes part of the constants to an address of the device."""

    offset: int
    size: int
    address: int


@dataclass(frozen=True)
class SubmitTask:
    """The driver submits the task of this number."""

    task: int
    deadline: int


@dataclass(frozen=True)
class WaitUntil:
    """The driver waits until at most so many submitted tasks are unfinished."""

    unfinished: int
    deadline: int


DriverAction = Copy | WriteConstants | SubmitTask | WaitUntil


@dataclass(frozen=True, eq=False)
class DeviceTask:
    """A task with its descriptor. step: the step of the plan that it belongs to."""

    item: QueuedTask
    step: int
    tag: int
    descriptor: bytes


@dataclass(frozen=True, eq=False)
class DeviceProgram:
    """resident: all constants are written once, to `address`; otherwise those of each step are written before it."""

    device: Device
    regions: tuple[PricedRegion, ...]
    constants: bytes
    address: int
    resident: bool
    tasks: tuple[DeviceTask, ...]
    done: Mapping[int, tuple[DriverAction, ...]]
    refused: Mapping[str, str]
    """Operations that the device cannot compute, and why."""

    @property
    def cycles(self) -> float:
        """Device cycles of all regions."""
        return sum(region.cycles for region in self.regions)

    @property
    def host_cycles(self) -> float:
        return sum(region.host_cycles for region in self.regions)

    def of_step(self, step: int) -> tuple[DeviceTask, ...]:
        return tuple(task for task in self.tasks if task.step == step)


@dataclass
class _Store:
    """Stores constants, equal ones once, each at the alignment of its memory."""

    alignment: int
    data: bytearray = field(default_factory=bytearray)
    places: dict[bytes, int] = field(default_factory=dict)

    def put(self, content: bytes) -> int:
        if content not in self.places:
            self.data += bytes(-len(self.data) % self.alignment)
            self.places[content] = len(self.data)
            self.data += content
        return self.places[content]


def program_of(
    regions: Sequence[PricedRegion], device: Device, room: ConstantStore, refused: Mapping[str, str]
) -> DeviceProgram:
    """`room` is reserved for constants in the device's memory."""
    memory = device.memory("constants")
    base = -(-memory.reserved // memory.alignment) * memory.alignment
    store = _Store(memory.alignment)
    packed = [[_pack(device, item) for item in region.stream.items] for region in regions]
    for contents in packed:
        for content in contents:
            if content:
                store.put(content)
    resident = room.slots == 0 and len(store.data) <= room.size
    draft = _Builder(device, base, room, resident, store)
    for region, contents in zip(regions, packed, strict=True):
        draft.region(region, contents)
    return DeviceProgram(
        device=device,
        regions=tuple(regions),
        constants=bytes(store.data),
        address=memory.begin + base,
        resident=resident,
        tasks=tuple(draft.tasks),
        done={step: tuple(done) for step, done in draft.done.items()},
        refused=refused,
    )


def _pack(device: Device, item: QueuedTask) -> bytes:
    return b"" if item.task.operation in ("load", "store") else bytes(device.functions.pack(item.task))


@dataclass
class _Builder:
    device: Device
    base: int
    room: ConstantStore
    resident: bool
    store: _Store
    tasks: list[DeviceTask] = field(default_factory=list)
    done: dict[int, list[DriverAction]] = field(default_factory=dict)

    def region(self, found: PricedRegion, contents: Sequence[bytes]) -> None:
        deadline = 2 * int(found.cycles) + self.device.margin
        slots = max(1, self.room.slots)
        handed, slot_used = 0, [0] * slots
        for job, (step, actions) in enumerate(zip(found.region.steps, found.stream.actions, strict=True)):
            done = self.done.setdefault(step, [])
            places = self._places(found, contents, job, done, handed, slot_used[job % slots], deadline)
            for action in actions:
                done.append(self._done(action, found, contents, places, step, handed, deadline))
                handed += isinstance(action, Submit)
            slot_used[job % slots] = handed
        end = self.done.setdefault(found.region.last, [])
        for action in found.stream.ending:
            end.append(self._done(action, found, contents, {}, found.region.last, handed, deadline))

    def _places(
        self,
        found: PricedRegion,
        contents: Sequence[bytes],
        job: int,
        done: list[DriverAction],
        handed: int,
        before: int,
        deadline: int,
    ) -> dict[bytes, int]:
        """Addresses of a job's constants. Those that are not resident are written into a slot, once the tasks that read
        its previous content have finished."""
        if self.resident:
            return {content: self.base + place for content, place in self.store.places.items()}
        mine = {content for item, content in zip(found.stream.items, contents, strict=True) if item.job == job} - {b""}
        memory, slot = self.device.memory("constants"), job % max(1, self.room.slots)
        at, places = self.base + slot * self.room.slot, {}
        for content in sorted(mine, key=self.store.places.__getitem__):
            places[content] = at
            at += -(-len(content) // self.store.alignment) * self.store.alignment
        if at > self.base + (slot + 1) * self.room.slot:
            step = "Give the device more memory, or compute this layer on the processor with --place."
            cause = f"its constants do not fit into the {self.room.slot:,} bytes that the device has for them."
            raise UsageError(f"layer {found.stream.items[0].task.name!r}", cause, step)
        if mine and before:
            done.append(WaitUntil(handed - before, deadline))
        done += [WriteConstants(self.store.places[c], len(c), memory.begin + place) for c, place in places.items()]
        return places

    def _done(
        self,
        action: Action,
        found: PricedRegion,
        contents: Sequence[bytes],
        places: Mapping[bytes, int],
        step: int,
        handed: int,
        deadline: int,
    ) -> DriverAction:
        if isinstance(action, Copy):
            return action
        if isinstance(action, Wait):
            return WaitUntil(handed - action.item, deadline)
        item, content = found.stream.items[action.item], contents[action.item]
        tag = len(self.tasks) % TAGS
        interrupt = action.item == len(found.stream.items) - 1
        addresses = item.addresses(places.get(content, 0), tag, interrupt)
        descriptor = bytes(self.device.functions.describe(item.task, addresses))
        if len(descriptor) != self.device.descriptor:
            cause = f"describe made {len(descriptor)} bytes, its table says {self.device.descriptor}."
            raise UsageError(f"device {self.device.name!r}", cause, "Correct one of the two.")
        self.tasks.append(DeviceTask(item, step, tag, descriptor))
        return SubmitTask(len(self.tasks) - 1, deadline)
