"""The products of Winograd's convolutions: the sums of two tiles and a block of output channels, place by place."""

from __future__ import annotations

from collections.abc import Callable

from nnbuild.base.cost_model import OpCounts
from nnbuild.base.writer import Instruction, Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.kernels.dsp.tile import LOAD
from nnbuild.kernels.dsp.weight_layouts import LOAD_TWO, high, low, overlapping_pair, word
from nnbuild.kernels.winograd.scalar_routines import LONGEST, STORE, WIDTH, Winograd

PRODUCTS_CALL = 20
"""Cycles of a call."""
MULTIPLY = Row("{0} += (uint32_t)({1} * {2});", 2)
Outputs = Callable[[Writer, Winograd, int], None]
"""Prints the outputs of the tile of this number from its sums."""


def multiply(w: Writer, shape: Winograd, kernel: str, scaling: str, outputs: Outputs) -> None:
    """Prints the call that computes all channels of both tiles; `to` points at the first output."""
    routine, bill = _products_routine(w, shape, outputs)
    w.bill(PRODUCTS_CALL)
    w.add(bill.times(shape.blocks))
    if not shape.in_ram:
        w.reads(shape.places * shape.pairs * 4 * shape.block * shape.blocks)
    others = ("beside",) if shape.beside else ()
    patch = "(const int32_t *)patch" if shape.apart else "patch"
    w(f"{w.call(routine, patch, kernel, scaling, 'products', 'to', *others)};")


def _products_routine(outside: Writer, shape: Winograd, outputs: Outputs) -> tuple[Instruction, OpCounts]:
    """The routine, and the cost of a block of channels."""
    w = Writer("{prefix}")
    with w.block(f"for (int32_t first = 0; first < {shape.filters}; first += {shape.block})"), w.body(1):
        w("int32_t *sum = products;")
        w("const int32_t *x = patch;" if shape.apart else "const int64_t *x = patch;")
        at_once = 4 if shape.pairs <= 8 else 2 if shape.pairs <= 16 else 1
        at_once = at_once if shape.longest == LONGEST and not shape.single else 1
        with w.loop("place", shape.places, step=at_once):
            for _ in w.each(range(at_once)):
                (_single_place if shape.single else _place)(w, shape)
        _outputs(w, shape, outputs)
        w.bill(6)
    name = "_".join(
        [
            f"winograd{shape.size}" if shape.apart else "winograd",
            str(shape.depth),
            str(shape.filters),
            str(shape.width),
            *shape.scaling.marks(),
        ]
    )
    name += f"_{shape.beside.mark()}" if shape.beside else ""
    name += f"_of_{shape.whole}" if shape.whole else ""
    name += "_near" if shape.in_ram else "_short" if shape.longest < LONGEST else ""
    other = ", const int8_t *beside" if shape.beside else ""
    outside.helpers |= w.helpers
    kind, weights = "int32_t" if shape.apart else "int64_t", "int16_t" if shape.single else "int64_t"
    head = (
        f"void {{name}}(const {kind} *patch, const {weights} *k, const int32_t *scaling, int32_t *products, "
        f"{shape.scaling.output_type} *to{other})"
    )
    return w.routine(name, head), w.counts


def _place(w: Writer, shape: Winograd) -> None:
    """The sums of one of the 16 places: 2 tiles by 4 channels."""
    size = next(size for size in range(min(shape.pairs, shape.longest), 0, -1) if shape.pairs % size == 0)
    whole = size == shape.pairs
    for tile in range(2):
        for channel in range(WIDTH):
            w(f"int32_t sum{tile}{channel}{'' if whole else ' = 0'};")
    with w.trips(1) if whole else w.loop("i", shape.pairs // size):
        if size > 8:  # a shorter loop loses more by a nop than by late fetches
            w(f"k = {DSP.call(w, 'at_word', 'k')};")
        for pair in range(size):
            _pair(w, shape, pair, fresh=whole and pair == 0)
        w(f"x += {2 * size if shape.apart else size};")
        w(f"k += {size * WIDTH // 2};")
        w.bill(2 if whole else 4)
    for tile in range(2):
        for channel in range(WIDTH):
            w(w.use(STORE, f"sum[{tile * WIDTH + channel}]", f"sum{tile}{channel}"))
    w(f"sum += {2 * WIDTH};")
    w.bill(3)


def _single_place(w: Writer, shape: Winograd) -> None:
    """The same with products of single numbers, modulo 2**32."""
    tile = [(tile, channel) for tile in range(2) for channel in range(shape.block)]
    for at, channel in tile:
        w(f"uint32_t sum{at}{channel} = 0;")
    with w.loop("i", shape.pairs, step=2):
        for pair in range(2):
            for half, name in enumerate(("low", "high")):
                _single_step(w, shape, 2 * pair, f"p_{name}_at", (2 * pair + half) * shape.block)
        w("x += 4;")
        w(f"k += {4 * shape.block};")
        w.bill(2)
    for at, channel in tile:
        w(w.use(STORE, f"sum[{at * shape.block + channel}]", f"(int32_t)sum{at}{channel}"))
    w(f"sum += {2 * shape.block};")
    w.bill(3 + 1.5 * len(tile))


def _single_step(w: Writer, shape: Winograd, pair: int, load: str, weights: int) -> None:
    """One number of both tiles times the weights of all channels."""
    with w.block(""):
        for at in range(2):
            w(w.use(c99.LET, f"x{at}", shape.ops.call(w, load, f"x + {pair + at}")))
        for channel in range(shape.block):
            w(w.use(c99.READ, f"w{channel}", f"k[{weights + channel}]"))
            for at in range(2):
                w(w.use(MULTIPLY, f"sum{at}{channel}", f"x{at}", f"w{channel}"))


def _pair(w: Writer, shape: Winograd, pair: int, fresh: bool) -> None:
    there: tuple[str, ...] = ()
    inputs = (low(f"x{pair}"), high(f"x{pair}"))
    if shape.in_ram:
        place = f"x + {pair}" if shape.size == 2 else f"(const int64_t *)(x + {2 * pair})"
        inputs, there = overlapping_pair(w, pair, 2 * pair, place)
    elif not shape.apart:
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
    """Transforms the sums of all places to outputs, scales and stores them."""
    if shape.filters % shape.block:
        left = f"{shape.filters} - first"
        w(f"const int32_t channels = {left} < {shape.block} ? {left} : {shape.block};")
    channels = "channels" if shape.filters % shape.block else str(shape.block)
    with w.loop("channel", channels, trips=shape.filters / shape.blocks):
        names = ("start", *shape.scaling.columns)
        for index, name in enumerate(names):
            w("const " + w.use(LOAD, name, f"scaling[{index}]"))
        for tile in w.each(range(2)):
            outputs(w, shape, tile)
        w(f"scaling += {len(names)};")
        w("to += 1;")
        w.bill(2)
        if shape.beside:
            w("beside += 1;")
            w.bill(1)
