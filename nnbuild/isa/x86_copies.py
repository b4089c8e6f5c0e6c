"""Inputs made ready for dot products: copied, and on the way turned into what the multiplications want."""

from __future__ import annotations

from nnbuild.base.writer import Instruction
from nnbuild.isa.x86_vectors import AVX2, AVX512, SSE, Vectors

ALL = (SSE, AVX2, AVX512)


def lifting(v: Vectors) -> Instruction:
    """Bytes with their top bit turned over: signed numbers become unsigned ones, 128 more."""
    lifted = v.spelt(f"xor_si{v.bits}", v.load("from + i"), "top")
    body = f"""\
const {v.kind} top = {v.spelt("set1_epi8", "-128")};
int32_t i = 0;
for (; i + {v.bytes} <= count; i += {v.bytes}) {{
    {v.store("to + i", lifted)};
}}
{_lifted_rest(v)}"""
    return Instruction(f"copy_lifted_{v.bits}", "void {name}(int8_t *to, const int8_t *from, int32_t count)", body, 4)


def _lifted_rest(v: Vectors) -> str:
    if v is AVX512:
        return """\
if (i < count) {
    const __mmask64 rest = ((__mmask64)1 << (count - i)) - 1;
    _mm512_mask_storeu_epi8(to + i, rest, _mm512_xor_si512(_mm512_maskz_loadu_epi8(rest, from + i), top));
}"""
    return """\
for (; i < count; ++i) {
    to[i] = (int8_t)(from[i] ^ -128);
}"""


def centring(v: Vectors) -> Instruction:
    """Bytes as 16-bit numbers less their zero point."""
    if v is SSE:
        bytes_ = "_mm_loadl_epi64((const __m128i *)(const void *)(from + i))"
        wide = f"_mm_srai_epi16(_mm_unpacklo_epi8({bytes_}, {bytes_}), 8)"
    else:
        wide = v.spelt("cvtepi8_epi16", (SSE if v is AVX2 else AVX2).load("from + i"))
    body = f"""\
const {v.kind} zeros = {v.spelt("set1_epi16", "(int16_t)zero")};
int32_t i = 0;
for (; i + {v.bytes // 2} <= count; i += {v.bytes // 2}) {{
    {v.store("to + i", v.spelt("sub_epi16", wide, "zeros"))};
}}
for (; i < count; ++i) {{
    to[i] = (int16_t)(from[i] - zero);
}}"""
    return Instruction(
        f"copy_centred_{v.bits}", "void {name}(int16_t *to, const int8_t *from, int32_t count, int32_t zero)", body, 4
    )


def filling(v: Vectors, kind: str, bits: int) -> Instruction:
    """The same value everywhere, up to a vector too far."""
    body = f"""\
const {v.kind} all = {v.spelt(f"set1_epi{bits}", "value")};
for (int32_t i = 0; i < count; i += {v.bits // bits}) {{
    {v.store("to + i", "all")};
}}"""
    return Instruction(f"fill{bits}_{v.bits}", f"void {{name}}({kind} *to, int32_t count, {kind} value)", body, 4)


def plain(v: Vectors) -> Instruction:
    """16-bit numbers as they are."""
    body = f"""\
int32_t i = 0;
for (; i + {v.bytes // 2} <= count; i += {v.bytes // 2}) {{
    {v.store("to + i", v.load("from + i"))};
}}
for (; i < count; ++i) {{
    to[i] = from[i];
}}"""
    return Instruction(f"copy_{v.bits}", "void {name}(int16_t *to, const int16_t *from, int32_t count)", body, 4)


PLAIN_COPIES = {v.bits: plain(v) for v in ALL}
COPIES = {("int8", v.bits): lifting(v) for v in ALL} | {("int16", v.bits): centring(v) for v in ALL}
FILLS = {("int8", v.bits): filling(v, "int8_t", 8) for v in ALL} | {
    ("int16", v.bits): filling(v, "int16_t", 16) for v in ALL
}
