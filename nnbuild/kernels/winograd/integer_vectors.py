"""Convolution of 3 x 3 taps with a quarter of the products, after S. Winograd: F(4 x 4, 3 x 3), exact in integers.

A patch of 6 x 6 inputs gives 4 x 4 outputs by 36 products of each pair of channels instead of 144. All arithmetic is
modulo 2**32, where 9 has an inverse: sums are 64 times too large, and the shift that corrects this is exact as long as
they fit 26 bits. Inputs less their zero point have at most 9 bits, transformed patches 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.integer_lanes import SCALARS, IntegerVectors
from nnbuild.isa.lanes import Lanes
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.tiling import best_pixels, best_vectors
from nnbuild.kernels.loops.window import Window, WindowNest, strips, window_of
from nnbuild.kernels.winograd.patch_rows import FACTORS, FOUR, NINTH, PatchRows, every_three, patch_rows, transformed
from nnbuild.numeric.rounding import int32s, wrap
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.site import Site

OUT, PATCH, BITS = 4, 6, 6
"""Outputs and inputs of a patch along each axis, and the shift that corrects its sums."""
MOST_CHANNELS = (1 << 25) // (9 * 128 * 255)
BUSY = 2


class ModularProducts(Lanes):
    """Sums of products of 16-bit numbers; loads several inputs at once where a vector's lanes can be selected."""

    input_type = weight_type = "int16_t"
    output_type = "int32_t"
    depth = 1

    def __init__(self, v: Vectors, vectors: int = 1) -> None:
        self.by_lane = "h_mac_of" in v.spellings
        loaded = 2 * v.lanes if self.by_lane else SCALARS
        self.v, self.lanes, self.loaded, self.vectors, self.channels = v, v.lanes, loaded, vectors, {}

    def start(self, w: Writer, accumulator: str, channel: str) -> None:
        self.v.let(w, "sums", accumulator, self.v.call(w, "each", "0"), "")

    def weights(self, w: Writer, name: str, pointer: str) -> None:
        self.v.let(w, "halves", name, self.v.call(w, "h_load", pointer))

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        if self.by_lane:
            self.v.let(w, "words", name, self.v.call(w, "w_load", pointer))
        else:
            w(f"const int16_t *{name} = {pointer};")

    def multiply(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        self.multiply_by(w, accumulator, name, 0, weights)

    def multiply_by(self, w: Writer, accumulator: str, name: str, step: int, weights: str) -> None:
        if self.by_lane:
            value = self.v.call(w, "h_mac_of", accumulator, name, weights, of=(step,))
        else:
            value = self.v.call(w, "h_mac", accumulator, f"{name}[{step}]", weights)
        w(f"{accumulator} = {value};")

    def store(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        w(f"{self.v.call(w, 'store', pointer, accumulator)};")


@dataclass(frozen=True, eq=False)
class ExactWinograd(WindowNest[IntegerVectors]):
    """Rows of patches are computed together: copied, transformed, multiplied and transformed back."""

    products: ModularProducts
    plan: PatchRows

    @property
    def v(self) -> Vectors:
        return self.lanes.v

    @property
    def short(self) -> str:
        """The type of vectors in which inputs are transformed."""
        return short_of(self.v)[0]

    @property
    def line(self) -> int:
        """Elements of a row of the copy."""
        return (self.window.columns.places + 2) * self.window.channels

    @property
    def copied(self) -> int:
        return (self.plan.rows * OUT + 2) * self.line + 2 * self.v.lanes

    def demand(self) -> Demand:
        kernel = transformed(self.site.constant("kernel"), FOUR).astype(np.int16)
        between = (
            PATCH * PATCH * (self.plan.patches * (self.window.channels + 2 * self.window.filters) + 2 * self.v.lanes)
        )
        channels = {name: dot.pack_channels(values, self.products) for name, values in self.lanes.channels.items()}
        return Demand(
            extent=self.plan.times,
            scratch=2 * (-(-self.copied // 8) * 8 + between),
            scratch_type="int32",
            packed={"kernel": np.concatenate([dot.pack(matrix, self.products) for matrix in kernel]), **channels},
        )

    def emit(self, w: Writer, names: Names) -> None:
        w(f"int32_t *sums = {names.scratch};")
        w(f"int32_t *between = sums + {PATCH * PATCH * self.plan.patches * self.window.filters};")
        w(f"int16_t *patches = (int16_t *)(between + {PATCH * PATCH * self.v.lanes});")
        w(f"int16_t *copy = patches + {PATCH * PATCH * self.plan.patches * self.window.channels};")
        dot.declare_channels(w, self.lanes, names.packed)
        with w.loop("y", "end", start="begin", trips=self.plan.times):
            self._copy(w, names)
            self._inputs(w)
            self._products(w, names)
            self._outputs(w, names)

    def _copy(self, w: Writer, names: Names) -> None:
        """Copies the input rows under some rows of patches, less their zero point."""
        window, v = self.window, self.v
        before = window.columns.pad * window.channels
        after = self.line - before - window.columns.taken * window.channels
        with w.loop("row", self.plan.rows * OUT + 2):
            w(f"int16_t *line = copy + row * {self.line};")
            pad = f" - {window.rows.pad}" if window.rows.pad else ""
            w(f"const int32_t at = y * {self.plan.rows * OUT} + row{pad};")
            with w.block(f"if (at >= 0 && at < {window.rows.size})"):
                if before:
                    w(f"{v.call(w, 'fill', 'line', str(before), '0', of=(2,))};")
                source = f"{names.inputs[0]} + at * {window.line}"
                count = window.columns.taken * window.channels
                w.bill(count / v.lanes)
                zero = str(self.lanes.zero)
                w(f"{v.call(w, 'centre', f'line + {before}', source, str(count), zero)};")
                if after:
                    place = f"line + {self.line - after}"
                    w(f"{v.call(w, 'fill', place, str(after), '0', of=(2,))};")
            with w.block("else"), w.trips(0):
                w(f"{v.call(w, 'fill', 'line', str(self.line), '0', of=(2,))};")

    def _inputs(self, w: Writer) -> None:
        """Transforms through memory, as few sets have registers for a patch."""
        size = short_of(self.v)[1]
        channels = self.window.channels
        with self.plan.each(w, channels, size):
            w(f"const int16_t *from = copy + row * {OUT * self.line} + x * {OUT * channels} + c;")
            w(f"int16_t *to = patches + patch * {channels} + c;")
            w("int16_t *turned = (int16_t *)between;")
            with w.loop("j", PATCH):
                self._formed(w, "from", self.line, "turned", size)
                w(f"from += {channels};")
                w(f"turned += {PATCH * size};")
            w("const int16_t *line = (int16_t *)between;")
            with w.loop("i", PATCH):
                self._formed(w, "line", PATCH * size, "to", self.plan.patches * channels)
                w(f"line += {size};")
                w(f"to += {PATCH * self.plan.patches * channels};")

    def _formed(self, w: Writer, source: str, apart: int, to: str, between: int) -> None:
        """Transforms six inputs in a line, `apart` from each other."""
        v, mark = self.v, self.short[0]

        def let(name: str, value: str) -> None:
            v.let(w, self.short, name, value)

        def do(operation: str, *operands: str) -> str:
            return v.call(w, f"{mark}_{operation}", *operands)

        def times(a: str, by: int) -> str:
            return v.call(w, f"{mark}_shift_left", a, of=(by,))

        for index in (4, 2, 0, 3, 1, 5):
            let(f"d{index}", do("load", f"{source} + {index * apart}"))
        let("p", do("sub", "d4", times("d2", 2)))
        let("q", do("sub", "d3", times("d1", 2)))
        let("r", do("sub", "d4", "d2"))
        let("s", do("sub", "d3", "d1"))
        let("twice", times("s", 1))
        values = (
            do("add", times(do("sub", "d0", "d2"), 2), "r"),
            do("add", "p", "q"),
            do("sub", "p", "q"),
            do("add", "r", "twice"),
            do("sub", "r", "twice"),
            do("sub", do("sub", "d5", "d3"), times("s", 2)),
        )
        for index, value in enumerate(values):
            w(f"{v.call(w, f'{mark}_store', f'{to} + {index * between}', value)};")

    def _products(self, w: Writer, names: Names) -> None:
        """The sums over the input channels for all 36 products and all patches."""
        channels, filters = self.window.channels, self.window.filters
        blocks = dot.divide(filters, self.products)
        with w.loop("e", PATCH * PATCH):
            w(f"const int16_t *from = patches + e * {self.plan.patches * channels};")
            w(f"int32_t *to = sums + e * {self.plan.patches * filters};")
            w(f"const int16_t *taps = {names.packed['kernel']} + e * {channels * filters};")
            for block, count in blocks.classes():
                size = best_pixels(self.plan.patches, block.vectors, channels, self._free, loaded=2)
                with w.loop("block", count):
                    for strip in strips(self.plan.patches, size):
                        with w.loop("x", strip.stop, start=strip.place, step=strip.size):
                            self._tile(w, block, strip.size)
                    w(f"taps += {channels * block.channels};")
                    w(f"to += {block.channels};")

    @property
    def _free(self) -> int:
        return self.v.registers - BUSY

    def _tile(self, w: Writer, block: dot.Block, pixels: int) -> None:
        channels, filters = self.window.channels, self.window.filters
        dot.start(w, self.products, pixels, block)
        w(f"const int16_t *row = from + x * {channels};")
        w("const int16_t *k = taps;")
        steps = range(0, pixels * channels, channels)
        dot.along(w, self.products, block, channels, lambda i: [f"row + {step} + {i}" for step in steps])
        w(f"int32_t *result = to + x * {filters};")
        dot.store(w, self.products, block, [f"result + {pixel * filters}" for pixel in range(pixels)])

    def _outputs(self, w: Writer, names: Names) -> None:
        v, lanes, filters = self.v, self.lanes, self.window.filters
        columns = self.window.columns.places
        with self.plan.each(w, filters, v.lanes):
            w(f"const int32_t *from = sums + patch * {filters} + c;")
            place = f"({self.plan.top} * {columns} + x * {OUT}) * {filters} + c"
            w(f"{self.lanes.output_type} *to = {names.outputs[0]} + {place};")
            if lanes.added:
                w(f"const int8_t *beside = {names.inputs[1]} + {place};")
            w("int32_t *turned = between;")
            with w.loop("j", PATCH):
                self._back(w, "from", PATCH * self.plan.patches * filters)
                for i in range(OUT):
                    w(f"{v.call(w, 'store', f'turned + {i * PATCH * v.lanes}', f'z{i}')};")
                w(f"from += {self.plan.patches * filters};")
                w(f"turned += {v.lanes};")
            if not lanes.v.sparing:
                v.let(w, "sums", "bias_here", v.call(w, "load", "bias + c"))
            lanes.prepare(w, "c")
            for i in range(OUT):
                for wanted in w.each(self._together):
                    self._back(w, f"between + {i * PATCH * v.lanes}", v.lanes, wanted)
                    for j in wanted:
                        self._output(w, i, j, (i * columns + j) * filters)

    @property
    def _together(self) -> tuple[Sequence[int], ...]:
        """Outputs of a line for which there are registers at once."""
        if not self.lanes.v.sparing:
            return (range(OUT),)
        return ((0,), (1,), (2,), (3,)) if self.lanes.added else ((0, 2), (1, 3))

    def _output(self, w: Writer, i: int, j: int, at: int) -> None:
        v, lanes, name = self.v, self.lanes, f"y{i}{j}"
        factor = int(wrap(NINTH * FACTORS[i] * FACTORS[j], 32))
        scaled = v.call(w, "mul", f"z{j}", factor)
        whole = v.call(w, "shift_right", scaled, of=(BITS,))
        bias = v.call(w, "load", "bias + c") if lanes.v.sparing else "bias_here"
        v.let(w, "sums", name, v.call(w, "add", whole, bias), "")
        if lanes.added:
            lanes.store_sum(w, name, f"to + {at}", f"beside + {at}", v.lanes)
        else:
            lanes.store(w, name, f"to + {at}", "c", v.lanes)

    def _back(self, w: Writer, source: str, apart: int, wanted: Sequence[int] = range(OUT)) -> None:
        """Declares the wanted ones of z0 to z3: the four outputs in a line, without their factors, of six sums."""
        v = self.v

        def let(name: str, value: str) -> None:
            v.let(w, "sums", name, value)

        def load(index: int) -> str:
            return v.call(w, "load", f"{source} + {index * apart}")

        def times(a: str, by: int) -> str:
            return v.call(w, "shift_left", a, of=(by,))

        for first in (1, 3):
            for index in (first, first + 1):
                let(f"m{index}", load(index))
            for name, operation, evens in (("sum", "add", 0), ("apart", "sub", 1)):
                if {evens, evens + 2} & set(wanted):
                    let(f"{name}{first}", v.call(w, operation, f"m{first}", f"m{first + 1}"))
        for index in wanted:
            if index == 0:
                let("z0", v.call(w, "add", v.call(w, "sub", load(0), times("sum1", 2)), "sum3"))
            elif index == 1:
                let("z1", v.call(w, "sub", "apart3", times("apart1", 1)))
            elif index == 2:
                let("z2", v.call(w, "sub", "sum3", "sum1"))
            else:
                let("z3", v.call(w, "add", load(5), v.call(w, "sub", times("apart3", 1), "apart1")))


def centred(site: Site[Conv2D], lanes: IntegerVectors) -> IntegerVectors:
    """Lanes for inputs less their zero point, for which the bias need not correct."""
    lifted = lanes.zero + lanes.lift if lanes.of_bytes else 0
    bias = lanes.channels["bias"] + lifted * site.constant("kernel").astype(np.int64).sum(axis=(0, 1, 2))
    return replace(lanes, channels={**lanes.channels, "bias": int32s(bias)})


def exact_winograd(site: Site[Conv2D], given: IntegerVectors) -> ExactWinograd:
    lanes = centred(site, given)
    window, plan = window_of(site), patch_rows(window_of(site), OUT)
    needed, free = -(-window.filters // lanes.v.lanes), lanes.v.registers - BUSY
    vectors = best_vectors(plan.patches, [needed], window.channels, free, loaded=2)
    return ExactWinograd(site, lanes, ModularProducts(lanes.v, vectors), plan)


def short_of(v: Vectors) -> tuple[str, int]:
    """The type of the set's 16-bit vectors, and their number of lanes."""
    return ("words", 2 * v.lanes) if "w_add" in v.spellings else ("halves", v.lanes)


def refused(v: Vectors, window: Window) -> str | None:
    """Why a layer, which the lanes serve with TFLite's own roundings, cannot be computed here."""
    if not every_three(window):
        return "it computes 3 x 3 kernels without dilation, of stride 1 only"
    if window.pool != (1, 1):
        return "it fuses no pool"
    if window.rows.places % OUT or window.columns.places % OUT:
        return "its outputs do not divide into 4 x 4 patches"
    if window.channels % short_of(v)[1] or window.filters % v.lanes:
        return "its channels do not divide into vectors"
    if window.channels > MOST_CHANNELS:
        return f"sums of more than {MOST_CHANNELS} channels may need more bits"
    return None
