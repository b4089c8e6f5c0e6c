"""The DWARF line table (versions 2 to 5): the source line of an address.

Only units with a wanted address are decoded. They are found by the start of each of their sequences: the operand of
DW_LNE_set_address, located by its byte pattern without running the line program.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

from nnbuild.audit.dwarf import DECODING_ERRORS, Cursor, DebugSections

# Content types and forms of version 5 file tables.
LNCT_PATH, LNCT_DIRECTORY = 1, 2
FORM_STRING, FORM_UDATA, FORM_STRP, FORM_LINE_STRP, FORM_BLOCK, FORM_BLOCK1 = 0x08, 0x0F, 0x0E, 0x1F, 0x09, 0x0A
FORM_FIXED = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16, 0x25: 1, 0x26: 2, 0x28: 4}
MAX_ROWS = 4_000_000  # per unit; far above real ones; bounds the memory for a damaged program


@dataclass(frozen=True)
class LineHeader:
    version: int
    program: int
    end: int
    minimum_length: int
    line_base: int
    line_range: int
    opcode_base: int
    operand_counts: tuple[int, ...]
    files: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    file: str
    line: int


@dataclass(frozen=True)
class UnitLines:
    """The decoded rows of a unit, sorted by address; line -1 marks the end of a sequence, 0 code of no line."""

    files: tuple[str, ...]
    addresses: list[int] = field(repr=False)
    file_numbers: list[int] = field(repr=False)
    lines: list[int] = field(repr=False)

    def at(self, address: int, opening: bool = False) -> Row | None:
        """The row of an address: the last of several, or the first for the opening of a function."""
        position = bisect_right(self.addresses, address) - 1
        while opening and position > 0 and self.addresses[position - 1] == address and self.lines[position - 1] > 0:
            position -= 1
        if position < 0 or self.lines[position] <= 0:
            return None
        number = self.file_numbers[position]
        return Row(self.files[number] if 0 <= number < len(self.files) else "?", self.lines[position])


class LineTable:
    """Answers `row(address)` for one file; decodes units on demand and caches them."""

    def __init__(self, debug: DebugSections) -> None:
        self._debug = debug
        self._decoded: dict[int, UnitLines | None] = {}

    @cached_property
    def data(self) -> bytes:
        return self._debug.get(".debug_line")

    @cached_property
    def _strings(self) -> dict[int, bytes]:
        return {FORM_STRP: self._debug.get(".debug_str"), FORM_LINE_STRP: self._debug.get(".debug_line_str")}

    @cached_property
    def _units(self) -> list[tuple[int, int]]:
        """Start and end of every unit in .debug_line."""
        units, at, little = [], 0, self._debug.file.little
        while at + 4 <= len(self.data):
            cursor = Cursor(self.data, at, little)
            try:
                length, _ = cursor.unit_length()
            except IndexError:
                break
            end = cursor.at + length
            if length == 0 or end > len(self.data):
                break
            units.append((at, end))
            at = end
        return units

    @cached_property
    def _starts(self) -> tuple[list[int], list[int]]:
        """Addresses at which sequences begin, sorted, and the unit of each."""
        width = self._debug.file.bits // 8
        pattern, little = bytes((0, width + 1, 2)), self._debug.file.little
        found = []
        for number, (start, end) in enumerate(self._units):
            at = self.data.find(pattern, start, end)
            while at >= 0 and at + 3 + width <= end:
                address = Cursor(self.data, at + 3, little).number(width)
                if self._in_code(address):  # unlike the same bytes by chance
                    found.append((address, number))
                at = self.data.find(pattern, at + 3 + width, end)
        found.sort()
        return [address for address, _ in found], [unit for _, unit in found]

    def _in_code(self, address: int) -> bool:
        starts, ends = self._code_ranges
        position = bisect_right(starts, address) - 1
        return position >= 0 and address < ends[position]

    @cached_property
    def _code_ranges(self) -> tuple[list[int], list[int]]:
        file = self._debug.file
        held = [(file.bases[s.number], file.bases[s.number] + s.size) for s in file.sections if s.executable]
        held.sort()
        return [start for start, _ in held], [end for _, end in held]

    def row(self, address: int, opening: bool = False) -> Row | None:
        addresses, units = self._starts
        position = bisect_right(addresses, address) - 1
        if position < 0:
            return None
        return self._row_in(units[position], address, opening)

    def _row_in(self, unit: int, address: int, opening: bool) -> Row | None:
        if unit not in self._decoded:
            try:
                self._decoded[unit] = self._decode(self._units[unit])
            except DECODING_ERRORS:
                self._decoded[unit] = None
        lines = self._decoded[unit]
        return lines.at(address, opening) if lines is not None else None

    def files(self, offset: int) -> tuple[str, ...]:
        """The file names of the unit that starts at `offset`, by the file numbers in the debug information."""
        unit = next((u for u in self._units if u[0] == offset), None)
        try:
            return self._header(unit).files if unit is not None else ()
        except DECODING_ERRORS:
            return ()

    def _header(self, unit: tuple[int, int]) -> LineHeader:
        cursor = Cursor(self.data, unit[0], self._debug.file.little)
        _, offset_size = cursor.unit_length()
        version = cursor.number(2)
        if not 2 <= version <= 5:
            raise ValueError(f"line table version {version}")
        if version >= 5:
            cursor.number(2)  # address and segment selector sizes
        length = cursor.number(offset_size)
        program = cursor.at + length
        minimum_length = cursor.number(1)
        if version >= 4:
            cursor.number(1)  # operations per instruction: 1 on every machine audited here
        cursor.number(1)
        line_base = cursor.number(1)
        line_range, opcode_base = cursor.number(1), cursor.number(1)
        if line_range == 0 or opcode_base == 0:
            raise ValueError("a line table without opcodes")
        operands = tuple(cursor.number(1) for _ in range(opcode_base - 1))
        names = self._names_5(cursor, offset_size) if version >= 5 else _names_2(cursor)
        signed_base = line_base - 256 if line_base > 127 else line_base
        return LineHeader(
            version, program, unit[1], minimum_length, signed_base, line_range, opcode_base, operands, names
        )

    def _names_5(self, cursor: Cursor, offset_size: int) -> tuple[str, ...]:
        directories = [path for path, _ in self._entries(cursor, offset_size)]
        return tuple(_joined(directories, path, directory) for path, directory in self._entries(cursor, offset_size))

    def _entries(self, cursor: Cursor, offset_size: int) -> list[tuple[str, int]]:
        formats = [(cursor.uleb(), cursor.uleb()) for _ in range(cursor.number(1))]
        count = cursor.uleb()
        if count > len(self.data) or (not formats and count):
            raise ValueError("a damaged file table")
        entries = []
        for _ in range(count):
            path, directory = "", 0
            for content, form in formats:
                value = self._value(cursor, form, offset_size)
                if content == LNCT_PATH and isinstance(value, str):
                    path = value
                elif content == LNCT_DIRECTORY and isinstance(value, int):
                    directory = value
            entries.append((path, directory))
        return entries

    def _value(self, cursor: Cursor, form: int, offset_size: int) -> str | int | bytes:
        if form == FORM_STRING:
            return cursor.text()
        if form in (FORM_STRP, FORM_LINE_STRP):
            return Cursor(self._strings[form], cursor.number(offset_size), True).text()
        if form == FORM_UDATA:
            return cursor.uleb()
        if form in (FORM_BLOCK, FORM_BLOCK1):
            return cursor.block(cursor.uleb() if form == FORM_BLOCK else cursor.number(1))
        return cursor.number(FORM_FIXED[form])

    def _decode(self, unit: tuple[int, int]) -> UnitLines:
        header = self._header(unit)
        rows = run_program(self.data, header, self._debug.file.little)
        rows.sort(key=lambda row: row[:2])
        return UnitLines(header.files, [r[0] for r in rows], [r[2] for r in rows], [r[3] for r in rows])


def _names_2(cursor: Cursor) -> tuple[str, ...]:
    """Versions 2 to 4: directories and files as plain lists; both count from 1."""
    directories = [""]
    while text := cursor.text():
        directories.append(text)
    files = ["?"]
    while text := cursor.text():
        directory = cursor.uleb()
        cursor.uleb()
        cursor.uleb()
        files.append(_joined(directories, text, directory))
    return tuple(files)


def _joined(directories: list[str], path: str, directory: int) -> str:
    """A file in the compilation directory (number 0) keeps its plain name, as given to the compiler."""
    if directory == 0 or path.startswith("/") or directory >= len(directories):
        return path
    return f"{directories[directory]}/{path}"


def run_program(data: bytes, header: LineHeader, little: bool) -> list[tuple[int, int, int, int]]:
    """Runs a line program. Rows are (address, order, file, line); `order` sorts the end of a sequence before a start
    at the same address, and keeps the written order of rows at one address."""
    rows: list[tuple[int, int, int, int]] = []
    cursor = Cursor(data, header.program, little)
    end, base, span, floor = header.end, header.opcode_base, header.line_range, header.line_base
    step, address, file, line = header.minimum_length, 0, 1, 1
    while cursor.at < end:
        opcode = data[cursor.at]
        cursor.at += 1
        if opcode >= base:
            address += (opcode - base) // span * step
            line += floor + (opcode - base) % span
            rows.append((address, len(rows), file, line))
        elif opcode == 0:
            length = cursor.uleb()
            if length == 0:
                continue
            following = cursor.at + length
            extended = cursor.number(1)
            if extended == 1:
                rows.append((address, -1, file, -1))
                address, file, line = 0, 1, 1
            elif extended == 2:
                address = cursor.number(length - 1)
            cursor.at = following
        elif opcode == 1:
            rows.append((address, len(rows), file, line))
        elif opcode == 2:
            address += cursor.uleb() * step
        elif opcode == 3:
            line += cursor.sleb()
        elif opcode == 4:
            file = cursor.uleb()
        elif opcode == 8:
            address += (255 - base) // span * step
        elif opcode == 9:
            address += cursor.number(2)
        else:
            for _ in range(header.operand_counts[opcode - 1]):
                cursor.uleb()
        if len(rows) > MAX_ROWS:
            raise ValueError("an endless line program")
    return rows
