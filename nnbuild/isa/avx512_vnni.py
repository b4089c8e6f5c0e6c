"""AVX-512 with four products of bytes in one step: the inputs unsigned, the weights signed."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.isa import avx512, x86_integers

VECTORS = replace(
    avx512.VECTORS,
    name="avx512_vnni",
    kernels=("integer",),
    depth=4,
    lift=128,
    spellings={**avx512.VECTORS.spellings, "dot": x86_integers.dot(512, {4: "dpbusd_epi32", 2: "dpwssd_epi32"})},
    cycles={"dot": 0.5},
)
