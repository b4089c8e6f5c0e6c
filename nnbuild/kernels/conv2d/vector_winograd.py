"""Convolution of 3 by 3 taps with fewer products, after S. Winograd: F(2x2, 3x3) in vectors of floats.

A patch of 4 by 4 inputs gives 2 by 2 outputs. Patches and taps are brought to another form, in which 16 products of
each pair of channels do the work of 36; the sums over the input channels are those of 16 convolutions of one tap.
The transformations only add and subtract, so the results are as exact as those of the plain way to a bit or so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.vector_lanes import VectorLanes
from nnbuild.isa.vector_sets import SETS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Names, Variant, only_float
from nnbuild.kernels.loops import dot, tiled
from nnbuild.kernels.loops.direct import geometry
from nnbuild.kernels.loops.dot import Block
from nnbuild.kernels.loops.tiling import best_pixels, best_vectors, even, stall
from nnbuild.kernels.vector_tail import POINTWISE, beside_name, refusal, tail_of
from nnbuild.kernels.window_loops import product, total
from nnbuild.model.graph import Array
from nnbuild.ops.base import NO_CLAMP
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.site import Site

OUT = 2
"""Outputs of a patch along each axis."""
PATCH = 4
TAPS = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
INPUT = ((0, "sub", 2), (1, "add", 2), (2, "sub", 1), (1, "sub", 3))
"""What becomes of four inputs in a line: each new one is the sum or difference of two."""
FEWEST = 8
"""Patches that share every weight that is loaded, if there are so many."""
WORTHWHILE = 24
"""Patches from which on the products that are saved repay weights of 16 instead of 9 taps. A layer late in a network,
of few places and many channels, would gain little and nearly double its size."""


@dataclass(frozen=True)
class Layout:
    """`sums` computes the products' sums, `lanes` finishes outputs; patches of `rows` rows are done together."""

    plan: tiled.Layout
    lanes: VectorLanes
    sums: VectorLanes
    rows: int

    @property
    def floats(self) -> Vectors:
        return self.lanes.floats

    @property
    def across(self) -> int:
        """Patches in a row."""
        return self.plan.shape.columns.places // OUT

    @property
    def patches(self) -> int:
        return self.rows * self.across

    @property
    def channels(self) -> int:
        return self.plan.shape.channels

    @property
    def filters(self) -> int:
        return self.plan.shape.filters

    @property
    def copied(self) -> int:
        """Floats of the padded copy of the input."""
        return self.plan.height * self.plan.row_size if self.plan.copied else 0


