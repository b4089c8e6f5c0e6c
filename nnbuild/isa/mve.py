"""Helium, the vectors of Cortex-M55 and M85: 16 bytes, 8 words or 4 floats at a time.

Products of bytes are summed across the lanes into an even core register: pinned to these, eight totals leave the odd
registers for pointers, an assignment that gcc does not find by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nnbuild.isa import byte_spellings
from nnbuild.isa.arm import ARMV7EM_DSP, DSP
from nnbuild.isa.isa import extended
from nnbuild.isa.vectors import Vectors

BY_NUMBER = {"add": "add", "sub": "sub", "mul": "mul", "high_rounded": "qrdmulh"}
GUARD = "defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE >= 3 && defined(__GNUC__) && !defined(NN_PORTABLE)"

HARMFUL = ("no-branch-count-reg", "no-strict-aliasing", "no-auto-inc-dec", "no-tree-loop-distribute-patterns")
"""Loops by LE would take the register of a total; gcc 12 treats all loads and stores by intrinsics as integers,
copies pointers to advance them while they are used, and makes copies by vectors calls of memcpy."""

MVE = replace(
    extended(
        ARMV7EM_DSP,
        "mve",
        "Cortex-M55 and M85: 16 products of bytes a step, four floats at a time",
        gcc_options=HARMFUL,
    ),
    guard=GUARD,
    includes=("arm_mve.h",),
)
ISAS = (MVE,)

TYPES = {
    "floats": "float32x4_t",
    "sums": "int32x4_t",
    "wide": "int64x2_t",
    "bytes": "int8x16_t",
    "words": "int16x8_t",
}
TOTALS = ("r0", "r2", "r4", "r6", "r8", "r10", "r12", "r14")
SIZES = {4: "8", 2: "16"}
_COPY = """\
{type} moved;

__asm__ volatile("wlstp.{bits} lr, %3, 2f\\n1:\\n\\tvldr{size}.{bits} %q2, [%1], #16\\n\\t"
                 "vstr{size}.{bits} %q2, [%0], #16\\n\\tletp lr, 1b\\n2:"
                 : "+&r"(to), "+&r"(from), "=&w"(moved)
                 : "r"(count)
                 : "lr", "memory", "cc");"""
_FILL = """\
const {type} each = vdupq_n_s{bits}(value);

__asm__ volatile("wlstp.{bits} lr, %2, 2f\\n1:\\n\\tvstr{size}.{bits} %q1, [%0], #16\\n\\tletp lr, 1b\\n2:"
                 : "+&r"(to)
                 : "w"(each), "r"(count)
                 : "lr", "memory", "cc");"""
_BITS = {4: {"type": "int8x16_t", "bits": "8", "size": "b"}, 2: {"type": "int16x8_t", "bits": "16", "size": "h"}}

_SQRT = """\
float32x4_t roots = a;

for (int32_t i = 0; i < 4; ++i) __asm__("vsqrt.f32 %0, %1" : "=t"(roots[i]) : "t"(a[i]));
return roots;"""
_SCALED_APART = """\
const int32x4_t product = vmulq_s32(a, multiplier);
const uint32x4_t sum = vreinterpretq_u32_s32(vaddq_s32(product, low));
const int32x4_t upper = vaddq_s32(vmulhq_s32(a, multiplier), high);
return vaddq_m_n_s32(upper, upper, 1, vcmphiq_u32(vreinterpretq_u32_s32(product), sum));"""
_PLAIN = {"add": "add", "sub": "sub", "mul": "mul", "min": "min", "max": "max", "and": "and", "xor": "eor"}
"""Operations on two vectors of sums, and their intrinsics."""


def _seen(kind: str, align: int) -> str:
    return f"typedef {kind} __attribute__((aligned({align}), may_alias)) seen;\n\n"


def _loaded(kind: str, align: int) -> str:
    """A vector at an aligned address. gcc 12 takes loads by intrinsics for single numbers, and moves others past
    them."""
    return f"{_seen(kind, align)}return *(const seen *)(const void *)from;"


def _stored(kind: str, align: int) -> str:
    return f"{_seen(kind, align)}*(seen *)(void *)to = a;"


def _first(count: int) -> str:
    """The predicate of the first `count` 32-bit lanes; gcc 12 takes any constant for all lanes."""
    return f"vctp32q({count})"


def _total(depth: int) -> str:
    added = f'__asm__("vmladava.s{SIZES[depth]} %0, %q1, %q2" : "+Te"(sum_before) : "w"(x), "w"(w));'
    return f"{added}\nreturn sum_before;"


def _first_total(depth: int) -> str:
    summed = f'__asm__("vmladav.s{SIZES[depth]} %0, %q1, %q2" : "=Te"(sum) : "w"(x), "w"(w));'
    return f"int32_t sum;\n\n{summed}\nreturn sum;"


def _inputs(depth: int) -> str:
    return _loaded("int8x16_t", 1) if depth == 4 else _loaded("int16x8_t", 2)


def _weights(depth: int) -> str:
    return "vldrbq_s8(from)" if depth == 4 else "vldrbq_s16(from)"


def _aligned(depth: int) -> str:
    cast = f"return vreinterpretq_s{SIZES[depth]}_s32("
    return _loaded("int32x4_t", 4).replace("return ", cast).replace("from;", "from);")


def _high(by: str) -> dict[int, str]:
    """With and without rounding; either doubles its product."""
    return {1 << 30: f"vqrdmulhq{by}_s32(a, by)", 0: f"vqdmulhq{by}_s32(a, by)"}


def _held(value: str, low: int, high: int, bits: int) -> list[str]:
    """Statements that clamp a vector of words to bounds tighter than their type's."""
    lines = []
    if low > -(1 << (bits - 1)):
        lines.append(f"{value} = vmaxq_s16({value}, vdupq_n_s16({low}));")
    if high < (1 << (bits - 1)) - 1:
        lines.append(f"{value} = vminq_s16({value}, vdupq_n_s16({high}));")
    return lines


