"""What kernels for Cortex-M3 and M0 use, which multiply one number at a time."""

from __future__ import annotations

from nnbuild.base.writer import Instruction

HIGH_PRODUCT = Instruction(
    "high_product",
    "int32_t {name}(int32_t a, int32_t b)",
    "return (int32_t)(((int64_t)a * b) >> 32);",
    3,
    "const int32_t a_high = a >> 16, b_high = b >> 16;\n"
    "const int32_t a_low = a & 0xffff, b_low = b & 0xffff;\n"
    "const int32_t first = a_high * b_low + (int32_t)(((uint32_t)a_low * (uint32_t)b_low) >> 16);\n"
    "const int32_t second = a_low * b_high + (first & 0xffff);\n\n"
    "return a_high * b_high + (first >> 16) + (second >> 16);",
    "defined(__ARM_ARCH_6M__)",
)
"""The high word of a product with b of at least 0. A core without a long multiply makes it of four short ones."""