def _layout(site: Site[Conv2D], floats: Vectors) -> Layout:
    attributes = site.attributes
    lanes = VectorLanes(site, floats, attributes.clamp, finish=tail_of(site).finish)
    shape = geometry(site, lanes)
    padded = not (shape.rows.always_inside and shape.columns.always_inside)
    plan = tiled.Layout(shape, (OUT, OUT), False, padded, padded, floats.registers - floats.temporaries)
    across, down = shape.columns.places // OUT, shape.rows.places // OUT
    rows = next(n for n in range(1, down + 1) if down % n == 0 and (n * across >= FEWEST or n == down))
    sums = VectorLanes(site, floats, NO_CLAMP)
    sums.channels = {}
    needed = -(-shape.filters // floats.lanes)
    sums.vectors = best_vectors(rows * across, [needed], shape.channels, plan.registers)
    return Layout(plan, lanes, sums, rows)


def _accepts(site: Site[Conv2D], floats: Vectors) -> str | None:
    attributes = site.attributes
    height, width, channels, filters = site.constant("kernel").shape
    if (height, width) != (3, 3) or (attributes.strides, attributes.dilation) != ((1, 1), (1, 1)):
        return "it computes 3 by 3 taps, one apart, at every position"
    if attributes.groups > 1 or channels % floats.lanes or filters % floats.lanes:
        return f"its channels do not divide into vectors of {floats.lanes}"
    if site.output_shape()[0] % OUT or site.output_shape()[1] % OUT:
        return "its outputs do not divide into two by two"
    if site.output_shape()[0] * site.output_shape()[1] < WORTHWHILE * OUT * OUT:
        return f"fewer than {WORTHWHILE} patches do not repay its larger weights"
    return only_float(site) or refusal(site, POINTWISE)


def transformed(kernel: Array) -> Array:
    """[3, 3, in, out] -> [16, in, out], in float64 until the end."""
    result: Array = np.einsum("ai,bj,ijco->abco", TAPS, TAPS, kernel.astype(np.float64)).astype(np.float32)
    return result.reshape(PATCH * PATCH, *kernel.shape[2:])


def _variant(floats: Vectors) -> Variant:
    def accepts(site: Site[Conv2D]) -> str | None:
        return _accepts(site, floats)

    def demand(site: Site[Conv2D]) -> Demand:
        made = _layout(site, floats)
        weights = [dot.pack(matrix, made.sums) for matrix in transformed(site.constant("kernel"))]
        between = PATCH * PATCH * made.patches * (made.channels + made.filters)
        packed = {"kernel": np.concatenate(weights), **made.lanes.channels}
        extent = made.plan.shape.rows.places // OUT // made.rows
        return Demand(extent=extent, scratch=4 * (made.copied + between), packed=packed)

    def emit(w: Writer, site: Site[Conv2D], names: Names) -> None:
        _emit(w, names, _layout(site, floats))

    return Variant(f"{floats.name}_winograd", frozenset({floats.name}), accepts, demand, emit, POINTWISE)


def _emit(w: Writer, names: Names, made: Layout) -> None:
    w(f"float *patches = {total(names.scratch, str(made.copied))};")
    w(f"float *sums = patches + {PATCH * PATCH * made.patches * made.channels};")
    if made.plan.copied:
        tiled.copy_rows(w, made.plan, names, made.rows)
    dot.declare_channels(w, made.lanes, names.packed)
    with w.loop("y", "end", start="begin", trips=made.plan.shape.rows.places // OUT // made.rows):
        _inputs(w, names, made)
        _products(w, names, made)
        _outputs(w, names, made)


@contextmanager
def _each_patch(w: Writer, made: Layout, channels: int) -> Iterator[tuple[str, str]]:
    """Loops over the patches and their vectors of channels: (row and column of the patch's first output)."""
    with w.loop("row", made.rows), w.loop("x", made.across):
        w(f"const int32_t patch = {total(product('row', made.across), 'x')};")
        w(f"const int32_t top = ({product('y', made.rows)} + row) * {OUT};")
        with w.loop("c", channels, step=made.floats.lanes):
            yield "top", product("x", OUT)


def _inputs(w: Writer, names: Names, made: Layout) -> None:
    """Every patch to its other form: first its rows, then its columns."""
    source = names.scratch if made.plan.copied else names.inputs[0]
    floats = made.floats
    with _each_patch(w, made, made.channels) as (top, left):
        w(f"const float *from = {source} + {product(top, made.plan.row_size)} + {product(left, made.channels)} + c;")
        w(f"float *to = patches + {product('patch', made.channels)} + c;")
        for i in range(PATCH):
            for j in range(PATCH):
                at = i * made.plan.row_size + j * made.channels
                floats.declare(w, f"d{i}{j}", floats.load(w, dot.offset("from", at)))
        for j in range(PATCH):
            for i, (first, operation, second) in enumerate(INPUT):
                floats.declare(w, f"t{i}{j}", floats.use(w, operation, f"d{first}{j}", f"d{second}{j}"))
        for i in range(PATCH):
            for j, (first, operation, second) in enumerate(INPUT):
                at = (i * PATCH + j) * made.patches * made.channels
                floats.store(w, dot.offset("to", at), floats.use(w, operation, f"t{i}{first}", f"t{i}{second}"))


def _products(w: Writer, names: Names, made: Layout) -> None:
    """Sixteen times the sums over the input channels, for all patches."""
    blocks = dot.divide(made.filters, made.sums)
    size = made.channels * sum(block.vectors * count for block, count in blocks.classes()) * made.floats.lanes
    with w.loop("e", PATCH * PATCH):
        w(f"const float *from = patches + {product('e', made.patches * made.channels)};")
        w(f"float *to = sums + {product('e', made.patches * made.filters)};")
        w(f"const float *taps = {names.packed['kernel']} + {product('e', size)};")
        for block, count in blocks.classes():
            with w.loop("block", count):
                _block(w, made, block)
                w(f"taps += {made.channels * block.vectors * made.floats.lanes};")
                w(f"to += {block.channels};")


def _block(w: Writer, made: Layout, block: Block) -> None:
    """One block of output channels for all patches."""
    place = 0
    for pixels, count in even(
        made.patches, best_pixels(made.patches, block.vectors, made.channels, made.plan.registers)
    ):
        with w.loop("x", place + pixels * count, start=place, step=pixels):
            dot.start(w, made.sums, pixels, block)
            w(f"const float *row = from + {product('x', made.channels)};")
            w("const float *k = taps;")
            with w.loop("i", made.channels):
                pointers = [f"row + {total(str(pixel * made.channels), 'i')}" for pixel in range(pixels)]
                dot.multiply(w, made.sums, block, pointers, "k")
                w.bill(stall(pixels, block.vectors))
                w(f"k += {block.vectors * made.floats.lanes};")
            w(f"float *result = to + {product('x', made.filters)};")
            dot.store(w, made.sums, block, [dot.offset("result", pixel * made.filters) for pixel in range(pixels)])
        place += pixels * count


def _outputs(w: Writer, names: Names, made: Layout) -> None:
    """The sums of every patch back to 2 by 2 outputs, and what follows."""
    columns = made.plan.shape.columns.places
    with _each_patch(w, made, made.filters) as (top, left):
        w(f"const float *from = sums + {product('patch', made.filters)} + c;")
        place = f"({product(top, columns)} + {left}) * {made.filters} + c"
        w(f"float *to = {names.outputs[0]} + {place};")
        for operand in range(1, len(names.inputs)):
            w(f"const float *{beside_name(operand)} = {names.inputs[operand]} + {place};")
        _gathered(w, made)
        for i in range(OUT):
            for j in range(OUT):
                made.lanes.start(w, f"y{i}{j}", "c")
                combined = _combined(w, made, j, [f"u{i}{k}" for k in range(PATCH)])
                w(f"y{i}{j} = {made.floats.use(w, 'add', f'y{i}{j}', combined)};")
                at = (i * columns + j) * made.filters
                made.lanes.store(w, f"y{i}{j}", dot.offset("to", at), "c", made.floats.lanes)


def _gathered(w: Writer, made: Layout) -> None:
    """u: for each of the two rows of outputs, four values in a line."""
    for j in range(PATCH):
        for i in range(PATCH):
            at = (i * PATCH + j) * made.patches * made.filters
            made.floats.declare(w, f"m{i}{j}", made.floats.load(w, dot.offset("from", at)))
        for i in range(OUT):
            made.floats.declare(w, f"u{i}{j}", _combined(w, made, i, [f"m{k}{j}" for k in range(PATCH)]))


def _combined(w: Writer, made: Layout, place: int, line: Sequence[str]) -> str:
    """Output 0 of a line is a + b + c, output 1 is b - c - d."""
    a, b, c, d = line
    if place == 0:
        return made.floats.use(w, "add", made.floats.use(w, "add", a, b), c)
    return made.floats.use(w, "sub", made.floats.use(w, "sub", b, c), d)


VARIANTS = tuple(_variant(floats) for floats in SETS)
