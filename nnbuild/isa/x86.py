"""The vector extensions of x86-64. Each has its own file for its rows; this one says what they contain."""

from __future__ import annotations

from nnbuild.isa.isa import Isa, extended

HARMFUL = ("no-tree-ter", "no-predictive-commoning", "fp-contract=off")
"""The first delays integer additions behind the multiplications they wait for, the second spills convolutions'
overlapping loads. The third would fuse what must be rounded twice to give the same bits everywhere."""

SSE2 = Isa(
    name="sse2",
    summary="what every x86-64 processor has: 4 floats or 8 int16 at a time",
    features=frozenset({"sse2"}),
    architectures=("native", "x86_64"),
    includes=("immintrin.h",),
    target="sse2",
    cpu_flags=("sse2",),
    gcc_options=HARMFUL,
)
SSSE3 = extended(SSE2, "ssse3", "byte shuffles and byte products, since 2006", target="ssse3", cpu_flags=("ssse3",))
AVX2_FMA = extended(
    SSSE3,
    "avx2_fma",
    "8 floats or 16 int16 at a time, multiplied and added in one, since 2013",
    target="avx2,fma",
    cpu_flags=("avx2", "fma"),
)
AVX_VNNI = extended(
    AVX2_FMA, "avx_vnni", "32 int8 products a step on 256 bits", target="avxvnni", cpu_flags=("avx_vnni",)
)
AVX512 = extended(
    AVX2_FMA,
    "avx512",
    "16 floats at a time, 32 registers",
    target="avx512f,avx512bw,avx512dq,avx512vl",
    cpu_flags=("avx512f", "avx512bw", "avx512dq", "avx512vl"),
)
AVX512_VNNI = extended(
    AVX512, "avx512_vnni", "64 int8 products a step", target="avx512vnni", cpu_flags=("avx512_vnni",)
)

ISAS = (SSE2, SSSE3, AVX2_FMA, AVX_VNNI, AVX512, AVX512_VNNI)
