"""A linked program as the proof sees it: constants and code never change, memory may contain anything."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nnbuild.audit.archive import open_file
from nnbuild.audit.elf import SHT_NOBITS, STT_FUNC, ObjectFile
from nnbuild.base.errors import UsageError


@dataclass(frozen=True)
class Region:
    start: int
    data: bytes

    @property
    def end(self) -> int:
        return self.start + len(self.data)


@dataclass(frozen=True)
class Image:
    name: str
    file: ObjectFile
    constant: tuple[Region, ...]
    """Sections that no store may change: read-only ones, including code."""
    writable: tuple[tuple[int, int], ...]

    @cached_property
    def functions(self) -> dict[str, int]:
        found = {}
        for symbol in self.file.symbols:
            address = self.file.address_of(symbol) if symbol.kind == STT_FUNC else None
            if address is not None and symbol.name:
                found[symbol.name] = address
        return found

    @cached_property
    def _names(self) -> tuple[list[int], list[str]]:
        pairs = sorted({address: name for name, address in sorted(self.functions.items(), reverse=True)}.items())
        return [address for address, _ in pairs], [name for _, name in pairs]

    def symbol(self, name: str) -> int | None:
        return next((s.value for s in self.file.symbols if s.name == name), None)

    def name_of(self, address: int) -> str:
        """`function+offset`, for messages and reports."""
        starts, names = self._names
        place = bisect_right(starts, address & ~1) - 1
        if place < 0:
            return f"{address:#x}"
        offset = (address & ~1) - starts[place]
        return f"{names[place]}+{offset:#x}" if offset else names[place]

    @cached_property
    def extents(self) -> list[tuple[int, int]]:
        """Start and end of each function, as far as its symbol gives them."""
        held = [s for s in self.file.symbols if s.kind == STT_FUNC and s.size]
        return sorted((start, start + s.size) for s in held if (start := self.file.address_of(s)) is not None)

    def within(self, address: int, target: int) -> bool:
        """Whether both lie in one function and the target is not its start: Thumb code without wide branches uses BL
        for long jumps in a large function, which are not calls."""
        place = bisect_right(self.extents, (target, 0)) - 1
        if place < 0:
            return False
        start, end = self.extents[place]
        return start < target < end and start <= address < end

    def code_at(self, address: int) -> bytes:
        """Up to four constant bytes at an address; empty if there are none."""
        for region in self.constant:
            if region.start <= address < region.end:
                return region.data[address - region.start : address - region.start + 4]
        return b""


def read_image(path: Path) -> Image:
    (file,) = open_file(path).objects[:1] or (None,)
    if file is None or file.kind != "executable" or file.machine != "arm" or not file.little:
        raise UsageError(str(path), "is not a linked program for a Cortex-M.", "Give the program.elf of a build.")
    held = [s for s in file.sections if s.allocated and s.size]
    constant = [Region(s.address, file.content(s)) for s in held if not s.writable and s.kind != SHT_NOBITS]
    writable = [(s.address, s.address + s.size) for s in held if s.writable]
    return Image(path.name, file, tuple(sorted(constant, key=lambda r: r.start)), tuple(_joined(writable)))


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
