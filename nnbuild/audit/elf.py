"""Reads an ELF file into frozen values: its header, sections, segments and symbols.

The tables are decoded with numpy rather than entry by entry, so that an object of 10 MB is read in a fraction of a
second. Every offset is checked before it is followed, so that a damaged file gives a precise error. Names of relocation
types come from pyelftools (see relocations.py).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nnbuild.base.errors import UsageError

SHT_PROGBITS, SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_REL, SHT_DYNSYM = 1, 2, 4, 8, 9, 11
SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY, SHT_SYMTAB_SHNDX = 14, 15, 16, 18
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 1, 2, 4, 0x800
SHN_UNDEF, SHN_LORESERVE, SHN_ABS, SHN_COMMON, SHN_XINDEX = 0, 0xFF00, 0xFFF1, 0xFFF2, 0xFFFF
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_SECTION, STT_FILE, STT_COMMON, STT_TLS, STT_GNU_IFUNC = 0, 1, 2, 3, 4, 5, 6, 10
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
PT_LOAD, PT_GNU_STACK = 1, 0x6474E551
PF_X, PF_W = 1, 2

MACHINES = {3: "x86", 8: "mips", 20: "powerpc", 21: "powerpc64", 40: "arm", 62: "x86-64", 183: "aarch64", 243: "riscv"}
KINDS = {1: "object", 2: "executable", 3: "shared", 4: "core"}
BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
"""How LLVM's intermediate code begins."""
ONLY_INTERMEDIATE = "__gnu_lto_slim"
"""The symbol by which gcc marks objects without machine code."""
GIVE_ELF = "Give .o, .a, .ko or linked ELF files."
DEBUG_SECTION_LIMIT = 64 << 20  # a compressed section that grows past this is refused: no real one does


class BadObjectFile(UsageError):
    """The file is not an ELF object or archive, or is damaged."""


def bad_object(where: str, cause: str, next_step: str = "Rebuild it, or give another file.") -> BadObjectFile:
    return BadObjectFile(where, cause, next_step)


class Section(NamedTuple):
    number: int
    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int

    @property
    def allocated(self) -> bool:
        return bool(self.flags & SHF_ALLOC)

    @property
    def writable(self) -> bool:
        return bool(self.flags & SHF_WRITE)

    @property
    def executable(self) -> bool:
        return bool(self.flags & SHF_EXECINSTR)


class Segment(NamedTuple):
    kind: int
    flags: int
    virtual: int
    physical: int
    file_size: int
    memory_size: int


class Symbol(NamedTuple):
    name: str
    value: int
    size: int
    kind: int
    binding: int
    section: int
    """Index of the defining section; 0 if undefined; SHN_ABS or SHN_COMMON for those."""

    @property
    def undefined(self) -> bool:
        return self.section == SHN_UNDEF


