"""What every loop nest over a window has at hand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from nnbuild.kernels.window import Weighted, Window, window_of
from nnbuild.ops.site import Site

L = TypeVar("L", covariant=True)
"""The lanes that compute in it, or what stands for them."""


@dataclass(frozen=True, eq=False)
class WindowNest(Generic[L]):
    site: Site[Weighted]
    lanes: L

    @cached_property
    def window(self) -> Window:
        return window_of(self.site)
