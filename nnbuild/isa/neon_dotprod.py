"""NEON with products of four bytes a lane in one instruction; the inputs' four bytes come from any lane."""

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
VECTORS = (DOTPROD,)
