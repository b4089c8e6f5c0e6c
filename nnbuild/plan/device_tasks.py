"""The tasks of a region in submission order, and what the processor does between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from nnbuild.offload.device import Device
from nnbuild.offload.lower import Job, Part, copies_of, moving, part_of, parts_of
from nnbuild.offload.shapes import Shape3, Split, begins, laid_out
from nnbuild.offload.task import Addresses, Layout, Task
from nnbuild.plan.device_memory import Arrangement, BoundJob

Place = tuple[str, int, int]
"""(memory, first byte, end)"""


@dataclass(frozen=True, eq=False)
class QueuedTask:
    """A task in the queue. job: index of the operation of the region that it belongs to."""

    task: Task
    engine: str
    job: int
    inputs: tuple[int, ...]
    output: int
    cycles: float
    reads: tuple[Place, ...]
    writes: Place
    after: frozenset[str] = frozenset()

    def addresses(self, constants: int, tag: int, interrupt: bool) -> Addresses:
        return Addresses(self.inputs, self.output, constants, tag, self.after, interrupt)


@dataclass(frozen=True)
class Copy:
    """The driver copies pixels of a tensor, from byte `offset` on, to or from an address of the device: `channels` of
    each pixel, which are `apart` bytes apart in the processor's memory and `pitch` bytes in the device's."""

    tensor: str
    to_device: bool
    address: int
    offset: int
    pixels: int
    channels: int
    pitch: int
    apart: int

    @property
    def size(self) -> int:
        return self.pixels * self.pitch

    @property
    def single(self) -> bool:
        """Whether pixels are written one by one, because the bytes between them on the device belong to another
        group."""
        return self.to_device and self.apart != self.channels


@dataclass(frozen=True)
class Submit:
    item: int


@dataclass(frozen=True)
class Wait:
    """Waits until the items before this one are done."""

    item: int


Action = Copy | Submit | Wait


@dataclass(frozen=True, eq=False)
class Stream:
    """The tasks of a region, the actions for each of its jobs, and the actions at its end."""

    items: tuple[QueuedTask, ...]
    actions: tuple[tuple[Action, ...], ...]
    ending: tuple[Action, ...]
    device: Device

    @cached_property
    def times(self) -> tuple[tuple[float, float], ...]:
        """When each task begins and ends, in device cycles, if all are submitted at once."""
        free: dict[str, float] = {}
        begun, found = 0.0, []
        for item in self.items:
            begin = max([begun, *(free.get(engine, 0.0) for engine in (item.engine, *item.after))])
            begin += self.device.overhead
            free[item.engine] = begin + item.cycles
            begun = begin
            found.append((begin, begin + item.cycles))
        return tuple(found)

    @property
    def cycles(self) -> float:
        return max((end for _, end in self.times), default=0.0)


@dataclass
class _Builder:
    """Builds a stream."""

    uses: Sequence[BoundJob]
    arranged: Arrangement
    device: Device
    shapes: Mapping[str, Shape3]
    splits: Mapping[str, Split]
    items: list[QueuedTask]
    actions: list[Action]
    there: set[str]
    """Tensors already in the near memory."""

    def submit(self, task: Task, job: int, inputs: tuple[int, ...], output: int) -> None:
        operator = self.device.operators[task.operation]
        moves = task.operation in ("load", "store")
        near = self.device.memory("tensors").name
        far = self.device.memory("exchange").name
        source = far if task.operation == "load" else near
        target = far if task.operation == "store" else near
        reads = tuple(_place(source, at, layout) for at, layout in zip(inputs, task.inputs, strict=True))
        item = QueuedTask(
            task=task,
            engine=operator.engine,
            job=job,
            inputs=inputs,
            output=output,
            cycles=float(self.device.functions.cycles(task)),
            reads=reads,
            writes=_place(target, output, task.output),
        )
        assert moves or task.operation == self.uses[job].job.task.operation
        self.actions.append(Submit(len(self.items)))
        self.items.append(item)

    def layout(self, name: str) -> Layout:
        return laid_out(self.shapes[name], self.device.channels)

    def copy(self, name: str, to_device: bool, at: int, rows: tuple[int, int] | None = None) -> list[Copy]:
        """Copies of the whole tensor, or of some of its rows: one for each channel group."""
        height, width, _ = self.shapes[name]
        split, pixel = self.splits[name], self.layout(name).pixel
        first, last = rows or (0, height)
        address, channels = self.device.memory("exchange").begin + at, sum(split)
        offset, pixels = first * width * channels, (last - first) * width
        if channels == pixel:
            whole = pixels * channels
            return [Copy(name, to_device, address, offset, 1, whole, whole, whole)]
        found = []
        for place, count in zip(begins(split, self.device.channels), split, strict=True):
            found.append(Copy(name, to_device, address + place, offset, pixels, count, pixel, channels))
            offset += count
        return found

    def lies(self, name: str, task: Layout) -> Layout:
        """The layout in a task of a tensor that may lie within another one."""
        view = self.arranged.views.get(name)
        return task if view is None else replace(task, row=view.layout.row, pixel=view.layout.pixel)


def _place(memory: str, at: int, layout: Layout) -> Place:
    height, width, _ = layout.shape
    return memory, at, at + (height - 1) * layout.row + width * layout.pixel


def stream_of(
    uses: Sequence[BoundJob], inputs: Sequence[str], exits: Sequence[str], arranged: Arrangement, device: Device
) -> Stream:
    shapes: dict[str, Shape3] = {}
    splits: dict[str, Split] = {}
    for use in uses:
        shapes |= use.tensors
        splits |= use.groups
    draft = _Builder(uses, arranged, device, shapes, splits, [], [], set())
    actions = []
    for number in range(len(uses)):
        draft.actions = []
        if device.stages_tensors:
            _job_staged(draft, number, inputs, exits)
        else:
            _job_direct(draft, number, inputs)
        actions.append(tuple(draft.actions))
    places = arranged.far if device.stages_tensors else arranged.near
    ending: list[Action] = [Wait(len(draft.items))]
    ending += [copy for name in exits if name in places for copy in draft.copy(name, False, places[name])]
    return Stream(_with_fences(draft.items), tuple(actions), tuple(ending), device)


def _compute(draft: _Builder, number: int, tile: int) -> None:
    """Submits the tasks of one tile of a job; its tensors are in place."""
    use = draft.uses[number]
    if not use.job.joins:
        _tasks(draft, number, tile, use.job, use.reads)
        return
    for name, (copy, at) in zip(use.reads, copies_of(use.job, draft.device), strict=True):
        view = draft.arranged.views.get(name)
        if view is None or view.whole != use.writes:
            _tasks(draft, number, tile, copy, (name,), at)


def _tasks(draft: _Builder, number: int, tile: int, job: Job, reads: Sequence[str], begin: int = 0) -> None:
    """`begin`: byte offset within the output's pixels at which it is written."""
    use, rows = draft.uses[number], draft.arranged.cuts[number].tiles[tile]
    names = zip(reads, job.task.inputs, strict=True)
    inputs = tuple(draft.lies(name, layout) for name, layout in names)
    whole = replace(job.task, inputs=inputs, output=draft.lies(use.writes, job.task.output))
    for part in parts_of(job, rows, draft.device):
        task, (taken, columns) = part_of(whole, part)
        first = _tile_rows(use, rows)[0]
        along = task.operation not in ("conv2d", "dense")
        places = []
        for name, layout in zip(reads, task.inputs, strict=True):
            near = draft.arranged.near.get(name)
            base = near if near is not None else _buffer(draft, number, name, tile)
            row = taken[0] if near is not None else taken[0] - first
            channel = part.channels[0] if along else 0
            places.append(base + row * layout.row + columns[0] * layout.pixel + channel)
        near = draft.arranged.near.get(use.writes)
        base = near if near is not None else _buffer(draft, number, use.writes, tile)
        row = part.rows[0] if near is not None else part.rows[0] - rows[0]
        output = base + begin + row * task.output.row + part.columns[0] * task.output.pixel + part.channels[0]
        draft.submit(task, number, tuple(places), output)


