"""Loops over the taps of a sliding window, with the borders kept out of the interior."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nnbuild.base.writer import Writer
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.site import Site
from nnbuild.ops.windows import spread


@dataclass(frozen=True)
class Axis:
    """One axis of a sliding window: `size` inputs, `places` outputs, `pad` places before the first input."""

    size: int
    places: int
    kernel: int
    stride: int
    dilation: int
    pad: int

    @property
    def inside(self) -> range:
        """The outputs whose whole window lies on real inputs."""
        first = -(-self.pad // self.stride)
        last = (self.size + self.pad - spread(self.kernel, self.dilation)) // self.stride
        first = min(first, self.places)
        return range(first, max(first, min(last + 1, self.places)))

    @property
    def always_inside(self) -> bool:
        return len(self.inside) == self.places

    def position(self, index: str) -> str:
        """The input under tap 0 of output `index`."""
        scaled = f"{index} * {self.stride}" if self.stride > 1 else index
        return f"{scaled} - {self.pad}" if self.pad else scaled


def window_axes(site: Site[Conv2D]) -> tuple[Axis, Axis]:
    """The rows and the columns of a convolution's window."""
    attributes = site.attributes
    kernel, inputs, outputs = site.constant("kernel").shape, site.shape(), site.output_shape()
    rows, columns = (
        Axis(inputs[i], outputs[i], kernel[i], attributes.strides[i], attributes.dilation[i], attributes.padding[i][0])
        for i in (0, 1)
    )
    return rows, columns


def declare_taps(w: Writer, axis: Axis, at: str, first: str, last: str) -> None:
    """Declares the taps [first, last) of a window at `at` that fall on real inputs."""
    if axis.dilation == 1:
        w(f"const int32_t {first} = {at} < 0 ? -{at} : 0;")
        w(f"const int32_t {last} = {axis.size} - {at} < {axis.kernel} ? {axis.size} - {at} : {axis.kernel};")
        return
    d = axis.dilation
    w(f"const int32_t {first} = {at} < 0 ? ({d - 1} - {at}) / {d} : 0;")
    w(f"const int32_t left_{last} = ({axis.size + d - 1} - {at}) / {d};")
    w(f"const int32_t {last} = left_{last} < {axis.kernel} ? left_{last} : {axis.kernel};")


@contextmanager
def row_taps(w: Writer, axis: Axis, at: str) -> Iterator[None]:
    """The loop `ky` over the taps of a row window; `top` must hold the input row of tap 0."""
    if axis.always_inside:
        with w.loop("ky", axis.kernel):
            yield
    else:
        with w.loop("ky", "ky_end", start="ky_begin", trips=axis.kernel):
            yield


def product(*factors: str | int) -> str:
    """a * b * c with the numbers multiplied and ones left out."""
    number, names = 1, []
    for factor in factors:
        if isinstance(factor, int):
            number *= factor
        else:
            names.append(f"({factor})" if " " in factor else factor)
    if number == 0:
        return "0"
    return " * ".join([*names, str(number)] if number != 1 or not names else names)


def total(*terms: str) -> str:
    """a + b + c without the zeros."""
    kept = [term for term in terms if term != "0"]
    return " + ".join(kept) if kept else "0"


def moved(place: str, by: int) -> str:
    """place + by, as one would write it."""
    if not by:
        return place
    return f"{place} {'+' if by > 0 else '-'} {abs(by)}"
