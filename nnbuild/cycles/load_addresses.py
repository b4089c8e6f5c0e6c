"""Derives the addresses of loads from their registers.

The emulator unicorn (2.1.4) corrupts registers of a program that computes with floats while hooks watch its memory. So
the load addresses of such a program are computed on entry to a block, from the registers at entry; where this is
impossible, a hook watches the single instruction, which is harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from nnbuild.bound.image import Image
from nnbuild.bound.instruction import Instruction, decode
from nnbuild.cycles.pipeline import leaves
from nnbuild.cycles.registers import MANY, base_name, is_load, words, written

WORD = 4
CONSTANT = ""
"""The register name for a constant value."""
Known = dict[str, tuple[str, int] | None]
"""Register -> (its source register at the block's entry, the amount added); None after other changes. Missing
registers are unchanged."""


@dataclass(frozen=True)
class Load:
    """Reads words from `base` + `index` * 2^shift + `offset`."""

    place: int
    base: str
    index: str
    shift: int
    offset: int
    words: int

    def reads(self, value: Callable[[str], int]) -> range:
        start = self.offset + (value(self.base) if self.base else 0)
        start = (start + (value(self.index) << self.shift if self.index else 0)) & 0xFFFF_FFFF
        return range(start, start + WORD * self.words, WORD)


def load_of(i: Instruction) -> Load | None:
    """The load of an instruction, with its own registers; None if it reads nothing."""
    if not is_load(i):
        return None
    count = words(i)
    if i.name in MANY:
        base = "sp" if i.name.endswith("pop") else i.operands[0].reg
        return Load(i.address, base, "", 0, -WORD * count if i.name.endswith("db") else 0, count)
    place = next((each for each in i.operands if each.kind == "mem"), None)
    if place is None:
        return None
    if place.reg == "pc":
        at = i.address + 4
        at += place.value if place.offset else place.value - at % WORD
        return Load(i.address, CONSTANT, place.offset, place.amount, at, count)
    return Load(i.address, place.reg, place.offset, place.amount, 0 if i.post else place.value, count)


def resolved(load: Load, known: Known) -> Load | None:
    """The load with registers at the block's entry; None where unknown."""
    base = known.get(load.base, (load.base, 0)) if load.base else (CONSTANT, 0)
    index = known.get(load.index, (load.index, 0)) if load.index else (CONSTANT, 0)
    if base is None or index is None:
        return None
    offset = load.offset + base[1] + (index[1] << load.shift)
    return Load(load.place, base[0], index[0], load.shift, offset, load.words)


def follow(i: Instruction, known: Known, conditional: bool) -> None:
    """Updates the known registers after an instruction."""
    moved = None if conditional else _moved(i, known)
    for name in written(i):
        known[name] = moved[1] if moved is not None and moved[0] == name else None


def _moved(i: Instruction, known: Known) -> tuple[str, tuple[str, int] | None] | None:
    """The register that becomes another one plus a number, and that pair."""
    values = [each.value for each in i.operands if each.kind == "imm"]
    names = [each.reg for each in i.operands if each.kind == "reg"]
    if i.name in MANY:
        stack = i.name.endswith(("push", "pop"))
        down = i.name.endswith(("push", "db"))
        name = "sp" if stack else names[0]
        return name, _plus(known, name, -WORD * words(i) if down else WORD * words(i))
    if i.writeback:
        place = next(each for each in i.operands if each.kind == "mem")
        by = values[0] if values else place.value
        return place.reg, None if place.offset else _plus(known, place.reg, by)
    if base_name(i) in ("add", "addw", "sub", "subw") and len(values) == 1 and 1 <= len(names) == len(i.operands) - 1:
        return names[0], _plus(known, names[-1], -values[0] if i.name.startswith("sub") else values[0])
    if base_name(i) in ("mov", "movw") and len(i.operands) == 2 and not any(each.shift for each in i.operands):
        return names[0], ((CONSTANT, values[0]) if values else _plus(known, names[1], 0))
    return None


def _plus(known: Known, name: str, by: int) -> tuple[str, int] | None:
    before = None if name == "pc" else known.get(name, (name, 0))
    return None if before is None else (before[0], before[1] + by)


def loads_of(body: Iterator[Instruction]) -> Iterator[tuple[Load, bool]]:
    """Every load in straight-line code, and whether the registers at its start give the address."""
    known: Known = {}
    under = 0
    for i in body:
        load = load_of(i)
        if load is not None:
            own = resolved(load, known) if under == 0 else None
            yield own or load, own is not None
        follow(i, known, conditional=under > 0)
        under = len(i.name) - 1 if i.name.startswith("it") else max(0, under - 1)
        if leaves(i):
            known = {}


class Watch:
    """`value` reads a register."""

    def __init__(self, image: Image, spans: tuple[range, ...], value: Callable[[str], int]) -> None:
        self._image, self._spans, self._value = image, spans, value
        self._plans: dict[int, tuple[tuple[str, ...], tuple[Load, ...]]] = {}
        """Start of a block -> its registers, and the loads that these determine."""
        self.found: list[tuple[int, int]] = []
        """Words read within the spans: (instruction, address)."""

    @cached_property
    def apart(self) -> dict[int, Load]:
        """Instructions that a hook must watch, by address."""
        rows = (loads_of(_straight(self._image, start, end)) for start, end in self._image.extents)
        return {load.place: load for row in rows for load, told in row if not told}

    def enter(self, address: int, body: tuple[Instruction, ...]) -> None:
        """Called before a block executes."""
        plan = self._plans.get(address)
        if plan is None:
            found = tuple(load for load, told in loads_of(iter(body)) if told and load.place not in self.apart)
            names = {name for load in found for name in (load.base, load.index)} - {CONSTANT}
            plan = self._plans[address] = (tuple(sorted(names)), found)
        held = {name: self._value(name) for name in plan[0]}
        for load in plan[1]:
            self._note(load, held.__getitem__)

    def step(self, cpu: object, address: int, size: int, data: object) -> None:
        """Called before a watched instruction executes."""
        self._note(self.apart[address], self._value)

    def _note(self, load: Load, value: Callable[[str], int]) -> None:
        reads = load.reads(value)
        if any(reads.start in span for span in self._spans):
            self.found += [(load.place, word) for word in reads]

    def take(self) -> list[tuple[int, int]]:
        """The words read by a block, in instruction order."""
        found = sorted(self.found, key=lambda each: each[0])
        self.found.clear()
        return found


def has_floats(image: Image) -> bool:
    """Whether any function uses floating-point registers."""
    return any(i.name.startswith("v") for start, end in image.extents for i in _straight(image, start, end))


def _straight(image: Image, start: int, end: int) -> Iterator[Instruction]:
    """The instructions of a function in address order; literal data between them may look like instructions."""
    while start < end:
        i = decode(image.code_at(start), start)
        if i is not None:
            yield i
        start = i.next if i is not None else start + 2
