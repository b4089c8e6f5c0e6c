"""The same in registers of 256 bits: twice as many numbers at a time."""

from __future__ import annotations

from nnbuild.isa.rvv import vectors

VECTORS = vectors("rvv256", 8)