def _narrowed(second: str, low: int, high: int, bits: int) -> list[str]:
    """Two vectors of sums in the even and odd halves of `both`."""
    lines = [
        "int16x8_t both = vqmovnbq_s32(vreinterpretq_s16_s32(a), a);",
        "",
        f"both = vqmovntq_s32(both, {second});",
        *_held("both", low, high, bits),
    ]
    if bits == 8 and (low == -128 or high == 127):
        lines.append("both = vreinterpretq_s16_s8(vqmovnbq_s16(vreinterpretq_s8_s16(both), both));")
    return lines


def _store_apart(bits: int, apart: int, channels: int, positions: int, low: int, high: int) -> str:
    second, size, kind = "b" if channels == 2 else "a", bits // 8, {8: "b", 16: "h"}[bits]
    firsts = [min(i, positions - 1) * apart for i in range(4)]
    places = ", ".join(f"{first * size}, {(first + channels - 1) * size}" for first in firsts)
    lines = [f"static const uint16_t places[8] = {{{places}}};", *_narrowed(second, low, high, bits)]
    return "\n".join([*lines, f"vstr{kind}q_scatter_offset_s16(to, vldrhq_u16(places), both);"])


def _store_places(low: int, high: int) -> str:
    return "\n".join([*_narrowed("b", low, high, 8), "vstrbq_scatter_offset_s16(to, vldrhq_u16(at), both);"])


def _store(bits: int) -> Callable[[int, int, int], str]:
    def stored(low: int, high: int, count: int) -> str:
        size = {8: "b", 16: "h"}[bits]
        held = f"a = vminq_s32(vmaxq_s32(a, vdupq_n_s32({low})), vdupq_n_s32({high}));"
        if count >= 4:
            return f"{held}\nvstr{size}q_s32(to, a);"
        return f"{held}\nvstr{size}q_p_s32(to, a, {_first(count)});"

    return stored


