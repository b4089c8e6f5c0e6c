"""The instruction sets of Arm's microcontroller cores from Cortex-M3 on, and what all of them have in common.

Cortex-M3 multiplies one number at a time. On Cortex-M4 and up each operation on pairs is one instruction. M4F and M7
have 32 single-precision registers and a fused multiply-add: it rounds once where portable C rounds twice, within the
tolerance in which floats are compared.
"""

from __future__ import annotations

from collections.abc import Callable

from nnbuild.isa.c99 import Single
from nnbuild.isa.isa import Isa, extended
from nnbuild.isa.vectors import Vectors

BETTER_SCHEDULED = ("no-schedule-insns", "no-ivopts", "no-store-merging", "no-tree-slp-vectorize")
"""gcc's first scheduler hoists loads until values spill; ivopts replaces immediate offsets by registers; merging stores
of bytes, which two passes do, takes an instruction per byte."""

ARMV7M = Isa(
    name="armv7m",
    summary="Cortex-M3: long multiplies, saturation",
    features=frozenset({"armv7m", "bytes"}),
    architectures=("cortex_m",),
)
ARMV7EM_DSP = extended(
    ARMV7M, "armv7em_dsp", "Cortex-M4 and up: two 16-bit products a step", gcc_options=BETTER_SCHEDULED
)

ISAS = (ARMV7M, ARMV7EM_DSP)

THUMB = Vectors(
    name="thumb",
    guard="defined(__thumb__) && defined(__GNUC__) && !defined(NN_PORTABLE)",
    registers=13,
    spellings={
        "move_down": """\
if ((((uintptr_t)to | (uintptr_t)from) & 3) == 0) {
    for (; size >= 16; size -= 16)
        __asm__ volatile("ldmia %1!, {r3, r4, r5, r6}\\n\\tstmia %0!, {r3, r4, r5, r6}"
                         : "+l"(to), "+l"(from)
                         :
                         : "r3", "r4", "r5", "r6", "memory");
}
for (int32_t i = 0; i < size; ++i) to[i] = from[i];"""
    },
)
"""The common base of cores of every size."""

FEATURES = frozenset({"armv7em_dsp", "arm_fpu"})
FLOATS = frozenset({"arm_fpu"})
FPU = Single(
    name="fpu",
    guard="defined(__ARM_FEATURE_FMA) && defined(__GNUC__)",
    registers=32,
    spellings={"multiply_add": "__builtin_fmaf(a, b, sum)"},
    cycles={"f_load": 1, "f_repeat": 1},
)

GUARD = "defined(__ARM_FEATURE_DSP) && defined(__GNUC__)"
"""The condition for the spellings: gcc's and clang's inline assembly, on a core with these instructions."""


def _one(mnemonic: str, *operands: str, suffix: str = "", output: str = "=r") -> str:
    """A function of one instruction."""
    places = ", ".join(f"%{i}" for i in range(len(operands) + 1))
    inputs = ", ".join(f'"r"({name})' for name in operands)
    return f'int32_t out;\n\n__asm__("{mnemonic} {places}{suffix}" : "{output}"(out) : {inputs});\nreturn out;'


def _saturate(bits: int, shift: int = 0) -> str:
    suffix = f", asr #{shift}" if shift else ""
    return f'int32_t out;\n\n__asm__("ssat %0, #{bits}, %1{suffix}" : "=r"(out) : "r"(a));\nreturn out;'


def _joined(shift: int) -> str:
    operands = f'"r"(low >> {shift}), "r"(high)'
    return f'int32_t out;\n\n__asm__("pkhbt %0, %1, %2, lsl #{16 - shift}" : "=r"(out) : {operands});\nreturn out;'


_MAGNITUDES = """\
int32_t out;

__asm__("ssub16 %0, %2, %1\\n\\tsel %0, %0, %1" : "=&r"(out) : "r"(a), "r"(0));
return out;"""


def _load_bytes(count: int) -> str:
    return "int32_t out;\n\n__builtin_memcpy(&out, from, sizeof out);\nreturn out;" if count == 4 else ""


def _step(kind: str) -> Callable[[int], str]:
    """Adds a byte of a word to a pointer."""

    def step(byte: int) -> str:
        turned = f", ror #{8 * byte}" if byte else ""
        code = f'__asm__("uxtab %0, %1, %2{turned}" : "=r"(out) : "r"(from), "r"(word));'
        return f"const {kind} *out;\n\n{code}\nreturn out;"

    return step


_PAIR = "typedef int64_t __attribute__((may_alias)) pair;\n\n"
"""An 8-byte type, so that compilers keep its address in range of these instructions."""
_LOAD_TWO = (
    f'int32_t first;\n\n{_PAIR}__asm__("ldrd %0, %1, %2" : "=r"(first), "=r"(*second) : "m"(*(const pair *)from));\n'
    "return first;"
)


