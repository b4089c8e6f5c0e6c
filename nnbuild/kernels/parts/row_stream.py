"""Operations streamed row by row: only a few rows of the tensors between them are ever held.

The last operation's rows are computed in order. Before each, the operation before it makes the rows that it reads, and
so on recursively. Rows that are not read any more are moved out of their window. The kernels are those for whole
tensors: each gets its window as if the whole tensor were there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from nnbuild.base.literals import C_TYPES
from nnbuild.base.names import unique
from nnbuild.base.writer import Instruction, Writer
from nnbuild.kernels.contract import Demand, Kernel, Names, Overlap
from nnbuild.kernels.loops.window import Axis, window_of
from nnbuild.kernels.parts.kernel_function import block_of, kernel_function
from nnbuild.kernels.parts.overlaps import SIZES
from nnbuild.model.graph import Array, Tensor
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site

ALIGNMENT = 8
MOVE_CYCLES = 1.0
"""Cycles for each byte of a row that is moved."""


@dataclass(frozen=True, eq=False)
class Part:
    """One operation or chain of a stream, with the kernel that computes its rows."""

    site: Site
    kernel: Kernel
    demand: Demand

    @property
    def result(self) -> Tensor:
        return self.site.writes[0]

    @property
    def row(self) -> int:
        """Bytes of one row of the result."""
        return self.result.nbytes // self.result.shape[0]

    @property
    def work_items(self) -> int:
        """The kernel's work items per row."""
        return self.demand.extent // self.result.shape[0]

    def axis(self, place: int) -> Axis:
        """Which input rows a row of the result reads: those under a window, or the same row."""
        rows = self.result.shape[0]
        return row_axis(self.site) if place == 0 else Axis(rows, rows)


def row_axis(site: Site) -> Axis:
    """Which rows of the first input an output row reads."""
    if isinstance(site.attributes, Conv2D | DepthwiseConv2D | Pool2D):
        return window_of(replace(site, tail=())).rows
    rows = site.output_shape()[0]
    return Axis(rows, rows)


def lowest(axis: Axis, row: int) -> int:
    """The first input row that an output row reads."""
    return max(0, row * axis.stride - axis.pad)


def needed(axis: Axis, row: int) -> int:
    """The number of input rows that must exist for an output row."""
    return max(0, min(axis.size, row * axis.stride - axis.pad + axis.span))


def streamable(site: Site, demand: Demand) -> bool:
    """Whether a kernel can compute single rows."""
    rows = site.writes[0].shape[0] if site.writes[0].shape else 0
    return demand.rows and rows > 1 and demand.extent % rows == 0 and not site.op.outer


