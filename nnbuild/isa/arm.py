"""The instruction sets of Arm's microcontroller cores.

Cortex-M0 and M3 multiply one number at a time; without a long multiply a long product takes four short ones. On
Cortex-M4 and up each operation on pairs is one instruction. M4F and M7 have 32 single-precision registers and a fused
multiply-add: it rounds once where portable C rounds twice, within the tolerance in which floats are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from nnbuild.isa.c99 import Single
from nnbuild.isa.isa import Isa, extended
from nnbuild.isa.vectors import Vectors

BETTER_SCHEDULED = ("no-schedule-insns", "no-ivopts", "no-store-merging", "no-tree-slp-vectorize")
"""gcc's first scheduler hoists loads until values spill; ivopts replaces immediate offsets by registers; merging stores
of bytes, which two passes do, takes an instruction per byte."""

ARMV6M = Isa(
    name="armv6m",
    summary="Cortex-M0 and M0+: 16-bit instructions, no long multiply",
    features=frozenset({"armv6m"}),
    architectures=("cortex_m",),
)
ARMV7M = Isa(
    name="armv7m",
    summary="Cortex-M3: long multiplies, saturation",
    features=frozenset({"armv7m", "bytes"}),
    architectures=("cortex_m",),
)
ARMV7EM_DSP = extended(
    ARMV7M, "armv7em_dsp", "Cortex-M4 and up: two 16-bit products a step", gcc_options=BETTER_SCHEDULED
)

ISAS = (ARMV6M, ARMV7M, ARMV7EM_DSP)

_FIRST = ("push {r3, r7}", "mov lr, r2", "movs r3, #1", "lsls r3, #15", "mvns r3, r3", "mov r12, r3", "movs r3, #0")
_PAIR_OF_INPUTS = (
    "ldmia r0!, {r2, r3, r4, r5}",
    "ldmia r1!, {r6, r7}",
    *("muls r2, r6", "muls r4, r7", "adds r2, r4", "muls r3, r6", "muls r5, r7", "adds r3, r5"),
    *("add r2, r12", "add r8, r2", "asrs r2, #16", "add r9, r2"),
    *("add r3, r12", "add r10, r3", "asrs r3, #16", "add r11, r3"),
)
"""Two positions' inputs times two channels' weights: sums of whole words and of their upper halves."""
_LAST = (
    *("pop {r2, r7}", "mov r4, r9", "mov r6, r11"),
    *("lsls r3, r4, #16", "mov r5, r8", "subs r3, r5, r3"),
    *("lsls r0, r6, #16", "mov r5, r10", "subs r5, r5, r0"),
    "stmia r2!, {r3, r4, r5, r6}",
)


def _two_by_two(turn: int) -> str:
    cleared = [f"mov r{sum}, r3" for sum in range(8, 12)]
    code = [*_FIRST, *cleared, "1:", *_PAIR_OF_INPUTS * turn, "cmp r0, lr", "beq 2f", "b 1b", "2:", *_LAST]
    return _sums_in_registers(code, "int32_t", "int32_t")


def _sums_in_registers(code: Sequence[str], inputs: str, weights: str) -> str:
    """Assembly that is given the inputs, the weights, the end of the inputs and a place for the sums; it returns the
    end of the weights."""
    kinds = {"x": inputs, "k": weights, "end": inputs}
    held = {"r0": ("inputs", "x"), "r1": ("weights", "k"), "r2": ("last", "end"), "r3": ("to", "found")}
    lines = [
        f'register {f"const {kinds[value]}" if value in kinds else "int32_t"} *{name} __asm__("{register}") = {value};'
        for register, (name, value) in held.items()
    ]
    spelled = "\n".join(f'        "{line}\\n\\t"' for line in code)
    operands = ", ".join(f'"+r"({name})' for name, _ in held.values())
    clobbered = ", ".join(f'"{name}"' for name in (*(f"r{i}" for i in (4, 5, 6, *range(8, 13))), "lr", "cc", "memory"))
    assembly = f'__asm__ volatile(".syntax unified\\n\\t"\n{spelled}\n        : {operands} : : {clobbered});'
    return "\n".join([*lines, "", assembly, "return weights;"])


def _input_by_two(tap: int) -> tuple[str, ...]:
    """An input of two positions times the weights of two channels."""
    return (
        *("ldmia r0!, {r2, r3}", f"ldrb r4, [r1, #{2 * tap}]", f"ldrb r5, [r1, #{2 * tap + 1}]"),
        *("mov r6, r2", "muls r6, r4", "add r8, r6", "muls r2, r5", "add r9, r2"),
        *("muls r4, r3", "add r10, r4", "muls r5, r3", "add r11, r5"),
    )


def _two_by_two_words(turn: int) -> str:
    inputs = [line for tap in range(turn) for line in _input_by_two(tap)]
    cleared = ["movs r4, #0", *(f"mov r{sum}, r4" for sum in range(8, 12))]
    stored = ["mov r2, r12", "mov r4, r8", "mov r5, r9", "mov r6, r10", "stmia r2!, {r4, r5, r6}", "mov r4, r11"]
    looped = ["1:", *inputs, f"adds r1, #{2 * turn}", "cmp r0, lr", "bne 1b"]
    code = ["mov lr, r2", "mov r12, r3", *cleared, *looped, *stored, "str r4, [r2]"]
    return _sums_in_registers(code, "int32_t", "uint8_t")


def _one_by_four(turn: int) -> str:
    sums = range(8, 12)
    inputs = []
    for tap in range(turn):
        inputs += ["ldrsh r2, [r0, r6]", "adds r0, #2", "add r12, r2"]
        for channel, total in enumerate(sums):
            inputs += [f"ldrb r3, [r1, #{4 * tap + channel}]", "muls r3, r2", f"add r{total}, r3"]
    cleared = ["movs r6, #0", *(f"mov r{total}, r6" for total in (*sums, 12))]
    stored = [*(f"mov r{low}, r{total}" for low, total in zip((2, 3, 5, 6), sums, strict=True))]
    stored += ["stmia r4!, {r2, r3, r5, r6}", "mov r2, r12", "str r2, [r4]"]
    looped = ["1:", *inputs, f"adds r1, #{4 * turn}", "cmp r0, lr", "bne 1b"]
    return _sums_in_registers(["mov lr, r2", "mov r4, r3", *cleared, *looped, *stored], "int16_t", "uint8_t")


def _high_halves(b: str) -> str:
    """Declares the high word of the product of a and another number, by products of halves."""
    return f"""\
