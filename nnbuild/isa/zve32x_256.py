"""The same in registers of 256 bits: twice as many numbers at a time."""

from __future__ import annotations

from nnbuild.isa.zve32x import vectors

VECTORS = vectors("zve32x_256", 32)
