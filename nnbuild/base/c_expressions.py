"""Integer expressions of C that fold while they are built: sums, products, comparisons and conditionals.

Anything but an integer known at this point (a name, a call, a float) stays as it is written. A name may have a range,
so that a comparison with only one outcome is decided. Operands are never reordered and only integers are computed, so a
folded expression has the same bits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf

Range = tuple[float, float]
ANY: Range = (-inf, inf)
TRUTH: Range = (0, 1)

LEVELS = (
    ("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^="),
    ("?",),
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
LEVEL = {token: level for level, tokens in enumerate(LEVELS) for token in tokens}
SUM, PRODUCT, PREFIX, ATOM = LEVEL["+"], LEVEL["*"], len(LEVELS), len(LEVELS) + 1
COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Expression:
    """A piece of C. `level` is the precedence of its weakest operator, `range` its possible values.

    `rest` is the expression without its trailing number: the summand, or at the level PRODUCT the factor.
    """

    text: str
    level: int = ATOM
    range: Range = ANY
    rest: Expression | None = None
    number: int = 0
    grouped: bool = False
    """Written with parentheses, which compilers expect around operands of shifts, comparisons and conditionals."""

    @property
    def value(self) -> int | None:
        low, high = self.range
        return int(low) if low == high else None

    @property
    def is_number(self) -> bool:
        return self.text.lstrip("-").isdigit()

    def __str__(self) -> str:
        return self.text

    def within(self, level: int, plain: bool = False) -> str:
        """Its text as an operand of an operator of this level; `plain` omits parentheses that are not needed."""
        kept = self.grouped and not plain and self.level < PREFIX
        return f"({self.text})" if kept or self.level < level else self.text


def number(value: float) -> Expression:
    return Expression(str(int(value)), ATOM if value >= 0 else PREFIX, (value, value))


def plus(left: Expression, right: Expression, sign: int = 1) -> Expression:
    """left + right, or left - right."""
    low, high = right.range if sign > 0 else (-right.range[1], -right.range[0])
    bounds = (left.range[0] + low, left.range[1] + high)
    if right.is_number:
        base, add = (left.rest, left.number) if left.level == SUM and left.rest else (left, 0)
        add += sign * int(right.range[0])
        if abs(add) > LARGEST or (left.is_number and abs(bounds[0]) > LARGEST):
            return _plain_sum(left, right, sign, bounds)
        if left.is_number:
            return number(bounds[0])
        if add == 0:
            return base if not base.is_number else number(bounds[0])
        text = f"{base.within(SUM, True)} {'+' if add > 0 else '-'} {abs(add)}"
        return Expression(text, SUM, bounds, base, add)
    if left.is_number and left.range[0] == 0:
        return right if sign > 0 else Expression(f"-{right.within(PREFIX, True)}", PREFIX, bounds)
    new = _plain_sum(left, right, sign, bounds)
    return replace(new, rest=right, number=int(left.range[0])) if left.is_number and sign > 0 else new


def _plain_sum(left: Expression, right: Expression, sign: int, bounds: Range) -> Expression:
    return Expression(f"{left.within(SUM, True)} {'+' if sign > 0 else '-'} {right.within(SUM + 1, True)}", SUM, bounds)


def times(left: Expression, right: Expression) -> Expression:
    corners = [_product(a, b) for a in left.range for b in right.range]
    bounds = (min(corners), max(corners))
    if left.is_number and not right.is_number and left.range[0] in (0, 1):
        left, right = right, left
    base, factor = (left.rest, left.number) if left.level == PRODUCT and left.rest else (left, 1)
    factor *= int(right.range[0]) if right.is_number else 1
    if not right.is_number or abs(factor * (int(left.text) if left.is_number else 1)) > LARGEST:
        return Expression(f"{left.within(PRODUCT, True)} * {right.within(PREFIX, True)}", PRODUCT, bounds)
    if base.is_number or factor == 0:
        return number(bounds[0] if factor else 0)
    if factor == 1:
        return base
    if factor == -1:
        return Expression(f"-{base.within(PREFIX, True)}", PREFIX, bounds)
    return Expression(
        f"{base.within(PRODUCT, True)} * {number(factor).within(PREFIX, True)}", PRODUCT, bounds, base, factor
    )


def _product(a: float, b: float) -> float:
    return 0 if a == 0 or b == 0 else a * b


def divided(left: Expression, right: Expression, sign: str) -> Expression:
    """left / right, or the remainder; ranges are known only where nothing is negative."""
    by = right.range[0] if right.is_number else 0
    plain = Expression(f"{left.within(PRODUCT, True)} {sign} {right.within(PREFIX, True)}", PRODUCT)
    if by == 1:
        return left if sign == "/" else number(0)
    low, high = left.range
    if by <= 0 or low < 0:
        return plain
    if sign == "%":
        return replace(plain, range=(0, by - 1)) if high >= by else left
    bounds = (low // by, high // by if high < inf else inf)
    return number(bounds[0]) if bounds[0] == bounds[1] else replace(plain, range=bounds)


def compared(left: Expression, right: Expression, sign: str) -> Expression:
    (a, b), (c, d) = left.range, right.range
    outcomes = {COMPARE[sign](x, y) for x in (a, b) for y in (c, d)}
    if sign in ("==", "!="):
        outcomes = {sign == "!="} if b < c or d < a else {sign == "=="} if a == b == c == d else {False, True}
    if len(outcomes) == 1 and ANY not in (left.range, right.range):
        return number(outcomes.pop())
    level = LEVEL[sign]
    return Expression(f"{left.within(level)} {sign} {right.within(level + 1)}", level, TRUTH)


def chosen(condition: Expression, yes: Expression, no: Expression) -> Expression:
    """condition ? yes : no"""
    if condition.value is not None:
        return yes if condition.value else no
    bounds = (min(yes.range[0], no.range[0]), max(yes.range[1], no.range[1]))
    level = LEVEL["?"]
    return Expression(f"{condition.within(level + 1)} ? {yes.within(level)} : {no.within(level)}", level, bounds)


def both(left: Expression, right: Expression, sign: str) -> Expression:
    """left && right, left || right"""
    decides = int(sign == "||")
    for one, other in ((left, right), (right, left)):
        if one.value is not None and one.range in ((0, 0), (1, 1)):
            return one if one.value == decides else other
    level = LEVEL[sign]
    return Expression(f"{left.within(level)} {sign} {right.within(level + 1)}", level, TRUTH)


def joined(left: Expression, right: Expression, sign: str) -> Expression:
    """Any other operator."""
    level = LEVEL[sign]
    return Expression(f"{left.within(level)} {sign} {right.within(level + 1)}", level)
