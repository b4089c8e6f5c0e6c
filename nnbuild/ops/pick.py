"""Elements at constant indices along each axis: reordering, reflecting, nearest resizing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from nnbuild.model.graph import Array, Shape, Tensor
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Arrays, Attributes, expect
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Pick(Attributes):
    """`places` has the indices for each axis, or None for an axis that is kept."""

    kind: ClassVar[str] = "pick"

    places: tuple[tuple[int, ...] | None, ...] = ()

    def shapes(self, inputs: Sequence[Shape], constants: Mapping[str, Shape]) -> tuple[Shape, ...]:
        (shape,) = inputs
        expect(len(self.places) == len(shape), f"it picks along {len(self.places)} axes of {shape}.")
        for size, places in zip(shape, self.places, strict=True):
            if places is not None:
                expect(bool(places), "it picks nothing.")
                expect(min(places) >= 0 and max(places) < size, f"it picks beyond an axis of {size}.")
        return (tuple(n if p is None else len(p) for n, p in zip(shape, self.places, strict=True)),)

    def reference(self, inputs: Sequence[Array], constants: Arrays) -> tuple[Array, ...]:
        x = inputs[0]
        for axis, places in enumerate(self.places):
            if places is not None:
                x = x.take(places, axis + 1)
        return (x,)

    def rounds(self) -> bool:
        return False

    def integer(self, site: Site, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The same move: input and output have one scale."""
        return self.reference(inputs, {})


def copy_of(tensor: Tensor) -> Attributes:
    """An operation that copies a tensor of any type."""
    return Activation() if tensor.dtype != "int32" else Pick((None,) * len(tensor.shape))
