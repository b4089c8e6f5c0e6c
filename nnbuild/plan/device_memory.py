"""Places a region's tensors in a device's memory, and tiles the operations that do not fit by rows.

"Near" is the memory that tasks compute on. Tensors it has no room for lie "far": in the memory that the processor
reaches, from which tasks load and store rows; or, where the processor reaches the near memory itself, in the
processor's own memory, from which it copies rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nnbuild.offload.device import Device, Memory
from nnbuild.offload.lower import Job, Part, bytes_of, copies_of, part_of
from nnbuild.offload.shapes import Shape3, Split
from nnbuild.offload.task import Layout
from nnbuild.plan.place import Buffer, Placement, place


class TooLarge(Exception):
    """The operation, by its index in the region, that does not fit however it is tiled."""

    def __init__(self, job: int) -> None:
        super().__init__(job)
        self.job = job


@dataclass(frozen=True, eq=False)
class BoundJob:
    """A job of a region, the names of the tensors it reads and writes, and their shapes in memory and channel groups,
    inputs first."""

    job: Job
    reads: tuple[str, ...]
    writes: str
    shapes: tuple[Shape3, ...]
    splits: tuple[Split, ...]

    @property
    def tensors(self) -> dict[str, Shape3]:
        return dict(zip((*self.reads, self.writes), self.shapes, strict=True))

    @property
    def groups(self) -> dict[str, Split]:
        return dict(zip((*self.reads, self.writes), self.splits, strict=True))


@dataclass(frozen=True)
class View:
    """A tensor that lies within the concatenated one, `at` bytes into its pixels."""

    whole: str
    at: int
    layout: Layout


@dataclass(frozen=True)
class Cut:
    """A job in tiles of `rows` output rows."""

    rows: int
    tiles: tuple[tuple[int, int], ...]

    @property
    def buffers(self) -> int:
        """Two, so that one tile is copied while another one is computed."""
        return min(2, len(self.tiles))


@dataclass(frozen=True)
class Arrangement:
    """near: addresses of tensors in the memory that tasks compute on.
    buffers: (job, tensor that lies far) -> addresses of its tile buffers, used in turn.
    far: addresses in the memory that the processor reaches; empty where that is the device's only memory.
    Addresses count from the memory's beginning."""

    near: dict[str, int]
    buffers: dict[tuple[int, str], tuple[int, ...]]
    far: dict[str, int]
    cuts: tuple[Cut, ...]
    used: int
    """Bytes of the exchange memory."""
    views: dict[str, View]
    """Tensors in the near memory that lie within others."""


def arrange(
    uses: Sequence[BoundJob], inputs: Sequence[str], exits: Sequence[str], device: Device, constants: int
) -> Arrangement:
    """`constants`: bytes that constants take in their memory."""
    sizes = _sizes(uses, device)
    room = _room(device.memory("tensors"), constants)
    spilled: set[str] = set()
    rows = [use.job.task.output.shape[0] for use in uses]
    while True:
        views = _views(uses, {*inputs, *exits}, spilled, device)
        cuts = tuple(_cut(use, at) for use, at in zip(uses, rows, strict=True))
        buffers = _buffers(uses, inputs, exits, spilled, views, cuts, sizes, device)
        placed = place(buffers, device.memory("tensors").alignment, enough=room)
        if placed.size <= room:
            break
        _spill(uses, buffers, placed, spilled, rows)
    far = _far(uses, inputs, exits, spilled, sizes, device, constants) if device.stages_tensors else None
    base = _base(device, "tensors", constants)
    near = {name: base + placed.offsets[name] for name in sizes if name not in spilled and name not in views}
    for name in views:
        whole, at = _whole(name, views)
        near[name] = near[whole] + at
    return Arrangement(
        near=near,
        buffers=_tile_places(uses, spilled, cuts, placed, base),
        far=far[0] if far is not None else {},
        cuts=cuts,
        used=far[1] if far is not None else placed.size,
        views=views,
    )


def _views(uses: Sequence[BoundJob], fixed: set[str], spilled: set[str], device: Device) -> dict[str, View]:
    """Tensors that can be written straight to their place in the concatenated one: nothing sees them in another
    shape."""
    fixed = fixed | spilled
    for use in uses:
        layouts = (*use.job.task.inputs, use.job.task.output)
        names = (*use.reads, use.writes)
        fixed = fixed | {name for name, x, lies in zip(names, layouts, use.shapes, strict=True) if x.shape != lies}
    views: dict[str, View] = {}
    for use in reversed(uses):
        whole, output = use.writes, use.job.task.output
        if not use.job.in_place or whole in spilled:
            continue
        if whole in views:
            output = replace(output, row=views[whole].layout.row, pixel=views[whole].layout.pixel)
        for name, (copy, at) in zip(use.reads, copies_of(use.job, device), strict=True):
            if name not in fixed and name not in views and use.reads.count(name) == 1:
                views[name] = View(whole, at, replace(output, shape=copy.task.output.shape))
    return views


def _whole(name: str, views: dict[str, View]) -> tuple[str, int]:
    """The tensor that contains this one, and the byte offset within its pixels."""
    at = 0
    while name in views:
        name, at = views[name].whole, at + views[name].at
    return name, at


