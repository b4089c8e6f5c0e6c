"""Bilinear resizing; which two inputs an output lies between, and how near, are tables for each axis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, only_float, only_integer
from nnbuild.kernels.integers import declare, store
from nnbuild.kernels.window_loops import product
from nnbuild.model.graph import Array
from nnbuild.numeric.resize import BITS, ONE, parts, taps
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.site import Site


def _tables(site: Site[ResizeBilinear], exact: bool) -> dict[str, Array]:
    """By axis, the lower inputs, the upper ones, and their shares."""
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
            with w.loop("c", channels):
                yield


def _emit(w: Writer, site: Site[ResizeBilinear], names: Names) -> None:
    def blend(name: str, first: str, second: str, part: str) -> None:
        w(w.use(c99.LOAD, name, f"{c99.product(w, first, f'1.0f - {part}')} + {c99.product(w, second, part)}"))
        w.bill(4)

    with _corners(w, site, names):
        blend("left", "low_low[c]", "high_low[c]", "y_share")
        blend("right", "low_high[c]", "high_high[c]", "y_share")
        blend("value", "left", "right", "x_share")
        w(w.use(c99.STORE, "to[c]", "value"))


def _emit_integers(w: Writer, site: Site[ResizeBilinear], names: Names) -> None:
    """In 1024ths of a pixel."""
    kind = "const int32_t" if site.inputs[0].dtype == "int8" else "const int64_t"
    with _corners(w, site, names):
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
    Kernel("scalar", PORTABLE, only_float, _demand, _emit),
    Kernel("integer", PORTABLE, only_integer, _demand, _emit_integers),
)
