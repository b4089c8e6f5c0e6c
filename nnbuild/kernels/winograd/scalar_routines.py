"""The routines of Winograd's convolution F(2 x 2, 3 x 3) in integers, bit-exact, and the products that F(4 x 4, 3 x 3)
shares (`modular_routines`).

A tile of 2 x 2 outputs takes 4 x 4 inputs. Both these and the weights are transformed, and 16 products a channel
replace 36. The weights' transform is doubled in each direction to stay in integers: the outputs come four times too
large, which is a shift.

    inputs   V = B d B'   rows of B:  1 0 -1 0 | 0 1 1 0 | 0 -1 1 0 | 0 1 0 -1
    weights  U = G g G'   rows of G:  2 0 0 | 1 1 1 | 1 -1 1 | 0 0 2
    outputs  4 Y = A (U * V) A'   rows of A:  1 1 1 0 | 0 1 -1 -1
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.dsp.scaling import Scaling, result
from nnbuild.kernels.dsp.weight_layouts import doublets, in_pairs, words
from nnbuild.kernels.lanes.layer_sums import Sums
from nnbuild.kernels.parts.residual import Residual
from nnbuild.kernels.winograd.patch_rows import TWO, transformed
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import Ints, int32s
from nnbuild.ops.base import Pair

WIDTH = 4
"""Output channels at a time, for two neighbouring tiles."""
ROWS, COLUMNS = 4, 6
"""Inputs under these tiles."""
COMBINED = {
    (0, 2): (("top", "p_sub", 0),),
    (1, 3): (("bottom", "p_sub", 3),),
    (2, 1): (("sum", "p_add", 1), ("apart", "p_sub", 2)),
}
"""For two rows of inputs: the name of their combination, the operation, and the index of the transformed row."""
LONGEST = 32
"""Pairs of channels up to which code is unrolled."""
SHORT, SHORT_NEAR = 8, 16
"""The same limit where the code must fit the cache of a slow flash: with weights there, and with weights in RAM."""
ADDED = Row("const int32_t {0} = {1};", 2)
STORE = Row("{0} = {1};", 0.5)
INPUTS_CALL = 10
"""Cycles of a call."""


@dataclass(frozen=True, eq=False)
class Winograd:
    """`depth` input channels, a multiple of 4; `filters` output channels in rows of `width` positions. A tile has
    `size` by `size` outputs."""

    depth: int
    filters: int
    width: int
    scaling: Scaling
    beside: Residual | None = None
    size: int = 2
    longest: int = LONGEST
    in_ram: bool = False
    """The weights lie in the same memory as the inputs, so that loads of both overlap."""
    ops: Vectors = DSP
    block: int = WIDTH
    """Output channels whose sums are computed together."""
    whole: int = 0
    """All output channels of a position, where only `filters` of them are computed."""

    @property
    def single(self) -> bool:
        """Whether numbers are multiplied one by one, not in pairs."""
        return self.ops is not DSP

    @property
    def apart(self) -> bool:
        """Whether the inputs of two tiles are separate words, not one 64-bit number."""
        return self.single or self.size == 4

    @property
    def places(self) -> int:
        """Products of a tile and a channel."""
        return (self.size + 2) ** 2

    @property
    def pairs(self) -> int:
        return self.depth // 2

    @property
    def blocks(self) -> int:
        return -(-self.filters // self.block)


def more(scaling: Scaling) -> Ints:
    """The factor of each channel's weights beyond the four times of the transforms."""
    return scaling.factor // 4 if scaling.level is not None else np.ones_like(scaling.factor)


def fits(kernel: Array, sums: Sums, scaling: Scaling) -> bool:
    """Whether no intermediate sum can leave 32 bits: a transformed input is at most 4 * 128."""
    weights = np.abs(transformed(kernel, TWO) * more(scaling))
    products = weights.sum(axis=1).max(axis=0) * 512
    whole = 9 * products + 4 * more(scaling) * np.abs(sums.start - scaling.centre)
    return bool(weights.max() < 1 << 15 and whole.max() < 1 << 31)


def pack(shape: Winograd, kernel: Array, sums: Sums) -> dict[str, Array]:
    """The packed weights, and each channel's start and columns."""
    factor = more(shape.scaling)
    return packed(shape, transformed(kernel, TWO) * factor, 4 * factor * (sums.start - shape.scaling.centre))


