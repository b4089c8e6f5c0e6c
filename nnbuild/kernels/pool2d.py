"""Maximum and average pooling: a loop over windows, with a body for each instruction set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.isa.vector_functions import SPECIAL
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import Demand, Kernel, Names, Overlap, any_format, on_each, only_float, only_int8
from nnbuild.kernels.loops.dot import offset
from nnbuild.kernels.loops.window import Window, window_of
from nnbuild.kernels.loops.window_loops import (
    column_taps,
    each_position,
    each_row,
    product,
    row_taps,
    taps_count,
    total,
)
from nnbuild.kernels.parts import device_arithmetic
from nnbuild.kernels.parts.overlaps import IN_PLACE, rows
from nnbuild.numeric.mean import MEAN_BITS, mean_factor
from nnbuild.numeric.rounding import INT8, rounding_mean, saturate
from nnbuild.numeric.step_line import StepLines, step_lines
from nnbuild.ops.integer import bounds
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site


def demand(site: Site[Pool2D]) -> Demand:
    return Demand(extent=site.output_shape()[0], overlaps=_overlaps(site), rows=True)


def _overlaps(site: Site[Pool2D]) -> tuple[Overlap, ...]:
    """Windows that neither overlap nor reach before their output leave no unread input behind the output."""
    pool = site.attributes
    apart = all(s >= k for s, k in zip(pool.strides, pool.window, strict=True))
    unpadded = all(pad == (0, 0) for pad in pool.padding)
    return IN_PLACE if apart and unpadded else rows(site, window_of(site).rows)


def _is_max(site: Site[Pool2D]) -> bool:
    return site.attributes.function == "max"


@contextmanager
def _windows(w: Writer, site: Site[Pool2D], rows: tuple[str, str] = ("begin", "end")) -> Iterator[str]:
    """The loops over the outputs, with the real part of the window at (top, left); yields the output's offset."""
    window = window_of(site)
    with each_row(w, window.rows, bounds=rows), each_position(w, window.columns):
        yield f"({product('y', window.columns.places)} + x) * {window.channels}"


def _point(w: Writer, site: Site[Pool2D], names: Names, c: str) -> None:
    """Declares the pointer to a row of the window, from channel `c` on."""
    kind, window = C_TYPES[site.inputs[0].dtype], window_of(site)
    place = product(f"{product('top + ky', window.columns.size)} + left", window.channels)
    w(f"const {kind} *row = {names.inputs[0]} + {total(place, c)};")


def _real_inputs(window: Window) -> str:
    return f"{taps_count(window.rows, 'ky')} * {taps_count(window.columns, 'kx')}"


def _declare_count(w: Writer, site: Site[Pool2D]) -> None:
    """Declares the divisor of an integer average at one position, or the factor that replaces it."""
    window = window_of(site)
    if site.inputs[0].dtype == "float32" or _is_max(site) or window.inside:
        return
    w(f"const int32_t count = {_real_inputs(window)};")
    if _multiplies(site):
        w(f"const uint32_t factor = (UINT32_C({1 << MEAN_BITS}) + (uint32_t)count - 1) / (uint32_t)count;")


