"""Convolution of 3 x 3 taps with fewer products, after S. Winograd: F(2 x 2, 3 x 3) in vectors of floats.

A patch of 4 x 4 inputs gives 2 x 2 outputs. After a transform of patches and taps, 16 products of each pair of channels
replace 36; summing over input channels equals 16 convolutions of one tap. With stride 2 a patch has 5 x 5 inputs: along
each axis the outer taps read every second input, which is F(2, 2), and the middle tap the others, untransformed. That
makes 25 products of 36, with 16 different weights. The transforms only add and subtract, so results are as accurate as
those of a direct convolution to a bit or so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product as product_of

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.vector_lanes import VectorLanes, vector_lanes
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Names, only_float
from nnbuild.kernels.lanes.layer_sums import float_lanes
from nnbuild.kernels.lanes.vector_epilogue import POINTWISE, declare_outputs, refusal
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.dot import Block, Blocks
from nnbuild.kernels.loops.tiling import best_pixels, best_vectors, stall
from nnbuild.kernels.loops.vector_tiles import VectorTiles
from nnbuild.kernels.loops.window import Window, strips, window_of
from nnbuild.kernels.winograd.patch_rows import PatchRows, patch_rows, transformed
from nnbuild.model.graph import Array
from nnbuild.ops.base import NO_CLAMP
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.site import Site

OUT = 2
"""Outputs of a patch along each axis."""
WEIGHTS = 4
"""Different taps along each axis after the transform."""

IN_REGISTERS = 22
"""Vectors of a transform: a patch, and a column more."""


@dataclass(frozen=True, eq=False)
class Transform:
    """Along one axis. inputs: each transformed input as an input of a patch, or the sum or difference of two. weights:
    the transformed tap of each product. outputs: the products in each output, with their signs."""

    taps: Array
    inputs: tuple[tuple[int] | tuple[int, str, int], ...]
    weights: tuple[int, ...]
    outputs: tuple[tuple[tuple[str, int], ...], ...]

    @property
    def patch(self) -> int:
        """Inputs of a patch along an axis, and its products."""
        return len(self.inputs)

    @cached_property
    def matrices(self) -> tuple[tuple[int, int], ...]:
        """The pairs of taps, rows and columns; those with most products come last."""
        pairs = product_of(range(WEIGHTS), range(WEIGHTS))
        return tuple(sorted(pairs, key=lambda pair: len(self.sharing(pair))))

    def sharing(self, pair: tuple[int, int]) -> list[tuple[int, int]]:
        """The products of a patch with the same weights."""
        rows, columns = ([i for i, of in enumerate(self.weights) if of == each] for each in pair)
        return list(product_of(rows, columns))

    @cached_property
    def places(self) -> dict[tuple[int, int], int]:
        """The index of each product's transformed inputs; products with the same weights are consecutive."""
        order = [place for pair in self.matrices for place in self.sharing(pair)]
        return {place: at for at, place in enumerate(order)}

    @cached_property
    def runs(self) -> dict[int, int]:
        """Number of products that share weights -> number of such weights."""
        return Counter(len(self.sharing(pair)) for pair in self.matrices)


ONE_APART = Transform(
    np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]),
    ((0, "sub", 2), (1, "add", 2), (2, "sub", 1), (1, "sub", 3)),
    (0, 1, 2, 3),
    ((("add", 0), ("add", 1), ("add", 2)), (("add", 1), ("sub", 2), ("sub", 3))),
)
TWO_APART = Transform(
    np.array([[1.0, 0, 0], [1, 0, 1], [0, 0, 1], [0, 1, 0]]),
    ((0, "sub", 2), (2,), (2, "sub", 4), (1,), (3,)),
    (0, 1, 2, 3, 3),
    ((("add", 0), ("add", 1), ("add", 3)), (("add", 1), ("sub", 2), ("add", 4))),
)
"""With stride 2."""
WORTHWHILE = 16
"""Patches from which the saved products repay 16 weights instead of 9. A late layer of few positions and many channels
would gain little and nearly double its size."""


