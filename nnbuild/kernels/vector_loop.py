"""Loops over tensors of any rank whose innermost axis goes by vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nnbuild.base.writer import Writer
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.strided import Walk, index, merged
from nnbuild.kernels.window_loops import product, total
from nnbuild.model.graph import Shape

Body = Callable[[list[str], int], None]
"""(an index for each operand, how many lanes) prints what is done with one vector."""


def extent(shape: Shape, walks: Sequence[Walk], floats: Vectors) -> int:
    """Pieces of work: vectors of a lone axis, otherwise steps of the outermost one."""
    sizes, _ = merged(shape, walks)
    return -(-sizes[0] // floats.lanes) if len(sizes) == 1 else sizes[0]


def refusal(shape: Shape, walks: Sequence[Walk]) -> str | None:
    """Why vectors do not serve: the first walk must go on by one, the others by one or not at all."""
    sizes, walks = merged(shape, walks)
    steps = [walk.strides[-1] for walk in walks]
    if sizes[-1] == 1:
        return None
    return None if steps[0] == 1 and {0, 1} >= set(steps) else "its values do not lie side by side"


def repeated(shape: Shape, walks: Sequence[Walk]) -> list[bool]:
    """Which operands have one value for all lanes."""
    return [walk.strides[-1] == 0 for walk in merged(shape, walks)[1]]


def nest(w: Writer, shape: Shape, walks: Sequence[Walk], floats: Vectors, body: Body) -> None:
    """Prints the loops, the outermost from `begin` to `end`."""
    sizes, walks = merged(shape, walks)
    if len(sizes) == 1:
        _alone(w, sizes[0], walks, floats, body)
        return
    _outer(w, sizes, walks, 0, floats, body)


def _alone(w: Writer, size: int, walks: Sequence[Walk], floats: Vectors, body: Body) -> None:
    whole, rest = divmod(size, floats.lanes)
    if whole:
        stop = "end" if not rest else f"(end < {whole} ? end : {whole})"
        with w.loop("i", stop, start="begin", trips=whole):
            body([_at(walk, [], product("i", floats.lanes)) for walk in walks], floats.lanes)
    if rest:
        with w.block(f"if (end > {whole})" if whole else "if (begin < end)"):
            body([_at(walk, [], str(whole * floats.lanes)) for walk in walks], rest)


def _outer(w: Writer, sizes: Shape, walks: Sequence[Walk], axis: int, floats: Vectors, body: Body) -> None:
    if axis == len(sizes) - 1:
        _inner(w, sizes[axis], walks, floats, body)
        return
    bounds = ("begin", "end") if axis == 0 else ("0", str(sizes[axis]))
    with w.loop(f"i{axis}", bounds[1], start=bounds[0], trips=sizes[axis]):
        _outer(w, sizes, walks, axis + 1, floats, body)


def _inner(w: Writer, size: int, walks: Sequence[Walk], floats: Vectors, body: Body) -> None:
    whole, rest = divmod(size, floats.lanes)
    outer = [Walk(walk.strides[:-1], walk.start) for walk in walks]
    if whole:
        with w.loop("i", whole * floats.lanes, step=floats.lanes):
            body([_at(walk, [index(o)], "i") for walk, o in zip(walks, outer, strict=True)], floats.lanes)
    if rest:
        with w.block(""):
            last = str(whole * floats.lanes)
            body([_at(walk, [index(o)], last) for walk, o in zip(walks, outer, strict=True)], rest)


def _at(walk: Walk, before: list[str], inner: str) -> str:
    return total(*before, inner if walk.strides[-1] else "0")
