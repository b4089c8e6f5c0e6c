"""No printed line is longer than a screen is wide: a statement goes on in the next line, further to the right."""

from __future__ import annotations

import re
from collections.abc import Callable

COLUMNS = 120
FURTHER = 8
"""How much deeper the rest of a statement stands."""
PLACES = re.compile(r"(?<=,) | (?=(?:[-+*/&|?:]|&&|\|\||>>|<<) )")
"""Where a statement is parted best: behind a comma, before an operator."""
LAST = re.compile(r"(?<=\()(?!\))|(?<= =) ")
"""Where else it can be."""
TOKENS = re.compile(r'"(?:\\.|[^"\\])*"|[()\[\]{}]')
DEEPER = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


def wrapped(text: str) -> str:
    return "\n".join(part for line in text.split("\n") for part in _parts(line))


def _parts(line: str) -> list[str]:
    """The line in parts that fit; a directive of the preprocessor stays as it is."""
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
    """The place in the second half that is least deep within parentheses, or else the last one."""
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
