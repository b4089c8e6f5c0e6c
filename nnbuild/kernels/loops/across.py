"""Kernels that treat every channel alike: loops over channels, a few vectors of them at a time."""

from __future__ import annotations

from collections.abc import Callable

from nnbuild.base.writer import Writer


def across(w: Writer, width: int, count: int, body: Callable[[str, int], None]) -> None:
    """Prints `body`, which gets the place of its first channel and how many there are, for `count` channels."""
    whole, rest = divmod(count, width)
    if whole:
        with w.loop("c", whole * width, step=width):
            body("c", width)
    if rest:
        with w.block(""):
            body(str(whole * width), rest)
