"""Basic blocks, timed once for each pattern of memories that their loads read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nnbuild.bound.image import Image
from nnbuild.bound.instruction import Instruction, decode
from nnbuild.cycles.pipeline import leaves
from nnbuild.cycles.registers import in_memory, is_load, words

CODE, DATA = 0, 1
RAM = 0x2000_0000
"""Start of the address region on a Cortex-M's third bus."""


class Core(Protocol):
    @property
    def one_bus(self) -> bool:
        """Whether code in the RAM region is fetched over the same bus as data."""

    def costs(self, body: Sequence[Instruction], in_flash: Sequence[bool]) -> list[int]: ...
    def taken(self, i: Instruction, target: Instruction | None) -> int: ...


@dataclass(frozen=True)
class Timing:
    """A block's cycles, those among them that loads and stores take beyond one each, and its memory events: (cycles
    since the previous event, CODE or DATA, number of the read of code)."""

    cycles: int
    loads: int
    events: tuple[tuple[int, int, int], ...]
    rest: int
    """Cycles after the last event."""


@dataclass
class Block:
    address: int
    end: int
    body: tuple[Instruction, ...]
    conditional: bool
    """Whether some of its loads may be skipped."""
    seen: int = 0
    patterns: dict[int, tuple[bool, ...]] = field(default_factory=dict)
    """Number of words read from flash -> the instructions that read them."""
    timings: dict[int, Timing] = field(default_factory=dict)
    branches: dict[int, int] = field(default_factory=dict)
    """Next address -> cycles to continue there."""

    @property
    def last(self) -> Instruction:
        return self.body[-1]

    def learn(self, places: Sequence[int]) -> None:
        """Records an execution whose flash words were read by instructions at these addresses."""
        known = set(places)
        self.patterns[len(places)] = tuple(i.address in known for i in self.body)


def read_block(image: Image, address: int, size: int) -> Block:
    body: list[Instruction] = []
    at, end, under = address, address + size, 0
    conditional = False
    while at < end:
        i = decode(image.code_at(at), at)
        if i is None:
            at += 4 if image.code_at(at)[1] >> 3 >= 0b11101 else 2
            continue
        conditional |= under > 0 and in_memory(i)
        under = len(i.name) - 1 if i.name.startswith("it") else max(0, under - 1)
        body.append(i)
        at = i.next
    return Block(address, end, tuple(body), conditional)


def timed(block: Block, core: Core, pattern: tuple[bool, ...], read: int) -> Timing:
    """Times a block; `read` is the bytes of code per flash read, or 0 where fetching code never waits."""
    costs = list(core.costs(block.body, pattern))
    if costs and core.one_bus and block.address >= RAM:
        moved = [words(i) for i, in_flash in zip(block.body, pattern, strict=True) if in_memory(i) and not in_flash]
        late = -(-sum(i.size for i in block.body) // 4) + sum(moved) - sum(costs)
        at = next((at for at, i in enumerate(block.body) if in_memory(i)), 0)
        costs[at] += max(0, late)
    loads = sum(max(0, cost - 1) for i, cost in zip(block.body, costs, strict=True) if in_memory(i))
    events: list[tuple[int, int, int]] = []
    passed, line = 0, -1
    for i, cost, in_flash in zip(block.body, costs, pattern, strict=True):
        if read:
            for unit in range(i.address // read, (i.next - 1) // read + 1):
                if unit != line:
                    events.append((passed, CODE, unit))
                    passed, line = 0, unit
        if in_flash and is_load(i):
            events += [(passed, DATA, 0)] + [(0, DATA, 0)] * (words(i) - 1)
            passed = 0
        passed += cost
    return Timing(sum(costs), loads, tuple(events), passed)


def branch(block: Block, core: Core, image: Image, to: int) -> int:
    """Cycles beyond the block's own to continue at `to`."""
    if to == block.end or not block.body or not leaves(block.last):
        return 0
    return core.taken(block.last, decode(image.code_at(to), to))
