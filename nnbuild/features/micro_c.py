"""Prints the microfrontend: one function that computes a row from a frame."""

from __future__ import annotations

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.features.fixed_fft_c import print_energies, print_transform, words
from nnbuild.features.micro_tables import SHARE_BITS, WEIGHT_BITS, MicroTables
from nnbuild.features.tables import Tables
from nnbuild.isa.arm import DSP
from nnbuild.numeric.signal import NATURAL, log_steps

DIVISION = 12
"""Cycles of a division."""


def print_frame(w: Writer, tables: Tables, micro: MicroTables) -> None:
    points = micro.points // 2
    _window(w, tables, micro)
    print_transform(w, tables, points)
    print_energies(w, tables, points, micro.filters.first, len(micro.filters.of))
    _root(w, tables)
    if micro.gains is not None:
        _gain(w, tables, micro.gains)
    if micro.log_shift is not None:
        _logarithm(w, tables, micro.log_shift, micro.log_scale)
    _channel(w, micro)
    _frame(w, tables, micro)


def _window(w: Writer, tables: Tables, micro: MicroTables) -> None:
    """Prints the window; the remaining pairs are zeros."""
    size = len(micro.window)
    name = tables.add(w, "window", words(micro.window[0::2], np.append(micro.window, 0)[1::2][: (size + 1) // 2]))
    w("/* Applies the window to a frame; returns by how many bits it can be shifted left. */")
    with w.function(f"static int32_t {w.prefix}_weigh(const int16_t *samples, int32_t *pairs)"):
        w("uint32_t seen = 0;")
        with w.loop("i", size // 2):
            w(f"const int32_t x = {DSP.call(w, 'p_load', 'samples + 2 * i')};")
            w(f"const int32_t k = {name}[i];")
            products = (DSP.call(w, f"p_{half}_product", "x", "k") for half in ("low", "high"))
            w(f"const int32_t y = {DSP.call(w, 'p_joined', *products, of=(WEIGHT_BITS,))};")
            w("pairs[i] = y;")
            w(f"seen |= (uint32_t){DSP.call(w, 'p_magnitudes', 'y')};")
            w.bill(3)
        if size % 2:
            w(f"const int32_t last = samples[{size - 1}] * (int16_t){name}[{size // 2}] >> {WEIGHT_BITS};")
            w(f"pairs[{size // 2}] = last & 0xffff;")
            w("seen |= (uint32_t)(last < 0 ? -last : last) & 0xffffU;")
        with w.loop("i", micro.points // 2, start=(size + 1) // 2):
            w("pairs[i] = 0;")
            w.bill(1)
        w(f"return {w.helper('leading_zeros', '(seen | seen >> 16) & 0x7fffU')} - 17;")
    w()


def _root(w: Writer, tables: Tables) -> None:
    """Prints the square root: a table, then Newton's method; the last division leaves it too large by little."""
    start = np.minimum(255, np.round(16 * np.sqrt(np.arange(64, 256) + 0.5))).astype(np.uint8)
    name = tables.add(w, "roots", start)
    w("/* The square root, rounded to nearest, but never up beyond 16 bits of a 32-bit value, nor beyond 32 bits. */")
    with w.function(f"static uint32_t {w.prefix}_root(uint64_t value)"):
        w("const uint32_t high = (uint32_t)(value >> 32);")
        ahead = (w.helper("leading_zeros", each) for each in ("high", "(uint32_t)value"))
        w(f"const int32_t zeros = (high ? {next(ahead)} : 32 + {next(ahead)}) & ~1;")
        w("if (value == 0) return 0;")
        w("const uint64_t moved = value << zeros;")
        w("const uint32_t top = (uint32_t)(moved >> 32);")
        w(f"uint32_t u = {name}[(top >> 24) - 64];")
        w("u = (u << 7) + (top >> 9) / u;")
        w("u = (u + top / u) >> 1;")
        w("const uint32_t whole = top / u;")
        w("const uint32_t rest = ((top - whole * u) << 15) + ((uint32_t)moved >> 17);")
        w("const uint64_t sum = ((uint64_t)(u + whole) << 15) + rest / u;")
        w("uint32_t root = sum > 0xffffffffU ? 0xffffffffU : (uint32_t)sum;")
        with w.block("while ((uint64_t)root * root > moved)"):
            w("--root;")
        w("root >>= zeros / 2;")
        w("const uint32_t most = high ? 0xffffffffU : 0xffffU;")
        w("return value - (uint64_t)root * root > root && root != most ? root + 1 : root;")
        w.bill(45 + 4 * DIVISION)
    w()


def _gain(w: Writer, tables: Tables, gains: np.ndarray) -> None:
    name = tables.add(w, "gains", gains.astype(np.int16))
    w("/* The gain for a noise estimate, by a parabola between two powers of two. */")
    with w.function(f"static int32_t {w.prefix}_gain(uint32_t x)"):
        w(f"if (x < 2) return {name}[x];")
        w(f"const int32_t bits = 32 - {w.helper('leading_zeros', 'x')};")
        w(f"const int16_t *const knots = {name} + 4 * bits - 6;")
        w("const int32_t z = (int32_t)((bits < 11 ? x << (11 - bits) : x >> (bits - 11)) & 0x3ff);")
        w("const int32_t slope = ((knots[2] * z) >> 5) + knots[1] * 32;")
        w("return knots[0] + ((slope * z + 0x4000) >> 15);")
        w.bill(18)
    w()


def _logarithm(w: Writer, tables: Tables, shift: int, scale: int) -> None:
    steps = log_steps()
    name = tables.add(w, "logarithms", words(steps[:-1], np.diff(steps)).astype(np.int32))
    w("/* The scaled natural logarithm. */")
    with w.function(f"static uint16_t {w.prefix}_logarithm(uint32_t x)"):
        w(f"const uint32_t y = x << {shift};")
        w("if (y <= 1) return 0;")
        w(f"const int32_t bits = 31 - {w.helper('leading_zeros', 'y')};")
        w("const uint32_t part = y - ((uint32_t)1 << bits);")
        w("const uint32_t fraction = bits < 16 ? part << (16 - bits) : part >> (bits - 16);")
        w(f"const uint32_t low = (uint32_t){name}[fraction >> 9];")
        w("const int32_t more = ((int32_t)low >> 16) * (int32_t)(fraction & 0x1ff) >> 16;")
        w("const uint32_t log2 = ((uint32_t)bits << 16) + fraction + (low & 0xffffU) + (uint32_t)more;")
        w(f"const uint32_t natural = (uint32_t)(((uint64_t){NATURAL} * log2 + 0x8000U) >> 16);")
        w(f"const uint32_t scaled = ((natural << {scale}) + 0x8000U) >> 16;")
        w("return (uint16_t)(scaled > 0xffffU ? 0xffffU : scaled);")
        w.bill(24)
    w()


def _channel(w: Writer, micro: MicroTables) -> None:
    """Prints noise reduction, gain control and the logarithm of a channel."""
    bits = micro.smoothing_bits
    w("/* A channel's feature without noise; updates the noise estimate. */")
    with w.function(f"static uint16_t {w.prefix}_feature(uint32_t x, uint32_t *noise, uint32_t share)"):
        w(f"const uint32_t up = x << {bits};")
        rest = f"({1 << SHARE_BITS}U - share)"
        w(f"const uint32_t now = (uint32_t)(((uint64_t)up * share + (uint64_t)*noise * {rest}) >> {SHARE_BITS});")
        w(f"const uint32_t above = (up - (now < up ? now : up)) >> {bits};")
        w(f"const uint32_t least = (uint32_t)((uint64_t)x * {micro.least}U >> {SHARE_BITS});")
        w("*noise = now;")
        w.bill(16)
        value = "y"
        w("const uint32_t y = above > least ? above : least;")
        if micro.gains is not None:
            gain = f"(uint64_t){w.prefix}_gain(now)"
            w(f"const uint32_t ratio = (uint32_t)(((uint64_t)y * {gain}) >> {micro.snr_shift});")
            w("const uint32_t even = ratio < 8192 ? ratio * ratio >> 20 : (ratio >> 6) - 64;")
            w.bill(10)
            value = "even"
        w(f"return {f'{w.prefix}_logarithm({value})' if micro.log_shift is not None else f'(uint16_t){value}'};")
    w()


def _frame(w: Writer, tables: Tables, micro: MicroTables) -> None:
    filters = micro.filters
    widths = np.array([int((filters.of == group).sum()) for group in range(filters.channels + 1)], np.uint8)
    width = tables.add(w, "widths", widths if widths.max() < 256 else widths.astype(np.uint16))
    weight = tables.add(w, "weights", words(filters.weights, filters.rests))
    even, odd = micro.shares
    with w.function(f"static void {w.prefix}_frame({w.prefix}_features *f)"):
        w(f"const int32_t shift = {w.prefix}_weigh(f->samples, f->pairs);")
        w("uint32_t *const energies = (uint32_t *)f->pairs;")
        w(f"{w.prefix}_transform(f->pairs, f->values, shift);")
        w(f"{w.prefix}_energies(f->values, energies);")
        w(f"const uint32_t *energy = energies + {filters.first};")
        w(f"const uint32_t *weight = (const uint32_t *){weight};")
        w("uint64_t next = 0;")
        with w.loop("channel", filters.channels + 1):
            w("uint64_t sum = next;")
            w("next = 0;")
            with w.loop("i", f"{width}[channel]", trips=len(filters.of) / (filters.channels + 1)):
                w("const uint32_t e = *energy++, k = *weight++;")
                w("sum += (uint64_t)e * (k & 0xffffU);")
                w("next += (uint64_t)e * (k >> 16);")
                w.bill(6)
            with w.block("if (channel > 0)"):
                w(f"const uint32_t x = {w.prefix}_root(sum) >> shift;")
                w(f"const uint32_t share = channel % 2 ? {even} : {odd};")
                w(f"f->row[channel - 1] = {w.prefix}_feature(x, f->noise + channel - 1, share);")
    w()
