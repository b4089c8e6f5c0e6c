"""Prints the function that computes a row of spectral.py."""

from __future__ import annotations

import numpy as np

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Writer
from nnbuild.features.float_fft_c import places, print_powers, print_transform
from nnbuild.features.spectral import DECIBELS, SpectralTables
from nnbuild.features.tables import Tables
from nnbuild.isa.c99 import AT_LEAST, AT_MOST, product


def print_frame(w: Writer, tables: Tables, spectral: SpectralTables) -> None:
    points = spectral.settings.points
    _weigh(w, tables, spectral)
    print_transform(w, tables, points)
    print_powers(w, points)
    _value(w, spectral)
    _bands(w, tables, spectral)
    _frame(w, tables, spectral)


def _weigh(w: Writer, tables: Tables, spectral: SpectralTables) -> None:
    """Prints `weigh`: windows a frame of samples into the transform's order."""
    s = spectral.settings
    first = (s.points - s.heard) // 2 if s.centred else 0
    name = tables.add(w, "window", spectral.window[first : first + s.heard])
    place = tables.add(w, "places", places(s.points))
    with w.function(f"static void {w.prefix}_weigh(const {w.prefix}_features *f, float *values)"):
        if s.emphasis:
            w("float before = (float)f->before[0];")
        for begin, end in ((0, first), (first + s.heard, s.points)):
            if begin < end:
                with w.loop("i", end, start=begin):
                    w(f"values[{place}[i]] = 0.0f;")
                    w.bill(4)
        with w.loop("i", s.heard):
            w("const float x = (float)f->samples[i];")
            value = "x"
            if s.emphasis:
                w(f"const float y = x - {product(w, float_literal(s.emphasis), 'before')};")
                w("before = x;")
                value = "y"
            w(f"values[{place}[{f'i + {first}' if first else 'i'}]] = {product(w, value, f'{name}[i]')};")
            w.bill(8 + 2 * bool(s.emphasis), 2)
    w()


def _value(w: Writer, spectral: SpectralTables) -> None:
    """Prints `value`: converts a band's sum to its feature."""
    s = spectral.settings
    with w.function(f"static float {w.prefix}_value(float x)"):
        if s.logarithm != "none":
            if s.least:
                w(w.use(AT_LEAST, "x", float_literal(s.least)))
            if s.more:
                w(f"x += {float_literal(s.more)};")
            w(f"x = {w.helper('logf', 'x')};")
            if s.logarithm == "db":
                w(f"x = {product(w, 'x', float_literal(float(DECIBELS)))};")
        if s.add:
            w(f"x += {float_literal(s.add)};")
        if s.multiply != 1.0:
            w(f"x = {product(w, 'x', float_literal(s.multiply))};")
        if s.minimum > -1e30:
            w(w.use(AT_LEAST, "x", float_literal(s.minimum)))
        if s.maximum < 1e30:
            w(w.use(AT_MOST, "x", float_literal(s.maximum)))
        w("return x;")
        w.bill(6)
    w()


def _bands(w: Writer, tables: Tables, spectral: SpectralTables) -> None:
    bands, s = spectral.bands, spectral.settings
    with w.function(f"static void {w.prefix}_bands(const float *bins, float *row)"):
        if not s.bands:
            weights = tables.add(w, "weights", bands.weights)
            with w.loop("i", s.values):
                w(f"row[i] = {w.prefix}_value({product(w, 'bins[i]', f'{weights}[i]')});")
                w.bill(4)
            return
        first = tables.add(w, "first", bands.first.astype(np.uint16))
        width = tables.add(w, "width", bands.width.astype(np.uint16))
        w(f"const float *weight = {tables.add(w, 'weights', bands.weights)};")
        with w.loop("i", s.values):
            w(f"const float *bin = bins + {first}[i];")
            w(f"const float *const end = weight + {width}[i];")
            w("float sum = 0.0f;")
            with w.block("while (weight < end)"), w.trips(float(bands.width.mean())):
                w(f"sum += {product(w, '*bin++', '*weight++')};")
                w.bill(7, 2)
            w(f"row[i] = {w.prefix}_value(sum);")
    w()


def _frame(w: Writer, tables: Tables, spectral: SpectralTables) -> None:
    s, p = spectral.settings, w.prefix
    with w.function(f"static void {p}_frame({p}_features *f)"):
        w(f"{p}_weigh(f, f->values);")
        w(f"{p}_transform(f->values);")
        w(f"{p}_powers(f->values);")
        if s.of == "magnitude":
            with w.loop("i", s.points // 2 + 1):
                w(f"f->values[i] = {w.helper('sqrtf', 'f->values[i]')};")
        if s.emphasis:
            w(f"f->before[0] = f->samples[{s.step - 1}];")
        if not s.coefficients:
            w(f"{p}_bands(f->values, f->row);")
            return
        w(f"float *const bands = f->values + {s.points // 2 + 1};")
        w(f"{p}_bands(f->values, bands);")
        w(f"const float *cosine = {tables.add(w, 'cosines', spectral.cosines.reshape(-1))};")
        with w.loop("k", s.coefficients):
            w("float sum = 0.0f;")
            with w.loop("n", s.values):
                w(f"sum += {product(w, 'bands[n]', '*cosine++')};")
                w.bill(5, 2)
            w("f->row[k] = sum;")
    w()
