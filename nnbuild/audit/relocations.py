"""Relocations: their names, their targets, and whether they are calls or go through a table.

Tables stay numpy arrays until single entries are needed: debug sections have hundreds of thousands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from elftools.elf import enums

from nnbuild.audit.elf import SHT_REL, SHT_RELA, ObjectFile, Section, Symbol, bad_object, read_table

# pyelftools has no table for RISC-V; these are the numbers and names of its psABI. It also lacks a few newer x86 types.
RISCV_TYPES = {
    0: "NONE", 1: "32", 2: "64", 3: "RELATIVE", 4: "COPY", 5: "JUMP_SLOT", 6: "TLS_DTPMOD32", 7: "TLS_DTPMOD64",
    8: "TLS_DTPREL32", 9: "TLS_DTPREL64", 10: "TLS_TPREL32", 11: "TLS_TPREL64", 12: "TLSDESC", 16: "BRANCH",
    17: "JAL", 18: "CALL", 19: "CALL_PLT", 20: "GOT_HI20", 21: "TLS_GOT_HI20", 22: "TLS_GD_HI20", 23: "PCREL_HI20",
    24: "PCREL_LO12_I", 25: "PCREL_LO12_S", 26: "HI20", 27: "LO12_I", 28: "LO12_S", 29: "TPREL_HI20",
    30: "TPREL_LO12_I", 31: "TPREL_LO12_S", 32: "TPREL_ADD", 33: "ADD8", 34: "ADD16", 35: "ADD32", 36: "ADD64",
    37: "SUB8", 38: "SUB16", 39: "SUB32", 40: "SUB64", 41: "GOT32_PCREL", 43: "ALIGN", 44: "RVC_BRANCH",
    45: "RVC_JUMP", 46: "RVC_LUI", 47: "GPREL_I", 48: "GPREL_S", 49: "TPREL_I", 50: "TPREL_S", 51: "RELAX",
    52: "SUB6", 53: "SET6", 54: "SET8", 55: "SET16", 56: "SET32", 57: "32_PCREL", 58: "IRELATIVE", 59: "PLT32",
    60: "SET_ULEB128", 61: "SUB_ULEB128",
}  # fmt: skip

# Missing in pyelftools from the 32-bit PowerPC ABI: distances, which position-independent code takes to its table
# .got2, and the notes to the linker beside calls through a pointer.
POWERPC_TYPES = {119: "R_PPC_PLTSEQ", 120: "R_PPC_PLTCALL", 246: "R_PPC_REL16DX_HA", 248: "R_PPC_IRELATIVE",
                 249: "R_PPC_REL16", 250: "R_PPC_REL16_LO", 251: "R_PPC_REL16_HI", 252: "R_PPC_REL16_HA",
                 253: "R_PPC_GNU_VTINHERIT", 254: "R_PPC_GNU_VTENTRY"}  # fmt: skip
# Missing in pyelftools from the 64-bit PowerPC ABI, version 2.
POWERPC64_TYPES = {118: "R_PPC64_ENTRY", 119: "R_PPC64_PLTSEQ", 120: "R_PPC64_PLTCALL", 121: "R_PPC64_PLTSEQ_NOTOC",
                   122: "R_PPC64_PLTCALL_NOTOC", 123: "R_PPC64_PCREL_OPT"}  # fmt: skip


def _names(table: Mapping[str, int]) -> dict[int, str]:
    return {number: name for name, number in table.items() if isinstance(number, int)}


TYPE_NAMES = {
    "x86": {**_names(enums.ENUM_RELOC_TYPE_i386), 43: "R_386_GOT32X"},
    "x86-64": {**_names(enums.ENUM_RELOC_TYPE_x64), 38: "R_X86_64_RELATIVE64", 41: "R_X86_64_GOTPCRELX"},
    "arm": _names(enums.ENUM_RELOC_TYPE_ARM),
    "aarch64": _names(enums.ENUM_RELOC_TYPE_AARCH64),
    "riscv": {number: f"R_RISCV_{name}" for number, name in RISCV_TYPES.items()},
    "powerpc": {**_names(enums.ENUM_RELOC_TYPE_PPC), **POWERPC_TYPES},
    "powerpc64": {**_names(enums.ENUM_RELOC_TYPE_PPC64), **POWERPC64_TYPES},
    "mips": _names(enums.ENUM_RELOC_TYPE_MIPS),
}

# Relocations of an instruction that calls or jumps to the symbol.
CALL_TYPES = frozenset(
    {
        "R_386_PC32", "R_386_PLT32", "R_X86_64_PC32", "R_X86_64_PLT32", "R_X86_64_GOTPCREL", "R_X86_64_GOTPCRELX",
        "R_X86_64_REX_GOTPCRELX", "R_ARM_PC24", "R_ARM_PLT32", "R_ARM_CALL", "R_ARM_JUMP24", "R_ARM_THM_CALL",
        "R_ARM_THM_JUMP24", "R_ARM_THM_JUMP19", "R_ARM_THM_JUMP11", "R_AARCH64_CALL26", "R_AARCH64_JUMP26",
        "R_AARCH64_CONDBR19", "R_RISCV_CALL", "R_RISCV_CALL_PLT", "R_RISCV_JAL", "R_RISCV_RVC_JUMP",
        "R_RISCV_BRANCH", "R_RISCV_RVC_BRANCH", "R_PPC_REL24", "R_PPC_PLTREL24", "R_PPC_LOCAL24PC", "R_PPC_REL14",
        "R_PPC64_REL24", "R_PPC64_REL24_NOTOC", "R_PPC64_REL14", "R_MIPS_26", "R_MIPS_PC16",
    }
)  # fmt: skip
# Notes to the linker that refer to nothing.
MARKER_TYPES = frozenset({"R_RISCV_RELAX", "R_RISCV_ALIGN", "R_ARM_NONE", "R_ARM_V4BX", "R_X86_64_NONE", "R_386_NONE",
                          "R_PPC64_ENTRY", "R_PPC64_NONE", "R_PPC_NONE", "R_MIPS_NONE", "R_MIPS_JALR"})  # fmt: skip


class Relocation(NamedTuple):
    offset: int
    """Within its section for an object, an address for a linked file."""
    type: str
    symbol: Symbol | None
    addend: int


@dataclass(frozen=True)
class RelocationTable:
    """The relocations of one section (`target` is None for those of a linked file)."""

    file: ObjectFile
    table: Section
    target: Section | None
    offsets: np.ndarray
    types: np.ndarray
    symbols: np.ndarray
    addends: np.ndarray | None
    dynamic: bool

    def type_name(self, number: int) -> str:
        return type_name(self.file.machine, number)

    def symbol(self, index: int) -> Symbol | None:
        symbols = self.file.dynamic_symbols if self.dynamic else self.file.symbols
        return symbols[index] if 0 < index < len(symbols) else None

    def entries(self, positions: np.ndarray | None = None) -> Iterator[Relocation]:
        """Single entries, all of them or those at `positions`."""
        chosen = np.arange(len(self.offsets)) if positions is None else positions
        addends = self.full_addends(chosen)
        columns = (self.offsets[chosen].tolist(), self.types[chosen].tolist(), self.symbols[chosen].tolist(), addends)
        for offset, number, index, addend in zip(*columns, strict=True):
            yield Relocation(offset, self.type_name(number), self.symbol(index), addend)

    def full_addends(self, chosen: np.ndarray) -> list[int]:
        """Addends as in the table or, for tables without addends, as encoded in the relocated bytes."""
        if self.addends is not None:
            addends: list[int] = self.addends[chosen].tolist()
            return addends
        if self.target is None:
            return [0] * len(chosen)
        content = self.file.content(self.target)
        pairs = zip(self.offsets[chosen].tolist(), self.types[chosen].tolist(), strict=True)
        return [implicit_addend(self.type_name(number), content, offset, self.file.little) for offset, number in pairs]


def type_name(machine: str, number: int) -> str:
    return TYPE_NAMES.get(machine, {}).get(number, f"unknown relocation {number}")


def relocation_tables(file: ObjectFile) -> tuple[RelocationTable, ...]:
    tables = [s for s in file.sections if s.kind in (SHT_REL, SHT_RELA) and s.size]
    return tuple(_read_table(file, table) for table in tables)


def _read_table(file: ObjectFile, table: Section) -> RelocationTable:
    order, word = ("<" if file.little else ">"), ("u8" if file.bits == 64 else "u4")
    fields = [("offset", order + word), ("info", order + word)]
    if table.kind == SHT_RELA:
        fields.append(("addend", order + word.replace("u", "i")))
    dtype = np.dtype(fields)
    if table.entry_size not in (0, dtype.itemsize):
        raise bad_object(file.name, f"the relocations in {table.name} have an impossible size.")
    rows = read_table(file.name, file.data, dtype, table.offset, table.size // dtype.itemsize, "relocation table")
    info = rows["info"].astype(np.uint64)
    symbols, types = _split(file, info)
    linked_to = file.sections[table.link] if table.link < len(file.sections) else None
    dynamic = linked_to is not None and linked_to.name == ".dynsym"
    limit = len(file.dynamic_symbols if dynamic else file.symbols)
    if symbols.size and int(symbols.max()) >= max(limit, 1):
        raise bad_object(file.name, f"a relocation in {table.name} names a symbol that does not exist.")
    target = file.sections[table.info] if file.relocatable and 0 < table.info < len(file.sections) else None
    if file.relocatable and target is None:
        raise bad_object(file.name, f"the relocations in {table.name} are for a section that does not exist.")
    return RelocationTable(
        file=file,
        table=table,
        target=target,
        offsets=rows["offset"].astype(np.int64),
        types=types,
        symbols=symbols,
        addends=rows["addend"].astype(np.int64) if table.kind == SHT_RELA else None,
        dynamic=dynamic,
    )


def _split(file: ObjectFile, info: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Symbols and types. On 64-bit MIPS an entry has up to three types, of which the first one matters, and the
    bytes of the little-endian form are in big-endian order."""
    shift, mask = (32, 0xFFFFFFFF) if file.bits == 64 else (8, 0xFF)
    symbols, types = info >> np.uint64(shift), info & np.uint64(mask)
    if file.machine == "mips" and file.bits == 64:
        symbols, types = (
            (info & np.uint64(mask), info >> np.uint64(56)) if file.little else (symbols, types & np.uint64(0xFF))
        )
    return symbols.astype(np.int64), types.astype(np.int64)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def implicit_addend(kind: str, content: bytes, offset: int, little: bool) -> int:
    """The addend of a REL entry (ARM, 32-bit x86), encoded in the relocated bytes."""
    place = content[offset : offset + 4]
    if len(place) < 4:
        return 0
    order = "little" if little else "big"
    word = int.from_bytes(place, order)  # type: ignore[arg-type]
    if kind in ("R_ARM_CALL", "R_ARM_JUMP24", "R_ARM_PC24", "R_ARM_PLT32"):
        return _signed(word & 0xFFFFFF, 24) << 2
    if kind in ("R_ARM_THM_CALL", "R_ARM_THM_JUMP24"):
        return _thumb_branch(int.from_bytes(place[:2], order), int.from_bytes(place[2:], order))  # type: ignore[arg-type]
    if kind == "R_ARM_PREL31":
        return _signed(word & 0x7FFFFFFF, 31)
    if kind.startswith(("R_ARM_ABS32", "R_ARM_REL32", "R_ARM_TARGET", "R_ARM_GOT", "R_386_")):
        return _signed(word, 32)
    return 0


