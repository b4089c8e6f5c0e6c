"""The spellings of operations on vectors of bytes, and of look-ups in a table of 256 bytes, which every set has its own
way for."""

from __future__ import annotations

from collections.abc import Callable

from nnbuild.isa.vectors import Spelling
from nnbuild.isa.x86_integers import Width

SLICE = 16
"""Bytes among which an x86 shuffle selects, for every byte of which the top bit is clear."""
ONE_BY_ONE = "for (; i < count; ++i) to[i] = table[(uint8_t)from[i]];"

_HELIUM_LOOK_UP = """\
int8x16_t at, found;

__asm__ volatile("wlstp.8 lr, %4, 2f\\n1:\\n\\tvldrb.8 %q2, [%1], #16\\n\\tvldrb.u8 %q3, [%5, %q2]\\n\\t"
                 "vstrb.8 %q3, [%0], #16\\n\\tletp lr, 1b\\n2:"
                 : "+&r"(to), "+&r"(from), "=&w"(at), "=&w"(found)
                 : "r"(count), "r"(table)
                 : "lr", "memory", "cc");"""
_RISCV_LOOK_UP = """\
for (int32_t i = 0; i < count;) {
    const size_t n = __riscv_vsetvl_e8m8((size_t)(count - i));
    const vuint8m8_t at = __riscv_vle8_v_u8m8((const uint8_t *)from + i, n);

    __riscv_vse8_v_i8m8(to + i, __riscv_vluxei8_v_i8m8(table, at, n), n);
    i += (int32_t)n;
}"""
VBMI_LOOK_UP = """\
const __m512i first = _mm512_loadu_si512(table), second = _mm512_loadu_si512(table + 64);
const __m512i third = _mm512_loadu_si512(table + 128), fourth = _mm512_loadu_si512(table + 192);

for (int32_t i = 0; i < count; i += 64) {
    const __mmask64 some = count - i < 64 ? ((__mmask64)1 << (count - i)) - 1 : ~(__mmask64)0;
    const __m512i at = _mm512_maskz_loadu_epi8(some, from + i);
    const __m512i near = _mm512_permutex2var_epi8(first, at, second);
    const __m512i far = _mm512_permutex2var_epi8(third, at, fourth);

    _mm512_mask_storeu_epi8(to + i, some, _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), near, far));
}"""


def _neon_look_up() -> str:
    """Four look-ups in 64 bytes: an index beyond these leaves the result as it is."""
    parts = [f"table + {64 * part}" if part else "table" for part in range(4)]
    tables = [f"const int8x16x4_t part{part} = vld1q_s8_x4({place});" for part, place in enumerate(parts)]
    further = [
        f"    found = vqtbx4q_s8(found, part{part}, vsubq_u8(at, vdupq_n_u8({64 * part})));" for part in range(1, 4)
    ]
    return "\n".join(
        [
            *tables,
            "int32_t i = 0;",
            "",
            "for (; i + 16 <= count; i += 16) {",
            "    const uint8x16_t at = vreinterpretq_u8_s8(vld1q_s8(from + i));",
            "    int8x16_t found = vqtbl4q_s8(part0, at);",
            "",
            *further,
            "    vst1q_s8(to + i, found);",
            "}",
            ONE_BY_ONE,
        ]
    )


def _x86_look_up(bits: int, broadcast: str) -> str:
    """Slices of 16 bytes, each combined with the one before: a byte adds the slices up to its own, as subtracting 16 a
    slice makes the top bit of its index set only after that, or before, in the upper half.

    `broadcast` repeats 16 bytes.
    """
    v = Width(bits)
    lines = [f"const {v.kind} step = {v('set1_epi8', str(SLICE))}, top = {v('set1_epi8', '-128')};"]
    for part in range(16):
        place = f"table + {SLICE * part}" if part else "table"
        lines.append(f"const __m128i held{part} = {Width(128).load(place)};")
    for part in range(16):
        value = f"_mm_xor_si128(held{part}, held{part - 1})" if part % 8 else f"held{part}"
        lines.append(f"const {v.kind} slice{part} = {broadcast.format(value)};")
    loop = [f"{v.kind} at = {v.load('from + i')};", f"{v.kind} upper = {v(f'xor_si{bits}', 'at', 'top')};"]
    loop += [f"{v.kind} found = {v('shuffle_epi8', 'slice0', 'at')};", ""]
    for name, start in (("at", 0), ("upper", 8)):
        for part in range(start, start + 8):
            if part > start:
                loop.append(f"{name} = {v('subs_epi8', name, 'step')};")
            if part:
                loop.append(f"found = {v(f'xor_si{bits}', 'found', v('shuffle_epi8', f'slice{part}', name))};")
    loop.append(f"{v.store('to + i', 'found')};")
    body = "\n".join(f"    {line}" if line else "" for line in loop)
    step = bits // 8
    return "\n".join(
        [*lines, "int32_t i = 0;", "", f"for (; i + {step} <= count; i += {step}) {{", body, "}", ONE_BY_ONE]
    )


