"""Cortex-M4 and up: how the operations on pairs are spelt, each as one instruction."""

from __future__ import annotations

from nnbuild.isa.vectors import Vectors

GUARD = "defined(__ARM_FEATURE_DSP) && defined(__GNUC__)"
"""Where the spellings hold: gcc's and clang's inline assembly, on a core that has these instructions."""


def _one(mnemonic: str, *operands: str, suffix: str = "", output: str = "=r") -> str:
    """A function that is one instruction."""
    places = ", ".join(f"%{i}" for i in range(len(operands) + 1))
    inputs = ", ".join(f'"r"({name})' for name in operands)
    return f'int32_t out;\n\n__asm__("{mnemonic} {places}{suffix}" : "{output}"(out) : {inputs});\nreturn out;'


def _saturate(bits: int, shift: int = 0) -> str:
    suffix = f", asr #{shift}" if shift else ""
    return f'int32_t out;\n\n__asm__("ssat %0, #{bits}, %1{suffix}" : "=r"(out) : "r"(a));\nreturn out;'


def _load_bytes(count: int) -> str:
    return "int32_t out;\n\n__builtin_memcpy(&out, from, sizeof out);\nreturn out;" if count == 4 else ""


_PAIR = "typedef int64_t __attribute__((may_alias)) pair;\n\n"
"""A type of 8 bytes, whose address the compiler keeps within the reach of these instructions."""
_LOAD_TWO = (
    f'int32_t first;\n\n{_PAIR}__asm__("ldrd %0, %1, %2" : "=r"(first), "=r"(*second) : "m"(*(const pair *)from));\n'
    "return first;"
)
_LOAD_FOUR = """\
register int32_t first __asm__("r4"); /* in ascending order, as LDM wants its registers */
register int32_t second __asm__("r5");
register int32_t third __asm__("r6");
register int32_t fourth __asm__("r8");

__asm__("ldmia %0!, {%1, %2, %3, %4}"
        : "+r"(from), "=r"(first), "=r"(second), "=r"(third), "=r"(fourth)
        : "m"(*(const int64_t(*)[2])from));
*a = first;
*b = second;
*c = third;
*d = fourth;
return from;"""

DSP = Vectors(
    name="dsp",
    guard=GUARD,
    lanes=1,
    registers=13,
    types={},
    spellings={
        "p_dot": _one("smlad", "a", "b", "sum"),
        "p_products": _one("smuad", "a", "b"),
        "p_low_low": _one("smlabb", "a", "b", "sum"),
        "p_low_high": _one("smlabt", "a", "b", "sum"),
        "p_high_low": _one("smlatb", "a", "b", "sum"),
        "p_high_high": _one("smlatt", "a", "b", "sum"),
        "p_long_dot": '__asm__("smlald %Q0, %R0, %1, %2" : "+r"(sum) : "r"(a), "r"(b));\nreturn sum;',
        "p_wide_low": _one("smlawb", "a", "b", "sum"),
        "p_wide_high": _one("smlawt", "a", "b", "sum"),
        "high_add": _one("smmla", "a", "b", "sum"),
        "high_rounded_add": _one("smmlar", "a", "b", "sum"),
        "p_add": _one("sadd16", "a", "b"),
        "p_sub": _one("ssub16", "a", "b"),
        "p_add_even_bytes": _one("sxtab16", "a", "b"),
        "p_add_odd_bytes": _one("sxtab16", "a", "b", suffix=", ror #8"),
        "saturate": _saturate,
        "max_bytes": _one("ssub8 %0, %1, %2\\n\\tsel", "a", "b", output="=&r"),
        "p_even_bytes": _one("sxtb16", "word"),
        "p_odd_bytes": _one("sxtb16", "word", suffix=", ror #8"),
        "p_low_halves": _one("pkhbt", "a", "b", suffix=", lsl #16"),
        "p_high_halves": _one("pkhtb", "a", "b", suffix=", asr #16"),
        "masked_left8": _one("and", "mask", "a", suffix=", lsl #8"),
        "load_bytes": _load_bytes,
        "write_bytes": "__builtin_memcpy(to, &word, sizeof word);",
        "p_load": _load_bytes(4),
        "p_load_two": _LOAD_TWO,
        "load_two": _LOAD_TWO,
        "store_two": f'{_PAIR}__asm__("strd %1, %2, %0" : "=m"(*(pair *)to) : "r"(first), "r"(second));',
        "load_four": _LOAD_FOUR,
        "again": '__asm__ volatile("" : "+r"(pointer));\nreturn pointer;',
    },
    cycles={"max_bytes": 2},
)
