"""All widths of float vectors there are."""

from __future__ import annotations

from nnbuild.isa import avx2_fma, avx512, sse2

SETS = (sse2.FLOATS, avx2_fma.FLOATS, avx512.FLOATS)
