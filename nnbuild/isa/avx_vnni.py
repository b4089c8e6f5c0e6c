"""AVX2 with four products of bytes in one step: the inputs unsigned, the weights signed."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.isa import avx2_fma, x86_integers

VECTORS = replace(
    avx2_fma.VECTORS,
    name="avx_vnni",
    kernels=("integer",),
    depth=4,
    lift=128,
    spellings={
        **avx2_fma.VECTORS.spellings,
        "dot": x86_integers.dot(256, {4: "dpbusd_avx_epi32", 2: "dpwssd_avx_epi32"}),
    },
    cycles={"dot": 0.5},
)
