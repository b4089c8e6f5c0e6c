"""Bilinear resizing; tables for each axis hold the two inputs of every output and their weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import PORTABLE, Demand, Floats, Kernel, Names, on_any_floats, only_integer
from nnbuild.kernels.loops.window_loops import product
from nnbuild.kernels.parts.integer_steps import declare, store
from nnbuild.model.graph import Array
from nnbuild.numeric.resize import BITS, ONE, parts, taps
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
                    place = f"({product(places[0], width)} + {places[1]}) * {channels}"
                    w(f"const {kind} *{row}_{column} = {names.inputs[0]} + {place};")
            w.bill(16)
            w(f"{kind} *to = {names.outputs[0]} + ({product('y', columns)} + x) * {channels};")
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


VARIANTS = (
    *on_any_floats(lambda v: Floats(v, _demand, _floats)),
    Kernel("integer", PORTABLE, only_integer, _demand, _emit_integers),
)
