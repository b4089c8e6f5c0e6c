"""Pooling of a word of channels at a time on Cortex-M4 and up: four bytes, whose sums are pairs of 16 bits, or two
16-bit numbers."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.kernels.contract import Names, only_int8
from nnbuild.kernels.loops.pooling import average, declare_divisor, finish_average, forms, takes_maximum, taps, windows
from nnbuild.kernels.loops.window import window_of
from nnbuild.numeric.rounding import INT8, INT16, rounding_mean, saturate
from nnbuild.numeric.step_line import StepLines, step_lines
from nnbuild.ops.integer import bounds
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site

LARGEST = 256
"""Values whose sum fits half a word."""
LOAD = Row("const int32_t {0} = {1};", 1)


def refused(site: Site[Pool2D]) -> str | None:
    size = prod(site.attributes.window)
    large = not takes_maximum(site) and size > LARGEST
    return only_int8(site) or (f"16 bits hold the sum of {LARGEST} numbers, not of {size}" if large else None)


def emit(w: Writer, site: Site[Pool2D], names: Names) -> None:
    kind = C_TYPES[site.inputs[0].dtype]
    few = _few_bytes if kind == "int8_t" else _few_words
    group = 4 if kind == "int8_t" else 2
    whole, rest = divmod(site.shape()[2], group)
    with windows(w, site) as place:
        w(f"{kind} *to = {names.outputs[0]} + {place};")
        for unrolled in forms(w, window_of(site)):
            if not unrolled:
                declare_divisor(w, site, names)
            w("int32_t c = 0;")
            if whole:
                with w.block(f"for (; c < {whole * group}; c += {group})"), w.trips(whole):
                    w.bill(3)
                    few(w, site, names, group, unrolled)
                    w(f"to += {group};")
            if rest:
                few(w, site, names, rest, unrolled)


def _few_words(w: Writer, site: Site[Pool2D], names: Names, count: int, unrolled: bool) -> None:
    """One or two channels."""
    if takes_maximum(site):
        _maxima_of_words(w, site, names, count, unrolled)
        return
    for channel in range(count):
        w(f"int32_t sum{channel} = 0;")
    for index, place in enumerate(taps(w, site, names, "c", unrolled)):
        if count == 1:
            w(w.use(c99.STEP, "sum0", c99.at(place)))
            continue
        w(w.use(LOAD, f"word{index}", DSP.call(w, "p_load", place)))
        w(w.use(c99.STEP, "sum0", f"(int16_t)(word{index} & 0xffff)"))
        w(w.use(c99.STEP, "sum1", f"word{index} >> 16"))
    for channel in range(count):
        finish_average(w, site, f"sum{channel}", f"to[{channel}]", unrolled or window_of(site).inside)


def _maxima_of_words(w: Writer, site: Site[Pool2D], names: Names, count: int, unrolled: bool) -> None:
    low, high = bounds(site.attributes.clamp, site.outputs[0])
    w(f"int32_t largest = INT32_C({(low << 16) + (low & 0xFFFF)});")
    for place in taps(w, site, names, "c", unrolled):
        value = DSP.call(w, "p_load", place) if count == 2 else c99.at(place)
        w(f"largest = {DSP.call(w, 'p_max', 'largest', value)};")
    for channel, value in enumerate(("(int16_t)(largest & 0xffff)", "(int16_t)(largest >> 16)")[:count]):
        if high == INT16[1]:
            w(w.use(c99.STORE, f"to[{channel}]", value))
            continue
        w(f"int32_t result{channel} = {value};")
        w(w.use(c99.AT_MOST, f"result{channel}", str(high)))
        w(w.use(c99.STORE, f"to[{channel}]", f"(int16_t)result{channel}"))


def _few_bytes(w: Writer, site: Site[Pool2D], names: Names, count: int, unrolled: bool) -> None:
    is_max, inside = takes_maximum(site), unrolled or window_of(site).inside
    w("int32_t largest = INT32_C(-2139062144);" if is_max else "int32_t even = 0;")  # four times -128
    if not is_max:
        w("int32_t odd = 0;")

    for index, place in enumerate(taps(w, site, names, "c", unrolled)):
        value = DSP.call(w, "load_bytes", place, of=(count,))
        if is_max:
            w(f"largest = {DSP.call(w, 'max_bytes', 'largest', value)};")
            continue
        w(w.use(LOAD, f"word{index}", value))
        w(f"even = {DSP.call(w, 'p_add_even_bytes', 'even', f'word{index}')};")
        w(f"odd = {DSP.call(w, 'p_add_odd_bytes', 'odd', f'word{index}')};")
    limits = bounds(site.attributes.clamp, site.outputs[0])
    if is_max and limits == INT8 and count == 4:
        w(f"{DSP.call(w, 'write_bytes', 'to', 'largest')};")
        return
    for channel in range(count):
        value = f"(int8_t)(largest >> {8 * channel})" if is_max else _byte_average(w, site, channel, inside)
        w(f"int32_t result{channel} = {value};")
        if limits[0] > INT8[0]:
            w(w.use(c99.AT_LEAST, f"result{channel}", str(limits[0])))
        if limits[1] < INT8[1]:
            w(w.use(c99.AT_MOST, f"result{channel}", str(limits[1])))
        w(w.use(c99.STORE_BYTE, f"to[{channel}]", f"result{channel}"))


@lru_cache(maxsize=256)
def _average_line(size: int, upward: bool, limits: tuple[int, int]) -> StepLines | None:
    """The rounded average of a window as a linear function of its sum."""
    sums = np.arange(INT8[0] * size, INT8[1] * size + 1)
    wanted = saturate(rounding_mean(sums, size, upward), *limits)
    return step_lines(sums, wanted[:, None], limits, np.array([1 / size]), 0, drop=16)


def _byte_average(w: Writer, site: Site[Pool2D], channel: int, inside: bool) -> str:
    size, pair = prod(site.attributes.window), ("even", "odd")[channel % 2]
    limits = bounds(site.attributes.clamp, site.outputs[0])
    line = _average_line(size, site.attributes.upward, limits) if inside else None
    if line is not None and not line.kinks.any():
        half = ("p_wide_low", "p_wide_high")[channel // 2]
        value = DSP.call(w, half, str(line.factors[0]), pair, str(line.starts[0]))
        return DSP.call(w, "saturate", value, of=(8, line.shift))
    name = f"sum{channel}"
    w(w.use(LOAD, name, f"{pair} >> 16" if channel > 1 else f"(int16_t)({pair} & 0xffff)"))
    return average(w, site, name, inside)
