"""Undefined symbols of the audited files: the functions and lines that need them, and the policy's verdict."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nnbuild.audit.calls import CallReader
from nnbuild.audit.code import Code, find_capstone
from nnbuild.audit.elf import (
    SHN_COMMON,
    SHN_LORESERVE,
    STB_LOCAL,
    STB_WEAK,
    STT_FILE,
    STT_FUNC,
    STT_GNU_IFUNC,
    ObjectFile,
    Symbol,
)
from nnbuild.audit.findings import Finding, Need, NeedVerdict
from nnbuild.audit.literal_pools import LiteralPools
from nnbuild.audit.policy import OTHER, Policy, group_of
from nnbuild.audit.relocations import MARKER_TYPES
from nnbuild.audit.source_locations import Locator, Place
from nnbuild.base.errors import UsageError


@dataclass(frozen=True)
class NeedContext:
    """Everything besides its name that decides about a symbol."""

    policy: Policy
    supplied: Mapping[str, Path]
    defined: Mapping[str, str]
    """Symbols that the audited files define for each other, with the defining object."""
    explain: Collection[str]
    """Symbols whose source line is wanted whatever the verdict."""

    def verdict(self, symbol: str) -> NeedVerdict:
        if symbol in self.defined:
            return "resolved"
        if symbol in self.supplied:
            return "supplied"
        said = self.policy.verdict(symbol)
        return {"forbid": "forbidden", "warn": "warned", "allow": "allowed"}[said]  # type: ignore[return-value]


def defined_symbols(files: Iterable[ObjectFile]) -> dict[str, str]:
    """Every global symbol that the objects define, with its object."""
    found: dict[str, str] = {}
    for file in files:
        for symbol in file.symbols:
            inside = 0 < symbol.section < SHN_LORESERVE or symbol.section == SHN_COMMON
            if inside and symbol.binding != STB_LOCAL and symbol.name:
                found.setdefault(symbol.name, file.name)
    return found


def needs_of(locator: Locator, context: NeedContext) -> tuple[Need, ...]:
    """The needs of one file, sorted by symbol."""
    found = _object_needs(locator, context) if locator.file.relocatable else _linked_needs(locator, context)
    return tuple(sorted(found, key=lambda need: need.symbol))


def _need(name: str, places: Iterable[Place], context: NeedContext, weak: bool = False) -> Need:
    group = group_of(name)
    return Need(
        symbol=name,
        group=group.name if group is not None else OTHER,
        verdict=context.verdict(name),
        places=tuple(places),
        source=context.supplied.get(name),
        resolved_by=context.defined.get(name, ""),
        weak=weak,
    )


def _undefined(symbols: tuple[Symbol, ...]) -> dict[int, Symbol]:
    return {i: s for i, s in enumerate(symbols) if s.undefined and s.name and s.kind != STT_FILE}


def _object_needs(locator: Locator, context: NeedContext) -> list[Need]:
    file = locator.file
    undefined = _undefined(file.symbols)
    addresses: dict[int, list[int]] = {index: [] for index in undefined}
    wanted = np.zeros(len(file.symbols) + 1, bool)
    wanted[list(undefined)] = True
    for table in locator.relocations:
        if table.target is None or not table.target.allocated:
            continue
        markers = [number for number in np.unique(table.types).tolist() if table.type_name(number) in MARKER_TYPES]
        chosen = np.flatnonzero(wanted[table.symbols] & ~np.isin(table.types, markers))
        base = file.bases[table.target.number]
        for index, offset in zip(table.symbols[chosen].tolist(), table.offsets[chosen].tolist(), strict=True):
            addresses[index].append(base + offset)
    needs = []
    for index, symbol in undefined.items():
        places = _places(locator, addresses[index], symbol.name, context)
        # An undefined symbol that nothing refers to still makes the linker look for it.
        needs.append(_need(symbol.name, places, context, symbol.binding == STB_WEAK))
    return needs


def _places(locator: Locator, addresses: list[int], symbol: str, context: NeedContext) -> list[Place]:
    """One place per function (or section, where functions are unknown) that refers to the symbol, with its source
    line where a report shows it."""
    with_line = symbol in context.explain or context.verdict(symbol) in ("forbidden", "warned", "supplied")
    seen: set[object] = set()
    places: list[Place] = []
    pools = LiteralPools(locator)
    for address in addresses:
        extent = locator.function_at(address)
        section = locator.section_at(address)
        key = extent.start if extent is not None else section
        if key not in seen:
            seen.add(key)
            places.append(locator.place(pools.user(address) if with_line else address, with_line))
    return places


def _linked_needs(locator: Locator, context: NeedContext) -> list[Need]:
    """The imports of a linked file, and forbidden functions that were linked in."""
    file = locator.file
    imported = _undefined(file.dynamic_symbols or file.symbols)
    names = {symbol.name: symbol.binding == STB_WEAK for symbol in imported.values()}
    present = [symbol for symbol in file.symbols if _forbidden_inside(symbol, context)]
    asked = [s for s in file.symbols if s.name in context.explain and 0 < s.section < SHN_LORESERVE]
    watched = {s.name: locator.file.address_of(s) for s in (*present, *asked)}
    interesting = any(context.verdict(name) != "allowed" or name in context.explain for name in names)
    callers = _callers(locator, watched) if (watched or interesting) else {}
    needs = [
        _need(name, _places(locator, callers.get(name, []), name, context), context, weak)
        for name, weak in names.items()
    ]
    for name, address in watched.items():
        addresses = callers.get(name) or ([address] if address is not None else [])
        verdict: NeedVerdict = "forbidden" if any(s.name == name for s in present) else "resolved"
        places = _places(locator, addresses, name, replace(context, defined={}))
        needs.append(replace(_need(name, places, context), verdict=verdict))
    return needs


def _forbidden_inside(symbol: Symbol, context: NeedContext) -> bool:
    return (
        symbol.kind in (STT_FUNC, STT_GNU_IFUNC)
        and 0 < symbol.section < SHN_LORESERVE
        and symbol.binding != STB_LOCAL
        and symbol.name not in context.supplied
        and context.policy.verdict(symbol.name) == "forbid"
    )


def _callers(locator: Locator, watched: Mapping[str, int | None]) -> dict[str, list[int]]:
    """Addresses of calls to watched and to imported functions, by name; empty without capstone."""
    code = Code(locator)
    if find_capstone() is None or not code.readable:
        return {}
    reader = CallReader(code)
    by_address = {address: name for name, address in watched.items()}
    found: dict[str, list[int]] = {}
    for chunk in code.chunks():
        for branch in reader.branches(chunk):
            name = branch.symbol or by_address.get(branch.target, "")
            if name and not chunk.section.name.startswith(".plt"):
                found.setdefault(name, []).append(branch.address)
    return found


def findings_from(needs: Iterable[Need], policy: Policy) -> list[Finding]:
    """A finding for each place that needs a symbol that the policy forbids or warns of."""
    found = []
    for need in needs:
        if need.verdict not in ("forbidden", "warned"):
            continue
        group = group_of(need.symbol)
        what, fix = (group.what, group.fix) if group is not None else ("a symbol", "Define it, or remove its use.")
        for place in need.places or (None,):
            found.append(
                Finding(
                    rule=f"symbol:{need.group}",
                    severity="violation" if need.verdict == "forbidden" else "warning",
                    subject=need.symbol,
                    place=place,
                    message=f"needs {need.symbol}, {what}, which the policy {policy.name} {_says(need)}.",
                    fix=fix,
                )
            )
    return found


def _says(need: Need) -> str:
    return "forbids" if need.verdict == "forbidden" else "warns of"


def library_sources(directory: Path) -> dict[str, Path]:
    """The symbols supplied by a library with the layout of firmware/libm: nn_expf by nn_expf.c, expf by
    plain/expf.c."""
    found = {path.stem: path for path in sorted(directory.glob("nn_*.c"))}
    found.update({path.stem: path for path in sorted((directory / "plain").glob("*.c"))})
    if not found:
        raise UsageError(str(directory), "holds no source named nn_*.c.", "Give the directory firmware/libm.")
    return found


COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
NAMES = re.compile(r"[A-Za-z_]\w*")


def close_over_sources(wanted: Iterable[Path], supplied: Mapping[str, Path]) -> tuple[Path, ...]:
    """The wanted sources, plus those that supply symbols named in them outside comments."""
    found: dict[Path, None] = {}
    waiting = list(wanted)
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found[path] = None
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise UsageError(str(path), "the source of a supplied symbol cannot be read.", "Check the path.") from None
        waiting += [supplied[name] for name in NAMES.findall(COMMENTS.sub(" ", text)) if name in supplied]
    return tuple(sorted(found))
