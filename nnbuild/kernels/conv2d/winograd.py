"""Winograd's convolution for 3 x 3 kernels of stride 1 on Cortex-M4 and M7: fewer products, larger weights.

Two tiles of 2 x 2 outputs side by side are computed together. Where a row or column of tiles would hang over the
edge it is moved back, so that some outputs are computed twice, to the same value.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, Names, Overlap
from nnbuild.kernels.dsp import winograd
from nnbuild.kernels.dsp.beside import FUSES, beside_of, refusal
from nnbuild.kernels.dsp.inputs import copy, fill
from nnbuild.kernels.dsp.scaling import ANY, Scaling, chosen, most_left, plain_form
from nnbuild.kernels.dsp.winograd import COLUMNS, PLACES, ROWS, WIDTH, Winograd
from nnbuild.kernels.loops.patches import Window, window_of
from nnbuild.kernels.overlaps import lead
from nnbuild.kernels.sums import layer_of, sums_of
from nnbuild.kernels.window_loops import Axis, product, total
from nnbuild.numeric.requant_product import Form
from nnbuild.ops.site import Site

needs = frozenset({"armv7em_dsp"})
fuses = FUSES

ACROSS = 4
"""Outputs in a row of both tiles."""


@lru_cache(maxsize=256)
def _scaling(site: Site) -> Scaling | str:
    sums, layer, kernel = sums_of(site), layer_of(site), site.constant("kernel")
    left, room = most_left(sums.largest_weight), np.full(len(sums.start), (1 << 29) - 1)
    levels = [] if layer.signed else [Form(level=ANY, least=2)]
    for forms in ([*levels, plain_form(layer)], [plain_form(layer)], []):
        scaling = chosen(layer, forms, left, room, 8)
        if isinstance(scaling, Scaling) and winograd.fits(kernel, sums, scaling):
            return scaling
    return "its sums of so many inputs could leave 32 bits"


def accepts(site: Site) -> str | None:
    if site.dtypes != {"int8"}:
        return "it computes int8 only"
    refused = refusal(site)
    if refused:
        return refused
    window = window_of(site)
    axes = (window.rows, window.columns)
    if any((axis.kernel, axis.stride, axis.dilation) != (3, 1, 1) for axis in axes) or window.groups > 1:
        return "it computes 3 x 3 kernels of stride 1 only"
    if window.depth % 4:
        return "its input channels are no multiple of 4"
    if window.rows.places < 2 or window.columns.places < ACROSS:
        return "its output is smaller than two tiles"
    scaling = _scaling(site)
    return scaling if isinstance(scaling, str) else None


def _shape(site: Site) -> Winograd:
    scaling = _scaling(site)
    assert isinstance(scaling, Scaling)
    window = window_of(site)
    return Winograd(window.depth, window.filters, window.columns.places, scaling, beside_of(site))


def demand(site: Site) -> Demand:
    shape, window = _shape(site), window_of(site)
    return Demand(
        extent=-(-window.rows.places // 2),
        scratch=8 * (_products_at(shape) + PLACES * WIDTH) + (_border_size(shape) if _has_border(window) else 0),
        scratch_type="int64",
        packed=winograd.pack(site.constant("kernel"), sums_of(site), shape.scaling),
        overlaps=(Overlap(lead=_lead(window)), *_beside_overlap(site, window)),
    )


def _beside_overlap(site: Site, window: Window) -> tuple[Overlap, ...]:
    """The other operand of a sum may lie where the outputs do, unless some are computed twice."""
    once = window.rows.places % 2 == 0 and window.columns.places % ACROSS == 0
    return (Overlap(input=1),) if site.tail and once else ()


def _lead(window: Window) -> int:
    """A row of tiles reads its inputs while it writes two rows of outputs."""
    into, out = window.columns.size * window.channels, window.columns.places * window.filters
    places = window.rows.places

    def unread(piece: int) -> int:
        return max(0, _origin(piece, 2, window.rows, 2)) * into

    return lead(-(-places // 2), lambda piece: min(2 * piece + 2, places) * out, unread)


def _products_at(shape: Winograd) -> int:
    """Where the products lie in the scratch: behind the transformed inputs."""
    return PLACES * shape.pairs


def _border_size(shape: Winograd) -> int:
    return ROWS * COLUMNS * shape.depth


def _has_border(window: Window) -> bool:
    return _share_inside(window) < 1


def _share_inside(window: Window) -> float:
    """Of all pairs of tiles those whose inputs are all real."""
    rows = [_origin(index, 2, window.rows, 2) for index in range(-(-window.rows.places // 2))]
    columns = [_origin(i, ACROSS, window.columns, ACROSS) for i in range(-(-window.columns.places // ACROSS))]
    good_rows = sum(_inside(row, ROWS, window.rows) for row in rows)
    good_columns = sum(_inside(column, COLUMNS, window.columns) for column in columns)
    return good_rows * good_columns / (len(rows) * len(columns))


def _origin(index: int, step: int, axis: Axis, size: int) -> int:
    """The first input under tile `index`."""
    return min(index * step, axis.places - size) - axis.pad


def _inside(first: int, count: int, axis: Axis) -> bool:
    return first >= 0 and first + count <= axis.size


def emit(w: Writer, site: Site, names: Names) -> None:
    shape, window = _shape(site), window_of(site)
    rows, columns = window.rows, window.columns
    w(f"int64_t *const patch = {names.scratch};")
    w(f"int32_t *const products = (int32_t *)({names.scratch} + {_products_at(shape)});")
    if _has_border(window):
        w(f"int8_t *const gathered = (int8_t *)({names.scratch} + {_products_at(shape) + PLACES * WIDTH});")
    with w.loop("piece", "end", start="begin", trips=-(-rows.places // 2)):
        w(f"const int32_t y = {_held('piece * 2', rows.places - 2, rows.places % 2)};")
        with w.loop("across", columns.places, step=ACROSS):
            w(f"const int32_t x = {_held('across', columns.places - ACROSS, columns.places % ACROSS)};")
            w(f"const int32_t top = {rows.position('y')};")
            w(f"const int32_t left = {columns.position('x')};")
            w(f"int8_t *const to = {names.outputs[0]} + {product(f'y * {columns.places} + x', window.filters)};")
            w.bill(8)
            if shape.beside:
                place = product(f"y * {columns.places} + x", window.filters)
                w(f"const int8_t *const beside = {names.inputs[1]} + {place};")
                w.bill(3)
            _transform(w, window, shape, names.inputs[0])
            winograd.multiply(w, shape, names.packed["kernel"], names.packed["scaling"])


def _held(value: str, last: int, needed: int) -> str:
    return f"{value} < {last} ? {value} : {last}" if needed else value


def _transform(w: Writer, window: Window, shape: Winograd, source: str) -> None:
    place = f"{source} + {product(f'top * {window.columns.size} + left', window.channels)}"
    row_size = str(window.columns.size * window.channels)
    if not _has_border(window):
        winograd.transform_inputs(w, shape, place, row_size)
        return
    share = _share_inside(window)
    condition = f"top >= 0 && top <= {window.rows.size - ROWS} && left >= 0 && left <= {window.columns.size - COLUMNS}"
    with w.block(f"if ({condition})"), w.trips(share):
        winograd.transform_inputs(w, shape, place, row_size)
    with w.block("else"), w.trips(1 - share):
        _gather(w, window, source)
        winograd.transform_inputs(w, shape, "gathered", str(COLUMNS * window.channels))


def _gather(w: Writer, window: Window, source: str) -> None:
    """The inputs under both tiles, with the zero point where there are none."""
    w("int8_t *into = gathered;")
    rows = w.loop("row", f"top + {ROWS}", start="top", trips=ROWS)
    with rows, w.loop("column", f"left + {COLUMNS}", start="left", trips=COLUMNS):
        w.bill(8)
        inside = f"row >= 0 && row < {window.rows.size} && column >= 0 && column < {window.columns.size}"
        with w.block(f"if ({inside})"), w.trips(0.7):
            at = product(f"row * {window.columns.size} + column", window.channels)
            w(f"const int8_t *from = {total(source, at)};")
            copy(w, "int8", "into", "from", window.channels)
        with w.block("else"), w.trips(0.3):
            fill(w, "int8", "into", window.zero, window.channels)
        w(f"into += {window.channels};")
