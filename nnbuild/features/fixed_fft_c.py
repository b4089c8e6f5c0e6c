"""Prints the transform of fixed_fft.py: pairs of 16-bit numbers in words, for the Cortex-M4's dual multiplications.

A factor is two words, (re, -im) and (im, re), so that either part of a product is one dot product; the rounding term is
the start of the sum. A factor of one changes nothing after a division, and is omitted.
"""

from __future__ import annotations

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.features.tables import Tables
from nnbuild.isa.arm import DSP
from nnbuild.numeric.fixed_fft import HALF, QUARTER, Integers, Stage, factors, order, split_factors, stages

ROUND = 1 << 14


def words(low: Integers, high: Integers) -> Integers:
    """Two 16-bit numbers in each word."""
    both = (low & 0xFFFF) | ((high & 0xFFFF) << 16)
    return np.asarray(both, np.uint32).view(np.int32)


def factor_words(table: tuple[Integers, Integers]) -> Integers:
    re, im = table
    return np.stack([words(re, -im), words(im, re)], axis=-1).reshape(-1)


def scaled(w: Writer, value: str, by: int) -> str:
    """Both halves of a word times a factor, rounded."""
    low = DSP.call(w, "p_low_low", value, str(by), str(ROUND))
    high = DSP.call(w, "p_high_low", value, str(by), str(ROUND))
    return DSP.call(w, "p_joined", low, high, of=(15,))


def turned(w: Writer, value: str, factor: str, at: int) -> str:
    """A complex number times a factor of the table."""
    re, im = (DSP.call(w, "p_dot", value, f"{factor}[{at + i}]", str(ROUND)) for i in range(2))
    w.bill(1)
    return DSP.call(w, "p_joined", re, im, of=(15,))