def _tile_rows(use: BoundJob, rows: tuple[int, int]) -> tuple[int, int]:
    """The input rows under some output rows; all of them for a dense layer."""
    task = use.job.task
    if task.operation == "dense":
        return 0, use.shapes[0][0]
    whole = Part(rows, (0, task.output.shape[1]), (0, task.output.shape[2]))
    return part_of(task, whole)[1][0]


def _buffer(draft: _Builder, number: int, name: str, tile: int) -> int:
    places = draft.arranged.buffers[number, name]
    return places[tile % len(places)]


def _far_inputs(draft: _Builder, number: int) -> list[str]:
    return [name for name in dict.fromkeys(draft.uses[number].reads) if name not in draft.arranged.near]


def _job_staged(draft: _Builder, number: int, inputs: Sequence[str], exits: Sequence[str]) -> None:
    """For devices whose tasks load tensors from the far memory; the next tile is loaded while one is computed."""
    use, far = draft.uses[number], draft.arranged.far
    for name in dict.fromkeys(use.reads):
        if name in inputs and name not in draft.there:
            draft.actions += draft.copy(name, True, far[name])
            draft.there.add(name)
            if name in draft.arranged.near:
                layout = draft.layout(name)
                task = moving(use.job.task, "load", layout, layout)
                draft.submit(task, number, (far[name],), draft.arranged.near[name])
    tiles = len(draft.arranged.cuts[number].tiles)
    _load(draft, number, 0)
    for tile in range(tiles):
        _compute(draft, number, tile)
        if tile + 1 < tiles:
            _load(draft, number, tile + 1)
        if use.writes not in draft.arranged.near:
            _store(draft, number, tile)
    if use.writes in draft.arranged.near and use.writes in exits:
        layout = draft.layout(use.writes)
        task = moving(use.job.task, "store", layout, layout)
        draft.submit(task, number, (draft.arranged.near[use.writes],), far[use.writes])


