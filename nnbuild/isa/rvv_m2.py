"""The same in groups of 2 registers: fewer instructions do as much."""

from __future__ import annotations

from nnbuild.isa.rvv import vectors

VECTORS = vectors("rvv_m2", 8, 2, ("float",))
