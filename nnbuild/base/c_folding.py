"""Parses printed C statements and folds the integers in them. What it cannot parse stays as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from nnbuild.base import c_expressions as expressions
from nnbuild.base.c_expressions import ANY, ATOM, LEVEL, PREFIX, Expression, Range

Known = Mapping[str, Range]
"""Known ranges of names; a name with a single value is replaced by it."""

TOKEN = re.compile(
    r"\s*(0[xX][0-9a-fA-F]+\w*|\d+\.?\d*(?:[eE][-+]?\d+)?\w*|(?:\{prefix\}_|[A-Za-z_])\w*|<<=|>>=|\+\+|--|->|<<|>>|[<>=!]=|&&|\|\|"
    r"|[-+*/%&|^]=|.)"
)
TYPE = re.compile(r"(?:const|restrict|unsigned|void|char|int|float|double|u?int\d+_t|uintptr_t|__m\d+\w*|size_t)$")
NAME = re.compile(r"[A-Za-z_]\w*$")
UNREAD = re.compile(r'"|__asm__|^\s*(?:#|/\*|\* )|\btypedef\b|\bdo\b|\bcase\b|^\w+:$')
FOLDABLE = re.compile(
    r"\b\d+\)* (?:[-+*/%]|[<>=!]=?|&&|\|\|) |(?:[-+*/%]|[<>=!]=?) \(*-?\d+\b(?!\.)|\? |\(\w+\)(?! *[\w(])"
)


class _Unread(Exception):
    """Raised for anything that is not a plain expression."""


class _Reader:
    def __init__(self, text: str, known: Known) -> None:
        self.tokens: list[str] = [*(token for token in TOKEN.findall(text) if token.strip()), ""]
        self.at = 0
        self.known = known

    @property
    def next(self) -> str:
        return self.tokens[self.at]

    @property
    def done(self) -> bool:
        return not self.next

    def take(self, *wanted: str) -> str:
        token = self.next
        if not token or (wanted and token not in wanted):
            raise _Unread
        self.at += 1
        return token

    def whole(self) -> str:
        text = self.items("")
        if not self.done:
            raise _Unread
        return text

    def items(self, end: str) -> str:
        """Parses expressions separated by commas."""
        texts = [] if self.next == end else [str(self.level(0))]
        while self.next == ",":
            self.take()
            texts.append(str(self.level(0)))
        return ", ".join(texts)

    def level(self, least: int) -> Expression:
        """Parses operators of at least this precedence."""
        left = self.prefixed()
        while (level := LEVEL.get(self.next, -1)) >= least:
            sign = self.take()
            if sign == "?":
                yes = self.level(level)
                self.take(":")
                left = expressions.chosen(left, yes, self.level(level))
            elif level == 0:
                return Expression(f"{left} {sign} {self.level(0)}", 0)
            else:
                left = self.operation(left, self.level(level + 1), sign)
        return left

    def operation(self, left: Expression, right: Expression, sign: str) -> Expression:
        if sign in ("+", "-"):
            return expressions.plus(left, right, 1 if sign == "+" else -1)
        if sign == "*":
            return expressions.times(left, right)
        if sign in ("/", "%"):
            return expressions.divided(left, right, sign)
        if sign in expressions.COMPARE:
            return expressions.compared(left, right, sign)
        return expressions.both(left, right, sign) if sign in ("&&", "||") else expressions.joined(left, right, sign)

    def prefixed(self) -> Expression:
        sign = self.next
        if sign in ("-", "+", "!", "~", "*", "&", "++", "--"):
            self.take()
            inner = self.prefixed()
            if sign == "-" and inner.is_number:
                return expressions.number(-inner.range[0])
            low, high = inner.range
            between = " " if inner.text[:1] == sign else ""
            bounds = (-high, -low) if sign == "-" else ANY
            return Expression(f"{sign}{between}{inner.within(PREFIX, True)}", PREFIX, bounds)
        if sign == "(" and TYPE.match(self.tokens[self.at + 1]):
            cast = self.cast()
            if self.next == "{":
                raise _Unread
            inner = self.prefixed()
            bounds = inner.range if cast == "(int32_t)" else ANY
            if cast == "(int32_t)" and inner.is_number:
                return inner
            return Expression(f"{cast}{inner.within(PREFIX, True)}", PREFIX, bounds)
        return self.suffixed(self.primary())

    def cast(self) -> str:
        self.take("(")
        words = []
        while self.next != ")":
            if not (TYPE.match(self.next) or self.next == "*" or self.next == "pair"):
                raise _Unread
            words.append(self.take())
        self.take(")")
        return f"({' '.join(words).replace('* *', '**')})"

    def primary(self) -> Expression:
        token = self.take()
        if token == "(":
            inner = self.level(0)
            self.take(")")
            return Expression(
                inner.text, inner.level, inner.range, inner.rest, inner.number, grouped=inner.level < PREFIX
            )
        if token == "{":
            items = self.items("}")
            self.take("}")
            return Expression(f"{{{items}}}")
        if token.isdigit():
            return expressions.number(int(token))
        if token in self.known:
            low, high = self.known[token]
            return expressions.number(low) if low == high else Expression(token, ATOM, (low, high))
        if token[0].isalnum() or token[0] == "_" or token.startswith("{prefix}"):
            if TYPE.match(token) or token == "sizeof":
                raise _Unread
            return Expression(token)
        raise _Unread

    def suffixed(self, base: Expression) -> Expression:
        while self.next in ("[", "(", ".", "->", "++", "--"):
            sign = self.take()
            if sign in ("[", "("):
                end = "]" if sign == "[" else ")"
                inner = self.items(end)
                self.take(end)
                base = Expression(f"{base.within(ATOM, True)}{sign}{inner}{end}")
            elif sign in (".", "->"):
                base = Expression(f"{base.within(ATOM, True)}{sign}{self.take()}")
            else:
                base = Expression(f"{base.within(ATOM, True)}{sign}")
        return base


def expression(text: str, known: Known) -> Expression | None:
    """The folded expression; None where it cannot be parsed."""
    reader = _Reader(text, known)
    try:
        found = reader.level(0)
    except _Unread:
        return None
    return found if reader.done else None


@lru_cache(maxsize=65536)
def _folded(text: str, known: tuple[tuple[str, Range], ...]) -> str:
    try:
        new = _Reader(text, dict(known)).whole()
    except _Unread:
        return text
    return text if new.replace(" ", "") == text.replace(" ", "") else new


def folded(text: str, known: Known) -> str:
    """Folds expressions separated by commas."""
    if not text or UNREAD.search(text):
        return text
    mine = tuple((name, bounds) for name, bounds in known.items() if name in text)
    return _folded(text, mine) if mine or FOLDABLE.search(text) else text
