"""Reports the current phase of a command; the command line shows it on one line of a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Show = Callable[[str], None]
_SHOWN_BY: list[Show] = []


def set_listener(show: Show | None) -> None:
    """Sets the listener that gets the text of every phase as it begins, and an empty text when it ends."""
    _SHOWN_BY[:] = [show] if show is not None else []


@contextmanager
def phase(text: str) -> Iterator[None]:
    _say(text)
    try:
        yield
    finally:
        _say("")


def _say(text: str) -> None:
    for show in _SHOWN_BY:
        show(text)
