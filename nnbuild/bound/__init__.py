"""Proves "at most so many instructions for every input" on a linked program; knows nothing of models.

Instructions execute on values that are either known or unknown (dependent on inputs). At an unknown condition both
paths are followed, and merge where they meet. Instructions without defined semantics here are refused by name.
"""

from __future__ import annotations

from nnbuild.bound.image import Image, read_image
from nnbuild.bound.walk import Bound, Loop, Part, Turns, Unbounded, prove, result_of

__all__ = ["Bound", "Image", "Loop", "Part", "Turns", "Unbounded", "prove", "read_image", "result_of"]
