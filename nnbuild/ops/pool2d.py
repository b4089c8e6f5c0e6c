"""Maximum and average over sliding windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric.rounding import INT32, rounding_mean
from nnbuild.ops.base import NO_CLAMP, Arrays, Attributes, Clamp, Pair, expect
from nnbuild.ops.device_arithmetic import averaged, device_arithmetic_of
from nnbuild.ops.integer import clamped
from nnbuild.ops.site import Site
from nnbuild.ops.windows import NO_PADDING, Padding, sliding, windows_along


@dataclass(frozen=True)
class Pool2D(Attributes):
    """[h, w, c] -> [rows, columns, c]. Padding does not count: an average is over real inputs."""

    kind: ClassVar[str] = "pool2d"

    function: str = "max"
    window: Pair = (2, 2)
    strides: Pair = (2, 2)
    padding: Padding = NO_PADDING
    clamp: Clamp = NO_CLAMP
    upward: bool = False
    """Whether halves of averages of bytes are rounded upward, as those of unsigned ones are."""

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(self.function in ("max", "average"), f"there is no pool named {self.function!r}.")
        expect(len(inputs[0]) == 3, f"a pool needs [height, width, channels], not {inputs[0]}.")
        for window, pad in zip(self.window, self.padding, strict=True):
            expect(max(pad) < window, f"padding by {pad} leaves windows of {window} without any input.")
        places = tuple(windows_along(inputs[0][i], self.window[i], self.strides[i], 1, self.padding[i]) for i in (0, 1))
        return (places + inputs[0][2:],)

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Input and output have one scale; an average is rounded to nearest, halves away from zero or upward."""
        x = inputs[0].astype(np.int64)
        if self.function == "max":
            windows = sliding(x, self.window, self.strides, (1, 1), self.padding, INT32[0])
            return (clamped(windows.max(axis=(4, 5)), self.clamp, site.outputs[0]),)
        return (self.of_sums(site, *self._totals(x)),)

    def of_sums(self, site: Site, total: Array, count: Array | int | None = None) -> Array:
        """Averages of integer sums of `count` each, or of whole windows."""
        spec, number = device_arithmetic_of(site.op), np.asarray(prod(self.window) if count is None else count)
        mean = rounding_mean(total, number, self.upward) if spec is None else averaged(total, number, spec)
        return clamped(mean, self.clamp, site.outputs[0])

    def _totals(self, x: Array) -> tuple[Array, Array]:
        """The sum and number of the inputs in each window."""
        total = sliding(x, self.window, self.strides, (1, 1), self.padding, 0).sum(axis=(4, 5))
        ones = np.ones((1, *x.shape[1:3], 1), x.dtype)
        return total, sliding(ones, self.window, self.strides, (1, 1), self.padding, 0).sum(axis=(4, 5))

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        x = inputs[0]
        if self.function == "max":
            windows = sliding(x, self.window, self.strides, (1, 1), self.padding, -np.inf)
            return (self.clamp.apply(windows.max(axis=(4, 5))),)
        total, count = self._totals(x)
        return (self.clamp.apply(total / count),)

    def rounds(self) -> bool:
        return self.function != "max"

    def magnitude(self, inputs: Sequence[Array], constants: Arrays, outputs: Sequence[Array]) -> tuple[Array, ...]:
        return replace(self, clamp=NO_CLAMP).reference([np.abs(inputs[0])], constants)
