"""Mean, sum, maximum or minimum over neighbouring axes: the global pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nnbuild.graph import Array, Shape
from nnbuild.ops.base import Arrays, Attributes, expect

FUNCTIONS: dict[str, Callable[..., Any]] = {"mean": np.mean, "sum": np.sum, "max": np.max, "min": np.min}


@dataclass(frozen=True)
class Reduce(Attributes):
    """Over `count` axes from `axis` on; `keep` leaves them with the size 1."""

    kind: ClassVar[str] = "reduce"

    function: str = "mean"
    axis: int = 0
    count: int = 1
    keep: bool = False

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        expect(self.function in FUNCTIONS, f"there is no reduction named {self.function!r}.")
        expect(self.axis >= 0 and self.count > 0 and self.axis + self.count <= len(inputs[0]), "its axes do not exist.")
        before, after = inputs[0][: self.axis], inputs[0][self.axis + self.count :]
        return (before + (1,) * (self.count if self.keep else 0) + after,)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        axes = tuple(range(self.axis + 1, self.axis + 1 + self.count))
        return (FUNCTIONS[self.function](inputs[0], axis=axes, keepdims=self.keep),)