def packed(shape: Winograd, weights: Ints, starts: Ints) -> dict[str, Array]:
    """Weights [block][place][pair][channel], or [block][place][2 * pair + half][channel]."""
    whole = np.pad(weights, ((0, 0), (0, 0), (0, -weights.shape[2] % shape.block)))
    pairs = np.stack([in_pairs(place, "int8") for place in whole])
    places = pairs.reshape(len(pairs), -1, pairs.shape[3]) if shape.single else np.stack([words(one) for one in pairs])
    blocks = places.reshape(len(places), places.shape[1], -1, shape.block).transpose(2, 0, 1, 3)
    constants = np.stack([starts, *shape.scaling.columns.values()], axis=1)
    return {
        "kernel": blocks.reshape(-1).astype(np.int16) if shape.single else doublets(blocks),
        "scaling": int32s(constants.reshape(-1)),
    }


def transform_inputs(w: Writer, shape: Winograd, source: str, stride: str) -> None:
    """Prints the call that fills `patch` from the 4 x 6 inputs at `source`, whose rows are `stride` apart."""
    body = Writer("{prefix}")
    for row in range(ROWS):
        body(f"const int8_t *row{row} = from + {row} * stride;")
    body.bill(6)
    with body.loop("i", shape.depth, step=4):
        for at, half in enumerate(("p_even_bytes", "p_odd_bytes")):
            _rows(body, shape, half, at)
        for row in range(ROWS):
            body(f"row{row} += 4;")
        body("patch += 2;")
        body.bill(1 + ROWS)
    head = "void {name}(int64_t *patch, const int8_t *from, int32_t stride)"
    routine = body.routine(f"winograd_inputs_{shape.depth}", head)
    w.bill(INPUTS_CALL, INPUTS_CALL)
    w.add(body.counts)
    w(f"{w.call(routine, 'patch', source, stride)};")


def _rows(w: Writer, shape: Winograd, half: str, at: int) -> None:
    """Two of four channels: along the columns, then along the rows."""
    for rows, combined in w.each(COMBINED.items()):
        for column in range(COLUMNS):
            values = [f"x{row}{column}" for row in rows]
            for row, value in zip(rows, values, strict=True):
                place = f"row{row} + {column * shape.depth}"
                w(w.use(c99.LET, value, DSP.call(w, half, DSP.call(w, "load_bytes", place, of=(4,)))))
            for label, operation, _ in combined:
                w(w.use(c99.LET, f"{label}{column}", DSP.call(w, operation, *values)))
        for label, _, row in combined:
            _along(w, shape, label, row, at)


def _along(w: Writer, shape: Winograd, label: str, row: int, at: int) -> None:
    """One row of both tiles' transformed inputs; their columns begin at 0 and at 2."""
    for column, (operation, a, b) in enumerate((("p_sub", 0, 2), ("p_add", 1, 2), ("p_sub", 2, 1), ("p_sub", 1, 3))):
        values = [DSP.call(w, operation, f"{label}{a + by}", f"{label}{b + by}") for by in (0, 2)]
        place = (4 * row + column) * shape.pairs + at
        w(w.use(c99.STORE, f"patch[{place}]", DSP.call(w, "two", *values)))


def tile(w: Writer, shape: Winograd, tile: int) -> None:
    step = 2 * shape.block
    w(f"const int32_t *const m = products + channel + {tile * shape.block};")
    for column in range(4):
        a, b, c, d = (f"m[{(4 * row + column) * step}]" for row in range(4))
        extra = " + start" if column == 1 else ""
        w(w.use(ADDED, f"top{column}", f"{a} + {b} + {c}{extra}"))
        w(w.use(ADDED, f"bottom{column}", f"{b} - {c} - {d}{extra}"))
        w.bill(4, 4)
    half = "" if shape.scaling.level is not None else " >> 1" if shape.scaling.doubled else " >> 2"
    for row, name in enumerate(("top", "bottom")):
        w(f"int32_t y{row}0 = ({name}0 + {name}1 + {name}2){half};")
        w(f"int32_t y{row}1 = ({name}1 - {name}2 - {name}3){half};")
        w.bill(6 if half else 4)
        for column in range(2):
            value = f"y{row}{column}"
            store(w, shape, value, (row, 2 * tile + column))


def store(w: Writer, shape: Winograd, value: str, place: Pair) -> None:
    """Scales a sum and stores it at (row, column) of both tiles."""
    value = result(w, shape.scaling, value, {name: name for name in shape.scaling.columns}, shape.ops)
    at = (place[0] * shape.width + place[1]) * (shape.whole or shape.filters)
    if shape.beside:
        shape.beside.load(w, f"{value}_other", f"beside[{at}]")
        shape.beside.add(w, value, f"{value}_other", shape.ops)
    w(w.use(c99.STORE, f"to[{at}]", f"({shape.scaling.output_type}){value}"))
