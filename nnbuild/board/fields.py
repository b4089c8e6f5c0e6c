"""Checks the fields of a board's table before anything is read from them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from nnbuild.base.errors import UsageError


class Kind:
    """A kind of field: its description, and a test of a value."""

    def __init__(self, words: str, fits: Callable[[Any], bool]) -> None:
        self.words = words
        self.fits = fits


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and value >= least


def _list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_whole(1), value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


TEXT = Kind("a text in quotes", _is_text)
NAME = Kind("a text in quotes", lambda value: type(value) in (str, int))
TEXTS = Kind("a list of texts in quotes", _list_of(_is_text))
COMMANDS = Kind("a list of commands, each a list of texts in quotes", _list_of(_list_of(_is_text)))
TRUTH = Kind("true or false", lambda value: type(value) is bool)
WHOLE = Kind("a whole number from 0, without quotes", _whole(0))
COUNT = Kind("a whole number above 0, without quotes", _whole(1))
NUMBER = Kind("a number above 0, without quotes", lambda value: type(value) in (int, float) and value > 0)
PAGES = Kind("a list of pairs of whole numbers, how many pages and of how many bytes", _list_of(_pair))
ORDER = Kind('"little" or "big"', lambda value: value in ("little", "big"))
ANYTHING = Kind("anything", lambda value: True)
"""Checked where it is read, or belongs to a back end."""

TOOLCHAIN: Mapping[str, Any] = {
    **{"name": TEXT, "command": TEXTS, "install": TEXT, "flags": TEXTS, "link_flags": TEXTS},
    **{"libraries": TEXTS, "stack_flags": TEXTS, "helper_stack": WHOLE},
}
CORE: Mapping[str, Any] = {
    **{"isa": TEXT, "features": TEXTS, "speed": NUMBER},
    "cpu": {"link": {"*": TEXTS}, "*": TEXTS},
}
FIELDS: Mapping[str, Any] = {
    **dict.fromkeys(("summary", "tested_on", "output", "architecture", "isa", "part"), TEXT),
    **{"abstract": TRUTH, "aliases": TEXTS, "features": TEXTS, "alignment": COUNT, "toolchains": [TOOLCHAIN]},
    "byte_order": ORDER,
    "build": {"flags": TEXTS, "link_flags": TEXTS},
    "audit": {"policy": TEXT, "stack": WHOLE, "instructions": ANYTHING},
    "cpu": {
        "core": TEXT,
        "multiplier": COUNT,
        "float_operation": COUNT,
        "wide_product": COUNT,
        "link": {"*": TEXTS},
        "*": TEXTS,
    },
    "cores": {"*": ANYTHING, "local": {"*": ANYTHING}, "kinds": [CORE]},
    "memory": {"code": TEXT, "*": {"origin": WHOLE, "length": COUNT, "data": WHOLE}},
    "firmware": {
        **dict.fromkeys(("folder", "architecture", "soc", "uart", "timer"), TEXT),
        **{"link_payload": COUNT, "context_memory": TEXTS, "defines": {"*": WHOLE}},
    },
    "emulator": {
        **{"command": TEXTS, "install": TEXT, "machine": TEXT, "instructions_per_tick": NUMBER, "lacks": TEXTS},
        "unicorn": {"uart": WHOLE, "counter": WHOLE},
    },
    "flash": {
        **{"tools": TEXTS, "chip": WHOLE, "pages": PAGES, "names": {"*": NAME}, "speed": {"*": ANYTHING}},
        "tool": {"*": {"commands": COMMANDS, "install": TEXT}},
    },
    "serial": {
        **{"clock": NUMBER, "step": NUMBER, "baud": COUNT, "least": COUNT, "most": COUNT, "fastest": COUNT},
    },
    "kernel": {"*": ANYTHING},
    "platformio": {"*": TEXT},
}
"""Kinds by name, "*" for names chosen by the table; a list stands for an array of tables."""


def expect_fields(board: str, table: Mapping[str, Any]) -> None:
    """Refuses an unknown field, and a value of the wrong kind."""
    _expect_section(f"board {board!r}", "", table, FIELDS)


def _expect_section(where: str, section: str, table: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    for key, value in table.items():
        wanted = fields.get(key, fields.get("*"))
        if wanted is None:
            raise _unknown(where, section, key, value, fields)
        if isinstance(wanted, Kind):
            if not wanted.fits(value):
                cause = f"its {f'[{section}] ' if section else ''}{key} = {value!r} is not valid."
                raise UsageError(where, cause, f"Write {wanted.words}.")
            continue
        inside = f"{section}.{key}" if section else key
        several = isinstance(wanted, list)
        for each in value if several and isinstance(value, list) else [value]:
            if not isinstance(each, dict) or several != isinstance(value, list):
                shape = f"[[{inside}]]" if several else f"[{inside}]"
                raise UsageError(where, f"its {inside} = {value!r} is not valid.", f"Write a table, {shape}.")
            _expect_section(where, inside, each, wanted[0] if several else wanted)


def _unknown(where: str, section: str, key: str, value: Any, fields: Mapping[str, Any]) -> UsageError:
    """Sections are named as they are written in the file."""
    names = [name for name in fields if name != "*"]
    near = difflib.get_close_matches(key, names, 1, 0.6)
    whole = f"{section}.{{}}" if section else "{}"
    if isinstance(value, dict):
        inner = next((f".{name}" for name, each in value.items() if isinstance(each, dict)), "")
        shown, cause = f"[{whole}]", f"there is no section [{whole.format(key)}{inner}]."
        meant = f"[{whole.format(near[0])}{inner}]" if near else ""
    else:
        place = f"its [{section}]" if section else "a board's table"
        shown, cause, meant = "{}", f"{place} has no {key}.", near[0] if near else ""
    step = f"Did you mean {meant}?" if near else f"Write {', '.join(shown.format(name) for name in names)}."
    return UsageError(where, cause, step)
