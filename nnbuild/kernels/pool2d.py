"""Maximum and average pooling: a loop over windows, with a body for each instruction set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vector_functions import SPECIAL
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import (
    Demand,
    Functions,
    Kernel,
    Names,
    any_format,
    on_each,
    only_float,
    only_int8,
    only_int16,
    only_integer,
)
from nnbuild.kernels.dsp import pool2d as dsp_pool2d
from nnbuild.kernels.loops.pooling import (
    addend,
    declare_count,
    declare_divisor,
    demand,
    factors,
    finish_average,
    forms,
    multiplies,
    overlaps,
    real_inputs,
    takes_maximum,
    taps,
    windows,
)
from nnbuild.kernels.loops.window import window_of
from nnbuild.kernels.loops.window_loops import column_taps, row_taps
from nnbuild.kernels.parts import device_arithmetic
from nnbuild.kernels.parts.long_sums import Levels, begin_parts, count_parts, join_parts
from nnbuild.model.graph import Array
from nnbuild.numeric.mean import MEAN_BITS, MEAN_HALF, MOST_WORDS, mean_factor, word_factor
from nnbuild.numeric.rounding import INT8, ints, limits
from nnbuild.ops.integer import bounds
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site


def _one_position(site: Site[Pool2D]) -> bool:
    """Then channels are the work items."""
    return site.output_shape()[:2] == (1, 1)


def _by_rows(site: Site[Pool2D]) -> Demand:
    return Demand(extent=site.output_shape()[0], overlaps=overlaps(site))


def _by_channels(site: Site[Pool2D]) -> Demand:
    return replace(demand(site), extent=site.output_shape()[2]) if _one_position(site) else demand(site)


def _emit(w: Writer, site: Site[Pool2D], names: Names) -> None:
    channels, alone = site.shape()[2], _one_position(site)
    with windows(w, site, ("0", "1") if alone else ("begin", "end")) as place:
        w(f"{C_TYPES[site.outputs[0].dtype]} *to = {names.outputs[0]} + {place};")
        for unrolled in forms(w, window_of(site)):
            if not unrolled:
                declare_divisor(w, site, names)
            with w.loop("c", "end", start="begin", trips=channels) if alone else w.loop("c", channels):
                _channel(w, site, names, unrolled)


def _channel(w: Writer, site: Site[Pool2D], names: Names, unrolled: bool) -> None:
    kind, window = C_TYPES[site.inputs[0].dtype], window_of(site)
    is_float, is_max = kind == "float", takes_maximum(site)
    first_row = "top" if window.rows.always_inside else "top + ky_begin"
    first_column = "left" if window.columns.always_inside else "left + kx_begin"
    first = f"{names.inputs[0]}[(({first_row}) * {window.columns.size} + {first_column}) * {window.channels} + c]"
    zero = "0.0f" if is_float else "0"
    held, is_first = "float" if is_float else "int32_t", is_max and unrolled
    wholes, floats = (c99.LARGER, c99.LARGER_FLOAT) if is_max else (c99.ADD, c99.ADD_FLOAT)
    if not is_first:
        w(w.use(c99.LOAD_AS, held, "result", first if is_max else zero))
    sums = _parts(w, site, ["result"] if is_float else [])
    for index, place in enumerate(taps(w, site, names, "c", unrolled)):
        count_parts(w, sums)
        if is_first and index == 0:
            w(w.use(c99.LOAD_AS, held, "result", c99.at(place)))
        else:
            w(w.use(floats if is_float else wholes, "result", c99.at(place)))
    join_parts(w, sums)
    if not is_float and not is_max:
        finish_average(w, site, "result", "to[c]", unrolled or window.inside)
        return
    if not is_max:
        w.bill(14, floats=1.5)
        w(f"result /= (float)({prod(site.attributes.window) if unrolled else real_inputs(window)});")
    if is_float:
        c99.clamp(w, site.attributes.clamp, "result")
    else:
        c99.bound(w, bounds(site.attributes.clamp, site.outputs[0]), "result")
    w(w.use(c99.STORE, "to[c]", "result" if is_float else f"({kind})result"))


def _parts(w: Writer, site: Site[Pool2D], sums: list[str], floats: Vectors | None = None) -> Levels:
    return begin_parts(w, [] if takes_maximum(site) else sums, prod(site.attributes.window), floats)


TOGETHER = 4
"""Vectors of channels computed together to hide latency."""


def _floats(v: Vectors, w: Writer, site: Site[Pool2D], names: Names) -> None:
    """A few vectors of channels at a time."""
    with windows(w, site) as place:
        for channel, count in in_vectors(w, v.lanes * TOGETHER, site.shape()[2]):
            _channels(v, w, site, names, place, channel, count)


def _channels(v: Vectors, w: Writer, site: Site[Pool2D], names: Names, place: str, channel: str, count: int) -> None:
    """`count` channels of one output position, from `channel` on."""
    window, operation = window_of(site), "max" if takes_maximum(site) else "add"
    parts = [(i, min(v.lanes, count - i)) for i in range(0, count, v.lanes)]
    for i, _ in parts:
        lowest = (
            v.call(w, "f_of_bits", v.call(w, "each", SPECIAL["-infinity"])) if operation == "max" else v.each(w, 0.0)
        )
        v.declare(w, f"result{i}", lowest)
    sums = _parts(w, site, [f"result{i}" for i, _ in parts], v)
    with row_taps(w, window.rows):
        start = f"(top + ky) * {window.columns.size} + left"
        w(f"const float *row = {names.inputs[0]};")
        with column_taps(w, window.columns):
            count_parts(w, sums, v)
            w(f"const float *from = row + ({start} + kx) * {window.channels} + {channel};")
            for i, lanes in parts:
                w(f"result{i} = {v.use(w, operation, f'result{i}', v.load(w, f'from + {i}', lanes))};")
    join_parts(w, sums, v)
    w(f"float *to = {names.outputs[0]} + {place} + {channel};")
    if operation == "add":
        v.declare(w, "count", v.each(w, f"(float)({real_inputs(window)})"))
    for i, lanes in parts:
        if operation == "add":
            w(f"result{i} = {v.use(w, 'div', f'result{i}', 'count')};")
        v.bound(w, site.attributes.clamp, f"result{i}")
        v.store(w, f"to + {i}", f"result{i}", lanes)


@dataclass(frozen=True)
class _Integers:
    """Integers in vectors, one channel a lane."""

    v: Vectors

    def accepts(self, site: Site[Pool2D]) -> str | None:
        average, is_bytes = site.attributes.function == "average", site.inputs[0].dtype == "int8"
        if average and not (multiplies(site) if is_bytes else prod(site.attributes.window) <= MOST_WORDS):
            return "one multiplication does not divide by its windows' sizes"
        return only_integer(site)

    def demand(self, site: Site[Pool2D]) -> Demand:
        if not self._looks_up(site):
            return replace(_by_rows(site), packed=factors(site))
        words = ints([word_factor(max(count, 1)) for count in range(prod(site.attributes.window) + 1)])
        packed: dict[str, Array] = {"factors": words[:, 0].astype(np.int32), "shifts": words[:, 1].astype(np.int8)}
        return replace(_by_rows(site), packed=packed)

    def _looks_up(self, site: Site[Pool2D]) -> bool:
        """Whether it divides sums of words by numbers that differ."""
        averages = site.inputs[0].dtype == "int16" and not takes_maximum(site)
        return averages and not window_of(site).inside

    def emit(self, w: Writer, site: Site[Pool2D], names: Names) -> None:
        with windows(w, site) as place:
            w(f"{C_TYPES[site.inputs[0].dtype]} *to = {names.outputs[0]} + {place};")
            for unrolled in forms(w, window_of(site)):
                if not unrolled:
                    declare_count(w, site)
                if not unrolled and names.packed:
                    w(f"const int32_t factor = {names.packed['factors']}[count];")
                if not unrolled and self._looks_up(site):
                    w(f"const int32_t shift = {names.packed['shifts']}[count];")
                for c, real in in_vectors(w, self.v.lanes, site.shape()[2]):
                    self._lanes(w, site, names, (c, real), unrolled)

    def _lanes(self, w: Writer, site: Site[Pool2D], names: Names, channels: tuple[str, int], unrolled: bool) -> None:
        """Some channels of one output: from the first on, so many."""
        v, operation, (c, real) = self.v, "max" if takes_maximum(site) else "add", channels
        is_bytes = site.inputs[0].dtype == "int8"
        load, store = ("widen", "store_bytes") if is_bytes else ("widen_words", "store_words")
        start = limits(site.inputs[0].dtype)[0] if takes_maximum(site) else 0
        if not unrolled:
            v.let(w, "sums", "result", v.call(w, "each", str(start)), "")
        for index, place in enumerate(taps(w, site, names, c, unrolled)):
            value = v.call(w, load, place, of=(real,))
            if unrolled and index == 0:
                v.let(w, "sums", "result", value, "")
            else:
                w(f"result = {v.call(w, operation, 'result', value)};")
        if not takes_maximum(site):
            _divide(w, v, site, unrolled or window_of(site).inside)
        limit = bounds(site.attributes.clamp, site.outputs[0])
        w(f"{v.call(w, store, f'to + {c}', 'result', of=(*limit, real))};")


def _divide(w: Writer, v: Vectors, site: Site[Pool2D], inside: bool) -> None:
    """Divides the variable `result`, for words its magnitude, whose sign is restored afterwards."""
    count, upward = prod(site.attributes.window), site.attributes.upward
    if not upward:
        v.let(w, "sums", "sign", v.call(w, "shift_right", "result", of=(31,)))
    if site.inputs[0].dtype == "int8":
        factor = str(mean_factor(count, upward)) if inside else "factor"
        scaled = v.call(w, "mul", "result", v.call(w, "each", factor))
        rounds = (v.call(w, "each", addend(site, inside)),) if upward else ("sign", MEAN_HALF)
        for each in rounds:
            scaled = v.call(w, "add", scaled, each)
        w(f"result = {v.call(w, 'shift_right', scaled, of=(MEAN_BITS,))};")
        return
    size = v.call(w, "sub", v.call(w, "xor", "result", "sign"), "sign")
    lifted = v.call(w, "add", size, v.call(w, "each", str(count // 2) if inside else "count / 2"))
    lifted = v.call(w, "shift_left", lifted, of=(2,))
    if inside:
        number, shift = word_factor(count)
        quotient = v.call(w, "upper", lifted, number)
        w(f"result = {v.call(w, 'shift_right', quotient, of=(shift,)) if shift else quotient};")
    else:
        quotient = v.call(w, "upper", lifted, v.call(w, "each", "factor"))
        w(f"result = {v.call(w, 'shift_down_by', quotient, 'shift')};")
    w(f"result = {v.call(w, 'sub', v.call(w, 'xor', 'result', 'sign'), 'sign')};")


def _accepts_maxima(site: Site[Pool2D]) -> str | None:
    return only_int8(site) or (None if takes_maximum(site) else "it takes maxima only")


def _byte_maxima(v: Vectors, w: Writer, site: Site[Pool2D], names: Names) -> None:
    """Maxima of bytes, four channels a lane."""
    low, high = bounds(site.attributes.clamp, site.outputs[0])
    with windows(w, site) as place:
        w(f"int8_t *to = {names.outputs[0]} + {place};")
        for unrolled in forms(w, window_of(site)):
            for c, real in in_vectors(w, 4 * v.lanes, site.shape()[2]):
                whole = unrolled and low == INT8[0]
                if not whole:
                    v.let(w, "bytes", "most", v.call(w, "b_each", str(low)), "")
                for index, tap in enumerate(taps(w, site, names, c, unrolled)):
                    value = v.call(w, "b_load", tap, of=(real,))
                    if whole and index == 0:
                        v.let(w, "bytes", "most", value, "")
                    else:
                        w(f"most = {v.call(w, 'b_max', 'most', value)};")
                if high < INT8[1]:
                    w(f"most = {v.call(w, 'b_min', 'most', v.call(w, 'b_each', str(high)))};")
                w(f"{v.call(w, 'b_store', f'to + {c}', 'most', of=(real,))};")


VARIANTS = (
    Kernel("scalar", frozenset(), any_format, _by_channels, _emit),
    Kernel("bytes", frozenset({"armv7em_dsp"}), dsp_pool2d.refused, demand, dsp_pool2d.emit),
    Kernel("words", frozenset({"armv7em_dsp"}), only_int16, demand, dsp_pool2d.emit),
    on_each("float", lambda v: Functions(only_float, demand, partial(_floats, v))),
    on_each("integer", _Integers),
    on_each("across", _Integers, "_integers"),
    on_each("bytes", lambda v: Functions(_accepts_maxima, _by_rows, partial(_byte_maxima, v))),
    device_arithmetic.POOL,
)
