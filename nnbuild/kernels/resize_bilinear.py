"""Bilinear resizing; tables for each axis hold the two inputs of every output and their weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import (
    PORTABLE,
    Demand,
    Functions,
    Kernel,
    Names,
    on_any_floats,
    on_each,
    only_float,
    only_integer,
)
from nnbuild.kernels.parts.integer_steps import declare, store
from nnbuild.model.graph import Array
from nnbuild.numeric.resize import BITS, ONE, parts, taps
from nnbuild.numeric.rounding import limits
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.site import Site


def _tables(site: Site[ResizeBilinear], exact: bool) -> dict[str, Array]:
    """For each axis, the lower inputs, the upper ones, and their weights."""
    found: dict[str, Array] = {}
    for axis, size, out in zip("yx", site.shape(), site.attributes.size, strict=False):
        low, high, share = (parts if exact else taps)(size, out, site.attributes.mode)
        found |= {f"{axis}_low": low.astype(np.int16), f"{axis}_high": high.astype(np.int16)}
        found[f"{axis}_share"] = share if exact else share.astype(np.int16)
    return found


def _demand(site: Site[ResizeBilinear]) -> Demand:
    return Demand(extent=site.output_shape()[0], packed=_tables(site, site.inputs[0].dtype == "float32"))


@contextmanager
def _corners(w: Writer, site: Site[ResizeBilinear], names: Names) -> Iterator[None]:
    """The loops over the outputs `to[c]`, with pointers to the four inputs around them: low_low to high_high."""
    _, width, channels = site.shape()
    rows, columns, _ = site.output_shape()
    kind = C_TYPES[site.inputs[0].dtype]
    share = "float" if kind == "float" else "int32_t"
    with w.loop("y", "end", start="begin", trips=rows):
        w(w.use(c99.LOAD_AS, f"const {share}", "y_share", f"{names.packed['y_share']}[y]"))
        with w.loop("x", columns):
            w(w.use(c99.LOAD_AS, f"const {share}", "x_share", f"{names.packed['x_share']}[x]"))
            for row in ("low", "high"):
                for column in ("low", "high"):
                    places = (f"{names.packed[f'y_{row}']}[y]", f"{names.packed[f'x_{column}']}[x]")
                    place = f"({places[0]} * {width} + {places[1]}) * {channels}"
                    w(f"const {kind} *{row}_{column} = {names.inputs[0]} + {place};")
            w.bill(16)
            w(f"{kind} *to = {names.outputs[0]} + (y * {columns} + x) * {channels};")
            yield


def _floats(v: Vectors, w: Writer, site: Site[ResizeBilinear], names: Names) -> None:
    def blend(name: str, first: str, second: str, axis: str) -> None:
        parts = v.use(w, "mul", first, f"{axis}_far"), v.use(w, "mul", second, f"{axis}_near")
        v.declare(w, name, v.use(w, "add", *parts))

    with _corners(w, site, names):
        for axis in "yx":
            v.declare(w, f"{axis}_near", v.call(w, "f_each", f"{axis}_share"))
            v.declare(w, f"{axis}_far", v.call(w, "f_each", f"1.0f - {axis}_share"))
        for place, count in in_vectors(w, v.lanes, site.shape()[-1], "c"):
            corners = {
                name: v.load(w, f"{name} + {place}", count) for name in ("low_low", "low_high", "high_low", "high_high")
            }
            blend("left", corners["low_low"], corners["high_low"], "y")
            blend("right", corners["low_high"], corners["high_high"], "y")
            blend("value", "left", "right", "x")
            v.store(w, f"to + {place}", "value", count)


def _emit_integers(w: Writer, site: Site[ResizeBilinear], names: Names) -> None:
    """In 1024ths of a pixel."""
    kind = "const int32_t" if site.inputs[0].dtype == "int8" else "const int64_t"
    with _corners(w, site, names), w.loop("c", site.shape()[-1]):
        for row in ("low", "high"):
            declare(w, f"{row}_row", f"{row}_low[c] * ({ONE} - x_share) + {row}_high[c] * x_share", kind)
        w.bill(16)
        declare(w, "total", f"low_row * ({ONE} - y_share) + high_row * y_share", kind)
        if site.inputs[0].dtype == "int8":
            value = f"(total + {1 << (2 * BITS - 1)} - (total < 0)) >> {2 * BITS}"
            store(w, "to[c]", f"({value})", site.outputs[0])
        else:
            store(w, "to[c]", w.helper("rounding_shift", "total", str(2 * BITS)), site.outputs[0])


def _in_lanes(v: Vectors, w: Writer, site: Site[ResizeBilinear], names: Names) -> None:
    """The same in vectors, one channel a lane."""
    is_bytes = site.inputs[0].dtype == "int8"
    load, store = ("widen", "store_bytes") if is_bytes else ("widen_words", "store_words")
    with _corners(w, site, names):
        for axis in "yx":
            v.let(w, "sums", f"{axis}_near", v.call(w, "each", f"{axis}_share"))
            v.let(w, "sums", f"{axis}_far", v.call(w, "each", f"{ONE} - {axis}_share"))
        for place, count in in_vectors(w, v.lanes, site.shape()[-1], "c"):
            for row in ("low", "high"):
                near, far = (v.call(w, load, f"{row}_{at} + {place}", of=(count,)) for at in ("high", "low"))
                v.let(w, "sums", f"{row}_row", _blend(v, w, "x", far, near))
            value = _bytes(v, w) if is_bytes else _words(v, w)
            w(f"{v.call(w, store, f'to + {place}', value, of=(*limits(site.outputs[0].dtype), count))};")


def _blend(v: Vectors, w: Writer, axis: str, far: str, near: str) -> str:
    return v.call(w, "add", v.call(w, "mul", far, f"{axis}_far"), v.call(w, "mul", near, f"{axis}_near"))


def _bytes(v: Vectors, w: Writer) -> str:
    v.let(w, "sums", "total", _blend(v, w, "y", "low_row", "high_row"))
    return v.call(w, "shift_right", _lifted(v, w, "total", "total"), of=(2 * BITS,))


def _words(v: Vectors, w: Writer) -> str:
    """The total has more than 32 bits: its upper part and its last bits are separate sums."""
    upper = [v.call(w, "shift_right", f"{row}_row", of=(BITS,)) for row in ("low", "high")]
    last = [v.call(w, "and", f"{row}_row", ONE - 1) for row in ("low", "high")]
    v.let(w, "sums", "upper", _blend(v, w, "y", *upper))
    v.let(w, "sums", "last", _blend(v, w, "y", *last))
    v.let(w, "sums", "total", v.call(w, "add", "upper", v.call(w, "shift_right", "last", of=(BITS,))))
    carried = v.call(w, "shift_right", _lifted(v, w, "last", "total"), of=(BITS,))
    return v.call(w, "shift_right", v.call(w, "add", "upper", carried), of=(BITS,))


def _lifted(v: Vectors, w: Writer, value: str, signed: str) -> str:
    """The value plus a half, to round it; plus one unit less where `signed` is negative."""
    half = v.call(w, "each", str(1 << (2 * BITS - 1)))
    return v.call(w, "add", value, v.call(w, "add", v.call(w, "shift_right", signed, of=(31,)), half))


def _integers(v: Vectors) -> Functions[ResizeBilinear]:
    return Functions(only_integer, _demand, partial(_in_lanes, v))


VARIANTS = (
    *on_any_floats(lambda v: Functions(only_float, _demand, partial(_floats, v))),
    Kernel("integer", PORTABLE, only_integer, _demand, _emit_integers),
    on_each("integer", _integers),
    on_each("across", _integers),
)
