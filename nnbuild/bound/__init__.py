"""Proves "at most so many instructions for every input" on a linked program; knows nothing of models.

Every instruction is executed on values that are either known or unknown (what depends on inputs). Where a condition is
unknown both ways are followed, and they become one again where they meet. What has no meaning here is refused by name.
"""

from __future__ import annotations

from nnbuild.bound.image import Image, read_image
from nnbuild.bound.walk import Bound, Loop, Part, Turns, Unbounded, prove, result_of

__all__ = ["Bound", "Image", "Loop", "Part", "Turns", "Unbounded", "prove", "read_image", "result_of"]
