"""The routines of Winograd's convolution F(2 x 2, 3 x 3) in integers, exact to the last bit, and the products that
F(4 x 4, 3 x 3) shares (`winograd_four`).

A tile of 2 x 2 outputs takes 4 x 4 inputs. Both these and the weights are transformed, and 16 products a channel
replace 36. The weights' transform is taken twice in each direction, so that it stays in integers: the outputs come
four times too large, which is a shift.

    inputs   V = B d B'   rows of B:  1 0 -1 0 | 0 1 1 0 | 0 -1 1 0 | 0 1 0 -1
    weights  U = G g G'   rows of G:  2 0 0 | 1 1 1 | 1 -1 1 | 0 0 2
    outputs  4 Y = A (U * V) A'   rows of A:  1 1 1 0 | 0 1 -1 -1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nnbuild.base.bill import Bill
from nnbuild.base.writer import Instruction, Row, Writer
from nnbuild.isa.arm import DSP
from nnbuild.kernels.dsp.beside import Beside
from nnbuild.kernels.dsp.scaling import Scaling, scaled
from nnbuild.kernels.dsp.tile import LOAD
from nnbuild.kernels.dsp.weights import LOAD_TWO, doublets, high, in_pairs, low, near_pair, word, words
from nnbuild.kernels.sums import Sums
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import Ints, wrap
from nnbuild.ops.base import Pair

G = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.int64)
WIDTH = 4
"""Output channels at a time, for two tiles side by side."""
ROWS, COLUMNS = 4, 6
"""Inputs under these tiles."""
COMBINED = {
    (0, 2): (("top", "p_sub", 0),),
    (1, 3): (("bottom", "p_sub", 3),),
    (2, 1): (("sum", "p_add", 1), ("apart", "p_sub", 2)),
}
"""Of two rows of inputs: what they are combined to, how, and which row of transformed inputs that is."""
LONGEST = 32
"""Pairs of channels in straight code."""
SHORT, SHORT_NEAR = 8, 16
"""The same where the code shall fit the cache of a slow flash: with weights there, and with weights in RAM."""
LET = Row("const int32_t {0} = {1};", 0)
"""Priced by what it computes with."""
ADDED = Row("const int32_t {0} = {1};", 2)
STORE = Row("{0} = {1};", 0.5)
STORE_TWO = Row("{0} = {1};", 1)
INPUTS_CALL, PRODUCTS_CALL = 10, 20
"""Cycles of a call."""


@dataclass(frozen=True, eq=False)
class Winograd:
    """`depth` input channels, a multiple of 4; `filters` output channels in rows of `width` positions. A tile is of
    `size` by `size` outputs."""

    depth: int
    filters: int
    width: int
    scaling: Scaling
    beside: Beside | None = None
    size: int = 2
    longest: int = LONGEST
    near: bool = False
    """The weights lie in the same memory as the inputs, so that loads of both overlap."""

    @property
    def places(self) -> int:
        """Products of a tile and a channel."""
        return (self.size + 2) ** 2

    @property
    def pairs(self) -> int:
        return self.depth // 2

    @property
    def blocks(self) -> int:
        return -(-self.filters // WIDTH)


def transformed(kernel: Array) -> Ints:
    """[3, 3, in, out] -> [16, in, out]."""
    both: Ints = np.einsum("ai,bj,ijcf->abcf", G, G, kernel.astype(np.int64))
    return both.reshape(len(G) ** 2, *kernel.shape[2:])


def more(scaling: Scaling) -> Ints:
    """What each channel's weights are multiplied by beyond the four times that the transforms bring."""
    return scaling.factor // 4 if scaling.level is not None else np.ones_like(scaling.factor)


def fits(kernel: Array, sums: Sums, scaling: Scaling) -> bool:
    """Whether no sum on the way can leave 32 bits: a transformed input is at most 4 * 128."""
    weights = np.abs(transformed(kernel) * more(scaling))
    products = weights.sum(axis=1).max(axis=0) * 512
    whole = 9 * products + 4 * more(scaling) * np.abs(sums.start - scaling.centre)
    return bool(weights.max() < 1 << 15 and whole.max() < 1 << 31)


def pack(kernel: Array, sums: Sums, scaling: Scaling) -> dict[str, Array]:
    """For every channel its start and its columns."""
    starts = 4 * more(scaling) * (sums.start - scaling.centre)
    return packed(transformed(kernel) * more(scaling), starts, scaling)


