"""Checked access to a layer's options from an untrusted file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from reprlib import Repr
from typing import Any

from nnbuild.base.errors import ModelError
from nnbuild.ops.base import Pair

BROKEN = "The file is damaged or was not written by Keras; save the model again."
LARGEST = 2**31 - 1
LONGEST, MOST_SAID = 300, 900
"""Maximum characters of a value in an error, and of a cause."""

_short = Repr()
_short.maxstring = _short.maxother = _short.maxlong = 60


def shown(value: object) -> str:
    """A short printable form of any value, for errors."""
    text = _short.repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class Config:
    """The options of one layer. Every getter refuses a value of the wrong type or range, and names the layer."""

    def __init__(self, where: str, values: Mapping[str, Any]) -> None:
        self.where = where
        self.values = values

    def error(self, cause: str, next_step: str = BROKEN) -> ModelError:
        said = cause if len(cause) <= MOST_SAID else f"{cause[:MOST_SAID]}…"
        return ModelError(self.where, said, next_step)

    def wrong(self, key: str, wanted: str) -> ModelError:
        return self.error(f"its option {key!r} is {shown(self.values.get(key))}, not {wanted}.")

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def get(self, key: str) -> Any:
        return self.values.get(key)

    def integer(self, key: str, default: int | None = None, minimum: int = 1) -> int:
        value = self.values.get(key, default)
        if not is_integer(value) or not minimum <= value <= LARGEST:
            raise self.wrong(key, f"a whole number of at least {minimum}")
        return int(value)

    def number(self, key: str, default: float | None = None) -> float:
        value = self.values.get(key, default)
        if isinstance(value, Mapping) and "value" in value:  # Keras 2 saves numpy scalars this way
            value = value["value"]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not _fits_float(value):
            raise self.wrong(key, "a number")
        return float(value)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.values.get(key, default)
        if isinstance(value, bool) or value in (0, 1):  # old files contain 0 and 1
            return bool(value)
        raise self.wrong(key, "true or false")

    def text(self, key: str, default: str | None = None) -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, "a text")
        return value

    def choice(self, key: str, default: str, known: Sequence[str]) -> str:
        value = self.text(key, default)
        if value not in known:
            raise self.error(
                f"its option {key!r} is {shown(value)}, which nnbuild does not support.",
                f"Use one of {', '.join(known)}.",
            )
        return value

    def integers(self, key: str, default: Sequence[int] | None = None, minimum: int = -LARGEST) -> tuple[int, ...]:
        """A list of integers; a single integer is a list of one."""
        value = self.values.get(key, default)
        items = [value] if is_integer(value) else value
        if not isinstance(items, (list, tuple)) or not all(is_integer(i) and minimum <= i <= LARGEST for i in items):
            raise self.wrong(key, f"whole numbers of at least {minimum}" if minimum >= 0 else "whole numbers")
        return tuple(items)

    def one(self, key: str, default: int | None = None) -> int:
        """A single integer, or a list of one."""
        items = self.integers(key, None if default is None else (default,))
        if len(items) != 1:
            raise self.wrong(key, "one whole number")
        return items[0]

    def pair(self, key: str, default: int = 1, minimum: int = 1) -> Pair:
        """One number for both axes, or two."""
        found = self.integers(key, (default,), minimum) if key in self else (default,)
        if len(found) not in (1, 2):
            raise self.wrong(key, "one or two whole numbers")
        return found[0], found[-1]

    def single(self, key: str, default: int = 1, minimum: int = 1) -> int:
        """One number, which Keras writes alone or as a list of one."""
        found = self.integers(key, (default,), minimum) if key in self else (default,)
        if len(found) != 1:
            raise self.wrong(key, "one whole number")
        return found[0]

    def mapping(self, key: str) -> Mapping[str, Any]:
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise self.wrong(key, "a dictionary of options")
        return value

    def items(self, key: str) -> Sequence[Any]:
        value = self.values.get(key)
        if not isinstance(value, (list, tuple)):
            raise self.wrong(key, "a list")
        return value

    def refuse(self, key: str, next_step: str) -> None:
        """Refuses an option that is not off."""
        if self.values.get(key):
            raise self.error(
                f"its option {key!r} is {shown(self.values[key])}, which nnbuild does not support.", next_step
            )


def _fits_float(value: int | float) -> bool:
    try:
        return isfinite(float(value))
    except OverflowError:
        return False
