"""Convolution of 3 by 3 taps with a quarter of the products, after S. Winograd: F(4x4, 3x3), exact in integers.

A patch of 6 by 6 inputs gives 4 by 4 outputs by 36 products of each pair of channels instead of 144. Everything is
computed modulo 2^32, where 9 has an inverse: sums come out times 64, and the shift that undoes it is exact as long as
they keep within 26 bits. Inputs less their zero point have at most 9 bits, patches in their other form 16.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa.integer_lanes import IntegerVectors
from nnbuild.isa.lanes import Lanes
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.tiling import best_pixels, best_vectors
from nnbuild.kernels.window import Window, WindowNest, strips
from nnbuild.kernels.window_loops import product, total
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import wrap
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.site import Site

OUT, PATCH = 4, 6
TAPS = np.array([[6, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 6]])
FACTORS = (1, 2, 4, 4)
"""What each of four outputs in a line lacks to be 24 times itself."""
NINTH, BITS = 0x38E38E39, 6
"""The inverse of 9 modulo 2^32; with the factors, 64 times the sum is left."""
MOST_CHANNELS = (1 << 25) // (9 * 128 * 255)
FEWEST = 8
"""Patches that share every weight that is loaded, if there are so many."""
BUSY = 2


class Products(Lanes):
    """Sums of products of 16-bit numbers, several inputs in one load."""

    input_type = weight_type = "int16_t"
    output_type = "int32_t"
    depth = 1

    def __init__(self, v: Vectors, vectors: int = 1) -> None:
        self.v, self.lanes, self.loaded, self.vectors, self.channels = v, v.lanes, 2 * v.lanes, vectors, {}

    def start(self, w: Writer, accumulator: str, channel: str) -> None:
        self.v.let(w, "sums", accumulator, self.v.call(w, "each", "0"), "")

    def weights(self, w: Writer, name: str, pointer: str) -> None:
        self.v.let(w, "halves", name, self.v.call(w, "h_load", pointer))

    def inputs(self, w: Writer, name: str, pointer: str) -> None:
        self.v.let(w, "words", name, self.v.call(w, "inputs", pointer, of=(2,)))

    def multiply(self, w: Writer, accumulator: str, name: str, weights: str) -> None:
        self.multiply_by(w, accumulator, name, 0, weights)

    def multiply_by(self, w: Writer, accumulator: str, name: str, step: int, weights: str) -> None:
        w(f"{accumulator} = {self.v.call(w, 'h_mac_of', accumulator, name, weights, of=(step,))};")

    def store(self, w: Writer, accumulator: str, pointer: str, channel: str, count: int) -> None:
        w(f"{self.v.call(w, 'store', pointer, accumulator)};")


@dataclass(frozen=True, eq=False)
class ExactWinograd(WindowNest[IntegerVectors]):
    """`rows` rows of patches are done together: copied, brought to their other form, multiplied and brought back."""

    products: Products
    rows: int

    @property
    def v(self) -> Vectors:
        return self.lanes.v

    @property
    def across(self) -> int:
        return self.window.columns.places // OUT

    @property
    def patches(self) -> int:
        return self.rows * self.across

    @property
    def extent(self) -> int:
        return self.window.rows.places // OUT // self.rows

    @property
    def line(self) -> int:
        """Elements of a row of the copy."""
        return (self.window.columns.places + 2) * self.window.channels

    @property
    def copied(self) -> int:
        return (self.rows * OUT + 2) * self.line + 2 * self.v.lanes

    def demand(self) -> Demand:
        kernel = transformed(self.site.constant("kernel"))
        between = PATCH * PATCH * self.patches * (self.window.channels + 2 * self.window.filters)
        channels = {name: dot.pack_channels(values, self.products) for name, values in self.lanes.channels.items()}
        return Demand(
            extent=self.extent,
            scratch=2 * (-(-self.copied // 8) * 8 + between),
            scratch_type="int32",
            packed={"kernel": np.concatenate([dot.pack(matrix, self.products) for matrix in kernel]), **channels},
        )

    def emit(self, w: Writer, names: Names) -> None:
        w(f"int32_t *sums = {names.scratch};")
        w(f"int16_t *patches = (int16_t *)(sums + {PATCH * PATCH * self.patches * self.window.filters});")
        w(f"int16_t *copy = patches + {PATCH * PATCH * self.patches * self.window.channels};")
        dot.declare_channels(w, self.lanes, names.packed)
        with w.loop("y", "end", start="begin", trips=self.extent):
            self._copy(w, names)
            self._inputs(w)
            self._products(w, names)
            self._outputs(w, names)

    def _copy(self, w: Writer, names: Names) -> None:
        """The rows of inputs under some rows of patches, less their zero point."""
        window, v = self.window, self.v
        before = window.columns.pad * window.channels
        after = self.line - before - window.columns.taken * window.channels
        with w.loop("row", self.rows * OUT + 2):
            w(f"int16_t *line = copy + {product('row', self.line)};")
            pad = f" - {window.rows.pad}" if window.rows.pad else ""
            w(f"const int32_t at = {product('y', self.rows * OUT)} + row{pad};")
            with w.block(f"if (at >= 0 && at < {window.rows.size})"):
                if before:
                    w(f"{v.call(w, 'fill', 'line', str(before), '0', of=(2,))};")
                source = f"{names.inputs[0]} + {product('at', window.line)}"
                count = window.columns.taken * window.channels
                w.bill(count / v.lanes)
                zero = str(self.lanes.zero)
                w(f"{v.call(w, 'centre', total('line', str(before)), source, str(count), zero)};")
                if after:
                    place = total("line", str(self.line - after))
                    w(f"{v.call(w, 'fill', place, str(after), '0', of=(2,))};")
            with w.block("else"), w.trips(0):
                w(f"{v.call(w, 'fill', 'line', str(self.line), '0', of=(2,))};")

    @contextmanager
    def _each_patch(self, w: Writer, channels: int, step: int) -> Iterator[None]:
        with w.loop("row", self.rows), w.loop("x", self.across):
            w(f"const int32_t patch = {total(product('row', self.across), 'x')};")
            with w.loop("c", channels, step=step):
                yield

    def _inputs(self, w: Writer) -> None:
        v, channels = self.v, self.window.channels
        with self._each_patch(w, channels, 2 * v.lanes):
            w(f"const int16_t *from = copy + {product('row', OUT * self.line)} + {product('x', OUT * channels)} + c;")
            w(f"int16_t *to = patches + {product('patch', channels)} + c;")
            for j in range(PATCH):
                for i in range(PATCH):
                    at = dot.offset("from", i * self.line + j * channels)
                    v.let(w, "words", f"d{i}{j}", v.call(w, "inputs", at, of=(2,)))
                self._formed(w, f"t{j}", [f"d{i}{j}" for i in range(PATCH)])
            for i in range(PATCH):
                self._formed(w, f"v{i}", [f"t{j}{i}" for j in range(PATCH)])
                for j in range(PATCH):
                    at = dot.offset("to", (i * PATCH + j) * self.patches * channels)
                    w(f"{v.call(w, 'w_store', at, f'v{i}{j}')};")

    def _formed(self, w: Writer, name: str, d: Sequence[str]) -> None:
        """Declares name0 to name5: six inputs in a line in their other form."""
        v = self.v

        def let(part: str, operation: str, a: str, b: str) -> str:
            v.let(w, "words", f"{name}{part}", v.call(w, f"w_{operation}", a, b))
            return f"{name}{part}"

        def times(a: str, by: int) -> str:
            return v.call(w, "w_shift_left", a, of=(by,))

        p = let("p", "sub", d[4], times(d[2], 2))
        q = let("q", "sub", d[3], times(d[1], 2))
        r = let("r", "sub", d[4], d[2])
        s = let("s", "sub", d[3], d[1])
        twice = times(s, 1)
        let("0", "add", times(v.call(w, "w_sub", d[0], d[2]), 2), r)
        let("1", "add", p, q)
        let("2", "sub", p, q)
        let("3", "add", r, twice)
        let("4", "sub", r, twice)
        let("5", "sub", v.call(w, "w_sub", d[5], d[3]), times(s, 2))

    def _products(self, w: Writer, names: Names) -> None:
        """36 times the sums over the input channels, for all patches."""
        channels, filters = self.window.channels, self.window.filters
        blocks = dot.divide(filters, self.products)
        with w.loop("e", PATCH * PATCH):
            w(f"const int16_t *from = patches + {product('e', self.patches * channels)};")
            w(f"int32_t *to = sums + {product('e', self.patches * filters)};")
            w(f"const int16_t *taps = {names.packed['kernel']} + {product('e', channels * filters)};")
            for block, count in blocks.classes():
                size = best_pixels(self.patches, block.vectors, channels, self._free, loaded=2)
                with w.loop("block", count):
                    for strip in strips(self.patches, size):
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
        w(f"const int16_t *row = from + {product('x', channels)};")
        w("const int16_t *k = taps;")
        steps = range(0, pixels * channels, channels)
        dot.along(w, self.products, block, channels, lambda i: [f"row + {total(str(step), i)}" for step in steps])
        w(f"int32_t *result = to + {product('x', filters)};")
        dot.store(w, self.products, block, [dot.offset("result", pixel * filters) for pixel in range(pixels)])

    def _outputs(self, w: Writer, names: Names) -> None:
        v, lanes, filters = self.v, self.lanes, self.window.filters
        columns = self.window.columns.places
        with self._each_patch(w, filters, v.lanes):
            w(f"const int32_t *from = sums + {product('patch', filters)} + c;")
            top = f"({product('y', self.rows)} + row) * {OUT}"
            place = f"({top} * {columns} + x * {OUT}) * {filters} + c"
            w(f"int8_t *to = {names.outputs[0]} + {place};")
            if lanes.added:
                w(f"const int8_t *beside = {names.inputs[1]} + {place};")
            for j in range(PATCH):
                for i in range(PATCH):
                    at = dot.offset("from", (i * PATCH + j) * self.patches * filters)
                    v.let(w, "sums", f"m{i}{j}", v.call(w, "load", at))
                self._back(w, f"u{j}", [f"m{i}{j}" for i in range(PATCH)])
            v.let(w, "sums", "bias_here", v.call(w, "load", "bias + c"))
            lanes.prepare(w, "c")
            for i in range(OUT):
                self._back(w, f"z{i}", [f"u{j}{i}" for j in range(PATCH)])
                for j in range(OUT):
                    self._output(w, i, j, (i * columns + j) * filters)

    def _output(self, w: Writer, i: int, j: int, at: int) -> None:
        v, lanes, name = self.v, self.lanes, f"y{i}{j}"
        factor = int(wrap(NINTH * FACTORS[i] * FACTORS[j], 32))
        scaled = v.call(w, "mul", f"z{i}{j}", v.call(w, "each", str(factor)))
        whole = v.call(w, "shift_right", scaled, of=(BITS,))
        v.let(w, "sums", name, v.call(w, "add", whole, "bias_here"), "")
        if lanes.added:
            lanes.store_sum(w, name, dot.offset("to", at), dot.offset("beside", at), v.lanes)
        else:
            lanes.store(w, name, dot.offset("to", at), "c", v.lanes)

    def _back(self, w: Writer, name: str, m: Sequence[str]) -> None:
        """Declares name0 to name3: four outputs in a line, but for their factors."""
        v = self.v

        def let(part: str, operation: str, a: str, b: str) -> str:
            v.let(w, "sums", f"{name}{part}", v.call(w, operation, a, b))
            return f"{name}{part}"

        def times(a: str, by: int) -> str:
            return v.call(w, "shift_left", a, of=(by,))

        a, b = let("a", "add", m[1], m[2]), let("b", "sub", m[1], m[2])
        c, d = let("c", "add", m[3], m[4]), let("d", "sub", m[3], m[4])
        let("0", "add", v.call(w, "sub", m[0], times(a, 2)), c)
        let("1", "sub", d, times(b, 1))
        let("2", "sub", c, a)
        let("3", "add", m[5], v.call(w, "sub", times(d, 1), b))


def transformed(kernel: Array) -> Array:
    """[3, 3, in, out] -> [36, in, out]."""
    result: Array = np.einsum("ai,bj,ijco->abco", TAPS, TAPS, kernel.astype(np.int64)).astype(np.int16)
    return result.reshape(PATCH * PATCH, *kernel.shape[2:])


def centred(site: Site[Conv2D], lanes: IntegerVectors) -> IntegerVectors:
    """Lanes for inputs less their zero point, whose bias makes up for nothing."""
    lifted = lanes.zero + lanes.lift if lanes.of_bytes else 0
    bias = lanes.channels["bias"] + lifted * site.constant("kernel").astype(np.int64).sum(axis=(0, 1, 2))
    return replace(lanes, channels={**lanes.channels, "bias": wrap(bias, 32).astype(np.int32)})


def exact_winograd(site: Site[Conv2D], given: IntegerVectors) -> ExactWinograd:
    lanes = centred(site, given)
    draft = ExactWinograd(site, lanes, Products(lanes.v), 1)
    across, down, window = draft.across, draft.window.rows.places // OUT, draft.window
    rows = next(n for n in range(1, down + 1) if down % n == 0 and (n * across >= FEWEST or n == down))
    needed, free = -(-window.filters // lanes.v.lanes), lanes.v.registers - BUSY
    vectors = best_vectors(rows * across, [needed], window.channels, free, loaded=2)
    return ExactWinograd(site, lanes, Products(lanes.v, vectors), rows)


def refused(v: Vectors, window: Window) -> str | None:
    """For layers that the lanes serve with TFLite's own roundings."""
    axes = (window.rows, window.columns)
    if any((axis.kernel, axis.stride, axis.dilation) != (3, 1, 1) for axis in axes) or window.groups > 1:
        return "it computes 3 by 3 taps, one apart, at every position"
    if window.pool != (1, 1):
        return "it takes no pool with it"
    if any(axis.places % OUT for axis in axes):
        return "its outputs do not divide into four by four"
    if window.channels % (2 * v.lanes) or window.filters % v.lanes:
        return "its channels do not divide into vectors"
    if window.channels > MOST_CHANNELS:
        return f"sums of more than {MOST_CHANNELS} channels may need more bits"
    return None
