"""Loops over tensors of any rank, in which every operand walks with strides of its own.

Copying, transposing, slicing, repeating and broadcasting all differ only in the strides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nnbuild.base.writer import Writer
from nnbuild.kernels.window_loops import product, total
from nnbuild.model.graph import Shape


@dataclass(frozen=True)
class Walk:
    """How one operand moves: a stride for every axis of the loops, and where it starts."""

    strides: tuple[int, ...]
    start: int = 0


def contiguous(shape: Shape) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def broadcast(shape: Shape, to: Shape) -> tuple[int, ...]:
    """The strides with which an operand of `shape` follows loops over `to`: 0 where it is repeated."""
    own = contiguous(shape)
    padded = (0,) * (len(to) - len(shape)) + tuple(0 if n == 1 else s for n, s in zip(shape, own, strict=True))
    return padded


def merged(shape: Shape, walks: Sequence[Walk]) -> tuple[Shape, list[Walk]]:
    """The same walk in as few loops as possible, at least one."""
    sizes: list[int] = []
    strides: list[list[int]] = []
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        now = [walk.strides[axis] for walk in walks]
        if sizes and all(before == step * size for before, step in zip(strides[-1], now, strict=True)):
            sizes[-1] *= size
            strides[-1] = now
        else:
            sizes.append(size)
            strides.append(now)
    if not sizes:
        sizes, strides = [1], [[0] * len(walks)]
    return tuple(sizes), [Walk(tuple(row[i] for row in strides), walk.start) for i, walk in enumerate(walks)]


def extent(shape: Shape, walks: Sequence[Walk]) -> int:
    """How many pieces the outermost loop divides the work into."""
    return merged(shape, walks)[0][0]


def nest(
    w: Writer, shape: Shape, walks: Sequence[Walk], body: Callable[[list[str]], None], whole: bool = False
) -> None:
    """Prints the loops, the outermost from `begin` to `end` unless `whole`; `body` gets an index an operand."""
    sizes, walks = merged(shape, walks)
    _level(w, sizes, walks, 0, body, whole)


def _level(
    w: Writer, sizes: Shape, walks: list[Walk], axis: int, body: Callable[[list[str]], None], whole: bool
) -> None:
    if axis == len(sizes):
        body([index(walk) for walk in walks])
        return
    if axis == 0 and not whole:
        with w.loop("i0", "end", start="begin", trips=sizes[0]):
            _level(w, sizes, walks, 1, body, whole)
    else:
        with w.loop(f"i{axis}", sizes[axis]):
            _level(w, sizes, walks, axis + 1, body, whole)


def index(walk: Walk) -> str:
    terms = [product(f"i{axis}", stride) for axis, stride in enumerate(walk.strides) if stride]
    constant = str(abs(walk.start))
    if not terms:
        return str(walk.start)
    return total(*terms) if walk.start == 0 else f"{total(*terms)} {'+' if walk.start > 0 else '-'} {constant}"