def _average(w: Writer, site: Site[Pool2D], total: str) -> str:
    """The average of a window whose inputs sum to the variable `total`, halves away from zero, without a branch."""
    size, inside = prod(site.attributes.window), window_of(site).inside
    count, half = (str(size), str(size // 2)) if inside else ("count", "count / 2")
    if not _multiplies(site):
        w.bill(14)
        return f"({total} > 0 ? {total} + {half} : {total} - {half}) / {count}"
    w.bill(7)
    sign = f"sign_{total}"
    w(f"const int32_t {sign} = {total} >> 31;")
    factor = f"UINT32_C({mean_factor(size)})" if inside else "factor"
    lifted = f"(uint32_t)(({total} ^ {sign}) - {sign} + {half})"
    return f"((int32_t)(({lifted} * {factor}) >> {MEAN_BITS}) ^ {sign}) - {sign}"


def _multiplies(site: Site[Pool2D]) -> bool:
    """Whether sums of bytes are divided by one multiplication, for any number of real inputs."""
    real = [range(1, size + 1) for size in site.attributes.window]
    counts = {prod(site.attributes.window)} if window_of(site).inside else {a * b for a in real[0] for b in real[1]}
    return site.inputs[0].dtype == "int8" and all(mean_factor(count) is not None for count in counts)


def _one_position(site: Site[Pool2D]) -> bool:
    """Then channels are the work items."""
    return site.output_shape()[:2] == (1, 1)


def _by_channels(site: Site[Pool2D]) -> Demand:
    return replace(demand(site), extent=site.output_shape()[2]) if _one_position(site) else demand(site)


def _emit(w: Writer, site: Site[Pool2D], names: Names) -> None:
    channels, alone = site.shape()[2], _one_position(site)
    with _windows(w, site, ("0", "1") if alone else ("begin", "end")) as place:
        _declare_count(w, site)
        w(f"{C_TYPES[site.outputs[0].dtype]} *to = {names.outputs[0]} + {place};")
        ends = w.loop("c", "end", start="begin", trips=channels) if alone else w.loop("c", channels)
        with ends:
            _channel(w, site, names)


def _channel(w: Writer, site: Site[Pool2D], names: Names) -> None:
    kind, window = C_TYPES[site.inputs[0].dtype], window_of(site)
    is_float, is_max = kind == "float", _is_max(site)
    first_row = "top" if window.rows.always_inside else "top + ky_begin"
    first_column = "left" if window.columns.always_inside else "left + kx_begin"
    first = f"{names.inputs[0]}[({product(first_row, window.columns.size)} + {first_column}) * {window.channels} + c]"
    zero = "0.0f" if is_float else "0"
    w(w.use(c99.LOAD_AS, "float" if is_float else "int32_t", "result", first if is_max else zero))
    with row_taps(w, window.rows):
        _point(w, site, names, "c")
        with column_taps(w, window.columns):
            w(w.use(c99.LARGER if is_max else c99.ADD, "result", f"row[{product('kx', window.channels)}]"))
    if not is_float and not is_max:
        finish_average(w, site, "result", "to[c]", kind)
        return
    if not is_max:
        w.bill(14)
        w(f"result /= (float)({_real_inputs(window)});")
    if is_float:
        c99.clamp(w, site.attributes.clamp, "result")
    else:
        c99.bound(w, bounds(site.attributes.clamp, site.outputs[0]), "result")
    w(w.use(c99.STORE, "to[c]", "result" if is_float else f"({kind})result"))


def finish_average(w: Writer, site: Site[Pool2D], result: str, target: str, kind: str) -> None:
    """Stores the average of a sum of integers."""
    w(f"{result} = {_average(w, site, result)};")
    c99.bound(w, bounds(site.attributes.clamp, site.outputs[0]), result)
    w(w.use(c99.STORE, target, f"({kind}){result}"))


TOGETHER = 4
"""Vectors of channels computed together to hide latency."""


@dataclass(frozen=True)
class _Floats:
    """A few vectors of channels at a time."""

    floats: Vectors

    def accepts(self, site: Site[Pool2D]) -> str | None:
        return only_float(site)

    def demand(self, site: Site[Pool2D]) -> Demand:
        return demand(site)

    def emit(self, w: Writer, site: Site[Pool2D], names: Names) -> None:
        with _windows(w, site) as place:
            for channel, count in in_vectors(w, self.floats.lanes * TOGETHER, site.shape()[2]):
                self._channels(w, site, names, place, channel, count)

    def _channels(self, w: Writer, site: Site[Pool2D], names: Names, place: str, channel: str, count: int) -> None:
        """`count` channels of one output position, from `channel` on."""
        v, window = self.floats, window_of(site)
        operation = "max" if _is_max(site) else "add"
        parts = [(i, min(v.lanes, count - i)) for i in range(0, count, v.lanes)]
        for i, _ in parts:
            v.declare(w, f"result{i}", self._beginning(w, operation))
        with row_taps(w, window.rows):
            start = f"{product('top + ky', window.columns.size)} + left"
            w(f"const float *row = {names.inputs[0]};")
            with column_taps(w, window.columns):
                w(f"const float *from = row + {total(product(f'{start} + kx', window.channels), channel)};")
                for i, lanes in parts:
                    w(f"result{i} = {v.use(w, operation, f'result{i}', v.load(w, offset('from', i), lanes))};")
        w(f"float *to = {names.outputs[0]} + {total(place, channel)};")
        if operation == "add":
            v.declare(w, "count", v.each(w, f"(float)({_real_inputs(window)})"))
        for i, lanes in parts:
            if operation == "add":
                w(f"result{i} = {v.use(w, 'div', f'result{i}', 'count')};")
            v.bound(w, site.attributes.clamp, f"result{i}")
            v.store(w, offset("to", i), f"result{i}", lanes)

    def _beginning(self, w: Writer, operation: str) -> str:
        v = self.floats
        return v.each(w, 0.0) if operation == "add" else v.call(w, "f_of_bits", v.call(w, "each", SPECIAL["-infinity"]))


@dataclass(frozen=True)
class _Bytes:
    """int8 in vectors, one channel a lane."""

    v: Vectors

    def accepts(self, site: Site[Pool2D]) -> str | None:
        average = site.attributes.function == "average"
        if average and not window_of(site).inside:
            return "it averages whole windows only, and some reach into the padding"
        if average and mean_factor(prod(site.attributes.window)) is None:
            return "its windows are too large to divide by one multiplication"
        return only_int8(site)

    def demand(self, site: Site[Pool2D]) -> Demand:
        return Demand(extent=site.output_shape()[0], overlaps=_overlaps(site))

    def emit(self, w: Writer, site: Site[Pool2D], names: Names) -> None:
        with _windows(w, site) as place:
            w(f"int8_t *to = {names.outputs[0]} + {place};")
            for c, real in in_vectors(w, self.v.lanes, site.shape()[2]):
                self._lanes(w, site, names, c, real)

    def _lanes(self, w: Writer, site: Site[Pool2D], names: Names, c: str, real: int) -> None:
        v, window, operation = self.v, window_of(site), "max" if _is_max(site) else "add"
        v.let(w, "sums", "result", v.call(w, "each", "-128" if _is_max(site) else "0"), "")
        with row_taps(w, window.rows):
            _point(w, site, names, c)
            with column_taps(w, window.columns):
                value = v.call(w, "widen", f"row + {product('kx', window.channels)}", of=(real,))
                w(f"result = {v.call(w, operation, 'result', value)};")
        if not _is_max(site):
            _divide(w, v, window.rows.kernel * window.columns.kernel)
        limit = bounds(site.attributes.clamp, site.outputs[0])
        w(f"{v.call(w, 'store_bytes', total('to', c), 'result', of=(*limit, real))};")


def _divide(w: Writer, v: Vectors, count: int) -> None:
    """Divides the variable `result`, rounding halves away from zero: the magnitude first, then the sign is restored."""
    v.let(w, "sums", "sign", v.call(w, "shift_right", "result", of=(31,)))
    size = v.call(w, "sub", v.call(w, "xor", "result", "sign"), "sign")
    lifted = v.call(w, "add", size, v.call(w, "each", str(count // 2)))
    scaled = v.call(w, "mul", lifted, v.call(w, "each", str(mean_factor(count))))
    quotient = v.call(w, "shift_down", scaled, of=(MEAN_BITS,))
    w(f"result = {v.call(w, 'sub', v.call(w, 'xor', quotient, 'sign'), 'sign')};")


GROUP = 4
LARGEST = 256
"""Values whose sum fits half a word."""
UNROLLED = 4
"""Columns of a window up to which they are unrolled."""
LOAD = Row("const int32_t {0} = {1};", 1)
STORE = Row("to[{0}] = (int8_t){1};", 1)


def _quads_accept(site: Site[Pool2D]) -> str | None:
    size = prod(site.attributes.window)
    large = not _is_max(site) and size > LARGEST
    return only_int8(site) or (f"16 bits hold the sum of {LARGEST} numbers, not of {size}" if large else None)


def _emit_quads(w: Writer, site: Site[Pool2D], names: Names) -> None:
    """int8 on Cortex-M4 and up, four channels at a time: maxima byte by byte, sums in pairs of 16 bits."""
    whole, rest = divmod(site.shape()[2], GROUP)
    with _windows(w, site) as place:
        _declare_count(w, site)
        w(f"int8_t *to = {names.outputs[0]} + {place};")
        w("int32_t c = 0;")
        if whole:
            with w.block(f"for (; c < {whole * GROUP}; c += {GROUP})"), w.trips(whole):
                w.bill(3)
                _quad(w, site, names, GROUP)
                w(f"to += {GROUP};")
        if rest:
            _quad(w, site, names, rest)


def _quad(w: Writer, site: Site[Pool2D], names: Names, count: int) -> None:
    is_max, window = _is_max(site), window_of(site)
    w("int32_t largest = INT32_C(-2139062144);" if is_max else "int32_t even = 0;")  # four times -128
    if not is_max:
        w("int32_t odd = 0;")

    def take(at: str) -> None:
        w(w.use(LOAD, "word", DSP.call(w, "load_bytes", at, of=(count,))))
        if is_max:
            w(f"largest = {DSP.call(w, 'max_bytes', 'largest', 'word')};")
        else:
            w(f"even = {DSP.call(w, 'p_add_even_bytes', 'even', 'word')};")
            w(f"odd = {DSP.call(w, 'p_add_odd_bytes', 'odd', 'word')};")

    with row_taps(w, window.rows):
        _point(w, site, names, "c")
        if window.columns.always_inside and window.columns.kernel <= UNROLLED:
            for kx in range(window.columns.kernel):
                with w.block(""):
                    take(f"row + {kx * window.channels}" if kx else "row")
        else:
            with column_taps(w, window.columns):
                take(f"row + {product('kx', window.channels)}")
    limits = bounds(site.attributes.clamp, site.outputs[0])
    if is_max and limits == INT8 and count == GROUP:
        w(f"{DSP.call(w, 'write_bytes', 'to', 'largest')};")
        return
    for channel in range(count):
        value = f"(int8_t)(largest >> {8 * channel})" if is_max else _quad_average(w, site, channel)
        w(f"int32_t result{channel} = {value};")
        if limits[0] > INT8[0]:
            w(w.use(c99.AT_LEAST, f"result{channel}", str(limits[0])))
        if limits[1] < INT8[1]:
            w(w.use(c99.AT_MOST, f"result{channel}", str(limits[1])))
        w(w.use(STORE, str(channel), f"result{channel}"))


@lru_cache(maxsize=256)
def _average_line(size: int, limits: tuple[int, int]) -> StepLines | None:
    """The rounded average of a window as a linear function of its sum."""
    sums = np.arange(INT8[0] * size, INT8[1] * size + 1)
    wanted = saturate(rounding_mean(sums, size), *limits)
    return step_lines(sums, wanted[:, None], limits, np.array([1 / size]), 0, drop=16)


def _quad_average(w: Writer, site: Site[Pool2D], channel: int) -> str:
    size, pair = prod(site.attributes.window), ("even", "odd")[channel % 2]
    limits = bounds(site.attributes.clamp, site.outputs[0])
    line = _average_line(size, limits) if window_of(site).inside else None
    if line is not None and not line.kinks.any():
        half = ("p_wide_low", "p_wide_high")[channel // 2]
        value = DSP.call(w, half, str(line.factors[0]), pair, str(line.starts[0]))
        return DSP.call(w, "saturate", value, of=(8, line.shift))
    name = f"sum{channel}"
    w(w.use(LOAD, name, f"{pair} >> 16" if channel > 1 else f"(int16_t)({pair} & 0xffff)"))
    return _average(w, site, name)


VARIANTS = (
    Kernel("scalar", frozenset(), any_format, _by_channels, _emit),
    Kernel("bytes", frozenset({"armv7em_dsp"}), _quads_accept, demand, _emit_quads),
    on_each("float", _Floats),
    on_each("integer", _Bytes),
    device_arithmetic.POOL,
)