HELIUM = Vectors(
    name="mve",
    guard=GUARD,
    lanes=4,
    registers=8,
    types=TYPES,
    kernels=("float", "across", "tables", "bytes"),
    depth=4,
    totals=TOTALS,
    pointer="r9",
    subscripts=True,
    in_order=True,
    cycles={"f_div": 11, "f_sqrt": 7, **dict.fromkeys(("lift", "copy", "fill"), 4), "look_up": 4, "each": 0.2},
    spellings={name: f"v{op}q_s32(a, b)" for name, op in _PLAIN.items()}
    | {
        "f_load": _loaded("float32x4_t", 4),
        "f_load_first": lambda count: f"vldrwq_z_f32(from, {_first(count)})",
        "f_load_repeated": lambda *_: "vldrwq_gather_shifted_offset_f32(from, vshrq_n_u32(vidupq_n_u32(0, 1), 1))",
        "f_store": _stored("float32x4_t", 4),
        "f_store_first": lambda count: f"vstrwq_p_f32(to, a, {_first(count)})",
        "f_each": "vdupq_n_f32(a)",
        "f_repeat": lambda depth: "vdupq_n_f32(*from)",
        "f_add": "vaddq_f32(a, b)",
        "f_sub": "vsubq_f32(a, b)",
        "f_mul": 'float32x4_t product = vmulq_f32(a, b);\n\n__asm__("" : "+w"(product));\nreturn product;',
        "f_div": "a / b",  # by the scalar unit, whose registers are the lanes
        "f_fma": "vfmaq_f32(c, a, b)",
        "f_fma_by": "vfmaq_n_f32(c, b, a)",
        **{f"f_{of}": f"vpselq_f32(a, b, vcmpgtq_f32({pair}))" for of, pair in (("max", "a, b"), ("min", "b, a"))},
        "f_sqrt": _SQRT,
        "f_if_less": "vpselq_f32(then, otherwise, vcmpgtq_f32(b, a))",  # lt also holds for a NaN
        **{"f_bits": "vreinterpretq_s32_f32(a)", "f_of_bits": "vreinterpretq_f32_s32(a)"},
        "f_of_sums": "vcvtq_f32_s32(a)",
        "f_steps": "vcvtaq_s32_f32(vminnmq_f32(vmaxnmq_f32(a, vdupq_n_f32({})), vdupq_n_f32({})))".format,
        "inputs": _inputs,
        **{"weights": _weights, "aligned": _aligned},
        **{"total": _total, "first_total": _first_total, "total_long": "vmlaldavaq_s16(sum_before, x, w)"},
        "join": """\
sums r;

__asm__("vmov %q0[2], %q0[0], %1, %2\\n\\tvmov %q0[3], %q0[1], %3, %4" : "=&w"(r) : "r"(a), "r"(c), "r"(b), "r"(d));
return r;""",
        **{"sum_across": "vaddvq_s32(a)", "max_across": "vmaxvq_s32(INT32_MIN, a)"},
        "gather": "vldrwq_gather_shifted_offset_s32(from, vreinterpretq_u32_s32(a))",
        "here": lambda depth: '__asm__ volatile("" : "+r"(from));\nreturn from;',
        "load_two": DSP.spellings["load_two"],
        "load": _loaded("int32x4_t", 4),
        "store": _stored("int32x4_t", 4),
        "each": "vdupq_n_s32(a)",
        "shift_right": lambda by: f"vshrq_n_s32(a, {by})" if by else "a",
        "shift_left": lambda by: f"vshlq_n_s32(a, {by})",
        "shift_down": lambda by: f"vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a), {by}))" if by else "a",
        **{f"{of}_by": f"v{name}q_n_s32(a, b)" for of, name in BY_NUMBER.items()},
        **{f"high_{of}": _high(suffix).__getitem__ for of, suffix in (("by", "_n"), ("each", ""))},
        "moved_by": "vshlq_r_s32(a, by)",
        **dict.fromkeys(("moved_by_each", "shift_left_each"), "vshlq_s32(a, by)"),
        "less_below": "vmlaq_n_s32(a, vshrq_n_s32(b, 31), by)",
        "less_below_each": "vaddq_s32(a, vandq_s32(vshrq_n_s32(b, 31), vnegq_s32(by)))",
        "multiply_add_by": "vmlaq_n_s32(c, a, by)",
        **{"store_apart": _store_apart, "store_places": _store_places},
        "f_store_places": lambda k: f"vstrwq_scatter_shifted_offset_f32(to, vmovl{'bt'[k]}q_u16(vldrhq_u16(at)), a)",
        **byte_spellings.helium(_loaded("int8x16_t", 1), _stored("int8x16_t", 1)),
        **{f"store_{name}": _store(bits) for name, bits in (("bytes", 8), ("words", 16))},
        "widen": lambda count: "vldrbq_s32(from)" if count >= 4 else f"vldrbq_z_s32(from, {_first(count)})",
        "widen_words": lambda count: "vldrhq_s32(from)" if count >= 4 else f"vldrhq_z_s32(from, {_first(count)})",
        "widen_repeated_words": lambda *_: "vldrhq_gather_shifted_offset_s32(from, vshrq_n_u32(vidupq_n_u32(0, 1), 1))",
        "shift_down_by": "vreinterpretq_s32_u32(vshlq_r_u32(vreinterpretq_u32_s32(a), -by))",
        "shift_right_each": "vshlq_s32(a, vnegq_s32(by))",
        "scaled_apart": _SCALED_APART,
        **{"upper": "vmulhq_s32(a, b)", "high_rounded": "vqrdmulhq_s32(a, b)"},
        "away": "vaddq_s32(a, vshrq_n_s32(a, 31))",
        **{"round_each": "vrshlq_s32(a, vnegq_s32(by))", "round_each_by": "vrshlq_n_s32(a, -by)"},
        "gather_two": """\
const uint16x8_t even = vldrbq_gather_offset_u16((const uint8_t *)from, vldrhq_u16(at));
const uint16x8_t odd = vldrbq_gather_offset_u16((const uint8_t *)from, vldrhq_u16(at + 8));
return vreinterpretq_s8_u16(vsliq_n_u16(even, odd, 8));""",
        "lift": lambda by: _COPY.format(**_BITS[4]),
        "copy": _COPY.format(**_BITS[2]),
        "fill": lambda depth: _FILL.format(**_BITS[depth]),
    },
)
VECTORS = (HELIUM,)