def packed(weights: Ints, starts: Ints, scaling: Scaling) -> dict[str, Array]:
    """Weights [block][place][pair][channel]."""
    whole = np.pad(weights, ((0, 0), (0, 0), (0, -weights.shape[2] % WIDTH)))
    places = np.stack([words(in_pairs(place, "int8")) for place in whole])
    blocks = places.reshape(len(places), places.shape[1], -1, WIDTH).transpose(2, 0, 1, 3)
    constants = np.stack([starts, *scaling.columns.values()], axis=1)
    return {"kernel": doublets(blocks), "scaling": wrap(constants.reshape(-1), 32).astype(np.int32)}


def transform_inputs(w: Writer, shape: Winograd, source: str, stride: str) -> None:
    """Prints the call that fills `patch` from the 4 x 6 inputs at `source`, whose rows are `stride` apart."""
    body = Writer("{prefix}")
    for row in range(ROWS):
        body(f"const int8_t *row{row} = from{f' + {row} * stride' if row else ''};")
    body.bill(6)
    with body.loop("i", shape.depth, step=4):
        for at, half in enumerate(("p_even_bytes", "p_odd_bytes")):
            _rows(body, shape, half, at)
        for row in range(ROWS):
            body(f"row{row} += 4;")
        body("patch += 2;")
        body.bill(1 + ROWS)
    head = "void {name}(int64_t *patch, const int8_t *from, int32_t stride)"
    routine = Instruction(
        f"winograd_inputs_{shape.depth}", head, str(body), 0, uses=tuple(body.instructions.values()), outlined=True
    )
    w.bill(INPUTS_CALL, INPUTS_CALL)
    w.add(body.whole)
    w(f"{w.call(routine, 'patch', source, stride)};")


def _rows(w: Writer, shape: Winograd, half: str, at: int) -> None:
    """Two of four channels: first along the columns, then along the rows."""
    for rows, combined in COMBINED.items():
        with w.block(""):
            for column in range(COLUMNS):
                values = [f"x{row}{column}" for row in rows]
                for row, value in zip(rows, values, strict=True):
                    place = f"row{row} + {column * shape.depth}" if column else f"row{row}"
                    w(w.use(LET, value, DSP.call(w, half, DSP.call(w, "load_bytes", place, of=(4,)))))
                for label, operation, _ in combined:
                    w(w.use(LET, f"{label}{column}", DSP.call(w, operation, *values)))
            for label, _, row in combined:
                _along(w, shape, label, row, at)


def _along(w: Writer, shape: Winograd, label: str, row: int, at: int) -> None:
    """One row of both tiles' transformed inputs, whose columns begin at 0 and at 2."""
    for column, (operation, a, b) in enumerate((("p_sub", 0, 2), ("p_add", 1, 2), ("p_sub", 2, 1), ("p_sub", 1, 3))):
        values = [DSP.call(w, operation, f"{label}{a + by}", f"{label}{b + by}") for by in (0, 2)]
        place = (4 * row + column) * shape.pairs + at
        w(w.use(STORE_TWO, f"patch[{place}]", DSP.call(w, "two", *values)))


Outputs = Callable[[Writer, Winograd, int], None]
"""Prints what one tile of this number makes of its sums."""


def multiply(w: Writer, shape: Winograd, kernel: str, scaling: str, outputs: Outputs | None = None) -> None:
    """Prints the call that computes both tiles' outputs of all channels; `to` points at the first one's."""
    routine, bill = _products_routine(w, shape, outputs or _tile)
    w.bill(PRODUCTS_CALL)
    w.add(bill.times(shape.blocks))
    if not shape.near:
        w.reads(shape.places * shape.pairs * 4 * WIDTH * shape.blocks)
    others = ("beside",) if shape.beside else ()
    patch = "patch" if shape.size == 2 else "(const int32_t *)patch"
    w(f"{w.call(routine, patch, kernel, scaling, 'products', 'to', *others)};")


def _products_routine(outside: Writer, shape: Winograd, outputs: Outputs) -> tuple[Instruction, Bill]:
    """The routine, and what a block of channels costs in it."""
    w = Writer("{prefix}")
    with w.block(f"for (int32_t first = 0; first < {shape.filters}; first += {WIDTH})"), w.body(1):
        w("int32_t *sum = products;")
        w("const int64_t *x = patch;" if shape.size == 2 else "const int32_t *x = patch;")
        at_once = 4 if shape.pairs <= 8 else 2 if shape.pairs <= 16 else 1
        at_once = at_once if shape.longest == LONGEST else 1
        with w.loop("place", shape.places, step=at_once):
            for _ in range(at_once):
                with w.block(""):
                    _place(w, shape)
        _outputs(w, shape, outputs)
        w.bill(6)
    name = "_".join(
        [
            "winograd" if shape.size == 2 else f"winograd{shape.size}",
            str(shape.depth),
            str(shape.filters),
            str(shape.width),
            *shape.scaling.marks(),
        ]
    )
    name += f"_{shape.beside.mark()}" if shape.beside else ""
    name += "_near" if shape.near else "_short" if shape.longest < LONGEST else ""
    other = ", const int8_t *beside" if shape.beside else ""
    outside.helpers |= w.helpers
    kind = "int64_t" if shape.size == 2 else "int32_t"
    head = (
        f"void {{name}}(const {kind} *patch, const int64_t *k, const int32_t *scaling, int32_t *products, "
        f"int8_t *to{other})"
    )
    return Instruction(name, head, str(w), 0, uses=tuple(w.instructions.values()), outlined=True), w.whole


