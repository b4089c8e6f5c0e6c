"""The debug sections of one file with their relocations applied, and a cursor that reads DWARF's encodings.

Our own code instead of pyelftools' reader, because an audit asks for a few lines out of megabytes of debug information:
numpy applies relocations to a whole section at once, and only units with a finding are decoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnbuild.audit.elf import STT_FUNC, ObjectFile, Section
from nnbuild.audit.relocations import RelocationTable, relocation_tables

# Width in bytes of the plain "symbol + addend" relocations that debug sections use.
ABSOLUTE = {
    "R_X86_64_64": 8, "R_X86_64_32": 4, "R_X86_64_32S": 4, "R_386_32": 4, "R_ARM_ABS32": 4, "R_AARCH64_ABS64": 8,
    "R_AARCH64_ABS32": 4, "R_RISCV_32": 4, "R_RISCV_64": 8,
    "R_PPC_ADDR32": 4, "R_PPC_UADDR32": 4, "R_PPC64_ADDR32": 4, "R_PPC64_ADDR64": 8,
    "R_PPC64_UADDR32": 4, "R_PPC64_UADDR64": 8, "R_MIPS_32": 4, "R_MIPS_64": 8,
}  # fmt: skip
# RISC-V leaves label differences to the linker, as a set or an addition and a subtraction at one place.
DIFFERENCES = {
    "R_RISCV_SET8": (1, 0), "R_RISCV_SET16": (2, 0), "R_RISCV_SET32": (4, 0), "R_RISCV_ADD8": (1, 1),
    "R_RISCV_ADD16": (2, 1), "R_RISCV_ADD32": (4, 1), "R_RISCV_ADD64": (8, 1), "R_RISCV_SUB8": (1, -1),
    "R_RISCV_SUB16": (2, -1), "R_RISCV_SUB32": (4, -1), "R_RISCV_SUB64": (8, -1),
}  # fmt: skip

# Exceptions from decoding a damaged section; caught where decoding starts, and treated as "no line known".
DECODING_ERRORS = (IndexError, ValueError, KeyError, OverflowError, TypeError)


@dataclass(frozen=True)
class DebugSections:
    file: ObjectFile

    @cached_property
    def relocations(self) -> tuple[RelocationTable, ...]:
        return relocation_tables(self.file)

    @cached_property
    def _tables(self) -> dict[int, list[RelocationTable]]:
        """The relocations of each section of an object."""
        found: dict[int, list[RelocationTable]] = {}
        for table in self.relocations:
            if table.target is not None:
                found.setdefault(table.target.number, []).append(table)
        return found

    @cached_property
    def symbol_addresses(self) -> np.ndarray:
        """Address of every symbol; 0 for those not in an allocated section (a section symbol of .debug_str, say)."""
        file, values = self.file, []
        for symbol in file.symbols:
            base = file.bases[symbol.section] if 0 < symbol.section < len(file.sections) else 0
            value = symbol.value & ~1 if file.machine == "arm" and symbol.kind == STT_FUNC else symbol.value
            values.append((base + value) & 0xFFFFFFFFFFFFFFFF)
        return np.array(values or [0], np.uint64)

    def get(self, name: str) -> bytes:
        section = self.file.section_named(name)
        return self.content(section) if section is not None else b""

    def content(self, section: Section) -> bytes:
        """A section's bytes with its relocations applied."""
        content = self.file.content(section)
        tables = self._tables.get(section.number, [])
        if not tables:
            return content
        patched = np.frombuffer(content, np.uint8).copy()
        for table in tables:
            self._apply(patched, table)
        return patched.tobytes()

    def _apply(self, patched: np.ndarray, table: RelocationTable) -> None:
        steps = [(table.type_name(number), number) for number in np.unique(table.types).tolist()]
        # A "set" comes before the subtraction at the same place.
        for name, number in sorted(steps, key=lambda step: not step[0].startswith("R_RISCV_SET")):
            chosen = np.flatnonzero(table.types == number)
            values = self.symbol_addresses[table.symbols[chosen].clip(0, len(self.symbol_addresses) - 1)]
            if table.addends is not None:
                values = values + table.addends[chosen].astype(np.uint64)
            offsets = table.offsets[chosen]
            if name in ABSOLUTE:
                in_place = 0 if table.addends is not None else 1
                self._add(patched, offsets, values, ABSOLUTE[name], keep=in_place, sign=1)
            elif name in DIFFERENCES:
                width, sign = DIFFERENCES[name]
                self._add(patched, offsets, values, width, keep=abs(sign), sign=sign or 1)

    def _add(
        self, patched: np.ndarray, offsets: np.ndarray, values: np.ndarray, width: int, keep: int, sign: int
    ) -> None:
        """Adds (or with keep=0 writes) values of `width` bytes at the offsets; ignores those outside the section."""
        inside = (offsets >= 0) & (offsets + width <= len(patched))
        places = offsets[inside][:, None] + np.arange(width)
        order = "<" if self.file.little else ">"
        old = np.ascontiguousarray(patched[places]).view(f"{order}u{width}").reshape(-1).astype(np.uint64)
        new = old * np.uint64(keep) + (values[inside] if sign > 0 else ~values[inside] + np.uint64(1))
        patched[places] = new.astype(f"{order}u{width}").view(np.uint8).reshape(-1, width)


class Cursor:
    """Reads numbers, LEB128 and strings from bytes; reading past the end raises IndexError."""

    __slots__ = ("at", "data", "order")

    def __init__(self, data: bytes, at: int, little: bool) -> None:
        self.data, self.at = data, at
        self.order: str = "little" if little else "big"

    def number(self, width: int) -> int:
        end = self.at + width
        if end > len(self.data) or self.at < 0:
            raise IndexError("past the end of a debug section")
        value = int.from_bytes(self.data[self.at : end], self.order)  # type: ignore[arg-type]
        self.at = end
        return value

    def uleb(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("an over-long LEB128 number")

    def sleb(self) -> int:
        start = self.at
        value = self.uleb()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if self.data[self.at - 1] & 0x40 else value

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        value = self.data[self.at : end].decode("utf-8", "backslashreplace")
        self.at = end + 1
        return value

    def block(self, length: int) -> bytes:
        if length < 0 or self.at + length > len(self.data):
            raise IndexError("past the end of a debug section")
        value = self.data[self.at : self.at + length]
        self.at += length
        return value

    def unit_length(self) -> tuple[int, int]:
        """A unit's length and whether its offsets have 4 or 8 bytes."""
        length = self.number(4)
        return (self.number(8), 8) if length == 0xFFFFFFFF else (length, 4)
