"""Spreads the bytes of a group of channels into lines of words: see `planes`.

Two rows of inputs are brought together before their bytes are widened, so that one instruction widens a word's pair.
"""

from __future__ import annotations

from collections.abc import Callable

from nnbuild.base.writer import Row, Writer
from nnbuild.isa.arm import DSP
from nnbuild.isa.c99 import STORE
from nnbuild.kernels.contract import Names
from nnbuild.kernels.loops.planes import GROUP, Planes
from nnbuild.kernels.window_loops import product, total

LOAD = Row("const int32_t {0} = {1};", 1)
STEP = Row("{0} += {1};", 1)
SPELT_OUT = 8
"""Columns of a line that need no loop."""
CHUNK = 4
"""Columns of one turn of the loop where it is needed."""

Source = Callable[[str, int], str]
"""Where the bytes of the row "upper" or "lower" are in a column of a chunk."""


def fill(w: Writer, shape: Planes, names: Names, first: str, trips: float) -> None:
    """Fills the lines from `first` on of every channel of the group; the band begins at `tile`."""
    down = shape.down
    whole, rest = divmod(shape.channels, GROUP)
    with w.loop("line", shape.filled.stop, start=first, trips=trips):
        tile = product("tile", shape.rows * down.stride)
        start = total(tile, product("line", 2 * down.dilation))
        w(f"const int32_t upper = {start}{f' - {down.pad}' if down.pad else ''};")
        into = total(product("line", shape.width), str(shape.across.pad))
        w(f"int32_t *line_to = {names.scratch} + {into};")
        w.bill(5)
        if rest and whole:
            with w.block(f"if (group < {whole})"), w.trips(whole / (whole + 1)):
                _line(w, shape, GROUP)
            with w.block("else"), w.trips(1 / (whole + 1)):
                _line(w, shape, rest)
        else:
            _line(w, shape, rest or GROUP)


def _line(w: Writer, shape: Planes, count: int) -> None:
    """One line of each of `count` channels. Inside the image both rows are known places behind one pointer."""
    down, borders = shape.down, shape.border_lines
    if not borders:
        _inside(w, shape, count)
        return
    if borders < 1:
        last = down.size - down.dilation
        with w.block(f"if (upper >= 0 && upper < {last})"), w.trips(1 - borders):
            _inside(w, shape, count)
        with w.block("else"), w.trips(borders):
            _border(w, shape, count)
    else:
        _border(w, shape, count)


def _inside(w: Writer, shape: Planes, count: int) -> None:
    step, along = shape.steps[0], shape.steps[1]
    w(f"const int8_t *bytes = from + {product('upper', step)};")

    def source(part: str, column: int) -> str:
        return f"bytes + {column * along + (shape.down.dilation * step if part == 'lower' else 0)}"

    size = shape.across.size
    if size <= SPELT_OUT:
        _columns(w, shape, count, size, source)
        return
    with w.loop("x", size // CHUNK):
        _columns(w, shape, count, CHUNK, source)
        w(w.use(STEP, "bytes", str(CHUNK * along)))
        w(w.use(STEP, "line_to", str(CHUNK)))
    _columns(w, shape, count, size % CHUNK, source)


def _border(w: Writer, shape: Planes, count: int) -> None:
    """A row beyond the image is read from `blank`, again and again."""
    down, step, along = shape.down, shape.steps[0], shape.steps[1]
    w(f"const int32_t lower = upper + {down.dilation};")
    for part in ("upper", "lower"):
        real = f"{part} >= 0 && {part} < {down.size}"
        w(f"const int8_t *{part}_from = {real} ? from + {product(part, step)} : blank;")
        w(f"const int32_t {part}_step = {real} ? {along} : 0;")
        w.bill(6)
    with w.loop("x", shape.across.size):
        _columns(w, shape, count, 1, lambda part, column: f"{part}_from")
        for part in ("upper", "lower"):
            w(w.use(STEP, f"{part}_from", f"{part}_step"))
        w(w.use(STEP, "line_to", "1"))


def _columns(w: Writer, shape: Planes, count: int, columns: int, source: Source) -> None:
    """So many columns behind `line_to`, two at a time."""
    for column in range(0, columns, 2):
        with w.block(""):
            _pair(w, shape, count, range(column, min(column + 2, columns)), source)


def _pair(w: Writer, shape: Planes, count: int, columns: range, source: Source) -> None:
    plane = shape.held * shape.width
    for column in columns:
        for part in ("upper", "lower"):
            w(w.use(LOAD, f"{part}{column}", DSP.call(w, "load_bytes", source(part, column), of=(count,))))
        w(w.use(LOAD, f"front{column}", DSP.call(w, "p_low_halves", f"upper{column}", f"lower{column}")))
        if count > 2:
            w(w.use(LOAD, f"back{column}", DSP.call(w, "p_high_halves", f"lower{column}", f"upper{column}")))
    for channel in range(count):
        half, unpack = ("front", "back")[channel // 2], ("p_even_bytes", "p_odd_bytes")[channel % 2]
        words = [DSP.call(w, unpack, f"{half}{column}") for column in columns]
        at = channel * plane + columns[0]
        if len(words) == 2:
            w(f"{DSP.call(w, 'store_two', f'line_to + {at}', *words)};")
        else:
            w(w.use(STORE, f"line_to[{at}]", words[0]))