def _load(draft: _Builder, number: int, tile: int) -> None:
    use = draft.uses[number]
    for name in _far_inputs(draft, number):
        first, last = _tile_rows(use, draft.arranged.cuts[number].tiles[tile])
        whole = draft.layout(name)
        layout = replace(whole, shape=(last - first, *whole.shape[1:]))
        place = draft.arranged.far[name] + first * whole.row
        task = moving(use.job.task, "load", layout, layout)
        draft.submit(task, number, (place,), _buffer(draft, number, name, tile))


def _store(draft: _Builder, number: int, tile: int) -> None:
    use = draft.uses[number]
    first, last = draft.arranged.cuts[number].tiles[tile]
    whole = draft.layout(use.writes)
    layout = replace(whole, shape=(last - first, *whole.shape[1:]))
    place = draft.arranged.far[use.writes] + first * whole.row
    task = moving(use.job.task, "store", layout, layout)
    draft.submit(task, number, (_buffer(draft, number, use.writes, tile),), place)


def _job_direct(draft: _Builder, number: int, inputs: Sequence[str]) -> None:
    """For devices whose memory the processor reaches: while a tile is computed, it copies the next one in and the
    previous one out."""
    use, cut = draft.uses[number], draft.arranged.cuts[number]
    for name in dict.fromkeys(use.reads):
        if name in inputs and name in draft.arranged.near and name not in draft.there:
            draft.actions += draft.copy(name, True, draft.arranged.near[name])
            draft.there.add(name)
    ends: list[int] = []
    away = use.writes not in draft.arranged.near
    far = _far_inputs(draft, number)
    if far or away:
        # earlier writers of these tensors and readers of these buffers must be done
        draft.actions.append(Wait(len(draft.items)))
    for tile in range(len(cut.tiles)):
        if tile > 1 and (far or away):
            _fetched(draft, number, tile - 2, ends, away)
        for name in far:
            rows = _tile_rows(use, cut.tiles[tile])
            draft.actions += draft.copy(name, True, _buffer(draft, number, name, tile), rows)
        _compute(draft, number, tile)
        ends.append(len(draft.items))
    if away:
        for tile in range(max(0, len(cut.tiles) - 2), len(cut.tiles)):
            _fetched(draft, number, tile, ends, away)


def _fetched(draft: _Builder, number: int, tile: int, ends: list[int], away: bool) -> None:
    use = draft.uses[number]
    draft.actions.append(Wait(ends[tile]))
    if away:
        rows = draft.arranged.cuts[number].tiles[tile]
        draft.actions += draft.copy(use.writes, False, _buffer(draft, number, use.writes, tile), rows)


def _with_fences(items: Sequence[QueuedTask]) -> tuple[QueuedTask, ...]:
    """Adds to each item the engines that must be idle before it begins. Tasks begin in order, and tasks of one engine
    run one after the other: whatever was done when a task began is done for all later ones."""
    pending: dict[str, list[QueuedTask]] = {}
    """Engine -> its tasks that are not known to be done."""
    found: list[QueuedTask] = []
    for item in items:
        pending[item.engine] = []
        after = frozenset(engine for engine, tasks in pending.items() if any(_depends(item, task) for task in tasks))
        for engine in after:
            pending[engine] = []
        found.append(replace(item, after=after))
        pending[item.engine].append(item)
    return tuple(found)


def _depends(item: QueuedTask, other: QueuedTask) -> bool:
    """Whether `other` must be done before: it writes what the item reads or writes, or reads what it writes."""
    touched = any(_overlap(other.writes, place) for place in (*item.reads, item.writes))
    return touched or any(_overlap(item.writes, place) for place in other.reads)


def _overlap(a: Place, b: Place) -> bool:
    return a[0] == b[0] and a[1] < b[2] and b[1] < a[2]