def _base(device: Device, use: str, constants: int) -> int:
    """Where tensors begin in a memory: after the driver's reserved bytes, and after constants that lie there too."""
    memory = device.memory(use)
    behind = memory.reserved + (constants if "constants" in memory.holds else 0)
    return -(-behind // memory.alignment) * memory.alignment


def _room(memory: Memory, constants: int) -> int:
    return memory.size - memory.reserved - (constants if "constants" in memory.holds else 0) - memory.alignment


def _sizes(uses: Sequence[BoundJob], device: Device) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for use in uses:
        for name, shape in use.tensors.items():
            sizes[name] = max(sizes.get(name, 0), bytes_of(shape, device))
    return sizes


def _cut(use: BoundJob, rows: int) -> Cut:
    height = use.job.task.output.shape[0]
    return Cut(rows, tuple((first, min(first + rows, height)) for first in range(0, height, rows)))


def _tile_bytes(use: BoundJob, cut: Cut, number: int) -> int:
    """Bytes of the largest tile of an input, by its number, or of the output (-1)."""
    task = use.job.task
    if number < 0:
        return cut.rows * task.output.row
    most = 0
    for tile in cut.tiles:
        part = Part(tile, (0, task.output.shape[1]), (0, task.output.shape[2]))
        most = max(most, part_of(task, part)[0].inputs[number].shape[0])
    return most * task.inputs[number].row


def _buffers(
    uses: Sequence[BoundJob],
    inputs: Sequence[str],
    exits: Sequence[str],
    spilled: set[str],
    views: dict[str, View],
    cuts: Sequence[Cut],
    sizes: dict[str, int],
    device: Device,
) -> list[Buffer]:
    """Buffers of the near memory. Tensors that the processor writes or reads itself live from the region's beginning,
    or to its end."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for at, use in enumerate(uses):
        for name in (*use.reads, use.writes):
            name = _whole(name, views)[0]
            first.setdefault(name, at)
            last[name] = at
    if not device.stages_tensors:
        first |= dict.fromkeys(inputs, 0)
        last |= dict.fromkeys(exits, len(uses) - 1)
    own = {name: size for name, size in sizes.items() if name not in spilled and name not in views}
    found = [Buffer(name, size, first[name], last[name]) for name, size in own.items()]
    for at, (use, cut) in enumerate(zip(uses, cuts, strict=True)):
        for name, number in _ports(use):
            if name in spilled:
                whole = _tile_bytes(use, cut, number)
                found += [Buffer(_tile_name(at, name, i), whole, at, at) for i in range(cut.buffers)]
    return found


def _ports(use: BoundJob) -> list[tuple[str, int]]:
    """Each tensor once, with the number of the input; -1 for the output."""
    return list({name: number for number, name in [*enumerate(use.reads), (-1, use.writes)]}.items())


def _tile_name(at: int, name: str, number: int) -> str:
    return f"{at} {number} {name}"


def _tile_places(
    uses: Sequence[BoundJob], spilled: set[str], cuts: Sequence[Cut], placed: Placement, base: int
) -> dict[tuple[int, str], tuple[int, ...]]:
    return {
        (at, name): tuple(base + placed.offsets[_tile_name(at, name, i)] for i in range(cut.buffers))
        for at, (use, cut) in enumerate(zip(uses, cuts, strict=True))
        for name, _ in _ports(use)
        if name in spilled
    }


def _spill(
    uses: Sequence[BoundJob], buffers: list[Buffer], placed: Placement, spilled: set[str], rows: list[int]
) -> None:
    """Shrinks the fullest job: moves a tensor that it does not use far, then one of its own; then halves its tiles."""

    def alive(at: int) -> int:
        return sum(b.size for b in buffers if b.first <= at <= b.last)

    fullest = max(range(len(uses)), key=alive)
    own = {*uses[fullest].reads, uses[fullest].writes}
    tensors = {name for use in uses for name in (*use.reads, use.writes)} - spilled
    waiting = [b for b in buffers if b.first <= fullest <= b.last and b.name in tensors - own]
    mine = [b for b in buffers if b.name in own & tensors]
    if waiting:
        spilled.add(max(waiting, key=lambda b: b.size).name)
    elif mine:
        spilled.add(max(mine, key=lambda b: b.size).name)
        rows[fullest] = max(1, -(-rows[fullest] // 2))
    elif rows[fullest] > 1:
        rows[fullest] = -(-rows[fullest] // 2)
    else:
        raise TooLarge(fullest)


def _far(
    uses: Sequence[BoundJob],
    inputs: Sequence[str],
    exits: Sequence[str],
    spilled: set[str],
    sizes: dict[str, int],
    device: Device,
    constants: int,
) -> tuple[dict[str, int], int]:
    memory = device.memory("exchange")
    names = dict.fromkeys((*inputs, *exits, *sorted(spilled)))
    buffers = []
    for name in names:
        at = [i for i, use in enumerate(uses) if name in (*use.reads, use.writes)]
        first = 0 if name in inputs else at[0]
        last = len(uses) - 1 if name in exits else at[-1]
        buffers.append(Buffer(name, sizes[name], first, last))
    placed = place(buffers, memory.alignment)
    if placed.size > _room(memory, constants):
        raise TooLarge(max(range(len(uses)), key=lambda at: sizes[uses[at].writes]))
    base = _base(device, "exchange", constants)
    return {name: base + at for name, at in placed.offsets.items()}, placed.size