@dataclass(frozen=True, eq=False)
class Stream:
    """Several parts in a valid order of computation. Each result but the last is read by exactly one other part."""

    parts: tuple[Part, ...]

    def kernel(self, name: str) -> Kernel:
        """The stream as a kernel."""
        return Kernel(name, frozenset(), lambda site: None, self.demand, self.emit)

    @property
    def last(self) -> int:
        return len(self.parts) - 1

    def sources(self, index: int) -> list[int | None]:
        """For each input of a part, the part that makes it; None for external inputs."""
        makers = {part.result.name: number for number, part in enumerate(self.parts[: self.last])}
        return [makers.get(tensor.name) for tensor in self.parts[index].site.reads]

    def reader(self, index: int) -> tuple[int, Axis]:
        """The part that reads a result, and how."""
        for number, part in enumerate(self.parts):
            if index in self.sources(number):
                return number, part.axis(self.sources(number).index(index))
        raise AssertionError("every result is read by a part")

    def rows_held(self, index: int) -> int:
        """Rows in the window behind part `index`."""
        _, axis = self.reader(index)
        return min(self.parts[index].result.shape[0], axis.span)

    def windows(self) -> list[int]:
        """The offset of each window in scratch; the kernels' own scratch follows."""
        places, at = [], 0
        for index, part in enumerate(self.parts[: self.last]):
            places.append(at)
            at += _aligned(self.rows_held(index) * part.row)
        return [*places, at]

    def demand(self, site: Site) -> Demand:
        packed: dict[str, Array] = {}
        for index, part in enumerate(self.parts):
            packed.update({f"{name}{index}": data for name, data in part.demand.packed.items()})
        own = max(_aligned(part.demand.scratch) for part in self.parts)
        return Demand(
            extent=self.parts[self.last].result.shape[0],
            scratch=self.windows()[-1] + own,
            scratch_type="int64",
            packed=packed,
            overlaps=tuple(self._overlaps(site)),
        )

    def order(self) -> Iterator[tuple[int, int]]:
        """(part, row) in the order of computation."""
        made = [0] * len(self.parts)

        def make(index: int, row: int) -> Iterator[tuple[int, int]]:
            for place, source in enumerate(self.sources(index)):
                while source is not None and made[source] < needed(self.parts[index].axis(place), row):
                    yield from make(source, made[source])
            yield index, row
            made[index] += 1

        for row in range(self.parts[self.last].result.shape[0]):
            yield from make(self.last, row)

    def _external(self) -> list[tuple[int, int, Tensor]]:
        """(part that reads it, index of its input, tensor) for every external input."""
        return [
            (index, place, part.site.reads[place])
            for index, part in enumerate(self.parts)
            for place, source in enumerate(self.sources(index))
            if source is None
        ]

    def _overlaps(self, site: Site) -> Iterator[Overlap]:
        """Derived from the exact order of rows. The last part reads its own rows before it writes, as far as its kernel
        says so."""
        order, final = list(self.order()), self.parts[self.last]
        own = {overlap.input: overlap.distance for overlap in final.demand.overlaps}
        for position, (index, place, tensor) in enumerate(self._external()):
            row, axis = tensor.nbytes // max(1, tensor.shape[0]), self.parts[index].axis(place)
            distance = own.get(place, final.result.nbytes) if index == self.last else -tensor.nbytes
            unread: int | None = None
            for part, at in reversed(order):
                if part == self.last and unread is not None:
                    distance = max(distance, (at + 1) * final.row - unread)
                if part == index:
                    low = lowest(axis, at) * row
                    unread = low if unread is None else min(unread, low)
            yield Overlap(input=position, distance=distance, split_distance=final.result.nbytes)

    def emit(self, w: Writer, site: Site, names: Names) -> None:
        functions = [self._function(w, index, names) for index in range(len(self.parts))]
        self._declare(w)
        with w.loop("row", "end", start="begin", trips=self.parts[self.last].result.shape[0]):
            self._make(w, self.last, "row", functions, names)

    def _declare(self, w: Writer) -> None:
        """For each window: its memory, the first row that it holds, and the number of rows made so far."""
        places = self.windows()
        for index, part in enumerate(self.parts[: self.last]):
            kind = C_TYPES[part.result.dtype]
            w(f"{kind} *const window{index} = ({kind} *)(scratch + {places[index] // ALIGNMENT});")
        for index in reversed(range(self.last)):
            reader, axis = self.reader(index)
            row = "begin" if reader == self.last else f"first{reader}"
            w(f"const int32_t top{index} = {axis.position(row)};")
            w(f"int32_t first{index} = top{index} < 0 ? 0 : top{index};")
            w(f"int32_t made{index} = first{index};")

    def _make(self, w: Writer, index: int, row: str, functions: list[Instruction], names: Names) -> None:
        """Prints the computation of one row of a part, with all rows that it needs."""
        part = self.parts[index]
        for place, source in enumerate(self.sources(index)):
            if source is None:
                continue
            axis, size = part.axis(place), self.parts[source].result.shape[0]
            reach = axis.span - axis.pad
            w(f"const int32_t reach{source} = ({row}) * {axis.stride} + {reach};")
            w(f"const int32_t until{source} = reach{source} < {size} ? reach{source} : {size};")
            with w.block(f"while (made{source} < until{source})"), w.trips(size / part.result.shape[0]):
                self._room(w, source, axis, row)
                self._make(w, source, f"made{source}", functions, names)
                w(f"++made{source};")
        ends = f"{row} * {part.work_items}, ({row} + 1) * {part.work_items}"
        w(f"{w.call(functions[index], *self._arguments(index, names), ends)};")

    def _room(self, w: Writer, index: int, axis: Axis, row: str) -> None:
        """Moves the rows that are still needed to the front of a full window."""
        held, part = self.rows_held(index), self.parts[index]
        elements = part.row // SIZES[part.result.dtype]
        with w.block(f"if (made{index} - first{index} == {held})"):
            w(f"const int32_t low = {axis.position(row)};")
            w(f"const int32_t gone = (low < made{index} ? low : made{index}) - first{index};")
            if held > 1:
                with w.loop("i", f"({held} - gone) * {elements}", trips=0):
                    w(f"window{index}[i] = window{index}[i + gone * {elements}];")
            w.bill(MOVE_CYCLES * part.row * max(0, held - axis.stride))
            w(f"first{index} += gone;")

    def _arguments(self, index: int, names: Names) -> list[str]:
        part = self.parts[index]
        given = {(p, place): names.inputs[at] for at, (p, place, _) in enumerate(self._external())}
        inputs = [
            given[index, place] if source is None else self._whole(source, const=True)
            for place, source in enumerate(self.sources(index))
        ]
        output = names.outputs[0] if index == self.last else self._whole(index, const=False)
        scratch = []
        if part.demand.scratch:
            scratch = [f"({C_TYPES[part.demand.scratch_type]} *)(scratch + {self.windows()[-1] // ALIGNMENT})"]
        return [*inputs, output, *scratch, *block_of(names, part.demand)]

    def _whole(self, index: int, const: bool) -> str:
        """The address of the whole tensor of which the window is a part; only rows that it holds are used."""
        part = self.parts[index]
        kind = f"{'const ' if const else ''}{C_TYPES[part.result.dtype]}"
        return f"({kind} *)((uintptr_t)window{index} - (uintptr_t)first{index} * {part.row})"

    def _own(self, names: Names, index: int) -> Names:
        """The names in a part's function."""
        part = self.parts[index]
        packed, count = {name: names.packed[f"{name}{index}"] for name in part.demand.packed}, len(part.site.reads)
        inputs = tuple(f"in{i}" for i in range(count)) if count > 1 else ("in",)
        return Names(inputs, ("out",), packed, block=names.block)

    def _function(self, w: Writer, index: int, names: Names) -> Instruction:
        """A part's kernel as a function, in which its constants have their own names."""
        part = self.parts[index]
        plain = self._own(names, index)
        name, share = f"rows_of_{index}_{unique(part.site.op.name)}", 1 / part.result.shape[0]
        return kernel_function(w, name, part.kernel, part.site, plain, part.demand, share, apart=index < self.last)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
