"""The same in groups of 4 registers, for the sums of layers with weights: fewer instructions do as much."""

from __future__ import annotations

from nnbuild.isa.rvv import vectors

VECTORS = vectors("rvv_m4", 16, 4, ("float_sums",))
