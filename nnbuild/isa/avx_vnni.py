"""AVX2 with four products of bytes in one step."""

from __future__ import annotations

from nnbuild.isa import avx2_fma, x86_integers

VECTORS = x86_integers.vnni(avx2_fma.VECTORS, "avx_vnni", "avx_")
