"""All sets of float vectors there are."""

from nnbuild.isa import avx2_fma, avx512, sse2

SETS = (sse2.VECTORS, avx2_fma.VECTORS, avx512.VECTORS)
