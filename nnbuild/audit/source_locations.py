"""The source location of an address: section, function, line, and inlined calls."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from nnbuild.audit.dies import DebugInfo, Unit
from nnbuild.audit.dwarf import DECODING_ERRORS, DebugSections
from nnbuild.audit.elf import (
    SHN_LORESERVE,
    STT_FUNC,
    STT_GNU_IFUNC,
    STT_NOTYPE,
    STT_OBJECT,
    ObjectFile,
    Section,
    Symbol,
)
from nnbuild.audit.line_table import LineTable
from nnbuild.audit.relocations import RelocationTable

MAPPING_PREFIXES = ("$a", "$t", "$d", "$x")


@dataclass(frozen=True)
class Place:
    """A place in an object. `function` is empty and `line` None where unknown (stripped, no DWARF)."""

    object: str
    section: str
    offset: int
    function: str = ""
    file: str = ""
    line: int | None = None
    inlined: tuple[str, ...] = ()
    """Functions inlined at this place, innermost first, each with the calling line: `act, called at t.c:9`."""

    is_data: bool = False
    """Whether `function` is the name of a variable."""

    @property
    def source(self) -> str:
        return f"{self.file}:{self.line}" if self.line is not None else ""

    def text(self) -> str:
        """One phrase: object, function, inlined functions, source line."""
        name = self.function if self.is_data else f"{self.function}()"
        parts = [self.object, name if self.function else f"{self.section}+0x{self.offset:x}"]
        words = ", ".join(parts)
        if self.inlined:
            words += f" (inlined from {'; '.join(self.inlined)})"
        return f"{words}, {self.source}" if self.source else f"{words}, line unknown"


@dataclass(frozen=True)
class Extent:
    """The addresses a symbol covers."""

    start: int
    end: int
    symbol: Symbol


class ExtentTable:
    """Extents in address order, for look-ups."""

    def __init__(self, extents: tuple[Extent, ...]) -> None:
        self._extents = extents
        self._starts = [extent.start for extent in extents]

    def at(self, address: int) -> Extent | None:
        position = bisect_right(self._starts, address) - 1
        for extent in self._extents[max(position - 3, 0) : position + 1][
            ::-1
        ]:  # short extents may lie inside longer ones
            if extent.start <= address < extent.end:
                return extent
        return None


@dataclass(frozen=True)
class Locator:
    """Locates addresses in one file; caches what it decodes."""

    file: ObjectFile
    debug: DebugSections = field(init=False)
    _lines: LineTable = field(init=False)
    _info: DebugInfo = field(init=False)

    def __post_init__(self) -> None:
        debug = DebugSections(self.file)
        object.__setattr__(self, "debug", debug)
        object.__setattr__(self, "_lines", LineTable(debug))
        object.__setattr__(self, "_info", DebugInfo(debug))

    @property
    def relocations(self) -> tuple[RelocationTable, ...]:
        return self.debug.relocations

    @cached_property
    def has_lines(self) -> bool:
        return self.file.section_named(".debug_line") is not None

    @cached_property
    def functions(self) -> tuple[Extent, ...]:
        """The functions of the file by address, one per address."""
        kinds = (STT_FUNC, STT_GNU_IFUNC)
        found = self._extents([s for s in self._code_symbols() if s.kind in kinds])
        if found:
            return found
        return self._extents([s for s in self._code_symbols() if s.kind == STT_NOTYPE])

    @cached_property
    def labels(self) -> tuple[Extent, ...]:
        """Functions and, for assembly without function symbols, global labels in code."""
        return self._extents([s for s in self._code_symbols() if s.kind != STT_NOTYPE or s.binding])

    @cached_property
    def objects(self) -> tuple[Extent, ...]:
        symbols = self.file.symbols or self.file.dynamic_symbols
        return self._extents([s for s in symbols if s.kind == STT_OBJECT])

    @cached_property
    def function_starts(self) -> list[int]:
        return [extent.start for extent in self.functions]

    @cached_property
    def _function_table(self) -> ExtentTable:
        return ExtentTable(self.functions)

    @cached_property
    def _label_table(self) -> ExtentTable:
        return ExtentTable(self.labels)

    @cached_property
    def _object_table(self) -> ExtentTable:
        return ExtentTable(self.objects)

    def _code_symbols(self) -> list[Symbol]:
        sections = self.file.sections
        executable = {section.number for section in sections if section.executable}
        symbols = self.file.symbols or self.file.dynamic_symbols
        return [
            symbol
            for symbol in symbols
            if symbol.section in executable
            and symbol.kind in (STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE)
            and symbol.name
            and not symbol.name.startswith((*MAPPING_PREFIXES, ".L"))
        ]

    def _extents(self, symbols: list[Symbol]) -> tuple[Extent, ...]:
        best: dict[int, Symbol] = {}
        for symbol in symbols:
            start = self.file.address_of(symbol) if symbol.section < SHN_LORESERVE else None
            if start is None:
                continue
            held = best.get(start)
            # Of several names for one address: sized before unsized, then global before local.
            if held is None or (symbol.size > 0, symbol.binding > 0) > (held.size > 0, held.binding > 0):
                best[start] = symbol
        starts = sorted(best)
        extents = []
        for position, start in enumerate(starts):
            symbol = best[start]
            limit = starts[position + 1] if position + 1 < len(starts) else start + len(self.file.data)
            extents.append(Extent(start, start + symbol.size if symbol.size else limit, symbol))
        return tuple(extents)

    @cached_property
    def _section_starts(self) -> tuple[list[int], list[Section]]:
        bases = self.file.bases
        held = [s for s in self.file.sections if s.allocated and s.size]
        held.sort(key=lambda s: bases[s.number])
        return [bases[s.number] for s in held], held

    def section_at(self, address: int) -> Section | None:
        starts, sections = self._section_starts
        position = bisect_right(starts, address) - 1
        if position < 0 or address >= starts[position] + sections[position].size:
            return None
        return sections[position]

    def function_at(self, address: int) -> Extent | None:
        return self._function_table.at(address) or self._label_table.at(address)

    @cached_property
    def marks(self) -> list[tuple[int, str]]:
        """Mapping symbols, sorted: the start of Thumb (t), ARM (a), other code (x) or data (d)."""
        found = []
        if self.file.machine in ("arm", "aarch64", "riscv"):
            for symbol in self.file.symbols:
                name = symbol.name
                if name.startswith(MAPPING_PREFIXES) and (name[2:3] in ("", ".") or name[1] == "x"):
                    address = self.file.address_of(symbol)
                    if address is not None:
                        found.append((address, name[1]))
        return sorted(found)

    def is_data_in_code(self, address: int) -> bool:
        """Whether mapping symbols mark the bytes at an address of a code section as data."""
        position = bisect_right(self.marks, (address, "~")) - 1
        return position >= 0 and self.marks[position][1] == "d"

    def place(self, address: int, with_line: bool = True, opening: bool = False) -> Place:
        """The place of an instruction or a variable or, with `opening`, of the function that starts there."""
        section = self.section_at(address)
        function = self.function_at(address) if section is None or section.executable else None
        name = function.symbol.name if function is not None else ""
        if not name and section is not None:
            holder = self._object_table.at(address)
            name = holder.symbol.name if holder is not None and self.section_at(holder.start) == section else ""
        data = bool(name) and function is None
        label = section.name if section is not None else "?"
        offset = address - self.file.bases[section.number] if section is not None else address
        if not with_line:
            return Place(self.file.name, label, offset, name, is_data=data)
        row = self._lines.row(address, opening)
        if row is None:
            return self._declaration(Place(self.file.name, label, offset, name, is_data=data), address)
        return Place(self.file.name, label, offset, name, row.file, row.line, self._inlined(address))

    def busiest(self, addresses: Sequence[int]) -> int:
        """The first of the addresses on the line with most of them.

        A function's first instructions often belong to the line of its opening brace, whatever they compute.
        """
        counted: dict[tuple[str, int], list[int]] = {}
        for address in addresses:
            row = self._lines.row(address)
            if row is not None:
                counted.setdefault((row.file, row.line), []).append(address)
        return max(counted.values(), key=len)[0] if counted else addresses[0]

    def _inlined(self, address: int) -> tuple[str, ...]:
        try:
            calls = self._info.inlined_at(address)
        except DECODING_ERRORS:
            return ()
        return tuple(
            f"{call.function or '?'}, called at {self._file_name(call.unit, call.file)}:{call.line}" for call in calls
        )

    def _file_name(self, unit: Unit, number: int) -> str:
        files = self._lines.files(self._info.line_table(unit))
        return files[number] if 0 <= number < len(files) else "?"

    def _declaration(self, place: Place, address: int) -> Place:
        """Data has no line table; its debug information gives the declaration."""
        holder = self._object_table.at(address)
        if holder is None or not self.has_lines:
            return place
        try:
            variable = self._info.variable_at(holder.start)
            if variable is None:
                return place
            unit, number, line = self._info.declared(variable)
        except DECODING_ERRORS:
            return place
        return replace(place, file=self._file_name(unit, number), line=line)

    def is_const(self, address: int) -> bool | None:
        """Whether the variable at an address is declared const; None where unknown."""
        try:
            variable = self._info.variable_at(address) if self.has_lines else None
            return self._info.is_const(variable) if variable is not None else None
        except DECODING_ERRORS:
            return None
