"""Bilinear resizing of few channels in int8: the inputs beside a run of outputs are blended down their columns once."""

from __future__ import annotations

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names, only_int8
from nnbuild.kernels.loops.resized_pairs import SIDES, columns_of, same_as_next
from nnbuild.model.graph import Array
from nnbuild.numeric.resize import BITS, ONE, taps
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.site import Site

MOST_CHANNELS = 4
"""Whose blends stay in registers."""
HALF = 1 << (2 * BITS - 1)


def accepts(site: Site[ResizeBilinear]) -> str | None:
    return only_int8(site) or ("it has many channels" if site.shape()[2] > MOST_CHANNELS else None)


def _tables(site: Site[ResizeBilinear]) -> dict[str, Array]:
    low, high, share = taps(site.shape()[0], site.attributes.size[0], site.attributes.mode)
    columns = columns_of(site)
    ends = np.flatnonzero(~np.array(same_as_next(columns.low, columns.high)))
    counts = np.diff(ends, prepend=-1)
    found = {"y_low": low, "y_high": high, "y_near": share, "x_near": columns.share, "count": counts}
    found |= {"x_low": columns.low[ends], "x_high": columns.high[ends]}
    return {name: values.astype(np.int16) for name, values in found.items()}


def demand(site: Site[ResizeBilinear]) -> Demand:
    return Demand(extent=site.output_shape()[0], packed=_tables(site))


def emit(w: Writer, site: Site[ResizeBilinear], names: Names) -> None:
    (_, width, channels), tables = site.shape(), names.packed
    runs, outputs = len(_tables(site)["count"]), site.output_shape()[1]
    with w.loop("y", "end", start="begin", trips=site.output_shape()[0]):
        w.bill(10)
        w(f"int8_t *to = {names.outputs[0]} + y * {outputs * channels};")
        w(f"const int16_t *near = {tables['x_near']};")
        for row in ("low", "high"):
            w(f"const int8_t *{row} = {names.inputs[0]} + {tables[f'y_{row}']}[y] * {width * channels};")
        w(f"const int32_t y_near = {tables['y_near']}[y];")
        w(f"const int32_t y_rest = {ONE} - y_near;")
        with w.loop("x", runs):
            _begin(w, channels, tables["x_low"], tables["x_high"])
            with w.loop("i", f"{tables['count']}[x]", trips=outputs / runs):
                _output(w, channels)


def _begin(w: Writer, channels: int, low: str, high: str) -> None:
    w.bill(12 + 8 * channels, products=4 * channels)
    for side, column in zip(SIDES, (low, high), strict=True):
        w(f"const int32_t at_{side} = {column}[x] * {channels};")
    for c in range(channels):
        for side in SIDES:
            place = f"[at_{side} + {c}]"
            w(f"const int32_t {side}{c} = low{place} * y_rest + high{place} * y_near;")
        w(f"const int32_t start{c} = left{c} * {ONE}, across{c} = right{c} - left{c};")


def _output(w: Writer, channels: int) -> None:
    w.bill(3 + 6 * channels, products=channels)
    for c in range(channels):
        w(f"const int32_t total{c} = start{c} + across{c} * *near;")
        value = f"(total{c} + {HALF} - (total{c} < 0)) >> {2 * BITS}"
        w(f"to[{c}] = (int8_t)({value});")
    w(w.use(c99.STEP, "near", "1"))
    w(w.use(c99.STEP, "to", str(channels)))