const int32_t {b}_high = {b} >> 16, {b}_low = {b} & 0xffff;
const int32_t first_{b} = a_high * {b}_low + (int32_t)(((uint32_t)a_low * (uint32_t){b}_low) >> 16);
const int32_t second_{b} = a_low * {b}_high + (first_{b} & 0xffff);
const int32_t high_{b} = a_high * {b}_high + (first_{b} >> 16) + (second_{b} >> 16);
"""


_HIGH_LONG = f"""\
const int32_t a_high = a >> 16, a_low = a & 0xffff;
{_high_halves("b")}{_high_halves("lower")}const uint32_t low = (uint32_t)a * (uint32_t)b;
const uint32_t carried = low + (uint32_t)high_lower < low;

return (int32_t)((uint32_t)(high_b + (high_lower >> 31)) + carried + (uint32_t)sum);"""

SMALL = Vectors(
    name="small",
    guard="defined(__ARM_ARCH_6M__) && defined(__GNUC__)",
    registers=13,
    spellings={
        "high": """\
const int32_t a_high = a >> 16, b_high = b >> 16;
const int32_t a_low = a & 0xffff, b_low = b & 0xffff;
const int32_t first = a_high * b_low + (int32_t)(((uint32_t)a_low * (uint32_t)b_low) >> 16);
const int32_t second = a_low * b_high + (first & 0xffff);

return a_high * b_high + (first >> 16) + (second >> 16);""",
        "two_by_two": _two_by_two,
        "two_by_two_words": _two_by_two_words,
        "one_by_four": _one_by_four,
    },
)

_HIGH_BY_UPPER = """\
const int32_t factor = b >> 16, low = a & 0xffff;

return (a >> 16) * factor + (low * factor >> 16);"""
SHORT = replace(SMALL, spellings={**SMALL.spellings, "high_long_add": _HIGH_LONG, "high_by_upper": _HIGH_BY_UPPER})
"""Those of kernels that no other core has."""

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
