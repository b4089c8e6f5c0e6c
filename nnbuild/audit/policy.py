"""Audit policies and symbol groups, read from TOML files."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast

from nnbuild.base.errors import UsageError

Verdict = Literal["forbid", "warn", "allow"]
VERDICTS = ("forbid", "warn", "allow")
HERE = Path(__file__).parent
NAMES = ("kernel", "mcu", "hosted")
OTHER = "other"


@dataclass(frozen=True)
class SymbolGroup:
    name: str
    what: str
    fix: str
    names: frozenset[str]
    patterns: tuple[str, ...]

    def holds(self, symbol: str) -> bool:
        return symbol in self.names or any(fnmatchcase(symbol, pattern) for pattern in self.patterns)


@dataclass(frozen=True)
class Policy:
    name: str
    about: str
    symbols: Mapping[str, Verdict]
    """Verdict for every symbol group, and for `other` symbols."""
    allowed_symbols: tuple[str, ...]
    forbidden_relocations: tuple[str, ...]
    writable_executable: Verdict
    writable_executable_segments: Verdict
    constructors: Verdict
    expected_constructors: tuple[str, ...]
    writable_data: Verdict
    constants_in_ram: Verdict
    model_objects: tuple[str, ...]
    """Globs: generated model objects, which may not contain writable data."""
    floating_point: Verdict
    double: Verdict
    may_use_fp: tuple[str, ...]
    """Globs of objects and functions that may contain floating-point instructions."""

    def with_overrides(
        self,
        *,
        may_use_fp: Iterable[str] | None = None,
        model_objects: Iterable[str] | None = None,
        allowed_symbols: Iterable[str] = (),
    ) -> Policy:
        """A copy for one call: other objects may use floating point or count as the model's; more symbols are
        allowed."""
        return replace(
            self,
            may_use_fp=self.may_use_fp if may_use_fp is None else tuple(may_use_fp),
            model_objects=self.model_objects if model_objects is None else tuple(model_objects),
            allowed_symbols=(*self.allowed_symbols, *allowed_symbols),
        )

    def verdict(self, symbol: str) -> Verdict:
        if matches(symbol, self.allowed_symbols):
            return "allow"
        group = group_of(symbol)
        return self.symbols[group.name if group is not None else OTHER]

    def is_model_object(self, name: str) -> bool:
        return matches(name, self.model_objects) or matches(_member(name), self.model_objects)

    def fp_allowed(self, name: str, function: str) -> bool:
        if self.floating_point != "forbid":
            return True
        return any(matches(text, self.may_use_fp) for text in (name, _member(name), function) if text)


def _member(name: str) -> str:
    """`expf.o` of `libm.a(expf.o)`."""
    return name[name.index("(") + 1 : -1] if name.endswith(")") and "(" in name else name


def matches(text: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)


@lru_cache(maxsize=1)
def symbol_groups() -> tuple[SymbolGroup, ...]:
    tables = tomllib.loads((HERE / "symbol_groups.toml").read_text("utf-8"))
    groups = []
    for name, table in tables.items():
        plain = table.get("names", [])
        suffixed = [name + suffix for name in plain for suffix in table.get("suffixes", [])]
        patterns = tuple(table.get("patterns", []))
        groups.append(SymbolGroup(name, table["what"], table["fix"], frozenset(plain + suffixed), patterns))
    return tuple(groups)


@lru_cache(maxsize=65536)
def group_of(symbol: str) -> SymbolGroup | None:
    """The first group that contains the symbol; a version after `@` is ignored."""
    plain = symbol.split("@", 1)[0]
    return next((group for group in symbol_groups() if group.holds(plain)), None)


def load_policy(name_or_path: str | Path) -> Policy:
    """A policy that comes with nnbuild, by name, or one from a TOML file."""
    path = HERE / "policies" / f"{name_or_path}.toml" if str(name_or_path) in NAMES else Path(name_or_path)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError, ValueError):
        known = ", ".join(NAMES)
        raise UsageError(
            f"policy {name_or_path}",
            "is neither a policy nor a readable file.",
            f"Use {known}, or the path of a TOML file.",
        ) from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise UsageError(f"policy {path}", f"is not valid TOML ({problem}).", "Correct the file.") from None
    return _PolicyReader(str(path), table).policy()


@dataclass(frozen=True)
class _PolicyReader:
    """Checks every field of a policy file, so that a misspelt field is an error and not a rule without effect."""

    where: str
    table: dict[str, Any]

    def wrong(self, cause: str) -> UsageError:
        return UsageError(f"policy {self.where}", cause, "`nnbuild docs audit` describes the format of a policy.")

    def policy(self) -> Policy:
        groups = [group.name for group in symbol_groups()]
        self._known(self.table, ("name", "about", "symbols", "relocations", "sections", "data", "instructions"), "")
        symbols, sections = self._part("symbols"), self._part("sections")
        data, instructions = self._part("data"), self._part("instructions")
        self._known(symbols, (*groups, OTHER, "allow"), "symbols.")
        self._known(self._part("relocations"), ("forbid",), "relocations.")
        self._known(
            sections,
            ("writable_executable", "writable_executable_segments", "constructors", "expected_constructors"),
            "sections.",
        )
        self._known(data, ("writable", "constants_in_ram", "model_objects"), "data.")
        self._known(instructions, ("floating_point", "double", "may_use_fp"), "instructions.")
        return Policy(
            name=self._text("name"),
            about=self._text("about"),
            symbols={group: self._verdict("symbols", group) for group in (*groups, OTHER)},
            allowed_symbols=self._list("symbols", "allow"),
            forbidden_relocations=self._list("relocations", "forbid"),
            writable_executable=self._verdict("sections", "writable_executable"),
            writable_executable_segments=self._verdict("sections", "writable_executable_segments"),
            constructors=self._verdict("sections", "constructors"),
            expected_constructors=self._list("sections", "expected_constructors"),
            writable_data=self._verdict("data", "writable"),
            constants_in_ram=self._verdict("data", "constants_in_ram"),
            model_objects=self._list("data", "model_objects"),
            floating_point=self._verdict("instructions", "floating_point"),
            double=self._verdict("instructions", "double"),
            may_use_fp=self._list("instructions", "may_use_fp"),
        )

    def _part(self, name: str) -> dict[str, Any]:
        part = self.table.get(name)
        if not isinstance(part, dict):
            raise self.wrong(f"has no table [{name}].")
        return part

    def _known(self, table: dict[str, Any], names: Iterable[str], prefix: str) -> None:
        for name in table:
            if name not in names:
                raise self.wrong(f"has the unknown field {prefix}{name}.")

    def _text(self, name: str) -> str:
        value = self.table.get(name)
        if not isinstance(value, str):
            raise self.wrong(f"has no string {name!r}.")
        return value

    def _verdict(self, part: str, name: str) -> Verdict:
        value = self._part(part).get(name)
        if value not in VERDICTS:
            raise self.wrong(f"needs {part}.{name} to be one of {', '.join(VERDICTS)}.")
        return cast(Verdict, value)

    def _list(self, part: str, name: str) -> tuple[str, ...]:
        value = self._part(part).get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(f"needs {part}.{name} to be a list of strings.")
        return tuple(value)
