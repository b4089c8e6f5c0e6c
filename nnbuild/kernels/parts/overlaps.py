"""The exact safe distance at which an output may overlap the input it is computed from.

Work is done in units, in order. The output of a unit must not overwrite input that this or a later unit still reads.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from nnbuild.kernels.contract import Overlap
from nnbuild.kernels.loops.window import Axis
from nnbuild.numeric.rounding import Ints
from nnbuild.ops.site import Site

IN_PLACE = (Overlap(),)
"""Every element is read before the output at its place is written."""

SIZES = {"float32": 4, "int8": 1, "int16": 2, "int32": 4, "uint8": 1}


def in_place(site: Site) -> tuple[Overlap, ...]:
    """The same for results that may be wider than what they are computed from."""
    return IN_PLACE if SIZES[site.outputs[0].dtype] == SIZES[site.inputs[0].dtype] else ()


def safe_distance(units: int, written: Callable[[int], int], unread: Callable[[int], int | None]) -> int:
    """The least distance for an output whose first `written(u)` bytes are written once unit u is done.

    `unread(u)` is the lowest input byte that is read at or after the first write of unit u; None when no more is read.
    """
    behind = [(written(unit), unread(unit)) for unit in range(units)]
    return max((end - start for end, start in behind if start is not None), default=-(1 << 30))


def rows(site: Site, axis: Axis, ahead: int = 0) -> tuple[Overlap, ...]:
    """For kernels that compute output rows in order, each from a window of input rows.

    `ahead` rows of a window are read, and kept elsewhere, before its output row is written. If that is the whole
    window, a later row reads only new rows.
    """
    into = prod(site.shape()[1:]) * SIZES[site.inputs[0].dtype]
    out = prod(site.writes[0].shape) // axis.places * SIZES[site.writes[0].dtype]

    def written(unit: int) -> int:
        return (unit + 1) * out

    def first(unit: int) -> int:
        return max(0, unit * axis.stride - axis.pad) * into

    def new(unit: int) -> int | None:
        row = unit * axis.stride - axis.pad + ahead
        return max(0, row) * into if row < axis.size else None

    split = safe_distance(axis.places, written, first)
    at_once = safe_distance(axis.places, written, new) if ahead else split
    return (Overlap(distance=at_once, split_distance=split),)


def tiles(site: Site, down: Axis, along: Axis, width: int) -> tuple[Overlap, ...]:
    """For kernels that walk along each output row and read the windows of `width` positions before writing these; in
    several calls any position may be the last of some."""
    later, out = _starts(site, down, along)
    ends = [min(x + width, along.places) for x in range(0, along.places, width)]
    behind = np.arange(len(later)) * out - later
    done = (np.arange(down.places)[:, None] * along.places + np.array(ends)[None, :]).reshape(-1)
    at_once = behind[done[done < len(later)]].max(initial=-(1 << 30))
    return (Overlap(distance=int(at_once), split_distance=int(behind[1:].max(initial=-(1 << 30)))),)


def positions(site: Site, down: Axis, along: Axis, behind: int) -> tuple[Overlap, ...]:
    """For kernels that compute positions in order, one or several at a time, and have written at most `behind` of those
    whose inputs they still read."""
    starts, out = _starts(site, down, along)
    done = np.arange(len(starts)) + behind
    return (Overlap(distance=int((done * out - starts).max())),)


def _starts(site: Site, down: Axis, along: Axis) -> tuple[Ints, int]:
    """The first byte of the inputs under each position and all later ones, and the bytes of a position's outputs."""
    tops = np.clip(np.arange(down.places) * down.stride - down.pad, 0, down.size)
    lefts = np.clip(np.arange(along.places) * along.stride - along.pad, 0, along.size)
    starts = tops[:, None] * along.size + lefts[None, :]
    lowest: Ints = np.minimum.accumulate(starts.reshape(-1)[::-1])[::-1]
    out = prod(site.writes[0].shape) // (down.places * along.places) * SIZES[site.writes[0].dtype]
    return lowest * (site.shape()[-1] * SIZES[site.inputs[0].dtype]), out
