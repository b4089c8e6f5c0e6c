"""What is asked for by --stream: an axis, or one to be found; how many rows a step takes."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.errors import UsageError

LARGEST_HOP = 4096
MEANINGS = ("window", "stream")
FORMS = (
    "Take auto or an axis of the input, counted from 0 without the batch; after commas hop=N, meaning=window|stream."
)


@dataclass(frozen=True)
class Wish:
    """None is for nnbuild to choose. With the meaning of the window a step gives what the window that ends there would
    give; with that of the stream, what the model gives that has run since the stream began."""

    axis: int | None = None
    hop: int | None = None
    meaning: str = MEANINGS[0]


def read(text: str) -> Wish:
    """`auto|AXIS[,hop=N][,meaning=window|stream]`."""
    first, *others = (part.strip() for part in text.split(","))
    if first != "auto" and not (first.isdecimal() and int(first) < 8):
        raise _wrong(text, f"{first!r} is neither auto nor an axis.")
    said: dict[str, str] = {}
    for other in others:
        name, _, value = (part.strip() for part in other.partition("="))
        if name not in ("hop", "meaning") or name in said:
            raise _wrong(text, f"there is no {other!r} here.")
        if name == "hop" and (not value.isdecimal() or not 1 <= int(value) <= LARGEST_HOP):
            raise _wrong(text, f"{value!r} is no number of rows from 1 to {LARGEST_HOP}.")
        if name == "meaning" and value not in MEANINGS:
            raise _wrong(text, f"{value!r} is no meaning: {' or '.join(MEANINGS)}.")
        said[name] = value
    hop = int(said["hop"]) if "hop" in said else None
    return Wish(None if first == "auto" else int(first), hop, said.get("meaning", MEANINGS[0]))


def _wrong(text: str, cause: str) -> UsageError:
    return UsageError(f"--stream {text}", cause, FORMS)
