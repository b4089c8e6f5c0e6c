"""Prints the function that computes a row of sensor.py."""

from __future__ import annotations

import numpy as np

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Writer
from nnbuild.features.float_fft_c import places, print_powers, print_transform
from nnbuild.features.sensor import Sensor
from nnbuild.features.tables import Tables
from nnbuild.isa.c99 import AT_LEAST, product


def print_frame(w: Writer, tables: Tables, s: Sensor) -> None:
    if s.spectrum:
        print_transform(w, tables, s.points)
        print_powers(w, s.points)
        _spectrum(w, tables, s)
    if s.bands:
        _bands(w, tables, s)
    if s.peaks:
        _peaks(w, s)
    _axis(w, s)
    p = w.prefix
    with w.function(f"static void {p}_frame({p}_features *f)"), w.loop("axis", s.axes):
        w(f"{p}_axis(f, f->samples + axis, f->row + {s.of_axis} * axis);")


def _spectrum(w: Writer, tables: Tables, s: Sensor) -> None:
    """Prints `spectrum`: the spectrum of one axis without its mean."""
    p = w.prefix
    shape, place = tables.add(w, "window", s.shape), tables.add(w, "places", places(s.points))
    with w.function(f"static void {p}_spectrum({p}_features *f, const int16_t *x, int32_t sum)"):
        with w.loop("i", s.window):
            moved = f"(float)(x[i * {s.axes}] * {s.window} - sum)"
            w(f"f->values[{place}[i]] = {product(w, moved, f'{shape}[i]')};")
            w.bill(10, 2)
        if s.window < s.points:
            with w.loop("i", s.points, start=s.window):
                w(f"f->values[{place}[i]] = 0.0f;")
                w.bill(4)
        w(f"{p}_transform(f->values);")
        w(f"{p}_powers(f->values);")
        with w.loop("i", s.points // 2 + 1):
            w(f"f->values[i] = {product(w, 'f->values[i]', float_literal(float(s.norm)))};")
            w.bill(4)
    w()


def _bands(w: Writer, tables: Tables, s: Sensor) -> None:
    edges = tables.add(w, "edges", np.array(s.edges, np.uint16))
    with w.function(f"static void {w.prefix}_bands(const float *bins, float *row)"), w.loop("band", s.bands):
        w("float sum = 0.0f;")
        with w.loop("k", f"{edges}[band + 1]", start=f"{edges}[band]", trips=s.points / 2 / s.bands):
            w("sum += bins[k];")
            w.bill(2)
        if s.logarithm:
            w(w.use(AT_LEAST, "sum", float_literal(s.least)))
            w(f"sum = {w.helper('logf', 'sum')};")
        w("row[band] = sum;")
    w()


def _peaks(w: Writer, s: Sensor) -> None:
    """Prints `peaks`: keeps the highest so far in order."""
    with w.function(f"static void {w.prefix}_peaks(const float *bins, float *row)"):
        w(f"int32_t best[{s.peaks}];")
        w("int32_t count = 0;")
        with w.loop("k", s.points // 2, start=1):
            with w.block("if (bins[k] > bins[k - 1] && bins[k] >= bins[k + 1])"), w.trips(0.3):
                w("int32_t at = count;")
                w("while (at > 0 && bins[best[at - 1]] < bins[k]) --at;")
                w(f"if (count < {s.peaks}) ++count;")
                w("for (int32_t i = count - 1; i > at; --i) best[i] = best[i - 1];")
                w(f"if (at < {s.peaks}) best[at] = k;")
                w.bill(12)
            w.bill(6)
        with w.loop("i", s.peaks):
            hertz = product(w, "(float)best[i]", float_literal(float(s.hertz)))
            w(f"row[2 * i] = i < count ? {hertz} : 0.0f;")
            w(f"row[2 * i + 1] = i < count ? {w.helper('sqrtf', 'bins[best[i]]')} : 0.0f;")
    w()


def _axis(w: Writer, s: Sensor) -> None:
    p = w.prefix
    with w.function(f"static void {p}_axis({p}_features *f, const int16_t *x, float *row)"):
        if not s.spectrum:
            w("(void)f;")
        w("int32_t sum = 0;")
        w("int64_t squares = 0;")
        with w.loop("i", s.window):
            w(f"const int32_t value = x[i * {s.axes}];")
            w("sum += value;")
            w("squares += (int64_t)value * value;")
            w.bill(5)
        total = {
            "mean": product(w, "(float)sum", float_literal(float(s.mean_factor))),
            "std": _root(w, f"(float)({s.window} * squares - (int64_t)sum * sum)", float(s.std_factor)),
            "rms": _root(w, "(float)squares", float(s.rms_factor)),
        }
        for index, name in enumerate(s.values):
            w(f"row[{index}] = {total[name]};")
        if not {"std", "rms"} & set(s.values):
            w("(void)squares;")
        at = len(s.values)
        if s.spectrum:
            w(f"{p}_spectrum(f, x, sum);")
        if s.bands:
            w(f"{p}_bands(f->values, row + {at});")
        if s.peaks:
            w(f"{p}_peaks(f->values, row + {at + s.bands});")
    w()


def _root(w: Writer, value: str, factor: float) -> str:
    return w.helper("sqrtf", product(w, value, float_literal(factor)))
