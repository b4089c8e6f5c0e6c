"""Disassembly: the code in a file, decoded by capstone."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from nnbuild.audit.elf import SHT_NOBITS, STT_FUNC, Section
from nnbuild.audit.source_locations import Extent, Locator
from nnbuild.base.errors import ToolMissing

SCANNED_MACHINES = ("x86", "x86-64", "arm", "aarch64", "riscv", "powerpc", "powerpc64")
INSTALL_HINT = "Install it with `pip install capstone`."
ARM_BE8 = 0x00800000  # linked big-endian ARM: data is big-endian, instructions are not


def _thumb_length(code: Any, size: int, offset: int, _: Any) -> int:
    """Length of an instruction unknown to capstone: its first halfword shows whether there is a second.

    Otherwise the second halfword would be decoded as the next instruction. `code` is a C pointer; the high byte of the
    halfword is its second, because Cortex-M code is little-endian.
    """
    high = code[offset + 1][0] if offset + 1 < size else 0
    return min(4 if high >= 0xE8 else 2, size - offset)


def _riscv_length(code: Any, size: int, offset: int, _: Any) -> int:
    """The same for RISC-V, by the two low bits of the first byte: capstone does not know vector instructions."""
    return min(4 if code[offset][0] & 3 == 3 else 2, size - offset)


class Instruction(NamedTuple):
    address: int
    size: int
    mnemonic: str
    operands: str


class Chunk(NamedTuple):
    """A run of code of one instruction set, from one function's or mapping symbol's start to the next."""

    section: Section
    start: int
    code: bytes
    thumb: bool


def find_capstone() -> ModuleType | None:
    try:
        return import_module("capstone")
    except ImportError:
        return None


@dataclass(frozen=True)
class Code:
    """The code of one file. Requires capstone; raises `ToolMissing` without it."""

    locator: Locator

    @cached_property
    def _capstone(self) -> Any:
        found = find_capstone()
        if found is None:
            raise ToolMissing(self.locator.file.name, "reading instructions needs the package capstone.", INSTALL_HINT)
        return found

    @cached_property
    def _engines(self) -> dict[bool, Any]:
        return {}

    def _engine(self, thumb: bool) -> Any:
        if thumb not in self._engines:
            cs, file = self._capstone, self.locator.file
            wide = file.bits == 64
            modes = {
                "x86": (cs.CS_ARCH_X86, cs.CS_MODE_32),
                "x86-64": (cs.CS_ARCH_X86, cs.CS_MODE_64),
                "arm": (cs.CS_ARCH_ARM, (cs.CS_MODE_THUMB if thumb else cs.CS_MODE_ARM) | cs.CS_MODE_V8),
                "aarch64": (cs.CS_ARCH_ARM64, cs.CS_MODE_ARM),
                "riscv": (
                    cs.CS_ARCH_RISCV,
                    (cs.CS_MODE_RISCV64 if wide else cs.CS_MODE_RISCV32) | cs.CS_MODE_RISCVC,
                ),
                "powerpc": (cs.CS_ARCH_PPC, cs.CS_MODE_32),
                "powerpc64": (cs.CS_ARCH_PPC, cs.CS_MODE_64),
            }
            arch, mode = modes[file.machine]
            # Everywhere else instructions are little-endian whatever the data is.
            big = (file.machine == "arm" and not file.flags & ARM_BE8) or file.machine.startswith("powerpc")
            if big and not file.little:
                mode |= cs.CS_MODE_BIG_ENDIAN
            engine = cs.Cs(arch, mode)
            engine.skipdata = True
            if file.machine == "arm" and thumb:
                engine.skipdata_setup = (".byte", _thumb_length, None)
            if file.machine == "riscv":
                engine.skipdata_setup = (".byte", _riscv_length, None)
            self._engines[thumb] = engine
        return self._engines[thumb]

    @property
    def readable(self) -> bool:
        return self.locator.file.machine in SCANNED_MACHINES

    @cached_property
    def _thumb_by_default(self) -> bool:
        """Without mapping symbols: whether the functions of an ARM file are Thumb, as bit 0 of their value says."""
        values = [s.value & 1 for s in self.locator.file.symbols if s.kind == STT_FUNC and s.section]
        return not values or any(values)

    def chunks(self) -> Iterator[Chunk]:
        bases = self.locator.file.bases
        for section in self.locator.file.sections:
            if section.executable and section.allocated and section.kind != SHT_NOBITS and section.size:
                base = bases[section.number]
                yield from self._chunks_between(section, base, base + section.size)

    def chunks_of(self, function: Extent) -> Iterator[Chunk]:
        """The chunks of one function."""
        section = self.locator.section_at(function.start)
        if section is not None and section.kind != SHT_NOBITS:
            yield from self._chunks_between(section, function.start, function.end)

    @cached_property
    def _contents(self) -> dict[int, bytes]:
        return {}

    def _content(self, section: Section) -> bytes:
        if section.number not in self._contents:
            self._contents[section.number] = self.locator.file.content(section)
        return self._contents[section.number]

    def _chunks_between(self, section: Section, first: int, last: int) -> Iterator[Chunk]:
        base, content = self.locator.file.bases[section.number], self._content(section)
        last = min(last, base + len(content))
        marks, starts = self.locator.marks, self.locator.function_starts
        kind = "t" if self._thumb_by_default else "a"
        before = bisect_left(marks, (first, ""))
        if before and marks[before - 1][0] >= base:
            kind = marks[before - 1][1]
        inner = dict(marks[before : bisect_left(marks, (last, ""))])
        cuts = sorted({first, *inner, *starts[bisect_left(starts, first) : bisect_left(starts, last)]})
        for start, stop in zip(cuts, [*cuts[1:], last], strict=True):
            kind = inner.get(start, kind)
            if kind != "d":
                yield Chunk(section, start, content[start - base : stop - base], kind == "t")

    def instructions(self, chunk: Chunk) -> Iterator[Instruction]:
        for entry in self._engine(chunk.thumb).disasm_lite(chunk.code, chunk.start):
            yield Instruction(*entry)

    def lines_of(self, chunk: Chunk) -> Iterator[tuple[int, int, str, str]]:
        """The instructions as plain tuples, for scans of millions of instructions."""
        engine = self._engine(chunk.thumb)
        result: Iterator[tuple[int, int, str, str]] = engine.disasm_lite(chunk.code, chunk.start)
        return result
