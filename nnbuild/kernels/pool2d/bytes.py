"""Pooling of int8 on Cortex-M4 and up, four channels at a time: maxima byte by byte, sums in pairs of 16 bits."""

from __future__ import annotations

from collections.abc import Callable

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.armv7em_dsp import DSP
from nnbuild.kernels.contract import Names
from nnbuild.kernels.pool2d.scalar import axes
from nnbuild.kernels.pool2d.scalar import demand as demand
from nnbuild.kernels.window import Axis
from nnbuild.kernels.window_loops import declare_taps, product, row_taps
from nnbuild.numeric.rounding import INT8
from nnbuild.ops.integer import bounds
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site

needs = frozenset({"armv7em_dsp"})
GROUP = 4
LARGEST = 256
"""Values whose sum a half of a word holds."""
UNROLLED = 4
"""Up to so many columns of a window need no loop."""
ASSIGN = Row("{0} = {1};", 0)
LOAD = Row("const int32_t {0} = {1};", 1)
STORE = Row("to[{0}] = (int8_t){1};", 1)


def accepts(site: Site[Pool2D]) -> str | None:
    if site.dtypes != {"int8"}:
        return f"it computes int8 only, not {', '.join(sorted(site.dtypes))}"
    pool = site.attributes
    if pool.function == "average" and pool.window[0] * pool.window[1] > LARGEST:
        return f"16 bits hold the sum of {LARGEST} numbers, not of {pool.window[0] * pool.window[1]}"
    return None


def emit(w: Writer, site: Site[Pool2D], names: Names) -> None:
    rows, columns = axes(site)
    channels = site.shape()[2]
    whole, rest = divmod(channels, GROUP)
    with w.loop("y", "end", start="begin", trips=rows.places):
        w(f"const int32_t top = {rows.position('y')};")
        if not rows.always_inside:
            declare_taps(w, rows, "top", "ky_begin", "ky_end")
        with w.loop("x", columns.places):
            w(f"const int32_t left = {columns.position('x')};")
            if not columns.always_inside:
                declare_taps(w, columns, "left", "kx_begin", "kx_end")
            if site.attributes.function == "average":
                _declare_count(w, rows, columns)
            w(f"int8_t *to = {names.outputs[0]} + ({product('y', columns.places)} + x) * {channels};")
            w("int32_t c = 0;")
            if whole:
                with w.block(f"for (; c < {whole * GROUP}; c += {GROUP})"), w.trips(whole):
                    w.bill(3)
                    _group(w, site, names, rows, columns, GROUP)
                    w(f"to += {GROUP};")
            if rest:
                _group(w, site, names, rows, columns, rest)


def _declare_count(w: Writer, rows: Axis, columns: Axis) -> None:
    """The number of inputs really in the window, where it is not the same for all."""
    if rows.always_inside and columns.always_inside:
        return
    height = str(rows.kernel) if rows.always_inside else "(ky_end - ky_begin)"
    width = str(columns.kernel) if columns.always_inside else "(kx_end - kx_begin)"
    w(f"const int32_t count = {height} * {width};")


def _group(w: Writer, site: Site[Pool2D], names: Names, rows: Axis, columns: Axis, count: int) -> None:
    channels, is_max = site.shape()[2], site.attributes.function == "max"
    if is_max:
        w("int32_t largest = INT32_C(-2139062144);")  # four times -128
    else:
        w("int32_t even = 0;")
        w("int32_t odd = 0;")
    with row_taps(w, rows):
        start = f"{product('top + ky', columns.size)} + left"
        w(f"const int8_t *row = {names.inputs[0]} + {product(start, channels)} + c;")

        def take(at: str) -> None:
            w(w.use(LOAD, "word", DSP.call(w, "load_bytes", at, of=(count,))))
            if is_max:
                w(f"largest = {DSP.call(w, 'max_bytes', 'largest', 'word')};")
            else:
                w(f"even = {DSP.call(w, 'p_add_even_bytes', 'even', 'word')};")
                w(f"odd = {DSP.call(w, 'p_add_odd_bytes', 'odd', 'word')};")

        _columns(w, columns, channels, take)
    if is_max:
        _store_largest(w, site, count)
    else:
        _store_average(w, site, rows, columns, count)


def _columns(w: Writer, columns: Axis, channels: int, take: Callable[[str], None]) -> None:
    if columns.always_inside and columns.kernel <= UNROLLED:
        for kx in range(columns.kernel):
            with w.block(""):
                take(f"row + {kx * channels}" if kx else "row")
        return
    first, last = ("0", str(columns.kernel)) if columns.always_inside else ("kx_begin", "kx_end")
    with w.loop("kx", last, start=first, trips=columns.kernel):
        take(f"row + {product('kx', channels)}")


def _store_largest(w: Writer, site: Site[Pool2D], count: int) -> None:
    limits = bounds(site.attributes.clamp, site.outputs[0])
    if limits == INT8 and count == GROUP:
        w(f"{DSP.call(w, 'write_bytes', 'to', 'largest')};")
        return
    for channel in range(count):
        _bounded(w, site, f"(int8_t)(largest >> {8 * channel})", channel)


def _store_average(w: Writer, site: Site[Pool2D], rows: Axis, columns: Axis, count: int) -> None:
    same = rows.always_inside and columns.always_inside
    size = rows.kernel * columns.kernel
    for channel in range(count):
        pair = ("even", "odd")[channel % 2]
        part = f"{pair} >> 16" if channel > 1 else f"(int16_t)({pair} & 0xffff)"
        w(w.use(LOAD, f"sum{channel}", part))
        if same and size & (size - 1) == 0:
            shift = size.bit_length() - 1
            half = size // 2
            value = f"(sum{channel} + {half} + (sum{channel} >> 31)) >> {shift}" if shift else f"sum{channel}"
            w.bill(3)
        else:
            number, half_of = (str(size), str(size // 2)) if same else ("count", "count / 2")
            value = f"(sum{channel} > 0 ? sum{channel} + {half_of} : sum{channel} - {half_of}) / {number}"
            w.bill(7)
        _bounded(w, site, value, channel)


def _bounded(w: Writer, site: Site[Pool2D], value: str, channel: int) -> None:
    """Within the bounds of a fused activation; a pool's result is within its type already."""
    limits = bounds(site.attributes.clamp, site.outputs[0])
    name = f"result{channel}"
    w(f"int32_t {name} = {value};")
    if limits[0] > INT8[0]:
        w(w.use(c99.AT_LEAST, name, str(limits[0])))
    if limits[1] < INT8[1]:
        w(w.use(c99.AT_MOST, name, str(limits[1])))
    w(w.use(STORE, str(channel), name))