@dataclass(frozen=True)
class ObjectFile:
    """One ELF file, or one ELF member of an archive; `name` is its name in reports."""

    name: str
    data: bytes
    machine: str
    bits: int
    little: bool
    kind: str
    flags: int
    sections: tuple[Section, ...]
    segments: tuple[Segment, ...]

    @property
    def relocatable(self) -> bool:
        return self.kind == "object"

    @property
    def kernel_module(self) -> bool:
        return any(section.name in (".modinfo", ".gnu.linkonce.this_module") for section in self.sections)

    def section_named(self, name: str) -> Section | None:
        return next((section for section in self.sections if section.name == name), None)

    def content(self, section: Section) -> bytes:
        """The bytes of a section, decompressed when the file holds it compressed."""
        if section.kind == SHT_NOBITS:
            return b""
        raw = self.data[section.offset : section.offset + section.size]
        return self._decompressed(section, raw) if section.flags & SHF_COMPRESSED else raw

    def _decompressed(self, section: Section, raw: bytes) -> bytes:
        header = 24 if self.bits == 64 else 12
        unpacker = zlib.decompressobj()
        try:
            plain = unpacker.decompress(raw[header:], DEBUG_SECTION_LIMIT)
        except zlib.error as problem:
            raise bad_object(self.name, f"the compressed section {section.name} is damaged ({problem}).") from None
        if unpacker.unconsumed_tail:
            raise bad_object(self.name, f"the compressed section {section.name} unpacks to over 64 MB.")
        return plain

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbol table, including entry 0, so that indices match relocations; functions are at their code's
        address."""
        return tuple(self._at_its_code(symbol) for symbol in self.listed_symbols)

    @cached_property
    def listed_symbols(self) -> tuple[Symbol, ...]:
        """The symbol table as stored in the file."""
        table = next((section for section in self.sections if section.kind == SHT_SYMTAB), None)
        return _read_symbols(self, table) if table is not None else ()

    @cached_property
    def dynamic_symbols(self) -> tuple[Symbol, ...]:
        table = next((section for section in self.sections if section.kind == SHT_DYNSYM), None)
        return tuple(map(self._at_its_code, _read_symbols(self, table))) if table is not None else ()

    @cached_property
    def _entries(self) -> dict[int, tuple[int, int]]:
        """In the older ABI of 64-bit PowerPC a function's symbol stands for a descriptor in `.opd`, whose first word
        is the code's address. Maps the descriptor's value to section and value of the code."""
        opd = self.section_named(".opd")
        return _entries_of(self, opd) if self.machine == "powerpc64" and opd is not None else {}

    def _at_its_code(self, symbol: Symbol) -> Symbol:
        if not self._entries or not 0 < symbol.section < len(self.sections):
            return symbol
        if self.sections[symbol.section].name != ".opd" or symbol.kind == STT_SECTION:
            return symbol
        place = self._entries.get(symbol.value)
        return symbol if place is None else symbol._replace(section=place[0], value=place[1])

    @cached_property
    def descriptors(self) -> dict[int, int]:
        """Addresses of descriptors -> addresses of their code."""
        opd = self.section_named(".opd")
        if opd is None or not self._entries:
            return {}
        bases = self.bases if self.relocatable else (0,) * len(self.sections)
        return {bases[opd.number] + at: bases[home] + value for at, (home, value) in self._entries.items()}

    @cached_property
    def bases(self) -> tuple[int, ...]:
        """An address for every section. Sections of an unlinked object are laid out in sequence, as a linker would,
        so that one address names one byte in linked and unlinked files alike."""
        if not self.relocatable:
            return tuple(section.address for section in self.sections)
        bases, position = [], 0x1000
        for section in self.sections:
            bases.append(position if section.allocated else 0)
            if section.allocated:
                position = (position + min(section.size, len(self.data)) + 0xFFF) & ~0xFFF
        return tuple(bases)

    def address_of(self, symbol: Symbol) -> int | None:
        """The address of a defined symbol, in the address space of `bases`; the Thumb bit is removed."""
        if not 0 < symbol.section < len(self.sections):
            return None
        value = symbol.value & ~1 if self.machine == "arm" and symbol.kind == STT_FUNC else symbol.value
        return self.bases[symbol.section] + value if self.relocatable else value


def _header_dtype(bits: int, order: str) -> np.dtype[np.void]:
    word = "u8" if bits == 64 else "u4"
    fields = [("name", "u4"), ("kind", "u4"), ("flags", word), ("address", word), ("offset", word), ("size", word)]
    fields += [("link", "u4"), ("info", "u4"), ("align", word), ("entry_size", word)]
    return np.dtype([(name, order + code) for name, code in fields])


def _symbol_dtype(bits: int, order: str) -> np.dtype[np.void]:
    wide = [("name", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2"), ("value", "u8"), ("size", "u8")]
    narrow = [("name", "u4"), ("value", "u4"), ("size", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2")]
    return np.dtype([(name, order + code) for name, code in (wide if bits == 64 else narrow)])


def _segment_dtype(bits: int, order: str) -> np.dtype[np.void]:
    wide = [("kind", "u4"), ("flags", "u4"), ("offset", "u8"), ("virtual", "u8"), ("physical", "u8")]
    wide += [("file_size", "u8"), ("memory_size", "u8"), ("align", "u8")]
    narrow = [("kind", "u4"), ("offset", "u4"), ("virtual", "u4"), ("physical", "u4")]
    narrow += [("file_size", "u4"), ("memory_size", "u4"), ("flags", "u4"), ("align", "u4")]
    return np.dtype([(name, order + code) for name, code in (wide if bits == 64 else narrow)])


def read_table(where: str, data: bytes, dtype: np.dtype[np.void], offset: int, count: int, what: str) -> np.ndarray:
    """`count` records at `offset`, after a bounds check."""
    if offset + count * dtype.itemsize > len(data):
        raise bad_object(where, f"the {what} reaches past the end of the file: it is truncated or damaged.")
    return np.frombuffer(data, dtype, count, offset)


def text_at(strings: bytes, offset: int) -> str:
    """The NUL-terminated string at `offset`; empty if outside, as in a damaged table."""
    if offset >= len(strings):
        return ""
    end = strings.find(b"\0", offset)
    return strings[offset : end if end >= 0 else len(strings)].decode("utf-8", "backslashreplace")


def read_elf(name: str, data: bytes) -> ObjectFile:
    """Reads one file; refuses those for link-time optimization, whose machine code does not exist yet."""
    if data.startswith(BITCODE):
        raise _intermediate(name)
    if data[:4] != b"\x7fELF":
        raise bad_object(name, "is not an ELF file or an archive of them.", GIVE_ELF)
    if len(data) < 52 or data[4] not in (1, 2) or data[5] not in (1, 2) or (data[4] == 2 and len(data) < 64):
        raise bad_object(name, "the ELF header is truncated or damaged.")
    bits, order = (64 if data[4] == 2 else 32), ("<" if data[5] == 1 else ">")
    word = "u8" if bits == 64 else "u4"
    fields = [("kind", "u2"), ("machine", "u2"), ("version", "u4"), ("entry", word), ("segments", word)]
    fields += [("sections", word), ("flags", "u4"), ("size", "u2"), ("segment_size", "u2"), ("segment_count", "u2")]
    fields += [("section_size", "u2"), ("section_count", "u2"), ("names", "u2")]
    header = np.frombuffer(data, np.dtype([(field, order + code) for field, code in fields]), 1, 16)[0]
    machine_code = int(header["machine"])
    if bits == 32 and MACHINES.get(machine_code) == "aarch64":
        cause = "contains AArch64 code for ILP32 (32-bit addresses), whose relocations nnbuild does not know."
        raise bad_object(name, cause, "Compile it for LP64: leave out -mabi=ilp32.")
    sections = _read_sections(name, data, header, bits, order)
    file = ObjectFile(
        name=name,
        data=data,
        machine=MACHINES.get(machine_code, f"unknown machine {machine_code}"),
        bits=bits,
        little=order == "<",
        kind=KINDS.get(int(header["kind"]), f"unknown type {int(header['kind'])}"),
        flags=int(header["flags"]),
        sections=sections,
        segments=_read_segments(name, data, header, bits, order),
    )
    if any(symbol.name == ONLY_INTERMEDIATE for symbol in file.listed_symbols):
        raise _intermediate(name)
    return file


def _intermediate(name: str) -> BadObjectFile:
    cause = "contains the compiler's intermediate code (-flto) and no machine code, so nothing in it can be audited."
    return bad_object(name, cause, "Compile it without -flto, or audit the linked program.")


def _read_sections(name: str, data: bytes, header: np.void, bits: int, order: str) -> tuple[Section, ...]:
    offset, count, names_at = int(header["sections"]), int(header["section_count"]), int(header["names"])
    dtype = _header_dtype(bits, order)
    if offset == 0:
        raise bad_object(name, "has no section table, so nothing in it can be audited.", "Give a file before `sstrip`.")
    if int(header["section_size"]) != dtype.itemsize:
        raise bad_object(name, "the section table has entries of an impossible size: the header is damaged.")
    first = read_table(name, data, dtype, offset, 1, "section table")[0]
    count = count or int(first["size"])  # with 65,280 sections or more the true numbers are in section 0
    names_at = int(first["link"]) if names_at == SHN_XINDEX else names_at
    table = read_table(name, data, dtype, offset, count, "section table")
    if names_at >= count:
        raise bad_object(name, f"the section with section names, number {names_at}, does not exist.")
    strings = data[int(table["offset"][names_at]) :][: int(table["size"][names_at])]
    sections = tuple(Section(index, text_at(strings, row[0]), *row[1:]) for index, row in enumerate(table.tolist()))
    for section in sections:
        if section.kind not in (SHT_NOBITS, 0) and section.offset + section.size > len(data):
            label = section.name or f"number {section.number}"
            raise bad_object(name, f"section {label} reaches past the end of the file: it is truncated or damaged.")
    return sections


def _read_segments(name: str, data: bytes, header: np.void, bits: int, order: str) -> tuple[Segment, ...]:
    offset, count, dtype = int(header["segments"]), int(header["segment_count"]), _segment_dtype(bits, order)
    if offset == 0 or count == 0:
        return ()
    if int(header["segment_size"]) != dtype.itemsize:
        raise bad_object(name, "the segment table has entries of an impossible size: the header is damaged.")
    columns = ("kind", "flags", "virtual", "physical", "file_size", "memory_size")
    table = read_table(name, data, dtype, offset, count, "segment table")
    return tuple(Segment(*(int(row[column]) for column in columns)) for row in table)


def _read_symbols(file: ObjectFile, table: Section) -> tuple[Symbol, ...]:
    order = "<" if file.little else ">"
    dtype = _symbol_dtype(file.bits, order)
    if table.entry_size not in (0, dtype.itemsize):
        raise bad_object(file.name, "the symbol table has entries of an impossible size.")
    count = table.size // dtype.itemsize
    rows = read_table(file.name, file.data, dtype, table.offset, count, "symbol table")
    if not 0 < table.link < len(file.sections):
        raise bad_object(file.name, "the symbol table names a string table that does not exist.")
    strings = file.content(file.sections[table.link])
    sections = rows["section"].astype(np.int64)
    extended = np.flatnonzero(sections == SHN_XINDEX)
    if extended.size:
        sections[extended] = _extended_indices(file, table, count)[extended]
    limit = len(file.sections)
    damaged = (sections >= limit) & ((sections < SHN_LORESERVE) | (sections > SHN_XINDEX))
    if damaged.any():
        raise bad_object(file.name, f"symbol {int(np.flatnonzero(damaged)[0])} lies in a section that does not exist.")
    columns = zip(
        rows["name"].tolist(),
        rows["value"].tolist(),
        rows["size"].tolist(),
        (rows["info"] & 15).tolist(),
        (rows["info"] >> 4).tolist(),
        sections.tolist(),
        strict=True,
    )
    symbols = []
    for name, value, size, kind, binding, section in columns:
        text = text_at(strings, name) if name else ""
        if kind == STT_SECTION and not text and section < limit:
            text = file.sections[section].name
        symbols.append(Symbol(text, value, size, kind, binding, section))
    return tuple(symbols)


def _extended_indices(file: ObjectFile, table: Section, count: int) -> np.ndarray:
    """Section numbers above 65,279, which are in a table parallel to the symbols."""
    order = "<" if file.little else ">"
    beside = next((s for s in file.sections if s.kind == SHT_SYMTAB_SHNDX and s.link == table.number), None)
    if beside is None:
        raise bad_object(file.name, "the table of extended section numbers is missing.")
    dtype = np.dtype([("index", order + "u4")])
    return read_table(file.name, file.data, dtype, beside.offset, count, "table of section numbers")["index"].astype(
        np.int64
    )


def _entries_of(file: ObjectFile, opd: Section) -> dict[int, tuple[int, int]]:
    """The contents of the descriptors or, in an unlinked object, the targets of their relocations."""
    symbols = file.listed_symbols
    order = "<" if file.little else ">"
    if not file.relocatable:
        words = np.frombuffer(file.content(opd)[: opd.size // 8 * 8], order + "u8").tolist()
        homes = [section for section in file.sections if section.executable and section.allocated]
        found = {}
        for index, word in enumerate(words):
            home = next((each for each in homes if each.address <= word < each.address + each.size), None)
            if home is not None:
                found[opd.address + 8 * index] = (home.number, word)
        return found
    table = next((each for each in file.sections if each.kind == SHT_RELA and each.info == opd.number), None)
    if table is None:
        return {}
    dtype = np.dtype([(name, order + code) for name, code in (("offset", "u8"), ("info", "u8"), ("addend", "i8"))])
    rows = read_table(file.name, file.data, dtype, table.offset, table.size // dtype.itemsize, "relocation table")
    result: dict[int, tuple[int, int]] = {}
    for offset, info, addend in rows.tolist():
        number = info >> 32
        if number < len(symbols) and 0 < symbols[number].section < len(file.sections):
            home = symbols[number].section
            if file.sections[home].executable:
                result[offset] = (home, symbols[number].value + addend)
    return result
