"""Walks .debug_info (versions 2 to 5) for functions, calls inlined into them, and variables.

Other entries are skipped, those of fixed size in one step, so that a unit of megabytes takes a fraction of a second.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from nnbuild.audit.dwarf import DECODING_ERRORS, Cursor, DebugSections

TAG_ARRAY, TAG_TYPEDEF, TAG_INLINED, TAG_CONST, TAG_SUBPROGRAM, TAG_VARIABLE = 0x01, 0x16, 0x1D, 0x26, 0x2E, 0x34
AT_LOCATION, AT_NAME, AT_STMT_LIST, AT_LOW, AT_HIGH, AT_ORIGIN = 0x02, 0x03, 0x10, 0x11, 0x12, 0x31
AT_DECL_FILE, AT_DECL_LINE, AT_SPECIFICATION, AT_TYPE, AT_RANGES = 0x3A, 0x3B, 0x47, 0x49, 0x55
AT_CALL_FILE, AT_CALL_LINE, AT_STR_OFFSETS, AT_ADDR_BASE, AT_RNGLISTS = 0x58, 0x59, 0x72, 0x73, 0x74
OP_ADDR, OP_ADDRX = 0x03, 0xA1
WANTED_TAGS = frozenset({TAG_INLINED, TAG_SUBPROGRAM, TAG_VARIABLE})

FIXED_FORMS = {
    0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x19: 0, 0x1E: 16, 0x20: 8,
    0x21: 0, 0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4, 0x29: 1, 0x2A: 2, 0x2B: 3, 0x2C: 4, 0x1C: 4, 0x24: 8,
}  # fmt: skip
OFFSET_FORMS = frozenset({0x0E, 0x10, 0x17, 0x1D, 0x1F, 0x1F20, 0x1F21})
LEB_FORMS = frozenset({0x0F, 0x15, 0x1A, 0x1B, 0x22, 0x23, 0x1F01, 0x1F02})
STRX_FORMS, ADDRX_FORMS = frozenset({0x1A, 0x25, 0x26, 0x27, 0x28}), frozenset({0x1B, 0x29, 0x2A, 0x2B, 0x2C})
UNIT_REF_FORMS = frozenset({0x11, 0x12, 0x13, 0x14, 0x15})
FORM_ADDR, FORM_BLOCK2, FORM_BLOCK4, FORM_STRING, FORM_BLOCK, FORM_BLOCK1 = 0x01, 0x03, 0x04, 0x08, 0x09, 0x0A
FORM_SDATA, FORM_STRP, FORM_EXPRLOC, FORM_LINE_STRP, FORM_IMPLICIT, FORM_RNGLISTX = 0x0D, 0x0E, 0x18, 0x1F, 0x21, 0x23
UNIT_TYPE_COMPILE, UNIT_TYPE_PARTIAL = 1, 3

Value = int | str | bytes
Attributes = dict[int, tuple[int, Value]]


class Abbreviation(NamedTuple):
    tag: int
    children: bool
    attributes: tuple[tuple[int, int, int], ...]
    """Attribute, form and, for the form that holds it here, the value."""
    size: int
    """Bytes an entry takes, or -1 when that differs from entry to entry."""


class Scope(NamedTuple):
    """A function, or a call that was inlined into it."""

    tag: int
    unit: Unit
    attributes: Attributes
    inner: list[Scope]


class Variable(NamedTuple):
    unit: Unit
    attributes: Attributes


@dataclass(frozen=True, eq=False)
class Unit:
    start: int
    first: int
    end: int
    version: int
    offset_size: int
    address_size: int
    abbreviations: dict[int, Abbreviation] = field(repr=False)
    root: Attributes = field(default_factory=dict, repr=False)


class InlinedCall(NamedTuple):
    """`function` was inlined into `caller` at a call in file number `file`, line `line`."""

    function: str
    unit: Unit
    file: int
    line: int


class DebugInfo:
    """The debug information of one file; units are decoded on demand."""

    def __init__(self, debug: DebugSections) -> None:
        self._debug = debug
        self._little = debug.file.little
        self._scopes: dict[int, tuple[list[tuple[int, int, Scope]], dict[int, Variable]]] = {}

    @cached_property
    def _info(self) -> bytes:
        return self._debug.get(".debug_info")

    @cached_property
    def _sections(self) -> dict[str, bytes]:
        names = ("abbrev", "str", "line_str", "str_offsets", "addr", "ranges", "rnglists")
        return {name: self._debug.get(f".debug_{name}") for name in names}

    @cached_property
    def units(self) -> list[Unit]:
        units, at = [], 0
        tables: dict[int, dict[int, Abbreviation]] = {}
        while at + 11 <= len(self._info):
            try:
                unit, at = self._unit(at, tables)
            except DECODING_ERRORS:
                break
            if unit is not None:
                units.append(unit)
        return units

    def _unit(self, at: int, tables: dict[int, dict[int, Abbreviation]]) -> tuple[Unit | None, int]:
        cursor = Cursor(self._info, at, self._little)
        length, offset_size = cursor.unit_length()
        end = cursor.at + length
        if length == 0 or end > len(self._info):
            raise ValueError("a damaged unit")
        version = cursor.number(2)
        kind = UNIT_TYPE_COMPILE
        if version >= 5:
            kind, address_size, table = cursor.number(1), cursor.number(1), cursor.number(offset_size)
        else:
            table, address_size = cursor.number(offset_size), cursor.number(1)
        if not 2 <= version <= 5 or kind not in (UNIT_TYPE_COMPILE, UNIT_TYPE_PARTIAL) or address_size not in (4, 8):
            return None, end
        if table not in tables:
            tables[table] = self._abbreviations(table, offset_size, address_size, version)
        unit = Unit(at, cursor.at, end, version, offset_size, address_size, tables[table])
        unit.root.update(self.attributes(unit, cursor.at))
        return unit, end

    def _abbreviations(self, at: int, offset_size: int, address_size: int, version: int) -> dict[int, Abbreviation]:
        cursor = Cursor(self._sections["abbrev"], at, self._little)
        table: dict[int, Abbreviation] = {}
        while code := cursor.uleb():
            tag, children, attributes, size = cursor.uleb(), cursor.number(1) == 1, [], 0
            while True:
                attribute, form = cursor.uleb(), cursor.uleb()
                if attribute == 0 and form == 0:
                    break
                attributes.append((attribute, form, cursor.sleb() if form == FORM_IMPLICIT else 0))
                width = form_width(form, offset_size, address_size, version)
                size = size + width if size >= 0 and width >= 0 else -1
            table[code] = Abbreviation(tag, children, tuple(attributes), size)
        return table

    def attributes(self, unit: Unit, offset: int) -> Attributes:
        """The attributes of the entry at `offset`."""
        cursor = Cursor(self._info, offset, self._little)
        abbreviation = unit.abbreviations[cursor.uleb()]
        return self._read(unit, cursor, abbreviation)

    def _read(self, unit: Unit, cursor: Cursor, abbreviation: Abbreviation) -> Attributes:
        return {
            attribute: (form, self._value(unit, cursor, form, implicit))
            for attribute, form, implicit in abbreviation.attributes
        }

    def _value(self, unit: Unit, cursor: Cursor, form: int, implicit: int) -> Value:
        if form == FORM_IMPLICIT:
            return implicit
        if form == FORM_STRING:
            return cursor.text()
        if form == FORM_SDATA:
            return cursor.sleb()
        if form in LEB_FORMS:
            value = cursor.uleb()
        elif form in (FORM_BLOCK, FORM_EXPRLOC):
            return cursor.block(cursor.uleb())
        elif form in (FORM_BLOCK1, FORM_BLOCK2, FORM_BLOCK4):
            return cursor.block(cursor.number({FORM_BLOCK1: 1, FORM_BLOCK2: 2, FORM_BLOCK4: 4}[form]))
        else:
            width = form_width(form, unit.offset_size, unit.address_size, unit.version)
            if width < 0:
                raise ValueError(f"unknown DWARF form {form}")
            value = cursor.number(width) if width else 1
        return value + unit.start if form in UNIT_REF_FORMS else value

    def _skip(self, unit: Unit, cursor: Cursor, abbreviation: Abbreviation) -> None:
        if abbreviation.size >= 0:
            cursor.at += abbreviation.size
            return
        for _, form, implicit in abbreviation.attributes:
            self._value(unit, cursor, form, implicit)

    # Interpretation of attributes.

    def text(self, unit: Unit, attributes: Attributes, attribute: int) -> str:
        form, value = attributes.get(attribute, (0, ""))
        if not isinstance(value, int):
            return value if isinstance(value, str) else ""
        if form in STRX_FORMS:
            base = self._integer(unit.root, AT_STR_OFFSETS)
            table = Cursor(self._sections["str_offsets"], base + value * unit.offset_size, self._little)
            form, value = FORM_STRP, table.number(unit.offset_size)
        section = {FORM_STRP: "str", FORM_LINE_STRP: "line_str"}.get(form)
        return Cursor(self._sections[section], value, self._little).text() if section else ""

    def _integer(self, attributes: Attributes, attribute: int) -> int:
        value = attributes.get(attribute, (0, 0))[1]
        return value if isinstance(value, int) else 0

    def _indexed_address(self, unit: Unit, index: int) -> int:
        base = self._integer(unit.root, AT_ADDR_BASE)
        return Cursor(self._sections["addr"], base + index * unit.address_size, self._little).number(unit.address_size)

    def _address(self, unit: Unit, attributes: Attributes, attribute: int) -> int | None:
        if attribute not in attributes:
            return None
        form, value = attributes[attribute]
        if not isinstance(value, int):
            return None
        return self._indexed_address(unit, value) if form in ADDRX_FORMS else value

    def ranges(self, unit: Unit, attributes: Attributes) -> list[tuple[int, int]]:
        """The address ranges an entry covers."""
        low = self._address(unit, attributes, AT_LOW)
        if AT_RANGES in attributes:
            form, value = attributes[AT_RANGES]
            if not isinstance(value, int):
                return []
            return self._ranges_5(unit, form, value) if unit.version >= 5 else self._ranges_2(unit, value)
        if low is None or AT_HIGH not in attributes:
            return []
        form, high = attributes[AT_HIGH]
        if form == FORM_ADDR or form in ADDRX_FORMS:
            high = self._address(unit, attributes, AT_HIGH) or 0
        elif isinstance(high, int):
            high = low + high
        return [(low, high)] if isinstance(high, int) else []

    def _ranges_2(self, unit: Unit, offset: int) -> list[tuple[int, int]]:
        cursor = Cursor(self._sections["ranges"], offset, self._little)
        found: list[tuple[int, int]] = []
        base = self._address(unit, unit.root, AT_LOW) or 0
        highest = (1 << 8 * unit.address_size) - 1
        while True:
            low, high = cursor.number(unit.address_size), cursor.number(unit.address_size)
            if low == 0 and high == 0:
                return found
            if low == highest:
                base = high
            else:
                found.append((base + low, base + high))

    def _ranges_5(self, unit: Unit, form: int, value: int) -> list[tuple[int, int]]:
        section = self._sections["rnglists"]
        if form == FORM_RNGLISTX:
            table = self._integer(unit.root, AT_RNGLISTS)
            value = table + Cursor(section, table + value * unit.offset_size, self._little).number(unit.offset_size)
        cursor, size = Cursor(section, value, self._little), unit.address_size
        found: list[tuple[int, int]] = []
        base = self._address(unit, unit.root, AT_LOW) or 0
        while kind := cursor.number(1):
            if kind == 1:
                base = self._indexed_address(unit, cursor.uleb())
            elif kind == 5:
                base = cursor.number(size)
            elif kind == 4:
                found.append((base + cursor.uleb(), base + cursor.uleb()))
            elif kind == 6:
                found.append((cursor.number(size), cursor.number(size)))
            elif kind in (2, 3, 7):
                low = cursor.number(size) if kind == 7 else self._indexed_address(unit, cursor.uleb())
                last = cursor.uleb()
                found.append((low, self._indexed_address(unit, last) if kind == 2 else low + last))
            else:
                raise ValueError("an unknown range list entry")
        return found

    # The walk.

    @cached_property
    def _unit_ranges(self) -> list[tuple[int, int, Unit]]:
        found = []
        for unit in self.units:
            try:
                found += [(low, high, unit) for low, high in self.ranges(unit, unit.root)]
            except DECODING_ERRORS:
                continue
        return sorted(found, key=lambda entry: entry[:2])

    def _unit_at(self, address: int) -> Unit | None:
        position = bisect_right(self._unit_ranges, address, key=lambda entry: entry[0]) - 1
        if position < 0:
            return None
        _, high, unit = self._unit_ranges[position]
        return unit if address < high else None

    def _walked(self, unit: Unit) -> tuple[list[tuple[int, int, Scope]], dict[int, Variable]]:
        if unit.start not in self._scopes:
            try:
                functions, variables = self._walk(unit)
                ranged = [(low, high, scope) for scope in functions for low, high in self._scope_ranges(scope)]
            except DECODING_ERRORS:
                ranged, variables = [], {}
            self._scopes[unit.start] = (sorted(ranged, key=lambda entry: entry[:2]), variables)
        return self._scopes[unit.start]

    def _walk(self, unit: Unit) -> tuple[list[Scope], dict[int, Variable]]:
        functions: list[Scope] = []
        variables: dict[int, Variable] = {}
        cursor, end, info, abbreviations = (
            Cursor(self._info, unit.first, self._little),
            unit.end,
            self._info,
            unit.abbreviations,
        )
        parents: list[list[Scope]] = [functions]
        while cursor.at < end:
            code = info[cursor.at]
            cursor.at += 1
            if code == 0:
                parents.pop()
                if not parents:
                    break
                continue
            if code > 127:
                cursor.at -= 1
                code = cursor.uleb()
            abbreviation = abbreviations[code]
            inner = parents[-1]
            if abbreviation.tag in WANTED_TAGS:
                attributes = self._read(unit, cursor, abbreviation)
                if abbreviation.tag == TAG_VARIABLE:
                    address = self._variable_address(unit, attributes)
                    if address is not None:
                        variables[address] = Variable(unit, attributes)
                else:
                    inner = []
                    parents[-1].append(Scope(abbreviation.tag, unit, attributes, inner))
            else:
                self._skip(unit, cursor, abbreviation)
            if abbreviation.children:
                parents.append(inner)
        return functions, variables

    def _variable_address(self, unit: Unit, attributes: Attributes) -> int | None:
        location = attributes.get(AT_LOCATION, (0, b""))[1]
        if not isinstance(location, bytes) or not location:
            return None
        if location[0] == OP_ADDR and len(location) == 1 + unit.address_size:
            return Cursor(location, 1, self._little).number(unit.address_size)
        if location[0] == OP_ADDRX:
            return self._indexed_address(unit, Cursor(location, 1, self._little).uleb())
        return None

    def _scope_ranges(self, scope: Scope) -> list[tuple[int, int]]:
        try:
            return self.ranges(scope.unit, scope.attributes)
        except DECODING_ERRORS:
            return []

    def _named(self, unit: Unit, attributes: Attributes) -> str:
        """The name of an entry, which may be in the entry that it copies or defines."""
        for _ in range(4):
            name = self.text(unit, attributes, AT_NAME)
            link = self._integer(attributes, AT_ORIGIN) or self._integer(attributes, AT_SPECIFICATION)
            if name or not link:
                return name
            unit = self._unit_holding(link)
            attributes = self.attributes(unit, link)
        return ""

    def _unit_holding(self, offset: int) -> Unit:
        position = bisect_right(self.units, offset, key=lambda unit: unit.start) - 1
        return self.units[max(position, 0)]

    def inlined_at(self, address: int) -> list[InlinedCall]:
        """The inlined calls at `address`, innermost first; empty for none or unknown."""
        unit = self._unit_at(address)
        if unit is None:
            return []
        ranged, _ = self._walked(unit)
        position = bisect_right(ranged, address, key=lambda entry: entry[0]) - 1
        if position < 0 or address >= ranged[position][1]:
            return []
        calls: list[InlinedCall] = []
        scope: Scope | None = ranged[position][2]
        while scope is not None:
            scope = next((s for s in scope.inner if self._covers(s, address)), None)
            if scope is not None and scope.tag == TAG_INLINED:
                file, line = (
                    self._integer(scope.attributes, AT_CALL_FILE),
                    self._integer(scope.attributes, AT_CALL_LINE),
                )
                try:
                    calls.insert(0, InlinedCall(self._named(scope.unit, scope.attributes), scope.unit, file, line))
                except DECODING_ERRORS:
                    break
        return calls

    def _covers(self, scope: Scope, address: int) -> bool:
        return any(low <= address < high for low, high in self._scope_ranges(scope))

    def line_table(self, unit: Unit) -> int:
        """Offset of the unit's line table."""
        return self._integer(unit.root, AT_STMT_LIST)

    def variable_at(self, address: int) -> Variable | None:
        for unit in self.units:
            found = self._walked(unit)[1].get(address)
            if found is not None:
                return found
        return None

    def declared(self, variable: Variable) -> tuple[Unit, int, int]:
        """Unit, file number and line of a variable's declaration."""
        unit, attributes = variable
        link = self._integer(attributes, AT_SPECIFICATION)
        if AT_DECL_LINE not in attributes and link:
            unit = self._unit_holding(link)
            attributes = {**self.attributes(unit, link), **attributes}
        return unit, self._integer(attributes, AT_DECL_FILE), self._integer(attributes, AT_DECL_LINE)

    def is_const(self, variable: Variable) -> bool:
        """Whether the variable's type is const, or an array of const elements."""
        unit, attributes = variable
        link = self._integer(attributes, AT_SPECIFICATION)
        if AT_TYPE not in attributes and link:
            unit = self._unit_holding(link)
            attributes = self.attributes(unit, link)
        for _ in range(8):
            link = self._integer(attributes, AT_TYPE)
            if not link:
                return False
            unit = self._unit_holding(link)
            cursor = Cursor(self._info, link, self._little)
            abbreviation = unit.abbreviations[cursor.uleb()]
            if abbreviation.tag == TAG_CONST:
                return True
            if abbreviation.tag not in (TAG_ARRAY, TAG_TYPEDEF):
                return False
            attributes = self._read(unit, cursor, abbreviation)
        return False


def form_width(form: int, offset_size: int, address_size: int, version: int) -> int:
    """Bytes a value of this form takes, or -1 when that depends on the value."""
    if form == FORM_ADDR:
        return address_size
    if form == 0x10 and version == 2:  # references to other units had the size of an address
        return address_size
    return offset_size if form in OFFSET_FORMS else FIXED_FORMS.get(form, -1)
