"""Scopes of printed C: which names are visible, which are known numbers, and which have a known range.

A constant that folds to a number is no variable: the number is printed where it is used. When statements leave their
block, what they declare is renamed if its name is taken.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

from nnbuild.base.c_expressions import ANY, LEVEL, Expression, Range
from nnbuild.base.c_folding import UNREAD, expression, folded

_DECLARED = re.compile(
    r"(?P<type>(?:static )?(?:const )?(?!return\b|else\b|goto\b|typedef\b)(?:\{prefix\}_)?[A-Za-z_]\w*"
    r"(?: (?:const|int|char|long))?(?: \*+| )(?:const |restrict )*)(?P<name>[A-Za-z_]\w*)(?P<size>\[[^=;]*\])?"
    r"(?P<end> = (?P<value>.*);|;)$"
)
_CONSTANT = re.compile(r"const (?:int32_t|int64_t|size_t) $")
NAME = re.compile(r"[A-Za-z_]\w*")
_KEPT = re.compile(r"(?:(?:const )?[A-Za-z_]\w* \*?)?(\w+) = ((?:(?!\w\(|\+\+|--|=).)*);$")
_SET = re.compile(
    r"(?P<type>(?:const )?(?!return\b)[A-Za-z_]\w* \*?)?(?P<name>\w+) [+-]?= (?P<value>(?:(?!\w\(|\+\+|--|=).)*);$"
)
_HEAD = re.compile(r"(if|while|else if) \((.*)\)$")
_NESTED = r"(?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*"
"""Text in which parentheses are balanced."""
_GUARDED = re.compile(rf"(if|while) \(({_NESTED})\) (?!\{{)(.*;)$")
_LOOP = re.compile(r"for \(int32_t (\w+) = (\d+); \1 < (\d+); (?:\+\+\1|\1 \+= (\d+))\) (?!\{)(.*;)$")
_RETURN = re.compile(r"return (.*);$")
_USED = re.compile(r"(?<![\w.])(?<!->)[A-Za-z_]\w*")


@dataclass
class _Scope:
    """One block. `texts` are names that are printed as something else. A block that is not printed declares its names
    in the enclosing one."""

    printed: bool
    texts: dict[str, str] = field(default_factory=dict)
    ranges: dict[str, Range] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)


Texts = tuple[tuple[str, str], ...]
"""Names, and what is printed for each."""
Ranges = tuple[tuple[str, Range], ...]


@lru_cache(maxsize=16384)
def _used(text: str) -> tuple[str, ...]:
    """The names that a text uses, each once, without structure members."""
    return tuple(dict.fromkeys(_USED.findall(text)))


@lru_cache(maxsize=16384)
def _written(text: str, texts: Texts) -> str:
    return _USED.sub(lambda found: dict(texts).get(found[0], found[0]), text) if texts else text


@lru_cache(maxsize=65536)
def _folded(text: str, texts: Texts, ranges: Ranges) -> tuple[str, frozenset[str]]:
    """The folded expression, and the names that folding removed from it."""
    written = _written(text, texts)
    new = folded(written, dict(ranges))
    return new, frozenset() if new == written else frozenset(NAME.findall(written)) - set(NAME.findall(new))


@lru_cache(maxsize=16384)
def _expression(text: str, texts: Texts, ranges: Ranges) -> Expression | None:
    return expression(_written(text, texts), dict(ranges))


@dataclass(frozen=True)
class _Statement:
    """A statement, and which of the known forms it matches."""

    text: str
    declaration: re.Match[str] | None = None
    guarded: re.Match[str] | None = None
    returned: re.Match[str] | None = None
    expression: str = ""


@lru_cache(maxsize=16384)
def _statement(text: str) -> _Statement:
    if not text or UNREAD.search(text):
        return _Statement(text)
    if declaration := _DECLARED.match(text):
        return _Statement(text, declaration)
    text = unroll_single_trip(text)
    return _Statement(text, None, _GUARDED.match(text), _RETURN.match(text), text[:-1] if text.endswith(";") else "")


class Scopes:
    def __init__(self) -> None:
        self._stack = [_Scope(True)]
        self._lost: set[str] = set()
        """Names that folding removed from an expression."""

    def open(self, printed: bool) -> None:
        last = self._stack[-1]
        self._stack.append(_Scope(printed, dict(last.texts), dict(last.ranges)))

    def close(self) -> None:
        self._stack.pop()

    def number(self, name: str, value: int) -> None:
        """Binds the name to a number from here on."""
        scope = self._stack[-1]
        scope.texts[name] = str(value) if value >= 0 else f"({value})"
        scope.ranges.pop(name, None)

    def declare(self, name: str, bounds: Range = ANY) -> str:
        """Declares a variable and returns its printed name."""
        scope = self._stack[-1]
        new, count = name, 1
        while any(new in one.declared for one in self._stack):
            count += 1
            new = f"{name}_{count}"
        next(one for one in reversed(self._stack) if one.printed).declared.add(new)
        scope.texts.pop(name, None)
        scope.ranges.pop(name, None)
        if new != name:
            scope.texts[name] = new
        if bounds != ANY:
            scope.ranges[new] = bounds
        return new

    def written(self, text: str) -> str:
        """The text with every name as it is printed."""
        return _written(text, self._texts_in(text))

    def _texts_in(self, text: str) -> Texts:
        texts, names = self._stack[-1].texts, _used(text)
        return () if texts.keys().isdisjoint(names) else tuple((name, texts[name]) for name in names if name in texts)

    def _known(self, text: str) -> tuple[Texts, Ranges]:
        """The replacements and ranges of the names in a text."""
        texts, ranges = self._texts_in(text), self._stack[-1].ranges
        names = _used(_written(text, texts) if texts else text)
        if ranges.keys().isdisjoint(names):
            return texts, ()
        return texts, tuple((name, ranges[name]) for name in names if name in ranges)

    def folded(self, text: str) -> str:
        """Folds an expression, or several separated by commas."""
        new, lost = _folded(text, *self._known(text))
        self._lost |= lost
        return new

    def bound(self, text: str) -> str:
        """Folds the bound of a comparison; a further condition may follow it."""
        if "&&" in text:
            return self.folded(text)
        found = _expression(text, *self._known(text))
        return found.within(LEVEL["<"] + 1) if found else self.written(text)

    def range_of(self, text: str) -> Range:
        found = _expression(text, *self._known(text))
        return found.range if found else ANY

    def lose(self, lines: list[str]) -> None:
        """Records the names in lines that are not printed after all."""
        self._lost.update(*map(NAME.findall, lines))

    def unused(self, lines: list[str]) -> list[int]:
        """Indices of a block's lines that declare variables which nothing reads any more."""
        found: list[int] = []
        while names := self._lost & self._stack[-1].declared:
            self._lost -= names
            for name in names:
                near = [at for at, line in enumerate(lines) if name in line and at not in found]
                there = [at for at in near if name in NAME.findall(lines[at])]
                kept = [_KEPT.match(lines[at].strip()) for at in there]
                values = [set(NAME.findall(one[2])) for one in kept if one and one[1] == name]
                if len(values) == len(there) and not any(name in value for value in values):
                    found += there
                    self._lost.update(*values)
        return found

    def head(self, text: str) -> tuple[str, int | None]:
        """The folded head of a block, and the value of its condition where that is known."""
        found = _HEAD.match(text)
        if found is None:
            return self.written(text), None
        condition = self.folded(found[2])
        value = int(condition) if condition in ("0", "1") and found[1] != "while" else None
        return f"{found[1]} ({condition})", value

    def statement(self, text: str) -> str | None:
        """Folds a statement; None where nothing is left to print."""
        read = _statement(text)
        if read.declaration:
            return self._declaration(read.declaration)
        if guarded := read.guarded:
            return self._guarded(guarded[1], guarded[2], guarded[3])
        if read.returned:
            return f"return {self.folded(read.returned[1])};"
        if read.expression:
            return f"{self.folded(read.expression)};"
        return self.written(read.text)

    def _declaration(self, found: re.Match[str]) -> str | None:
        name, size, value = found["name"], found["size"] or "", found["value"]
        size = f"[{self.folded(size[1:-1])}]" if size and size != "[]" else size
        if value is None:
            return f"{found['type']}{self.declare(name)}{size};"
        if found["type"] in ("return ", "else "):
            return self.written(found[0])
        new, bounds = self.folded(value), ANY
        if _CONSTANT.match(found["type"]) and not size:
            if new.lstrip("-").isdigit():
                self.number(name, int(new))
                return None
            bounds = self.range_of(value)
        return f"{found['type']}{self.declare(name, bounds)}{size} = {new};"

    def _guarded(self, word: str, condition: str, then: str) -> str | None:
        condition = self.folded(condition)
        if word == "if" and condition in ("0", "1"):
            return self.statement(then) if condition == "1" else None
        return f"{word} ({condition}) {self.statement(then)}"


def drop_unread(lines: list[str]) -> list[str]:
    """A function's lines without variables that are only written."""
    while True:
        sets = [(at, found) for at, line in enumerate(lines) if (found := _SET.match(line.strip()))]
        used = Counter(name for line in lines for name in set(NAME.findall(line)))
        declared = {found["name"] for _, found in sets if found["type"]}
        counts = Counter(found["name"] for _, found in sets if found["name"] not in NAME.findall(found["value"]))
        unread = {name for name in declared if counts[name] == used[name]}
        gone = {at for at, found in sets if found["name"] in unread}
        if not gone:
            return lines
        lines = [line for at, line in enumerate(lines) if at not in gone]


def unroll_single_trip(text: str) -> str:
    """Unrolls a one-line loop that runs once; other text is unchanged."""
    found = _LOOP.match(text)
    if found is None or int(found[3]) - int(found[2]) not in range(1, int(found[4] or 1) + 1):
        return text
    once = Scopes()
    once.number(found[1], int(found[2]))
    return once.statement(found[5]) or ""
