"""The kernels of transposed convolutions: those of convolutions, phase by phase, and one in portable C in which every
output gathers the inputs whose taps reach it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nnbuild.base.writer import Writer
from nnbuild.isa.lanes import Lanes
from nnbuild.kernels import conv2d
from nnbuild.kernels.contract import Demand, Names, any_layer, variant
from nnbuild.kernels.lanes.layer_sums import scalar_lanes
from nnbuild.kernels.loops import dot, transposed
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.site import Site


@dataclass(frozen=True, eq=False)
class Gather:
    site: Site[Conv2DTranspose]
    lanes: Lanes

    def demand(self) -> Demand:
        packed = {"kernel": self.site.constant("kernel").reshape(-1), **self.lanes.channels}
        return Demand(extent=self.site.output_shape()[0], packed=packed)

    def emit(self, w: Writer, names: Names) -> None:
        lanes, (rows, columns, filters) = self.lanes, self.site.output_shape()
        dot.declare_channels(w, lanes, names.packed)
        with w.loop("y", "end", start="begin", trips=rows), w.loop("x", columns):
            w(f"{lanes.output_type} *to = {names.outputs[0]} + (y * {columns} + x) * {filters};")
            with w.loop("c", filters):
                lanes.start(w, "sum", "c")
                self._gather(w, names)
                lanes.store(w, "sum", "to + c", "c", 1)

    def _gather(self, w: Writer, names: Names) -> None:
        """Sums all that contributes to channel `c` at (y, x)."""
        site, lanes, attributes = self.site, self.lanes, self.site.attributes
        kh, kw, filters, channels = site.constant("kernel").shape
        height, width, _ = site.shape()
        (crop_y, crop_x), (dy, dx), (sy, sx) = attributes.crop, attributes.dilation, attributes.strides
        with (
            w.loop("ky", kh),
            _source(w, "row", "y", "ky", crop_y, dy, sy, height),
            w.loop("kx", kw),
            _source(w, "column", "x", "kx", crop_x, dx, sx, width),
        ):
            place = f"(row * {width} + column) * {channels}"
            w(f"const {lanes.input_type} *from = {names.inputs[0]} + {place};")
            taps = f"((ky * {kw} + kx) * {filters} + c) * {channels}"
            w(f"const {lanes.weight_type} *k = {names.packed['kernel']} + {taps};")
            with w.trips(1 / (sy * sx)), w.loop("i", channels):
                lanes.inputs(w, "x0", "from + i")
                lanes.weights(w, "w0", "k + i")
                lanes.multiply(w, "sum", "x0", "w0")


@contextmanager
def _source(
    w: Writer, name: str, place: str, tap: str, crop: int, dilation: int, stride: int, size: int
) -> Iterator[None]:
    """Declares the input under a tap, if there is one."""
    w(f"const int32_t {name}_reach = {place} + {crop} - ({tap}) * {dilation};")
    inside = f"{name}_reach >= 0 && {name}_reach < {size * stride}"
    with w.block(f"if ({inside} && {name}_reach % {stride} == 0)"):
        w(f"const int32_t {name} = {name}_reach / {stride};")
        yield


def _nest(site: Site[Conv2DTranspose]) -> Gather:
    return Gather(site, scalar_lanes(site))


VARIANTS = (variant("scalar", frozenset(), any_layer, _nest), *transposed.kernels(conv2d.VARIANTS))
