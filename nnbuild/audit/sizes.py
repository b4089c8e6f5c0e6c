"""Bytes of code, constants, data and zeroed data of an object, in total and by symbol."""

from __future__ import annotations

from typing import Literal

from nnbuild.audit.elf import SHN_COMMON, SHT_NOBITS, STT_FUNC, STT_OBJECT, STT_TLS, ObjectFile, Section
from nnbuild.audit.findings import Sizes, SymbolSize

Kind = Literal["code", "constants", "data", "bss"]


def kind_of(section: Section) -> Kind:
    """Counts like GNU `size`, but with constants separate from code."""
    if section.executable:
        return "code"
    if not section.writable:
        return "constants"
    return "bss" if section.kind == SHT_NOBITS else "data"


def sizes_of(file: ObjectFile) -> Sizes:
    counted = {"code": 0, "constants": 0, "data": 0, "bss": 0}
    for section in file.sections:
        if section.allocated:
            counted[kind_of(section)] += section.size
    # Common symbols get their bytes of bss only from the linker.
    if file.relocatable:
        counted["bss"] += sum(symbol.size for symbol in file.symbols if symbol.section == SHN_COMMON)
    return Sizes(**counted)


def section_sizes(file: ObjectFile) -> dict[str, int]:
    """Bytes of every allocated section by name; equal names are added up."""
    found: dict[str, int] = {}
    for section in file.sections:
        if section.allocated:
            found[section.name] = found.get(section.name, 0) + section.size
    return found


def symbol_sizes(file: ObjectFile) -> tuple[SymbolSize, ...]:
    """Every sized function and object, largest first; aliases count once."""
    seen: set[tuple[int, int]] = set()
    found = []
    for symbol in file.symbols:
        if symbol.kind not in (STT_FUNC, STT_OBJECT, STT_TLS) or not symbol.size:
            continue
        if symbol.section == SHN_COMMON:
            found.append(SymbolSize(file.name, symbol.name, "bss", symbol.size))
        elif 0 < symbol.section < len(file.sections) and file.sections[symbol.section].allocated:
            seen_before = len(seen)
            seen.add((symbol.section, symbol.value))
            if len(seen) > seen_before:
                found.append(SymbolSize(file.name, symbol.name, kind_of(file.sections[symbol.section]), symbol.size))
    return tuple(sorted(found, key=lambda entry: (-entry.size, entry.name)))
