"""Cortex-M3 and M0, which multiply one number at a time: without a long multiply a product has four short ones."""

from __future__ import annotations

from nnbuild.isa.vectors import Vectors

SMALL = Vectors(
    name="small",
    guard="defined(__ARM_ARCH_6M__)",
    lanes=1,
    registers=13,
    types={},
    spellings={
        "high": """\
const int32_t a_high = a >> 16, b_high = b >> 16;
const int32_t a_low = a & 0xffff, b_low = b & 0xffff;
const int32_t first = a_high * b_low + (int32_t)(((uint32_t)a_low * (uint32_t)b_low) >> 16);
const int32_t second = a_low * b_high + (first & 0xffff);

return a_high * b_high + (first >> 16) + (second >> 16);"""
    },
)
