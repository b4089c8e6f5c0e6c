"""Convolution on Cortex-M4 and M7 for a small program: all convolutions of a model share three routines."""

from __future__ import annotations

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.dsp import compact
from nnbuild.kernels.dsp.compact import Compact
from nnbuild.kernels.dsp.weights import padded_taps
from nnbuild.kernels.loops.patches import Window, window_of
from nnbuild.kernels.overlaps import rows, tiles
from nnbuild.kernels.sums import sums_of
from nnbuild.kernels.window_loops import product
from nnbuild.model.graph import Array
from nnbuild.ops.site import Site

needs = frozenset({"armv7em_dsp"})


def accepts(site: Site) -> str | None:
    if site.dtypes != {"int8"}:
        return "it computes int8 only"
    scaling = compact.scaling_of(site)
    return scaling if isinstance(scaling, str) else None


def _chosen(site: Site) -> tuple[Window, Compact]:
    window = window_of(site)
    return window, compact.shape_of(site, padded_taps(window.taps) // 2, window.filters // window.groups)


def demand(site: Site) -> Demand:
    window, shape = _chosen(site)
    sums = sums_of(site)
    parts = [
        compact.pack(sums, shape, slice(first, first + shape.filters))
        for first in range(0, window.filters, shape.filters)
    ]
    packed = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    taps = padded_taps(window.taps)
    return Demand(
        extent=window.rows.places,
        scratch=-(-(4 * taps + 2 * taps) // 8) * 8,
        scratch_type="int64",
        packed=packed | {"window": _numbers(window)},
        rows=True,
        overlaps=tiles(site, window.rows, window.columns, 2) if window.groups == 1 else rows(site, window.rows),
    )


def _numbers(window: Window) -> Array:
    """As the gathering routine wants them."""
    rows, columns = window.rows, window.columns
    return np.array(
        [
            *(rows.size, columns.size, window.channels, rows.kernel, columns.kernel),
            *(rows.dilation, columns.dilation, window.depth, window.zero),
        ],
        np.int16,
    )


def emit(w: Writer, site: Site, names: Names) -> None:
    window, shape = _chosen(site)
    taps = padded_taps(window.taps)
    w(f"int64_t *const patch = {names.scratch};")
    w(f"int8_t *const gathered = (int8_t *)(patch + {shape.pairs});")
    for i in range(window.taps, taps):
        w(f"gathered[{i}] = gathered[{taps + i}] = 0;")
    with w.loop("y", "end", start="begin", trips=window.rows.places), w.loop("x", window.columns.places, step=2):
        w(f"const int32_t next = x + 1 < {window.columns.places} ? x + 1 : x;")
        w(f"int8_t *to = {names.outputs[0]} + {product(f'y * {window.columns.places} + x', window.filters)};")
        w.bill(9)
        if window.groups == 1:
            _group(w, window, shape, names, names.inputs[0], ("kernel", "scaling", "shift"))
            return
        for name, kind in (("k", "int64_t"), ("scaling", "int32_t"), ("shift", "int8_t")):
            w(f"const {kind} *{name} = {names.packed['kernel' if name == 'k' else name]};")
        with w.loop("group", window.groups):
            _group(w, window, shape, names, f"{names.inputs[0]} + {product('group', window.depth)}", ())
            w(f"k += {shape.blocks * shape.pairs};")
            w(f"scaling += {4 * (2 + len(shape.told)) * shape.blocks};")
            w(f"shift += {4 * shape.blocks};")
            w(f"to += {shape.filters};")


def _group(w: Writer, window: Window, shape: Compact, names: Names, source: str, roles: tuple[str, ...]) -> None:
    taps = padded_taps(window.taps)
    top, place = window.rows.position("y"), names.packed["window"]
    routine = compact.gather_routine()
    for buffer, at in (("gathered", "x"), (f"gathered + {taps}", "next")):
        w.bill(compact.gather_cycles(window.rows.kernel * window.columns.kernel, window.depth))
        w(f"{w.call(routine, buffer, source, top, window.columns.position(at), place)};")
    compact.lay_out(w, taps, ("gathered", f"gathered + {taps}"))
    pointers = tuple(names.packed[role] for role in roles) or ("k", "scaling", "shift")
    compact.multiply(w, shape, pointers, ("to", f"to + {product('next - x', window.filters)}"))
