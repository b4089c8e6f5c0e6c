"""What Cortex-M4 and up load, store and saturate in one instruction, beyond the arithmetic of `armv7em_dsp`."""

from __future__ import annotations

from functools import cache

from nnbuild.base.writer import Instruction
from nnbuild.isa.armv7em_dsp import GUARD, LOAD_BYTES, SSAT8


def _bytes(count: int) -> Instruction:
    parts = [f"(uint32_t)(uint8_t)from[{i}]" + (f" << {8 * i}" if i else "") for i in range(count)]
    body = f"return (int32_t)({' | '.join(parts)});"
    return Instruction(f"load_bytes{count}", "int32_t {name}(const int8_t *from)", body, 2 * count - 1)


BYTES = {1: _bytes(1), 2: _bytes(2), 3: _bytes(3), 4: LOAD_BYTES}
"""So many bytes that follow each other, the first one lowest."""


@cache
def ssat8_after(shift: int) -> Instruction:
    """The saturation of a number that is first shifted to the right."""
    return Instruction(
        f"ssat8_after{shift}",
        "int32_t {name}(int32_t a)",
        f"a >>= {shift};\n{SSAT8.meaning}",
        1,
        f'int32_t out;\n\n__asm__("ssat %0, #8, %1, asr #{shift}" : "=r"(out) : "r"(a));\nreturn out;',
        GUARD,
    )


def _wide_product(half: str, value: str) -> Instruction:
    return Instruction(
        f"smlaw{half}",
        "int32_t {name}(int32_t a, int32_t b, int32_t sum)",
        f"return (int32_t)((uint32_t)(((int64_t)a * {value}) >> 16) + (uint32_t)sum);",
        1,
        f'int32_t out;\n\n__asm__("smlaw{half} %0, %1, %2, %3" : "=r"(out) : "r"(a), "r"(b), "r"(sum));\nreturn out;',
        GUARD,
    )


SMLAWB = _wide_product("b", "(int16_t)b")
"""sum + the product of a word and a low half, less its lowest 16 bits."""
SMLAWT = _wide_product("t", "(b >> 16)")


def _added_pair(name: str, suffix: str, shift: str) -> Instruction:
    low, high = f"(int8_t)((uint32_t)b{shift} & 0xffU)", f"(int8_t)((uint32_t)b{shift} >> 16 & 0xffU)"
    return Instruction(
        name,
        "int32_t {name}(int32_t a, int32_t b)",
        f"const uint32_t low = ((uint32_t)a + (uint32_t){low}) & 0xffffU;\n"
        f"const uint32_t high = ((uint32_t)a & 0xffff0000U) + ((uint32_t){high} << 16);\n\n"
        "return (int32_t)(high | low);",
        1,
        f'int32_t out;\n\n__asm__("sxtab16 %0, %1, %2{suffix}" : "=r"(out) : "r"(a), "r"(b));\nreturn out;',
        GUARD,
    )


SXTAB16 = _added_pair("sxtab16", "", "")
"""A pair, to which the first and the third byte of a word are added."""
SXTAB16_ROR8 = _added_pair("sxtab16_ror8", ", ror #8", " >> 8")
MAX_BYTES = Instruction(
    "max_bytes",
    "int32_t {name}(int32_t a, int32_t b)",
    "uint32_t out = 0;\n\n"
    "for (int byte = 0; byte < 32; byte += 8) {\n"
    "    const int8_t x = (int8_t)((uint32_t)a >> byte & 0xffU);\n"
    "    const int8_t y = (int8_t)((uint32_t)b >> byte & 0xffU);\n\n"
    "    out |= (uint32_t)(uint8_t)(x > y ? x : y) << byte;\n"
    "}\n"
    "return (int32_t)out;",
    2,
    'int32_t out;\n\n__asm__("ssub8 %0, %1, %2\\n\\tsel %0, %1, %2" : "=&r"(out) : "r"(a), "r"(b));\nreturn out;',
    GUARD,
)
"""The larger of every two bytes."""

SMLALD = Instruction(
    "smlald",
    "int64_t {name}(int32_t a, int32_t b, int64_t sum)",
    "return sum + (int64_t)((int16_t)(a & 0xffff) * (int16_t)(b & 0xffff)) + (int64_t)((a >> 16) * (b >> 16));",
    1,
    '__asm__("smlald %Q0, %R0, %1, %2" : "+r"(sum) : "r"(a), "r"(b));\nreturn sum;',
    GUARD,
)
"""A sum of 64 bits + both products of two pairs."""

AND_LEFT8 = Instruction(
    "and_left8",
    "int32_t {name}(int32_t mask, int32_t a)",
    "return (int32_t)((uint32_t)mask & (uint32_t)a << 8);",
    1,
    'int32_t out;\n\n__asm__("and %0, %1, %2, lsl #8" : "=r"(out) : "r"(mask), "r"(a));\nreturn out;',
    GUARD,
)

_PAIR = "typedef int64_t __attribute__((may_alias)) pair;\n\n"
"""A type of 8 bytes, whose address the compiler keeps within the reach of these instructions."""
LDRD = Instruction(
    "ldrd",
    "int32_t {name}(const int32_t *from, int32_t *second)",
    "*second = from[1];\nreturn from[0];",
    1,
    "int32_t first;\n\n"
    f'{_PAIR}__asm__("ldrd %0, %1, %2" : "=r"(first), "=r"(*second) : "m"(*(const pair *)from));\n'
    "return first;",
    GUARD,
)
"""Two words into any two registers."""
LDRD_HALVES = Instruction(
    "ldrd_halves",
    "int32_t {name}(const int16_t *from, int32_t *second)",
    "*second = (int32_t)((uint32_t)(uint16_t)from[2] | (uint32_t)from[3] << 16);\n"
    "return (int32_t)((uint32_t)(uint16_t)from[0] | (uint32_t)from[1] << 16);",
    1,
    LDRD.native,
    GUARD,
)
"""Two pairs."""
STRD = Instruction(
    "strd",
    "void {name}(int32_t *to, int32_t first, int32_t second)",
    "to[0] = first;\nto[1] = second;",
    1,
    f'{_PAIR}__asm__("strd %1, %2, %0" : "=m"(*(pair *)to) : "r"(first), "r"(second));',
    GUARD,
)
AGAIN = Instruction(
    "again",
    "const int32_t *{name}(const int32_t *pointer)",
    "return pointer;",
    0,
    '__asm__ volatile("" : "+r"(pointer));\nreturn pointer;',
    GUARD,
)
"""The same pointer, of which the compiler knows nothing: it then keeps no value or address from before."""
