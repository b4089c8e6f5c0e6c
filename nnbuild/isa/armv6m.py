"""Cortex-M0 and M0+: they multiply one number at a time, by 32 bits, and have eight registers for most instructions.

Without a long multiply a long product takes four short ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nnbuild.isa.isa import Isa
from nnbuild.isa.vectors import Vectors

ARMV6M = Isa(
    name="armv6m",
    summary="Cortex-M0 and M0+: 16-bit instructions, no long multiply",
    features=frozenset({"armv6m"}),
    architectures=("cortex_m",),
)
ISAS = (ARMV6M,)

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


_HALVES = "const int32_t a_high = a >> 16, a_low = a & 0xffff;\n"


def _high_of(b: str, begin: str) -> str:
    """The high word of the product of a and another number, by products of halves, behind this begin of a statement."""
    return f"""\
const int32_t {b}_high = {b} >> 16, {b}_low = {b} & 0xffff;
const int32_t first_{b} = a_high * {b}_low + (int32_t)(((uint32_t)a_low * (uint32_t){b}_low) >> 16);
const int32_t second_{b} = a_low * {b}_high + (first_{b} & 0xffff);

{begin} a_high * {b}_high + (first_{b} >> 16) + (second_{b} >> 16);
"""


_HIGH = f"{_HALVES}{_high_of('b', 'return')}"
_HIGH_LONG = f"""\
{_HALVES}{_high_of("b", "const int32_t high_b =")}{_high_of("lower", "const int32_t high_lower =")}
const uint32_t low = (uint32_t)a * (uint32_t)b;
const uint32_t carried = low + (uint32_t)high_lower < low;

return (int32_t)((uint32_t)(high_b + (high_lower >> 31)) + carried + (uint32_t)sum);"""

SMALL = Vectors(
    name="small",
    guard="defined(__ARM_ARCH_6M__) && defined(__GNUC__)",
    registers=13,
    spellings={
        "high": _HIGH,
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
