"""Prints the transform of float_fft.py."""

from __future__ import annotations

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.features.float_fft import Pair, factors, split_factors
from nnbuild.features.tables import Tables
from nnbuild.isa.c99 import product
from nnbuild.numeric.fixed_fft import Stage, order, stages

PARTS = "abcd"


def interleaved(pair: Pair) -> np.ndarray:
    return np.stack(pair, axis=-1).reshape(-1).astype(np.float32)


def places(points: int) -> np.ndarray:
    """Where each pair of samples goes."""
    found = np.empty(points, np.int64)
    found[list(order(points))] = np.arange(points)
    return found.astype(np.uint16)


def times(w: Writer, to: str, a: str, factor: str, at: int) -> None:
    """Declares the parts of a complex product."""
    re, im = f"{factor}[{at}]", f"{factor}[{at + 1}]"
    w(f"const float {to}_re = {product(w, f'{a}_re', re)} - {product(w, f'{a}_im', im)};")
    w(f"const float {to}_im = {product(w, f'{a}_re', im)} + {product(w, f'{a}_im', re)};")
    w.bill(8, 2)


def print_transform(w: Writer, tables: Tables, points: int) -> None:
    """Function `transform`: of values that lie at their places already, real and imaginary parts by turns."""
    for stage in stages(points):
        _stage(w, tables, points, stage)
    with w.function(f"static void {w.prefix}_transform(float *values)"):
        for stage in stages(points):
            w(f"{w.prefix}_stage{stage.length}(values);")
    w()


def _stage(w: Writer, tables: Tables, points: int, stage: Stage) -> None:
    k = np.arange(stage.length) * stage.step
    table = [tuple(part[i * k] for part in factors(points)) for i in range(1, stage.radix)]
    each = np.stack([np.stack(pair, axis=-1) for pair in table], axis=1)
    name = tables.add(w, f"factors{stage.length}", each.reshape(-1)) if stage.length > 1 else ""
    with (
        w.function(f"static void {w.prefix}_stage{stage.length}(float *values)"),
        w.loop("block", points // (stage.length * stage.radix)),
    ):
        w(f"float *to = values + block * {2 * stage.length * stage.radix};")
        if name:
            w(f"const float *factor = {name};")
        with w.loop("k", stage.length):
            for part in range(stage.radix):
                at = 2 * part * stage.length
                raw = "x" if part and name else ""
                letter = PARTS[part]
                w(f"const float {raw}{letter}_re = to[{at}], {raw}{letter}_im = to[{at + 1}];")
                if raw:
                    times(w, letter, f"x{letter}", "factor", 2 * part - 2)
            if name:
                w(f"factor += {2 * (stage.radix - 1)};")
            _sums(w, stage)
            w("to += 2;")
    w()


def _sums(w: Writer, stage: Stage) -> None:
    w.bill(4 * stage.radix + 8 * (stage.radix == 4))
    apart = 2 * stage.length
    if stage.radix == 2:
        for at, part in ((0, "re"), (1, "im")):
            w(f"to[{at}] = a_{part} + b_{part};")
            w(f"to[{at + apart}] = a_{part} - b_{part};")
        return
    for name, sign, first, second in (("even", "+", "a", "c"), ("rest", "-", "a", "c"), ("odd", "+", "b", "d"),
                                      ("turn", "-", "b", "d")):  # fmt: skip
        w(f"const float {name}_re = {first}_re {sign} {second}_re, {name}_im = {first}_im {sign} {second}_im;")
    w("to[0] = even_re + odd_re;")
    w("to[1] = even_im + odd_im;")
    w(f"to[{apart}] = rest_re + turn_im;")
    w(f"to[{apart + 1}] = rest_im - turn_re;")
    w(f"to[{2 * apart}] = even_re - odd_re;")
    w(f"to[{2 * apart + 1}] = even_im - odd_im;")
    w(f"to[{3 * apart}] = rest_re - turn_im;")
    w(f"to[{3 * apart + 1}] = rest_im + turn_re;")


def print_powers(w: Writer, tables: Tables, points: int) -> None:
    """Function `powers`: of twice the bins of real samples."""
    name = tables.add(w, "split", interleaved(split_factors(points)))
    with w.function(f"static void {w.prefix}_powers(const float *values, float *powers)"):
        w(f"const float *factor = {name};")
        w("const float sum = values[0] + values[1], difference = values[0] - values[1];")
        w("const float first = sum + sum, last = difference + difference;")
        w(f"powers[0] = {product(w, 'first', 'first')};")
        w(f"powers[{points}] = {product(w, 'last', 'last')};")
        with w.loop("k", points // 2 + 1, start=1):
            w("const float *const p = values + 2 * k;")
            w(f"const float *const q = values + {2 * points} - 2 * k;")
            w("const float g_re = p[0] + q[0], g_im = p[1] - q[1];")
            w("const float d_re = p[0] - q[0], d_im = p[1] + q[1];")
            times(w, "h", "d", "factor", 0)
            w("const float up_re = g_re + h_re, up_im = g_im + h_im;")
            w("const float down_re = g_re - h_re, down_im = g_im - h_im;")
            for place, side in (("k", "up"), (f"{points} - k", "down")):
                squares = " + ".join(product(w, f"{side}_{part}", f"{side}_{part}") for part in ("re", "im"))
                w(f"powers[{place}] = {squares};")
            w("factor += 2;")
            w.bill(18, 4)
    w()
