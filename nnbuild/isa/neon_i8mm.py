"""NEON with matrix products: eight bytes of two outputs each by those of two channels."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.isa import neon_dotprod

_HALVES = "vreinterpretq_s{0}_s64(vzip{1}q_s64(vreinterpretq_s64_s{0}(a), vreinterpretq_s64_s{0}(b)))"

I8MM = replace(
    neon_dotprod.DOTPROD,
    name="neon_i8mm",
    spellings={
        **neon_dotprod.DOTPROD.spellings,
        "mmla": "vmmlaq_s32(a, x, w)",
        **{f"{name}_halves": _HALVES.format(32, part) for part, name in ((1, "low"), (2, "high"))},
        **{f"{name}_halves_of_bytes": _HALVES.format(8, part) for part, name in ((1, "low"), (2, "high"))},
    },
)
VECTORS = (I8MM,)
