"""Kernels that treat every channel alike, in vectors: loops over channels, one lane each."""

from __future__ import annotations

from collections.abc import Callable

from nnbuild.base.writer import Writer
from nnbuild.isa.vectors import Vectors


def across(w: Writer, v: Vectors, count: int, body: Callable[[int], None]) -> None:
    """Prints `body`, which gets the number of real lanes, for the channels from the C variable `c` on."""
    whole, rest = divmod(count, v.lanes)
    if whole:
        with w.loop("c", whole * v.lanes, step=v.lanes):
            body(v.lanes)
    if rest:
        with w.block(""):
            w(f"const int32_t c = {whole * v.lanes};")
            body(rest)
