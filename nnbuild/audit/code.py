"""Disassembly: which bytes of a file are code, and capstone's reading of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from nnbuild.audit.elf import SHT_NOBITS, STT_FUNC, Section
from nnbuild.audit.places import Locator
from nnbuild.errors import ToolMissing

SCANNED_MACHINES = ("x86", "x86-64", "arm", "aarch64", "riscv")
INSTALL_HINT = "Install it with `pip install nnbuild[audit]`."
ARM_BE8 = 0x00800000  # linked big-endian ARM: data is big-endian, instructions are not


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
    """The code of one file. Making it needs capstone; `ToolMissing` says so."""

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
            }
            arch, mode = modes[file.machine]
            if not file.little and not file.flags & ARM_BE8:
                mode |= cs.CS_MODE_BIG_ENDIAN
            engine = cs.Cs(arch, mode)
            engine.skipdata = True
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

    @cached_property
    def _marks(self) -> list[tuple[int, str]]:
        """Mapping symbols, sorted: from this address on there is Thumb (t), ARM (a), other code (x) or data (d)."""
        file, found = self.locator.file, []
        if file.machine in ("arm", "aarch64", "riscv"):
            for symbol in file.symbols:
                if symbol.name[:2] in ("$a", "$t", "$d", "$x") and (
                    symbol.name[2:3] in ("", ".") or symbol.name[1] == "x"
                ):
                    address = file.address_of(symbol)
                    if address is not None:
                        found.append((address, symbol.name[1]))
        return sorted(found)

    def chunks(self) -> Iterator[Chunk]:
        file = self.locator.file
        for section in file.sections:
            if section.executable and section.allocated and section.kind != SHT_NOBITS and section.size:
                yield from self._section_chunks(section, file.content(section))

    def _section_chunks(self, section: Section, content: bytes) -> Iterator[Chunk]:
        base = self.locator.file.bases[section.number]
        end = base + len(content)
        marks = {address: kind for address, kind in self._marks if base <= address < end}
        starts = {extent.start for extent in self.locator.functions if base <= extent.start < end}
        cuts = sorted(starts | set(marks) | {base})
        kind = "t" if self._thumb_by_default else "a"
        for start, stop in zip(cuts, [*cuts[1:], end], strict=True):
            kind = marks.get(start, kind)
            if kind != "d":
                yield Chunk(section, start, content[start - base : stop - base], kind == "t")

    def instructions(self, chunk: Chunk) -> Iterator[Instruction]:
        for entry in self._engine(chunk.thumb).disasm_lite(chunk.code, chunk.start):
            yield Instruction(*entry)

    def lines_of(self, chunk: Chunk) -> Iterator[tuple[int, int, str, str]]:
        """The same as plain tuples, for scans of millions of instructions."""
        engine = self._engine(chunk.thumb)
        result: Iterator[tuple[int, int, str, str]] = engine.disasm_lite(chunk.code, chunk.start)
        return result
