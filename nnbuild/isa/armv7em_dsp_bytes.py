"""Instructions of Cortex-M4 and up that unpack bytes into pairs of 16 bits and multiply such pairs.

A word holds two 16-bit numbers, its low and its high half. Meanings are for a little-endian machine's words but read
and write no memory as anything other than what it is, so they mean the same everywhere.
"""

from __future__ import annotations

from functools import cache

from nnbuild.isa.armv7em_dsp import (
    PKHBT,
    PKHTB,
    SMLABB,
    SMLABT,
    SMLAD,
    SMLATB,
    SMLATT,
    SMMLA,
    SSAT8,
    SXTB16,
)
from nnbuild.writer import Instruction

__all__ = [
    "AGAIN",
    "BYTES",
    "LDRD",
    "PKHBT",
    "PKHTB",
    "SMLABB",
    "SMLABT",
    "SMLAD",
    "SMLATB",
    "SMLATT",
    "SMMLA",
    "SSAT8",
    "STRD",
    "SXTB16",
    "SXTB16_ODD",
    "ssat8_after",
]

DSP = "defined(__ARM_FEATURE_DSP)"


def _asm(text: str, operands: str) -> str:
    """A function body of one instruction that touches registers only."""
    inputs = ", ".join(f'"r"({name})' for name in operands.split())
    return f'int32_t result;\n__asm__("{text}" : "=r"(result) : {inputs});\nreturn result;'


def _register(name: str, operands: str, asm: str, meaning: str, cycles: float = 1) -> Instruction:
    parameters = ", ".join(f"int32_t {operand}" for operand in operands.split())
    return Instruction(name, f"int32_t {{name}}({parameters})", meaning, cycles, _asm(asm, operands), DSP)


@cache
def ssat8_after(shift: int) -> Instruction:
    """The saturation of a number that is first shifted to the right."""
    return _register(
        f"ssat8_after{shift}",
        "a",
        f"ssat %0, #8, %1, asr #{shift}",
        f"a >>= {shift};\n{SSAT8.meaning}",
    )


def _spread(name: str, rotated: str, low: str, high: str) -> Instruction:
    parts = [f"((uint32_t)(int8_t)((uint32_t)a >> {low} & 0xff) & 0xffff)"]
    parts += [f"(uint32_t)(int8_t)((uint32_t)a >> {high} & 0xff) << 16"]
    return _register(name, "a", f"sxtb16 %0, %1{rotated}", f"return (int32_t)({' | '.join(parts)});")


SXTB16_ODD = _spread("sxtb16_odd", ", ror #8", "8", "24")

BYTES = {
    count: Instruction(
        f"bytes{count}",
        "int32_t {name}(const int8_t *from)",
        "return (int32_t)("
        + " | ".join(
            f"(uint32_t)(uint8_t)from[{i}] << {8 * i}" if i else "(uint32_t)(uint8_t)from[0]" for i in range(count)
        )
        + ");",
        {1: 1, 2: 1, 3: 3, 4: 1}[count],
    )
    for count in (1, 2, 3, 4)
}
"""So many bytes that follow each other, the first one lowest. The compiler knows it as one load."""

_PAIR = "typedef int64_t __attribute__((may_alias)) pair;\n"
"""A type of 8 bytes, for whose address the compiler keeps within the reach of these instructions."""
LDRD = Instruction(
    "ldrd",
    "int32_t {name}(const int32_t *from, int32_t *second)",
    "*second = from[1];\nreturn from[0];",
    1,
    f"{_PAIR}int32_t first;\n"
    '__asm__("ldrd %0, %1, %2" : "=r"(first), "=r"(*second) : "m"(*(const pair *)from));\n'
    "return first;",
    DSP,
)
STRD = Instruction(
    "strd",
    "void {name}(int32_t *to, int32_t first, int32_t second)",
    "to[0] = first;\nto[1] = second;",
    1,
    f'{_PAIR}__asm__("strd %1, %2, %0" : "=m"(*(pair *)to) : "r"(first), "r"(second));',
    DSP,
)
AGAIN = Instruction(
    "again",
    "const int32_t *{name}(const int32_t *pointer)",
    "return pointer;",
    0,
    '__asm__ volatile("" : "+r"(pointer));\nreturn pointer;',
    DSP,
)
"""The same pointer, of which the compiler knows nothing: it then keeps no value or address from before."""
