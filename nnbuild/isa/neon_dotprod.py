"""NEON with products of four bytes a lane in one instruction, where the inputs' four bytes come from any lane; and with
matrix products: eight bytes of two outputs each by those of two channels."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.isa import neon

DOTPROD = replace(
    neon.NEON,
    name="neon_dotprod",
    kernels=("integer",),
    spellings={
        **{name: spelt for name, spelt in neon.NEON.spellings.items() if name not in ("dot_apart_of", "h_mac_of")},
        "dot": lambda depth, lift: "vdotq_s32(a, x, w)" if depth == 4 else neon.WORDS_DOT,
        "dot_of": lambda lane: f"vdotq_laneq_s32(a, w, x, {lane})",
    },
    cycles={"dot": 0.5},
    least_weight=-128,
)
_HALVES = "vreinterpretq_s{0}_s64(vzip{1}q_s64(vreinterpretq_s64_s{0}(a), vreinterpretq_s64_s{0}(b)))"
I8MM = replace(
    DOTPROD,
    name="neon_i8mm",
    spellings={
        **DOTPROD.spellings,
        "mmla": "vmmlaq_s32(a, x, w)",
        **{f"{name}_halves": _HALVES.format(32, part) for part, name in ((1, "low"), (2, "high"))},
        **{f"{name}_halves_of_bytes": _HALVES.format(8, part) for part, name in ((1, "low"), (2, "high"))},
    },
)
VECTORS = (DOTPROD, I8MM)