def _thumb_branch(high: int, low: int) -> int:
    """The offset of a 32-bit Thumb BL or B.W, whose bits 22 and 23 are stored xored with the sign."""
    sign = high >> 10 & 1
    bit23, bit22 = ~(low >> 13 ^ sign) & 1, ~(low >> 11 ^ sign) & 1
    value = sign << 24 | bit23 << 23 | bit22 << 22 | (high & 0x3FF) << 12 | (low & 0x7FF) << 1
    return _signed(value, 25)


PC_BIAS = {"x86-64": 4, "x86": 4, "arm": 4, "aarch64": 0, "riscv": 0}


def call_target(file: ObjectFile, relocation: Relocation) -> int | None:
    """The target address of a call relocation, when the symbol is defined in this file.

    The addend of a PC-relative fix-up includes the distance from the fixed-up bytes to the program counter (4 on x86
    and Thumb, 8 on ARM); the rest is the true offset from the symbol.
    """
    symbol = relocation.symbol
    start = file.address_of(symbol) if symbol is not None else None
    if start is None:
        return None
    if relocation.type == "R_PPC_PLTREL24":  # its addend identifies the caller's .got2, not the function
        return start
    if file.descriptors:  # a section's symbol and a distance may name a descriptor
        return file.descriptors.get(start + relocation.addend, start + relocation.addend)
    bias = 8 if relocation.type in ("R_ARM_CALL", "R_ARM_JUMP24", "R_ARM_PC24", "R_ARM_PLT32") else 0
    bias = bias or PC_BIAS.get(file.machine, 0)
    return start + relocation.addend + bias if file.machine in ("x86", "x86-64", "arm") else start + relocation.addend
