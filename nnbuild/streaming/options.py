"""Parses --stream: the time axis, or auto; the rows per step; and the meaning of outputs."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.errors import UsageError

LARGEST_HOP = 4096
MEANINGS = ("window", "stream")
FORMS = (
    "Take auto or an axis of the input, counted from 0 without the batch; after commas hop=N, meaning=window|stream."
)


@dataclass(frozen=True)
class StreamOptions:
    """None lets nnbuild choose. With meaning "window" a step gives what the window that ends there would give; with
    "stream", what the model gives that has run since the stream began."""

    axis: int | None = None
    hop: int | None = None
    meaning: str = MEANINGS[0]


def parse(text: str) -> StreamOptions:
    """`auto|AXIS[,hop=N][,meaning=window|stream]`."""
    first, *others = (part.strip() for part in text.split(","))
    if first != "auto" and not (first.isdecimal() and int(first) < 8):
        raise _wrong(text, f"{first!r} is neither auto nor an axis.")
    said: dict[str, str] = {}
    for other in others:
        name, _, value = (part.strip() for part in other.partition("="))
        if name not in ("hop", "meaning") or name in said:
            raise _wrong(text, f"{other!r} is unknown or repeated.")
        if name == "hop" and (not value.isdecimal() or not 1 <= int(value) <= LARGEST_HOP):
            raise _wrong(text, f"{value!r} is not a number of rows from 1 to {LARGEST_HOP}.")
        if name == "meaning" and value not in MEANINGS:
            raise _wrong(text, f"{value!r} is not a meaning: {' or '.join(MEANINGS)}.")
        said[name] = value
    hop = int(said["hop"]) if "hop" in said else None
    return StreamOptions(None if first == "auto" else int(first), hop, said.get("meaning", MEANINGS[0]))


def _wrong(text: str, cause: str) -> UsageError:
    return UsageError(f"--stream {text}", cause, FORMS)