def print_transform(w: Writer, tables: Tables, points: int) -> None:
    """Prints `transform`: from pairs to `out`, both of `points` words. Pairs are shifted first."""
    for number, stage in enumerate(stages(points)):
        if number:
            _stage(w, tables, points, stage)
    first = stages(points)[0]
    leaves = order(points)[:: first.radix]
    origin = tables.add(w, "leaves", np.array(leaves, np.uint8 if max(leaves) < 256 else np.uint16))
    w("/* The transform of complex numbers, one per word, first shifted left by `shift` to use all bits. */")
    with w.function(f"static void {w.prefix}_transform(const int32_t *from, int32_t *out, int32_t shift)"):
        with w.loop("i", points // first.radix):
            w(f"const int32_t *const at = from + {origin}[i];")
            w(f"int32_t *const to = out + {first.radix} * i;")
            for part in range(first.radix):
                apart = points // first.radix * part
                w(f"const uint32_t x{part} = (uint32_t)at[{apart}];")
                moved = f"(int32_t)(x{part} << shift), (int32_t)((x{part} & 0xffff0000U) << shift)".split(", ")
                w(f"const int32_t y{part} = {DSP.call(w, 'p_mixed_halves', *moved)};")
                w(f"const int32_t {'abcd'[part]} = {scaled(w, f'y{part}', _share(first))};")
                w.bill(6)
            _sums(w, first, "to")
        for number, _ in enumerate(stages(points)):
            if number:
                w(f"{w.prefix}_stage{stages(points)[number].length}(out);")
    w()


def _share(stage: Stage) -> int:
    return QUARTER if stage.radix == 4 else HALF


def _stage(w: Writer, tables: Tables, points: int, stage: Stage) -> None:
    k = np.arange(stage.length) * stage.step
    table = [tuple(part[i * k] for part in factors(points)) for i in range(1, stage.radix)]
    each = np.stack([factor_words((re, im)).reshape(-1, 2) for re, im in table], axis=1)
    name = tables.add(w, f"factors{stage.length}", each.reshape(-1).astype(np.int32))
    blocks = points // (stage.length * stage.radix)
    with w.function(f"static void {w.prefix}_stage{stage.length}(int32_t *values)"), w.loop("block", blocks):
        w(f"int32_t *to = values + block * {stage.length * stage.radix};")
        w(f"const int32_t *factor = {name};")
        with w.loop("k", stage.length):
            w(f"const int32_t a = {scaled(w, 'to[0]', _share(stage))};")
            for part in range(1, stage.radix):
                w(f"const int32_t x{part} = {scaled(w, f'to[{part * stage.length}]', _share(stage))};")
                w(f"const int32_t {'abcd'[part]} = {turned(w, f'x{part}', 'factor', 2 * part - 2)};")
            w(f"factor += {2 * (stage.radix - 1)};")
            w.bill(stage.radix)
            _sums(w, stage, "to")
            w("++to;")
    w()


def _sums(w: Writer, stage: Stage, to: str) -> None:
    """Prints the butterfly of a, b, c and d."""
    apart = stage.length
    w.bill(stage.radix)
    if stage.radix == 2:
        w(f"{to}[0] = {DSP.call(w, 'p_add', 'a', 'b')};")
        w(f"{to}[{apart}] = {DSP.call(w, 'p_sub', 'a', 'b')};")
        return
    for name, operation, first, second in (
        ("even", "p_add", "a", "c"),
        ("rest", "p_sub", "a", "c"),
        ("odd", "p_add", "b", "d"),
        ("turn", "p_sub", "b", "d"),
    ):
        w(f"const int32_t {name} = {DSP.call(w, operation, first, second)};")
    w(f"{to}[0] = {DSP.call(w, 'p_add', 'even', 'odd')};")
    w(f"{to}[{apart}] = {DSP.call(w, 'p_sub_turned', 'rest', 'turn')};")
    w(f"{to}[{2 * apart}] = {DSP.call(w, 'p_sub', 'even', 'odd')};")
    w(f"{to}[{3 * apart}] = {DSP.call(w, 'p_add_turned', 'rest', 'turn')};")


def print_energies(w: Writer, tables: Tables, points: int, first: int, count: int) -> None:
    """Prints `energies`: energies of the bins from `first` on, from a transform."""
    last = first + count - 1
    low = max(1, min(first, points - last))
    table = factor_words(split_factors(points)).reshape(-1, 2)[low - 1 :].reshape(-1)
    name = tables.add(w, "split", table.astype(np.int32))
    w("/* The squared magnitudes of the bins of real samples. */")
    with w.function(f"static void {w.prefix}_energies(const int32_t *values, uint32_t *energies)"):
        w(f"const int32_t *factor = {name};")
        if first == 0 or last == points:
            w(f"const int32_t x = {scaled(w, 'values[0]', HALF)};")
            w("const int32_t sum = (int16_t)((int16_t)x + (x >> 16));")
            w("const int32_t difference = (int16_t)((int16_t)x - (x >> 16));")
            w("energies[0] = (uint32_t)(sum * sum);")
            w(f"energies[{points}] = (uint32_t)(difference * difference);")
        with w.loop("k", points // 2 + 1, start=low):
            mirrored = f"values[{points} - k]"
            w(f"const int32_t p = {scaled(w, 'values[k]', HALF)};")
            w(f"const int32_t m = {mirrored};")
            w(f"const int32_t conjugate = {DSP.call(w, 'p_mixed_halves', 'm', DSP.call(w, 'p_sub', '0', 'm'))};")
            w(f"const int32_t q = {scaled(w, 'conjugate', HALF)};")
            w(f"const int32_t g = {DSP.call(w, 'p_add', 'p', 'q')};")
            w(f"const int32_t d = {DSP.call(w, 'p_sub', 'p', 'q')};")
            w(f"const int32_t h = {turned(w, 'd', 'factor', 0)};")
            w(f"const int32_t up = {DSP.call(w, 'p_half_sum', 'g', 'h')};")
            down = (DSP.call(w, "p_half_difference", *pair) for pair in (("g", "h"), ("h", "g")))
            w(f"const int32_t down = {DSP.call(w, 'p_mixed_halves', *down)};")
            w(f"energies[k] = (uint32_t){DSP.call(w, 'p_products', 'up', 'up')};")
            w(f"energies[{points} - k] = (uint32_t){DSP.call(w, 'p_products', 'down', 'down')};")
            w("factor += 2;")
            w.bill(4)
    w()