@dataclass(frozen=True, eq=False)
class VectorWinograd:
    """`sums` computes the sums of products, `lanes` finishes outputs; `copy` copies padded inputs. A work item is the
    rows of patches computed together or, if these are all rows, a block of channels."""

    form: Transform
    copy: VectorTiles
    plan: PatchRows
    lanes: VectorLanes
    sums: VectorLanes

    @property
    def floats(self) -> Vectors:
        return self.lanes.floats

    @property
    def window(self) -> Window:
        return self.copy.window

    @property
    def blocks(self) -> Blocks:
        return dot.divide(self.window.filters, self.sums)

    @property
    def by_block(self) -> bool:
        return self.plan.times == 1 and self.blocks.last is None

    def demand(self) -> Demand:
        weights = [dot.pack(matrix, self.sums) for matrix in _weights(self.copy.site.constant("kernel"), self.form)]
        between = len(self.form.places) * self.plan.patches * (self.window.channels + self.window.filters)
        packed = {"kernel": np.concatenate(weights), **self.lanes.channels}
        extent = self.blocks.count if self.by_block else self.plan.times
        return Demand(extent=extent, scratch=4 * (self.copy.elements + between), packed=packed)

    def emit(self, w: Writer, names: Names) -> None:
        w(f"float *patches = {names.scratch} + {self.copy.elements};")
        w(f"float *sums = patches + {len(self.form.places) * self.plan.patches * self.window.channels};")
        if self.copy.copied:
            self.copy.copy_rows(w, names, self.plan.rows, ("0", "1") if self.by_block else ("begin", "end"))
        dot.declare_channels(w, self.lanes, names.packed)
        with w.block("") if self.by_block else w.loop("y", "end", start="begin", trips=self.plan.times):
            if self.by_block:
                w("const int32_t y = 0;")
            self._inputs(w, names)
            self._products(w, names)
            self._outputs(w, names)

    @property
    def _top(self) -> str:
        return f"const int32_t top = {self.plan.top};"

    def _inputs(self, w: Writer, names: Names) -> None:
        """Transforms every patch, columns first."""
        source = names.scratch if self.copy.copied else names.inputs[0]
        floats, stride, (down, along) = self.floats, self.window.rows.stride, (self.copy.row_size, self.window.channels)
        with self.plan.each(w, self.window.channels, floats.lanes, self._top):
            place = f"top * {stride * down} + (x * {OUT}) * {stride * along}"
            w(f"const float *from = {source} + {place} + c;")
            w(f"float *to = patches + patch * {self.window.channels} + c;")
            for j in range(self.form.patch):
                for i in range(self.form.patch):
                    floats.declare(w, f"d{i}{j}", floats.load(w, f"from + {i * down + j * along}"))
                for i in range(self.form.patch):
                    floats.declare(w, f"t{i}{j}", self._input(w, i, [f"d{k}{j}" for k in range(self.form.patch)]))
            for (i, j), at in self.form.places.items():
                value = self._input(w, j, [f"t{i}{k}" for k in range(self.form.patch)])
                floats.store(w, f"to + {at * self.plan.patches * self.window.channels}", value)

    def _input(self, w: Writer, place: int, line: Sequence[str]) -> str:
        match self.form.inputs[place]:
            case (first, operation, second):
                return self.floats.use(w, operation, line[first], line[second])
            case (one,):
                return line[one]

    def _products(self, w: Writer, names: Names) -> None:
        """The sums over the input channels for all 16 products and all patches."""
        blocks, each = self.blocks.classes(), self.window.channels * self.floats.lanes
        size = each * sum(block.vectors * count for block, count in blocks)
        full, skipped = self.blocks.full, self.by_block
        first = f"begin * {full.channels}" if skipped else "0"
        before = f"begin * {each * full.vectors}" if skipped else "0"
        done, weights = 0, 0
        for times, count in self.form.runs.items():
            patches = times * self.plan.patches
            with w.loop("e", count):
                place = f"patches + e * {patches * self.window.channels}"
                w(f"const float *from = {place} + {done * self.plan.patches * self.window.channels};")
                place = f"sums + e * {patches * self.window.filters} + {first}"
                w(f"float *to = {place} + {done * self.plan.patches * self.window.filters};")
                place = f"{names.packed['kernel']} + e * {size} + {before}"
                w(f"const float *taps = {place} + {weights * size};")
                for block, number in blocks:
                    with w.loop("block", "end", start="begin", trips=number) if skipped else w.loop("block", number):
                        self._block(w, block, patches)
                        w(f"taps += {each * block.vectors};")
                        w(f"to += {block.channels};")
            done, weights = done + times * count, weights + count

    def _block(self, w: Writer, block: Block, patches: int) -> None:
        """One block of output channels for `patches` patches."""
        registers, loaded = self.copy.registers, self.sums.loaded
        for strip in strips(
            patches, best_pixels(patches, block.vectors, self.window.channels, registers, loaded=loaded)
        ):
            with w.loop("x", strip.stop, start=strip.place, step=strip.size):
                dot.start(w, self.sums, strip.size, block)
                w(f"const float *row = from + x * {self.window.channels};")
                w("const float *k = taps;")
                self._along(w, block, strip.size)
                w(f"float *result = to + x * {self.window.filters};")
                results = [f"result + {pixel * self.window.filters}" for pixel in range(strip.size)]
                dot.store(w, self.sums, block, results)

    def _along(self, w: Writer, block: Block, pixels: int) -> None:
        channels = self.window.channels
        if self.sums.loaded > 1:
            steps = range(0, pixels * channels, channels)
            dot.along(w, self.sums, block, channels, lambda i: [f"row + {step} + {i}" for step in steps])
            return
        with w.loop("i", channels):
            pointers = [f"row + {pixel * channels} + i" for pixel in range(pixels)]
            dot.multiply(w, self.sums, block, pointers, "k")
            w.bill(stall(pixels, block.vectors))
            w(f"k += {block.vectors * self.floats.lanes};")

    def _outputs(self, w: Writer, names: Names) -> None:
        """Transforms the sums of every patch to 2 x 2 outputs, with their epilogue."""
        columns, width = self.window.columns.places, self.blocks.full.channels
        of = (f"begin * {width}", f"end * {width}") if self.by_block else ("0", "")
        with self.plan.each(w, self.window.filters, self.floats.lanes, self._top, *of):
            w(f"const float *from = sums + patch * {self.window.filters} + c;")
            place = f"(top * {columns} + x * {OUT}) * {self.window.filters} + c"
            declare_outputs(w, "float", names, place)
            self._gathered(w)
            for i in range(OUT):
                for j in range(OUT):
                    self.lanes.start(w, f"y{i}{j}", "c")
                    combined = self._combined(w, j, [f"u{i}{k}" for k in range(self.form.patch)])
                    w(f"y{i}{j} = {self.floats.use(w, 'add', f'y{i}{j}', combined)};")
                    at = (i * columns + j) * self.window.filters
                    self.lanes.store(w, f"y{i}{j}", f"to + {at}", "c", self.floats.lanes)

    def _gathered(self, w: Writer) -> None:
        """Declares u: for each of the two output rows, as many values in a line as a patch has."""
        for j in range(self.form.patch):
            for i in range(self.form.patch):
                at = self.form.places[i, j] * self.plan.patches * self.window.filters
                self.floats.declare(w, f"m{i}{j}", self.floats.load(w, f"from + {at}"))
            for i in range(OUT):
                self.floats.declare(w, f"u{i}{j}", self._combined(w, i, [f"m{k}{j}" for k in range(self.form.patch)]))

    def _combined(self, w: Writer, place: int, line: Sequence[str]) -> str:
        (_, first), *others = self.form.outputs[place]
        value = line[first]
        for operation, other in others:
            value = self.floats.use(w, operation, value, line[other])
        return value