def _load_four(*registers: str) -> str:
    """In ascending order, as LDM requires."""
    names = ("first", "second", "third", "fourth")
    held = [f'register int32_t {name} __asm__("{each}");' for name, each in zip(names, registers, strict=True)]
    outputs = ", ".join(f'"=r"({name})' for name in names)
    load = f'__asm__("ldmia %0!, {{%1, %2, %3, %4}}" : "+r"(from), {outputs} : "m"(*(const int64_t(*)[2])from));'
    given = [f"*{pointer} = {name};" for pointer, name in zip("abcd", names, strict=True)]
    return "\n".join([*held, "", load, *given, "return from;"])


_WORD = "typedef int32_t __attribute__((may_alias)) word;\n"
_STORE_EACH = (
    f'{_WORD}\n__asm__("str %2, %0\\n\\tstr %3, %1" : "=m"(((word *)to)[0]), "=m"(((word *)to)[1]) '
    ': "r"(low), "r"(high));'
)
_LOAD_BOTH = f"""\
{_WORD}const word *const inputs = (const word *)x, *const weights = (const word *)k;
int32_t first; /* each load overlaps with the one before it */

__asm__("ldr.w %0, %4\\n\\tldr.w %1, %5\\n\\tldr.w %2, %6\\n\\tldr.w %3, %7"
        : "=&r"(first), "=&r"(*second), "=&r"(*third), "=&r"(*fourth)
        : "m"(inputs[0]), "m"(inputs[1]), "m"(weights[0]), "m"(weights[1]));
return first;"""

DSP = Vectors(
    name="dsp",
    guard=GUARD,
    registers=13,
    spellings={
        "p_dot": _one("smlad", "a", "b", "sum"),
        "p_products": _one("smuad", "a", "b"),
        "p_low_product": _one("smulbb", "a", "b"),
        "p_high_product": _one("smultt", "a", "b"),
        "add_sign": _one("add", "sum", "a", suffix=", asr #31"),
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
        "p_add_turned": _one("sasx", "a", "b"),
        "p_sub_turned": _one("ssax", "a", "b"),
        "p_half_sum": _one("shadd16", "a", "b"),
        "p_half_difference": _one("shsub16", "a", "b"),
        "p_magnitudes": _MAGNITUDES,
        "p_add_even_bytes": _one("sxtab16", "a", "b"),
        "p_add_odd_bytes": _one("sxtab16", "a", "b", suffix=", ror #8"),
        "p_max": _one("ssub16 %0, %1, %2\\n\\tsel", "a", "b", output="=&r"),
        "p_min": _one("ssub16 %0, %2, %1\\n\\tsel", "a", "b", output="=&r"),
        "saturate": _saturate,
        "max_bytes": _one("ssub8 %0, %1, %2\\n\\tsel", "a", "b", output="=&r"),
        "min_bytes": _one("ssub8 %0, %2, %1\\n\\tsel", "a", "b", output="=&r"),
        "p_even_bytes": _one("sxtb16", "word"),
        "p_odd_bytes": _one("sxtb16", "word", suffix=", ror #8"),
        "p_even_unsigned": _one("uxtb16", "word"),
        "p_odd_unsigned": _one("uxtb16", "word", suffix=", ror #8"),
        "p_low_halves": _one("pkhbt", "a", "b", suffix=", lsl #16"),
        "p_high_halves": _one("pkhtb", "a", "b", suffix=", asr #16"),
        "p_mixed_halves": _one("pkhbt", "a", "b"),
        "p_joined": _joined,
        "masked_right": lambda by: _one("and", "mask", "a", suffix=f", lsr #{by}"),
        "masked_left8": _one("and", "mask", "a", suffix=", lsl #8"),
        "load_bytes": _load_bytes,
        "write_bytes": "__builtin_memcpy(to, &word, sizeof word);",
        "p_load": _load_bytes(4),
        "p_load_two": _LOAD_TWO,
        "load_two": _LOAD_TWO,
        "store_two": f'{_PAIR}__asm__("strd %1, %2, %0" : "=m"(*(pair *)to) : "r"(first), "r"(second));',
        "store_each": _STORE_EACH,
        "load_four": _load_four("r4", "r5", "r6", "r8"),
        "load_four_more": _load_four("r9", "r10", "r11", "r12"),
        "load_both": _LOAD_BOTH,
        "p_add_byte": lambda by: _one("uxtab", "a", "b", suffix=f", ror #{8 * by}" if by else ""),
        "p_step8": _step("int8_t"),
        "p_step16": _step("int16_t"),
        "kept": '__asm__("" : "+r"(a));\nreturn a;',
        "at_word": '__asm__(".balign 4" : "+r"(pointer)); /* long instructions across words are fetched late */\n'
        "return pointer;",
        "again": '__asm__ volatile("" : "+r"(pointer));\nreturn pointer;',
    },
    cycles={name: 2 for name in ("max_bytes", "min_bytes", "p_max", "p_min")},
)