def _pieces(size: int, loads: dict[int, str], stores: dict[int, str]) -> dict[str, Spelling]:
    """Loads and stores of as many bytes as there are instructions for, and of others by way of an array."""
    load, store = loads[size], stores[size]

    def loaded(count: int) -> str:
        if count in loads:
            return loads[count].format("from")
        part = f"int8_t part[{size}] = {{0}};\n\n__builtin_memcpy(part, from, {count});"
        return f"{part}\nreturn {load.format('part')};"

    def stored(count: int) -> str:
        if count in stores:
            return f"{stores[count].format('to')};"
        return f"int8_t part[{size}];\n\n{store.format('part')};\n__builtin_memcpy(to, part, {count});"

    return {"b_load": loaded, "b_store": stored}


def _line(pointer: str, index: int) -> str:
    """The place of a line, all of which are `pointer`_apart."""
    times = f"{index} * " if index > 1 else ""
    return f"{pointer} + {times}{pointer}_apart" if index else pointer


def _turned(kind: str, load: str, zips: Callable[[int, int, str, str], str], stores: tuple[str, str]) -> str:
    """Eight rows of eight bytes turned by zipping them three times: then each vector has two columns. `zips` gives the
    lower or upper half of two vectors' zipped numbers of so many bits; `stores` stores either half of a vector."""
    lines = [f"const {kind} row{i} = {load.format(_line('from', i))};" for i in range(8)]
    lines += [f"const {kind} two{i} = {zips(8, 0, f'row{2 * i}', f'row{2 * i + 1}')};" for i in range(4)]
    lines += [f"const {kind} four{i} = {zips(16, i % 2, *_pair('two', i // 2 * 2, 1))};" for i in range(4)]
    lines += [f"const {kind} all{i} = {zips(32, i % 2, *_pair('four', i // 2, 2))};" for i in range(4)]
    places = [_line("to", i) for i in range(8)]
    return "\n".join([*lines, *(f"{stores[i % 2].format(places[i], f'all{i // 2}')};" for i in range(8))])


def _turned_words(kind: str, load: str, zips: Callable[[int, int, str, str], str], store: str) -> str:
    """The same of four rows of four words, which are zipped twice."""
    lines = [f"const {kind} row{i} = {load.format(_line('from', i))};" for i in range(4)]
    lines += [f"const {kind} two{i} = {zips(32, i % 2, *_pair('row', i // 2, 2))};" for i in range(4)]
    lines += [f"const {kind} all{i} = {zips(32, i % 2, *_pair('two', i // 2, 2))};" for i in range(4)]
    return "\n".join([*lines, *(f"{store.format(_line('to', i), f'all{i}')};" for i in range(4))])


def _pair(name: str, first: int, apart: int) -> tuple[str, str]:
    return f"{name}{first}", f"{name}{first + apart}"


def _x86_zips(bits: int, half: int, a: str, b: str) -> str:
    return f"_mm_unpack{('lo', 'hi')[half]}_epi{bits}({a}, {b})"


def _neon_zips(bits: int, half: int, a: str, b: str) -> str:
    if bits == 8:
        return f"vzip{half + 1}q_s8({a}, {b})"
    a, b = (f"vreinterpretq_s{bits}_s8({name})" for name in (a, b))
    return f"vreinterpretq_s8_s{bits}(vzip{half + 1}q_s{bits}({a}, {b}))"


def _riscv_turn() -> str:
    rows = ", ".join(f"__riscv_vle8_v_i8m1({_line('from', i)}, 8)" for i in range(8))
    return f"__riscv_vssseg8e8_v_i8m1x8(to, to_apart, __riscv_vcreate_v_i8m1x8({rows}), 8);"


