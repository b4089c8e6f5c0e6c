"""AVX-512 with four products of bytes in one step."""

from __future__ import annotations

from nnbuild.isa import avx512, x86_integers

VECTORS = x86_integers.vnni(avx512.VECTORS, "avx512_vnni", "")
