"""Depthwise convolution channel by channel of a tile of positions, where every input under the tile is loaded once.

For floats on Cortex-M4F and M7, and for integers on cores that multiply one number at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from nnbuild.base.writer import Writer
from nnbuild.isa.arm_fpu import FEATURES, FpuLanes
from nnbuild.isa.lanes import Lanes
from nnbuild.kernels import overlaps
from nnbuild.kernels.contract import Demand, Names, Variant, only_float
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.direct import Geometry
from nnbuild.kernels.loops.tiling import even
from nnbuild.kernels.small_lanes import CentredByteLanes, ShortCentredByteLanes
from nnbuild.kernels.window_loops import Axis, declare_taps, product, row_taps
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.site import Site
from nnbuild.ops.windows import spread

Maker = Callable[[Site], Lanes]


def _geometry(site: Site, lanes: Lanes) -> Geometry:
    attributes = site.op.attributes
    assert isinstance(attributes, DepthwiseConv2D)
    kernel, inputs, outputs = site.constant("kernel").shape, site.shape(), site.output_shape()
    rows, columns = (
        Axis(inputs[i], outputs[i], kernel[i], attributes.strides[i], attributes.dilation[i], attributes.padding[i][0])
        for i in (0, 1)
    )
    return Geometry(rows, columns, inputs[2], 1, outputs[2], inputs[2], lanes)


@dataclass(frozen=True)
class Run:
    """Equal tiles that follow each other in a row of outputs, and the columns under each that are real."""

    first: int
    pixels: int
    count: int
    real: range


def _runs(columns: Axis, positions: int) -> list[Run]:
    """A tile at an edge is a run of its own: it is printed without the taps that are beyond."""
    found: list[Run] = []
    first = 0
    for pixels, count in even(columns.places, positions):
        for _ in range(count):
            left = first * columns.stride - columns.pad
            reach = (pixels - 1) * columns.stride + spread(columns.kernel, columns.dilation)
            real = range(max(0, -left), min(reach, columns.size - left))
            last = found[-1] if found else None
            if last and (last.pixels, last.real) == (pixels, real):
                found[-1] = replace(last, count=last.count + 1)
            else:
                found.append(Run(first, pixels, 1, real))
            first += pixels
    return found


def _demand(site: Site, lanes: Lanes) -> Demand:
    """The weights of a channel follow each other."""
    shape = _geometry(site, lanes)
    kernel = site.constant("kernel").reshape(-1, shape.filters).T.reshape(-1)
    packed = {"kernel": kernel, **shape.lanes.channels}
    return Demand(shape.rows.places, packed=packed, overlaps=overlaps.rows(site, shape.rows))


def _emit(w: Writer, site: Site, names: Names, lanes: Lanes, positions: int) -> None:
    shape = _geometry(site, lanes)
    with w.loop("y", "end", start="begin", trips=shape.rows.places):
        w(f"const int32_t top = {shape.rows.position('y')};")
        if not shape.rows.always_inside:
            declare_taps(w, shape.rows, "top", "ky_begin", "ky_end")
        for run in _runs(shape.columns, positions):
            if run.count == 1:
                with w.block(""):
                    _channels(w, shape, names, run, str(run.first))
            else:
                with w.loop("x", run.first + run.count * run.pixels, start=run.first, step=run.pixels):
                    _channels(w, shape, names, run, "x")


def _channels(w: Writer, shape: Geometry, names: Names, run: Run, x: str) -> None:
    """All channels of a tile, whose first real column is `first` in the input."""
    columns = shape.columns
    w(f"const int32_t left = {columns.position(x)}{f' + {run.real.start}' if run.real.start else ''};")
    first = f"{product('top', columns.size)} + left"
    w(f"int32_t first = {product(first, shape.channels)};")
    w(f"{shape.lanes.output_type} *to = {names.outputs[0]} + ({product('y', columns.places)} + {x}) * {shape.filters};")
    w(f"const {shape.lanes.weight_type} *taps = {names.packed['kernel']};")
    dot.declare_channels(w, shape.lanes, names.packed)
    multiplier = shape.filters // shape.channels
    with w.loop("c", shape.channels):
        if multiplier > 1:
            with w.loop("m", multiplier):
                _channel(w, shape, names, run)
        else:
            _channel(w, shape, names, run)
        w("first += 1;")


def _channel(w: Writer, shape: Geometry, names: Names, run: Run) -> None:
    lanes, columns = shape.lanes, shape.columns
    for pixel in range(run.pixels):
        lanes.start(w, f"sum{pixel}", "0")
    if run.real:
        with row_taps(w, shape.rows, "top"):
            down = product("ky", shape.rows.dilation * shape.row_size)
            w(f"const {lanes.input_type} *row = {names.inputs[0]} + (first + {down});")
            w(f"const {lanes.weight_type} *k = taps + {product('ky', columns.kernel)};")
            w.bill(3)
            _row(w, shape, run)
    for pixel in range(run.pixels):
        lanes.store(w, f"sum{pixel}", dot.offset("to", pixel * shape.filters), "0", 1)
    w(f"taps += {shape.rows.kernel * columns.kernel};")
    w("to += 1;")
    for name in lanes.channels:
        w(f"{name} += 1;")
    w.bill(3)


def _row(w: Writer, shape: Geometry, run: Run) -> None:
    """One row of taps: every input under the tile is loaded once."""
    lanes, columns = shape.lanes, shape.columns
    uses: dict[int, list[tuple[int, int]]] = {}
    for pixel in range(run.pixels):
        for tap in range(columns.kernel):
            uses.setdefault(pixel * columns.stride + tap * columns.dilation, []).append((pixel, tap))
    used = sorted({tap for column in run.real for _, tap in uses.get(column, ())})
    for tap in used:
        lanes.weights(w, f"w{tap}", dot.offset("k", tap))
    for column in sorted(column for column in uses if column in run.real):
        lanes.inputs(w, f"x{column}", dot.offset("row", (column - run.real.start) * shape.channels))
        for pixel, tap in uses[column]:
            lanes.multiply(w, f"sum{pixel}", f"x{column}", f"w{tap}")


def _floats(site: Site) -> Lanes:
    attributes = site.op.attributes
    assert isinstance(attributes, DepthwiseConv2D)
    return FpuLanes(site, attributes.clamp)


def _bytes(site: Site) -> str | None:
    return None if site.dtypes == {"int8"} else f"it computes int8 only, not {', '.join(sorted(site.dtypes))}"


def _variant(
    name: str, needs: frozenset[str], accepts: Callable[[Site], str | None], lanes: Maker, positions: int
) -> Variant:
    """`positions` of a tile: their sums and a row of weights are in registers at once."""

    def demand(site: Site) -> Demand:
        return _demand(site, lanes(site))

    def emit(w: Writer, site: Site, names: Names) -> None:
        _emit(w, site, names, lanes(site), positions)

    return Variant(name, needs, accepts, demand, emit)


VARIANTS = (
    _variant("fpu", FEATURES, only_float, _floats, 6),
    _variant("sliding", frozenset({"armv7m"}), _bytes, CentredByteLanes, 4),
    _variant("sliding_short", frozenset({"armv6m"}), _bytes, ShortCentredByteLanes, 2),
)