def _place(w: Writer, shape: Winograd) -> None:
    """The sums of one of the 16 places: 2 tiles by 4 channels."""
    size = next(size for size in range(min(shape.pairs, shape.longest), 0, -1) if shape.pairs % size == 0)
    whole = size == shape.pairs
    for tile in range(2):
        for channel in range(WIDTH):
            w(f"int32_t sum{tile}{channel}{'' if whole else ' = 0'};")
    with w.trips(1) if whole else w.loop("i", shape.pairs // size):
        if size > 8:  # a shorter one loses more by a filler than by fetching late
            w(f"k = {DSP.call(w, 'at_word', 'k')};")
        for pair in range(size):
            _pair(w, shape, pair, fresh=whole and pair == 0)
        w(f"x += {size if shape.size == 2 else 2 * size};")
        w(f"k += {size * WIDTH // 2};")
        w.bill(2 if whole else 4)
    for tile in range(2):
        for channel in range(WIDTH):
            w(w.use(STORE, f"sum[{tile * WIDTH + channel}]", f"sum{tile}{channel}"))
    w(f"sum += {2 * WIDTH};")
    w.bill(3)


def _pair(w: Writer, shape: Winograd, pair: int, fresh: bool) -> None:
    there: tuple[str, ...] = ()
    inputs = (low(f"x{pair}"), high(f"x{pair}"))
    if shape.near:
        place = f"x + {pair}" if shape.size == 2 else f"(const int64_t *)(x + {2 * pair})"
        inputs, there = near_pair(w, pair, 2 * pair, place)
    elif shape.size == 2:
        w(w.use(LOAD_TWO, f"x{pair}", f"x[{pair}]"))
    else:
        inputs = (f"x{pair}", f"y{pair}")
        w(f"int32_t y{pair};")
        w(f"const int32_t x{pair} = {DSP.call(w, 'load_two', f'x + {2 * pair}', f'&y{pair}')};")
    for channel in range(WIDTH):
        weight = there[channel] if channel < len(there) else word(w, pair * WIDTH + channel)
        for tile, value in enumerate(inputs):
            total = f"sum{tile}{channel}"
            operation, before = ("p_products", []) if fresh else ("p_dot", [total])
            w(f"{total} = {DSP.call(w, operation, value, weight, *before)};")


def _outputs(w: Writer, shape: Winograd, outputs: Outputs) -> None:
    """Back from the sums of all places to outputs, scaled and stored."""
    if shape.filters % WIDTH:
        w(f"const int32_t channels = {shape.filters} - first < {WIDTH} ? {shape.filters} - first : {WIDTH};")
    channels = "channels" if shape.filters % WIDTH else str(WIDTH)
    with w.loop("channel", channels, trips=shape.filters / shape.blocks):
        names = ("start", *shape.scaling.columns)
        for index, name in enumerate(names):
            w("const " + w.use(LOAD, name, f"scaling[{index}]"))
        for tile in range(2):
            with w.block(""):
                outputs(w, shape, tile)
        w(f"scaling += {len(names)};")
        w("to += 1;")
        w.bill(2)
        if shape.beside:
            w("beside += 1;")
            w.bill(1)


def _tile(w: Writer, shape: Winograd, tile: int) -> None:
    step = 2 * WIDTH
    w(f"const int32_t *const m = products + channel + {tile * WIDTH};")
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
    """Scales a sum, and stores it at (row, column) of both tiles."""
    scaled(w, shape.scaling, value, {name: name for name in shape.scaling.columns})
    at = (place[0] * shape.width + place[1]) * shape.filters
    if shape.beside:
        shape.beside.load(w, f"{value}_other", f"beside[{at}]")
        shape.beside.add(w, value, f"{value}_other")
    w(w.use(STORE_TWO, f"to[{at}]", f"(int8_t){value}"))
