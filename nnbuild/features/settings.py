"""Reads a table of settings into a dataclass; errors name the key and line."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NoReturn, TypeVar, get_type_hints

from nnbuild.base.errors import UsageError

Settings = TypeVar("Settings")
LARGEST = 1 << 20
"""Most bytes of a settings file."""


class Table:
    """One table of a file: its values, and where they stand."""

    def __init__(self, path: Path, name: str, values: Mapping[str, Any], text: str) -> None:
        self.path, self.name, self.values, self.text = path, name, values, text

    def line(self, key: str | None) -> int:
        """Line of a key, or of the table itself; 1 where neither is found."""
        inside = False
        start = 1
        for number, line in enumerate(self.text.splitlines(), 1):
            head = re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line)
            if head:
                inside = head[1] == self.name
                start = number if inside else start
            elif inside and key is not None and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line):
                return number
        return start

    def refuse(self, key: str | None, cause: str, step: str) -> NoReturn:
        place = f"[{self.name}] {key}" if key is not None else f"[{self.name}]"
        raise UsageError(f"{self.path}:{self.line(key)}: {place}", cause, step)

    def read(
        self, kind: type[Settings], aside: tuple[str, ...] = (), defaults: Mapping[str, Any] | None = None
    ) -> Settings:
        """`aside` are keys that are read elsewhere; `defaults` replace the dataclass's own."""
        known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
        hints = get_type_hints(kind)
        given = dict(defaults or {})
        for key, value in self.values.items():
            if key in aside:
                continue
            if key not in known:
                near = difflib.get_close_matches(key, [*known, *aside], 1)
                hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join([*aside, *known])}."
                self.refuse(key, "there is no such setting.", hint)
            given[key] = self._value(key, value, hints[key])
        for name, field in known.items():
            if name not in given and field.default is MISSING and field.default_factory is MISSING:
                self.refuse(None, f"it lacks {name}.", f"Add a line: {name} = …")
        return kind(**given)

    def _value(self, key: str, value: Any, hint: Any) -> Any:
        text = str(hint)
        if hint is bool or text == "bool":
            return value if isinstance(value, bool) else self._wrong(key, value, "true or false")
        if isinstance(value, bool):
            self._wrong(key, value, "a number" if hint in (int, float) else "a word")
        if hint is int:
            return value if isinstance(value, int) and abs(value) < 2**31 else self._wrong(key, value, "a whole number")
        if hint is float or text.startswith("float"):
            finite = isinstance(value, (int, float)) and math.isfinite(value)
            return float(value) if finite else self._wrong(key, value, "a number")
        if text.startswith("tuple"):
            whole = isinstance(value, list) and all(type(each) in (int, float, str) for each in value)
            return tuple(value) if whole else self._wrong(key, value, "a list, as [1, 2]")
        return value if isinstance(value, str) else self._wrong(key, value, "a word in quotes")

    def _wrong(self, key: str, value: Any, wanted: str) -> NoReturn:
        self.refuse(key, f"{value!r} is not {wanted}.", f"Give {wanted}.")

    def choose(self, key: str, options: Mapping[str, Any], default: str | None = None) -> Any:
        value = self.values.get(key, default)
        if not isinstance(value, str) or value not in options:
            near = difflib.get_close_matches(str(value), options, 1)
            hint = f"Did you mean {near[0]}? " if near else ""
            said = "it is missing." if value is None else f"{value!r} is not one of them."
            self.refuse(
                key if key in self.values else None, f"{key}: {said}", f"{hint}There are: {', '.join(options)}."
            )
        return options[value]

    def between(self, key: str, value: float, low: float, high: float) -> None:
        if not low <= value <= high:
            shown = [str(int(n)) if n == int(n) and abs(n) < 1e9 else f"{n:g}" for n in (value, low, high)]
            self.refuse(key, "{} is not between {} and {}.".format(*shown), "Give a number in that range.")


def tables_of(path: Path) -> dict[str, Table]:
    """The tables of a TOML file by name."""
    try:
        raw = path.read_bytes()
        if len(raw) > LARGEST:
            raise UsageError(str(path), "it is too large for settings.", "Check its name.")
        text = raw.decode()
        whole = tomllib.loads(text)
    except OSError as error:
        raise UsageError(str(path), f"it cannot be read ({error.strerror}).", "Check its name.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(str(path), f"it is not valid TOML ({error}).", "Mend it.") from None
    return {name: Table(path, name, values, text) for name, values in whole.items() if isinstance(values, dict)}
