"""Wraps printed C to COLUMNS: a statement continues in the next line, indented further."""

from __future__ import annotations

import re
from collections.abc import Callable

COLUMNS = 120
FURTHER = 8
"""Extra indentation of continuation lines."""
PLACES = re.compile(r"(?<=,) | (?=(?:[-+*/&|?:]|&&|\|\||>>|<<) )")
"""Preferred break points: after a comma, before an operator."""
LAST = re.compile(r"(?<=\()(?!\))|(?<= =) ")
"""Other break points."""
TOKENS = re.compile(r'"(?:\\.|[^"\\])*"|[()\[\]{}]')
DEEPER = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


def wrapped(text: str) -> str:
    return "\n".join(part for line in text.split("\n") for part in _parts(line))


def _parts(line: str) -> list[str]:
    """The line in parts that fit; preprocessor directives stay as they are."""
    indent = len(line) - len(line.lstrip())
    if len(line) <= COLUMNS or line.startswith("#", indent):
        return [line]
    if line.startswith("/*", indent):
        return _split(line, indent + 3, _word)
    return _split(line, indent + FURTHER, _place)


def _split(line: str, further: int, place_in: Callable[[str], int | None]) -> list[str]:
    place = place_in(line) if len(line) > COLUMNS else None
    if place is None:
        return [line]
    return [line[:place].rstrip(), *_split(" " * further + line[place:].lstrip(), further, place_in)]


def _word(line: str) -> int | None:
    place = line.rfind(" ", 0, COLUMNS)
    return place if line[:place].strip() else None


def _place(line: str) -> int | None:
    """The break point in the second half of the line with the least nesting, otherwise the last one that fits."""
    code = TOKENS.sub(lambda found: "_" * len(found[0]) if found[0].startswith('"') else found[0], line)
    start = len(line) - len(line.lstrip())
    for pattern in (PLACES, LAST):
        fitting = [found.start() for found in pattern.finditer(code) if start < found.start() <= COLUMNS]
        if fitting:
            late = [at for at in fitting if 2 * at > COLUMNS] or fitting[-1:]
            return min(late, key=lambda at: (_depth(code, at), -at))
    return None


def _depth(code: str, at: int) -> int:
    return sum(DEEPER[found[0]] for found in TOKENS.finditer(code, 0, at))
