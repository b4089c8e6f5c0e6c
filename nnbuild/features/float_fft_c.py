"""Prints the transform of float_fft.py."""

from __future__ import annotations

import numpy as np

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Writer
from nnbuild.features.float_fft import ROOT_HALF, Stage, factors, order, stages
from nnbuild.features.tables import Tables
from nnbuild.isa.c99 import product

PARTS = "abcd"


def places(points: int) -> np.ndarray:
    """Index at which each sample is placed."""
    found = np.empty(points, np.int64)
    found[list(order(points))] = np.arange(points)
    return found.astype(np.uint16)


def print_transform(w: Writer, tables: Tables, points: int) -> None:
    """Prints `transform`, for real values already in permuted order."""
    for stage in stages(points):
        _stage(w, tables, points, stage)
    with w.function(f"static void {w.prefix}_transform(float *values)"):
        for stage in stages(points):
            w(f"{w.prefix}_stage{stage.length}(values);")
    w()


def _stage(w: Writer, tables: Tables, points: int, stage: Stage) -> None:
    table = factors(stage)
    name = tables.add(w, f"factors{stage.length}", table.reshape(-1)) if table.size else ""
    with (
        w.function(f"static void {w.prefix}_stage{stage.length}(float *values)"),
        w.loop("block", points // stage.whole),
    ):
        w(f"float *const to = values + block * {stage.whole};")
        _first(w, stage)
        if stage.length % 2 == 0:
            _half(w, stage)
        if name:
            _pairs(w, stage, name)
    w()


def _first(w: Writer, stage: Stage) -> None:
    """Prints the first bins of the parts, which have no imaginary part."""
    m = stage.length
    values = ", ".join(f"{PARTS[i]} = to[{i * m}]" for i in range(stage.radix))
    w(f"const float {values};")
    w.bill(4 * stage.radix)
    if stage.radix == 2:
        w("to[0] = a + b;")
        w(f"to[{m}] = a - b;")
        return
    w("const float odd = d + b, even = a + c;")
    w("to[0] = even + odd;")
    w(f"to[{m}] = a - c;")
    w(f"to[{2 * m}] = even - odd;")
    w(f"to[{3 * m}] = d - b;")


def _half(w: Writer, stage: Stage) -> None:
    """Prints the middle bins of the parts."""
    m, middle = stage.length, stage.length // 2
    w.bill(5 * stage.radix)
    if stage.radix == 2:
        w(f"to[{m + middle}] = -to[{m + middle}];")
        return
    for i, part in enumerate(PARTS):
        w(f"const float {part}_half = to[{i * m + middle}];")
    root = float_literal(float(ROOT_HALF))
    w(f"const float re = {product(w, root, '(b_half - d_half)')}, im = -{product(w, root, '(b_half + d_half)')};")
    w(f"to[{middle}] = a_half + re;")
    w(f"to[{m + middle}] = a_half - re;")
    w(f"to[{2 * m + middle}] = im + c_half;")
    w(f"to[{3 * m + middle}] = im - c_half;")


def _pairs(w: Writer, stage: Stage, table: str) -> None:
    """Prints the bins from both ends of the parts: real parts ascending, imaginary ones descending."""
    m = stage.length
    w(f"float *up = to + 1, *down = to + {m - 1};")
    w(f"const float *factor = {table};")
    with w.loop("k", (m + 1) // 2, start=1):
        for i in range(stage.radix):
            part = f"x{PARTS[i]}" if i else PARTS[i]
            w(f"const float {part}_re = up[{i * m}], {part}_im = down[{i * m}];")
            if i:
                _turned(w, PARTS[i], 2 * i - 2)
        if stage.radix == 2:
            _two(w, m)
        else:
            _four(w, m)
        w("++up;")
        w("--down;")
        w(f"factor += {2 * stage.radix - 2};")
        w.bill(4 * stage.radix + 8 * (stage.radix == 4))


def _turned(w: Writer, to: str, at: int) -> None:
    cosine, sine = f"factor[{at}]", f"factor[{at + 1}]"
    re, im = f"x{to}_re", f"x{to}_im"
    w(f"const float {to}_re = {product(w, cosine, re)} + {product(w, sine, im)};")
    w(f"const float {to}_im = {product(w, cosine, im)} - {product(w, sine, re)};")
    w.bill(8, 2)


def _two(w: Writer, m: int) -> None:
    w("up[0] = a_re + b_re;")
    w(f"down[{m}] = b_im + a_im;")
    w("down[0] = a_re - b_re;")
    w(f"up[{m}] = b_im - a_im;")


def _four(w: Writer, m: int) -> None:
    w("const float odd_re = d_re + b_re, turn_re = d_re - b_re, odd_im = b_im + d_im, turn_im = b_im - d_im;")
    w("const float even_re = a_re + c_re, rest_re = a_re - c_re, even_im = a_im + c_im, rest_im = a_im - c_im;")
    w("up[0] = even_re + odd_re;")
    w(f"down[{m}] = even_re - odd_re;")
    w(f"down[{3 * m}] = odd_im + even_im;")
    w(f"up[{2 * m}] = odd_im - even_im;")
    w(f"up[{m}] = rest_re + turn_im;")
    w("down[0] = rest_re - turn_im;")
    w(f"down[{2 * m}] = turn_re + rest_im;")
    w(f"up[{3 * m}] = turn_re - rest_im;")


def print_powers(w: Writer, points: int) -> None:
    """Prints `powers`: replaces the transform of `points` real samples by its bins' powers."""
    with w.function(f"static void {w.prefix}_powers(float *values)"):
        for at in (0, points // 2):
            w(f"values[{at}] = {product(w, f'values[{at}]', f'values[{at}]')};")
        with w.loop("k", points // 2, start=1):
            w(f"const float re = values[k], im = values[{points} - k];")
            w(f"values[k] = {product(w, 're', 're')} + {product(w, 'im', 'im')};")
            w.bill(7)
    w()