def helium(load: str, store: str) -> dict[str, Spelling]:
    """`load` and `store` are bodies for whole vectors."""
    return {
        "b_load": lambda count: load if count == 16 else f"vldrbq_z_s8(from, vctp8q({count}))",
        "b_store": lambda count: store if count == 16 else f"vstrbq_p_s8(to, a, vctp8q({count}))",
        "b_each": "vdupq_n_s8((int8_t)a)",
        "b_max": "vmaxq_s8(a, b)",
        "b_min": "vminq_s8(a, b)",
        "look_up": _HELIUM_LOOK_UP,
    }


NEON: dict[str, Spelling] = {
    **_pieces(
        16,
        {16: "vld1q_s8({0})", 8: "vcombine_s8(vld1_s8({0}), vdup_n_s8(0))"},
        {16: "vst1q_s8({0}, a)", 8: "vst1_s8({0}, vget_low_s8(a))"},
    ),
    "b_each": "vdupq_n_s8((int8_t)a)",
    "b_max": "vmaxq_s8(a, b)",
    "b_min": "vminq_s8(a, b)",
    "look_up": _neon_look_up(),
    "turn": _turned(
        "int8x16_t",
        "vcombine_s8(vld1_s8({0}), vdup_n_s8(0))",
        _neon_zips,
        ("vst1_s8({0}, vget_low_s8({1}))", "vst1_s8({0}, vget_high_s8({1}))"),
    ),
    "f_turn": _turned_words(
        "int8x16_t",
        "vreinterpretq_s8_f32(vld1q_f32({0}))",
        _neon_zips,
        "vst1q_f32({0}, vreinterpretq_f32_s8({1}))",
    ),
}


def riscv(lanes: int) -> dict[str, Spelling]:
    """Four registers of bytes, as many as `lanes` have."""
    return {
        "b_load": lambda count: f"__riscv_vle8_v_i8m4(from, {count})",
        "b_store": lambda count: f"__riscv_vse8_v_i8m4(to, a, {count});",
        "b_each": f"__riscv_vmv_v_x_i8m4((int8_t)a, {4 * lanes})",
        "b_max": f"__riscv_vmax_vv_i8m4(a, b, {4 * lanes})",
        "b_min": f"__riscv_vmin_vv_i8m4(a, b, {4 * lanes})",
        "look_up": _RISCV_LOOK_UP,
        "turn": _riscv_turn(),
    }


def x86(bits: int) -> dict[str, Spelling]:
    v, half = Width(bits), Width(128)
    first = "a" if bits == 128 else v(f"castsi{bits}_si128", "a")
    loads = {16: half.load("{0}"), 8: half.half("{0}"), 4: "_mm_loadu_si32({0})"}
    if bits > 128:
        loads = {count: v(f"castsi128_si{bits}", load) for count, load in loads.items()}
    stores = {16: half.store("{0}", first), 8: f"_mm_storel_epi64((__m128i *)(void *)({{0}}), {first})"}
    stores[4] = f"_mm_storeu_si32({{0}}, {first})"
    return {
        **_pieces(bits // 8, loads | {bits // 8: v.load("{0}")}, stores | {bits // 8: v.store("{0}", "a")}),
        "b_each": v("set1_epi8", "(int8_t)a"),
        "b_max": v("max_epi8", "a", "b"),
        "b_min": v("min_epi8", "a", "b"),
    }


def x86_with_look_up(bits: int, broadcast: str) -> dict[str, Spelling]:
    return x86(bits) | {"look_up": _x86_look_up(bits, broadcast)}


_GREATER = """\
const __m128i first = _mm_cmpgt_epi8({0}, {1});
return _mm_or_si128(_mm_and_si128(first, a), _mm_andnot_si128(first, b));"""
_EITHER_HALF = (
    "_mm_storel_epi64((__m128i *)(void *)({0}), {1})",
    "_mm_storel_epi64((__m128i *)(void *)({0}), _mm_unpackhi_epi64({1}, {1}))",
)
SSE2 = x86(128) | {
    "b_max": _GREATER.format("a", "b"),
    "b_min": _GREATER.format("b", "a"),
    "turn": _turned("__m128i", Width(128).half("{0}"), _x86_zips, _EITHER_HALF),
    "f_turn": _turned_words(
        "__m128i", "_mm_castps_si128(_mm_loadu_ps({0}))", _x86_zips, "_mm_storeu_ps({0}, _mm_castsi128_ps({1}))"
    ),
}
