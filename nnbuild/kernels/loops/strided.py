"""Loops over tensors of any rank, in which every operand has its own strides.

Copying, transposing, slicing, repeating and broadcasting differ only in the strides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import (
    PORTABLE,
    Demand,
    K,
    Kernel,
    Names,
    OnEach,
    Overlap,
    any_format,
    on_each,
    only_float,
    only_integer,
)
from nnbuild.kernels.loops.byte_moves import SHORTEST, move
from nnbuild.model.graph import Array, Shape
from nnbuild.ops.binary import operands
from nnbuild.ops.site import Site

STRAIGHT = 4
"""Consecutive elements, such as the colours of a pixel, up to which copying is unrolled."""


@dataclass(frozen=True)
class Walk:
    """The movement of an operand: its stride on every axis of the loops, and its start."""

    strides: tuple[int, ...]
    start: int = 0


def contiguous(shape: Shape) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def broadcast(shape: Shape, to: Shape) -> tuple[int, ...]:
    """The strides of an operand of `shape` in loops over `to`: 0 where it is repeated."""
    own = contiguous(shape)
    padded = (0,) * (len(to) - len(shape)) + tuple(0 if n == 1 else s for n, s in zip(shape, own, strict=True))
    return padded


def flat_constants(site: Site[Any]) -> dict[str, Array]:
    return {role: constant.data.reshape(-1) for role, constant in site.constants.items()}


@dataclass(frozen=True)
class Loops:
    """Loops of these sizes, outermost first, with each operand's strides."""

    sizes: Shape
    walks: tuple[Walk, ...]

    @property
    def extent(self) -> int:
        """Work items: the iterations of the outermost loop."""
        return self.sizes[0]

    def nest(self, w: Writer, body: Callable[[list[str]], None], straight: int = 1) -> None:
        """Prints the loops, the outermost from `begin` to `end`; `body` gets an index for each operand. An innermost
        loop of at most `straight` iterations is unrolled."""
        if len(self.sizes) == 1 or self.sizes[-1] > straight:
            with _counted(w, self.sizes):
                body([_index(walk) for walk in self.walks])
            return
        before = [_index(Walk(walk.strides[:-1], walk.start)) for walk in self.walks]
        with _counted(w, self.sizes[:-1]):
            for i in w.each(range(self.sizes[-1])):
                steps = (str(i * walk.strides[-1]) for walk in self.walks)
                body([f"{at} + {step}" for at, step in zip(before, steps, strict=True)])

    def vectors(self, lanes: int) -> int:
        """Work items of vectorized loops: vectors of a single loop, else iterations of the outermost one."""
        return -(-self.extent // lanes) if len(self.sizes) == 1 else self.extent

    @property
    def repeated(self) -> list[bool]:
        """Whether each operand has one value for all lanes of a vector."""
        return [walk.strides[-1] == 0 for walk in self.walks]

    def load(self, w: Writer, v: Vectors, operand: int, address: str, count: int) -> str:
        """Loads an operand's values, or its one value into all lanes."""
        return v.broadcast(w, address, 1) if self.repeated[operand] else v.load(w, address, count)

    def no_vectors(self, lanes: int) -> str | None:
        """Why vectors cannot serve: the first operand must have stride 1 in the innermost loop, the others 1 or 0."""
        steps = [walk.strides[-1] for walk in self.walks]
        if lanes == 1 or self.sizes[-1] == 1 or (steps[0] == 1 and {0, 1} >= set(steps)):
            return None
        return "its values are not contiguous"

    def vector_nest(self, w: Writer, lanes: int, body: Callable[[list[str], int], None]) -> None:
        """The vectorized loops: `body` also gets the number of lanes in use."""
        if lanes == 1:
            self.nest(w, lambda at: body(at, 1))
            return
        if len(self.sizes) == 1:
            self._alone(w, lanes, body)
            return
        before = [_index(Walk(walk.strides[:-1], walk.start)) for walk in self.walks]
        with _counted(w, self.sizes[:-1]):
            for place, count in in_vectors(w, lanes, self.sizes[-1], "i"):
                body(self._places(before, place), count)

    def runs(self, w: Writer, body: Callable[[list[str], str, int], None]) -> None:
        """All loops but the innermost: `body` gets each operand's index and the length of the run.

        A single loop is one run, from `begin` to `end`.
        """
        if len(self.sizes) == 1:
            at = [f"{walk.start} + begin * {int(walk.strides[-1] > 0)}" for walk in self.walks]
            body(at, "(end - begin)", self.extent)
            return
        before = [_index(Walk(walk.strides[:-1], walk.start)) for walk in self.walks]
        with _counted(w, self.sizes[:-1]):
            body(before, str(self.sizes[-1]), self.sizes[-1])

    def _alone(self, w: Writer, lanes: int, body: Callable[[list[str], int], None]) -> None:
        whole, rest = divmod(self.extent, lanes)
        before = [str(walk.start) for walk in self.walks]
        if whole:
            stop = "end" if not rest else f"(end < {whole} ? end : {whole})"
            with w.loop("i", stop, start="begin", trips=whole):
                body(self._places(before, f"i * {lanes}"), lanes)
        if rest:
            with w.block(f"if (end > {whole})" if whole else "if (begin < end)"):
                body(self._places(before, str(whole * lanes)), rest)

    def _places(self, before: list[str], inner: str) -> list[str]:
        return [f"{at} + {inner if walk.strides[-1] else '0'}" for at, walk in zip(before, self.walks, strict=True)]


def loops(shape: Shape, *walks: Walk) -> Loops:
    """Merges the axes of the walks into as few loops as possible, at least one."""
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
    return Loops(tuple(sizes), tuple(Walk(tuple(row[i] for row in strides), w.start) for i, w in enumerate(walks)))


def loops_over(site: Site[Any], ordered: Callable[..., tuple[Shape, ...]]) -> Loops:
    """Loops over the outputs; `ordered` gives the order of inputs and constants, which are broadcast where smaller."""
    out, constants = site.output_shape(), {role: constant.data.shape for role, constant in site.constants.items()}
    given = ordered([site.shape(i) for i in range(len(site.inputs))], constants)
    return loops(out, Walk(contiguous(out)), *(Walk(broadcast(shape, out)) for shape in given))


def operand_loops(site: Site[Any]) -> Loops:
    """(output, left, right) of an operation with two operands."""
    return loops_over(site, operands)


def alike(site: Site[Any], tensors: int) -> Loops:
    """Loops over the elements of so many tensors of one shape."""
    return loops(site.shape(), *[Walk(contiguous(site.shape()))] * tensors)


@contextmanager
def _counted(w: Writer, sizes: Shape) -> Iterator[None]:
    with ExitStack() as nested:
        for axis, size in enumerate(sizes):
            loop = w.loop(f"i{axis}", size) if axis else w.loop("i0", "end", start="begin", trips=size)
            nested.enter_context(loop)
        yield


def _index(walk: Walk) -> str:
    return " + ".join([*(f"i{axis} * {stride}" for axis, stride in enumerate(walk.strides)), str(walk.start)])


@contextmanager
def each_run(
    w: Writer, site: Site[Any], names: Names, count: int, size: int, made: int | None = None, index: str = "row"
) -> Iterator[None]:
    """A loop over runs: `from` points at `size` inputs, `to` at their results, as many unless told otherwise."""
    source, target = (C_TYPES[tensor.dtype] for tensor in (site.inputs[0], site.outputs[0]))
    with w.loop(index, "end", start="begin", trips=count):
        w(f"const {source} *from = {names.inputs[0]} + ({index}) * {size};")
        w(f"{target} *to = {names.outputs[0]} + ({index}) * {size if made is None else made};")
        yield


def copy_kernels(
    walks: Callable[[Site[K]], Loops], overlaps: Callable[[Site[K]], tuple[Overlap, ...]] = lambda site: ()
) -> tuple[Kernel[K] | OnEach[K], ...]:
    """Kernels that only copy elements (output walk, input walk) of any type; floats, and runs of integers, by
    vectors."""

    def demand(site: Site[K]) -> Demand:
        return Demand(extent=walks(site).extent, overlaps=overlaps(site))

    def emit(w: Writer, site: Site[K], names: Names) -> None:
        def element(at: list[str]) -> None:
            w.bill(c99.LOAD.cycles)
            w(w.use(c99.STORE, f"{names.outputs[0]}[{at[0]}]", f"{names.inputs[0]}[{at[1]}]"))

        walks(site).nest(w, element, STRAIGHT)

    def demand_vectors(site: Site[K], lanes: int) -> Demand:
        return Demand(extent=walks(site).vectors(lanes), overlaps=overlaps(site))

    def carry(w: Writer, v: Vectors, site: Site[K], names: Names, at: list[str], count: int) -> None:
        v.declare(w, "value", walks(site).load(w, v, 1, f"{names.inputs[0]} + {at[1]}", count))
        v.store(w, f"{names.outputs[0]} + {at[0]}", "value", count)

    scalar = Kernel("scalar", PORTABLE, any_format, demand, emit)
    return (
        scalar,
        on_each("float", lambda floats: Elements(floats, walks, demand_vectors, carry)),
        on_each("bytes", lambda v: Runs(v, walks, demand_vectors)),
    )


@dataclass(frozen=True)
class Elements(Generic[K]):
    """Contiguous floats, a vector at a time. demanded: the demand for a number of lanes; element: prints the
    computation of a vector, given its indices and the number of lanes."""

    floats: Vectors
    walks: Callable[[Site[K]], Loops]
    demanded: Callable[[Site[K], int], Demand]
    element: Callable[[Writer, Vectors, Site[K], Names, list[str], int], None]

    def accepts(self, site: Site[K]) -> str | None:
        return only_float(site) or self.walks(site).no_vectors(self.floats.lanes)

    def demand(self, site: Site[K]) -> Demand:
        return self.demanded(site, self.floats.lanes)

    def emit(self, w: Writer, site: Site[K], names: Names) -> None:
        element = partial(self.element, w, self.floats, site, names)
        self.walks(site).vector_nest(w, self.floats.lanes, element)


@dataclass(frozen=True)
class Runs(Generic[K]):
    """Copies integers whose innermost loop is contiguous in the input and in the output, as vectors of bytes."""

    v: Vectors
    walks: Callable[[Site[K]], Loops]
    demanded: Callable[[Site[K], int], Demand]

    def accepts(self, site: Site[K]) -> str | None:
        walks = self.walks(site)
        if any(walk.strides[-1] != 1 for walk in walks.walks):
            return "its values are not contiguous"
        run = walks.sizes[-1] * item_bytes(site)
        return only_integer(site) or (f"its runs of {run} bytes are short" if run < SHORTEST else None)

    def demand(self, site: Site[K]) -> Demand:
        return self.demanded(site, self._elements(site))

    def emit(self, w: Writer, site: Site[K], names: Names) -> None:
        size, to, source = item_bytes(site), names.outputs[0], names.inputs[0]

        def element(at: list[str], count: int) -> None:
            target, origin = f"{to} + {at[0]}", f"{source} + {at[1]}"
            if size > 1:
                w(f"int8_t *into = (int8_t *)({target});")
                w(f"const int8_t *from = (const int8_t *)({origin});")
                target, origin = "into", "from"
            move(w, self.v, target, origin, count * size)

        self.walks(site).vector_nest(w, self._elements(site), element)

    def _elements(self, site: Site[K]) -> int:
        """Of one vector."""
        return 4 * self.v.lanes // item_bytes(site)


def item_bytes(site: Site[Any]) -> int:
    return np.dtype(site.inputs[0].dtype).itemsize
