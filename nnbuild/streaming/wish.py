"""What is asked for by --stream: an axis, or one to be found; how many rows a step takes."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.errors import UsageError

LARGEST_HOP = 4096
FORMS = "Take auto or an axis of the input, counted from 0 without the batch, and hop=N after a comma."


@dataclass(frozen=True)
class Wish:
    """None is for nnbuild to choose."""

    axis: int | None = None
    hop: int | None = None


def read(text: str) -> Wish:
    """`auto|AXIS[,hop=N]`."""
    first, *others = (part.strip() for part in text.split(","))
    if first != "auto" and not (first.isdecimal() and int(first) < 8):
        raise _wrong(text, f"{first!r} is neither auto nor an axis.")
    hop = None
    for other in others:
        name, _, value = other.partition("=")
        if name.strip() != "hop" or hop is not None:
            raise _wrong(text, f"there is no {other!r} here.")
        if not value.strip().isdecimal() or not 1 <= int(value) <= LARGEST_HOP:
            raise _wrong(text, f"{value!r} is no number of rows from 1 to {LARGEST_HOP}.")
        hop = int(value)
    return Wish(None if first == "auto" else int(first), hop)


def _wrong(text: str, cause: str) -> UsageError:
    return UsageError(f"--stream {text}", cause, FORMS)