def vector_winograd(floats: Vectors, site: Site[Conv2D]) -> VectorWinograd:
    """The nest; inputs with padding are copied."""
    lanes = float_lanes(floats, site)
    window = window_of(site)
    registers, padded = floats.tile_registers, not window.inside
    copy = VectorTiles(site, lanes, registers, replace(window, pool=(OUT, OUT)), padded, padded)
    plan = patch_rows(window, OUT)
    needed = -(-window.filters // floats.lanes)
    sums = vector_lanes(floats, {}, NO_CLAMP).by_lane()
    vectors = best_vectors(plan.patches, [needed], window.channels, registers, loaded=sums.loaded)
    if plan.times == 1 and needed % vectors and vectors > 1 and needed % (vectors - 1) == 0:
        vectors -= 1  # blocks of equal size can be divided among cores
    form = ONE_APART if window.rows.stride == 1 else TWO_APART
    return VectorWinograd(form, copy, plan, lanes, sums.holding(vectors))


def refused(floats: Vectors, site: Site[Conv2D]) -> str | None:
    window, (rows, columns, _) = window_of(site), site.output_shape()
    axes = (window.rows, window.columns)
    if any((axis.kernel, axis.dilation) != (3, 1) for axis in axes) or {a.stride for a in axes} not in ({1}, {2}):
        return "it computes 3 x 3 kernels without dilation, of stride 1 or 2 only"
    if window.groups > 1 or window.channels % floats.lanes or window.filters % floats.lanes:
        return f"its channels do not divide into vectors of {floats.lanes}"
    if floats.unsaved and floats.registers < IN_REGISTERS:
        return f"its transforms keep {IN_REGISTERS} vectors in registers"
    if rows % OUT or columns % OUT:
        return "its outputs do not divide into 2 x 2 patches"
    if rows * columns < WORTHWHILE * OUT * OUT:
        return f"fewer than {WORTHWHILE} patches do not repay its larger weights"
    return only_float(site) or refusal(site, POINTWISE)


def _weights(kernel: Array, form: Transform) -> Array:
    """[3, 3, in, out] -> [16, in, out], computed in float64."""
    result = transformed(kernel, form.taps).astype(np.float32)
    return np.stack([result[row * WEIGHTS + column] for row, column in form.matrices])
