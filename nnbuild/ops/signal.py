"""The steps of a fixed-point front end in a model file: windows, transforms, bands, noise, gain, logarithms.

Unsigned 32-bit numbers are held in int32, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnbuild.model.graph import Array, Shape
from nnbuild.numeric import signal
from nnbuild.numeric.fixed_fft import real_transform, wrapped
from nnbuild.numeric.rounding import INT16
from nnbuild.numeric.signal import WORD
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.site import Site

CONSTANTS = {
    "window": ("weights",),
    "bands": ("weights", "rests", "bins", "starts", "widths"),
    "gain": ("gains",),
}
OF_TWO = ("bands", "less_noise", "gain")
NUMBERS = {
    "window": 1,
    "enlarge": 0,
    "transform": 1,
    "energy": 2,
    "bands": 0,
    "less_noise": 8,
    "gain": 1,
    "logarithm": 2,
}
"""The number of options of each function.

window: the shift. transform: the points. energy: the first bin and the end of the bins. less_noise: the shares of the
new and of the old for even channels, then for odd ones, the minimum that remains, the bits of estimates and of shares,
whether estimates are bounded. gain: the shift. logarithm: the scale, and the shift beforehand.
"""


@dataclass(frozen=True)
class Signal(Attributes):
    """enlarge also outputs its shift, which bands undoes; less_noise carries an estimate of the noise from run to
    run."""

    kind: ClassVar[str] = "signal"
    optional: ClassVar[tuple[str, ...]] = ("weights", "rests", "bins", "starts", "widths", "gains")

    function: str = "window"
    numbers: tuple[int, ...] = ()

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        function = self.function
        expect(function in NUMBERS and len(self.numbers) == NUMBERS[function], f"there is no signal step {function!r}.")
        expect(set(constants) == set(CONSTANTS.get(function, ())), f"the constants of {function} are not all there.")
        expect(len(inputs) == 1 + (function in OF_TWO), f"{function} has {len(inputs)} inputs.")
        *outer, size = inputs[0]
        match function:
            case "window":
                expect(
                    size % constants["weights"][0] == 0, f"{size} samples are no frames of {constants['weights'][0]}."
                )
            case "enlarge":
                return inputs[0], (1,)
            case "transform":
                (points,) = self.numbers
                power = points >= 4 and points & (points - 1) == 0
                expect(power and size <= points, f"{size} samples are transformed by {points} points.")
                return ((*outer, points + 2),)
            case "energy":
                first, last = self.numbers
                expect(size % 2 == 0 and 0 <= first <= last <= size // 2, f"there are no bins {first} to {last}.")
                return ((*outer, size // 2),)
            case "bands":
                return ((constants["widths"][0] - 1,),)
            case "less_noise":
                expect(inputs[1] == inputs[0], "the noise has another shape.")
                return inputs[0], inputs[0]
            case "gain":
                expect(inputs[1] == inputs[0], "the noise has another shape.")
        return (inputs[0],)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        """Only defined for whole numbers."""
        return self._computed([x.astype(np.int64) for x in inputs], constants)

    def rounds(self) -> bool:
        return False

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        constants = {role: constant.data.astype(np.int64) for role, constant in site.constants.items()}
        bits = [16 if tensor.dtype == "int16" else 32 for tensor in site.inputs]
        given = [
            x.astype(np.int64) if n == 16 else x.astype(np.int64) & WORD for x, n in zip(inputs, bits, strict=True)
        ]
        found = self._computed(given, constants)
        return tuple(
            y.astype(np.uint32).view(np.int32) if tensor.dtype == "int32" else y.astype(np.int16)
            for y, tensor in zip(found, site.outputs, strict=True)
        )

    def _computed(self, inputs: list[Array], constants: Arrays) -> tuple[Array, ...]:
        x, n = inputs[0], self.numbers
        match self.function:
            case "window":
                weights = np.resize(constants["weights"], x.shape[-1])
                return (np.clip((x * weights) >> n[0], *INT16),)
            case "enlarge":
                shifts = np.array([[signal.room(frame.reshape(-1))] for frame in x])
                return wrapped(x << shifts.reshape(-1, *[1] * (x.ndim - 1))), shifts
            case "transform":
                whole = np.zeros((*x.shape[:-1], n[0]), np.int64)
                whole[..., : x.shape[-1]] = x
                bins = real_transform(whole)
                return (np.stack([bins.re, bins.im], axis=-1).reshape(*x.shape[:-1], -1),)
            case "energy":
                found = x[..., 0::2] ** 2 + x[..., 1::2] ** 2
                places = np.arange(found.shape[-1])
                return (np.where((places >= n[0]) & (places < n[1]), found, 0),)
            case "bands":
                sums = signal.banded(x, *(constants[role] for role in CONSTANTS["bands"]))
                return (signal.root(sums) >> (inputs[1] & 31),)
            case "less_noise":
                return signal.above_noise(x, inputs[1], n)
            case "gain":
                return (signal.with_gain(x, inputs[1], constants["gains"], n[0]),)
        return (signal.logarithm(x, n[1], n[0], INT16[1]),)
