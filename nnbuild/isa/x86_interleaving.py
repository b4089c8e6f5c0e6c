"""Depthwise convolution of bytes on x86: every channel by itself, so the taps of a row are what lies side by side.

Channels are taken as many at a time as a vector has bytes. Their inputs under two or four neighbouring taps are
interleaved, which leaves four vectors of dot products in an order of channels of their own; packing the outputs to
bytes undoes it.
"""

from __future__ import annotations

from math import lcm

import numpy as np

from nnbuild.base.writer import Instruction, Writer
from nnbuild.isa.x86_integers import IntegerSet, IntegerVectors
from nnbuild.isa.x86_memory import BYTES, WORDS
from nnbuild.isa.x86_scaling import LARGER_BYTES_SSE2, SMALLER_BYTES_SSE2
from nnbuild.isa.x86_vectors import AVX2, AVX512, SSE, Vectors
from nnbuild.model.graph import Array
from nnbuild.ops.base import Pair

VECTORS = 4


def order(chosen: IntegerSet, channels: int) -> Array:
    """For every lane of every vector the channel it computes, until the pattern repeats."""
    v = chosen.vectors
    vector, lane = np.divmod(np.arange(VECTORS * v.lanes), v.lanes)
    quarter, element = np.divmod(lane, 4)
    if chosen.dot:
        within = quarter * 16 + vector * 4 + element
    else:
        half, which = np.divmod(vector, 2)
        within = half * (v.bytes // 2) + quarter * 8 + which * 4 + element
    groups = lcm(channels, v.bytes) // v.bytes
    found: Array = (np.arange(groups)[:, None] * v.bytes + within).reshape(-1) % channels
    return found


def interleaved(w: Writer, chosen: IntegerSet, taps: list[str]) -> None:
    """Declares x0 to x3: the inputs that `taps` point at, from `depth` taps, for `bytes` channels."""
    v = chosen.vectors
    if chosen.dot:
        for name, pointer in zip("abcd", taps, strict=True):
            w(f"const {v.kind} {name} = {v.load(pointer)};")
        pairs = ("a", "b"), ("c", "d")
        for index, (first, second) in enumerate(pairs):
            w(f"const {v.kind} low{index} = {v.spelt('unpacklo_epi8', first, second)};")
            w(f"const {v.kind} high{index} = {v.spelt('unpackhi_epi8', first, second)};")
        for index, part in enumerate(("low", "high")):
            w(f"const {v.kind} x{2 * index} = {v.spelt('unpacklo_epi16', f'{part}0', f'{part}1')};")
            w(f"const {v.kind} x{2 * index + 1} = {v.spelt('unpackhi_epi16', f'{part}0', f'{part}1')};")
    else:
        for half in (0, 1):
            for name, pointer in zip("ab", taps, strict=True):
                place = f"{pointer} + {v.bytes // 2}" if half else pointer
                w(f"const {v.kind} {name}{half} = {v.load(place)};")
            w(f"const {v.kind} x{2 * half} = {v.spelt('unpacklo_epi16', f'a{half}', f'b{half}')};")
            w(f"const {v.kind} x{2 * half + 1} = {v.spelt('unpackhi_epi16', f'a{half}', f'b{half}')};")
    w.bill(5)


def _sorted(v: Vectors) -> str:
    """The bytes of two halves, each 64 bits in turn, in order."""
    if v is AVX512:
        return "_mm512_permutexvar_epi64(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), bytes)"
    return "_mm256_permute4x64_epi64(bytes, 0xD8)" if v is AVX2 else "bytes"


def _joining(chosen: IntegerSet) -> Instruction:
    v = chosen.vectors
    words = (v.spelt("packs_epi32", a, b) for a, b in (("a", "b"), ("c", "d")))
    body = f"""\
const {v.kind} bytes = {v.spelt("packs_epi16", *words)};
return {"bytes" if chosen.dot else _sorted(v)};"""
    parameters = ", ".join(f"{v.kind} {name}" for name in "abcd")
    name = f"joined_{'quads' if chosen.dot else 'pairs'}_{v.bits}"
    return Instruction(name, f"{v.kind} {{name}}({parameters})", body, 2)


def joined(w: Writer, chosen: IntegerSet, values: list[str], limit: Pair) -> str:
    """Four vectors of outputs as bytes within bounds, channels in order."""
    v = chosen.vectors
    result = w.call(_joining(chosen), *values)
    for which, (bound, none) in enumerate(zip(limit, BYTES, strict=True)):
        if bound == none:
            continue
        constant = v.spelt("set1_epi8", str(bound))
        if v is SSE:
            result = w.call((LARGER_BYTES_SSE2, SMALLER_BYTES_SSE2)[which], result, constant)
        else:
            result = v.use(w, ("max_epi8", "min_epi8")[which], result, constant)
    return result


def _writing(v: Vectors) -> Instruction:
    if v is AVX512:
        body = "_mm512_mask_storeu_epi8(to, ((__mmask64)1 << count) - 1, value);"
    else:
        body = f"""\
int8_t bytes[{v.bytes}];
{v.store("bytes", "value")};
for (int32_t i = 0; i < count; ++i) {{
    to[i] = bytes[i];
}}"""
    return Instruction(f"write_{v.bits}", f"void {{name}}(int8_t *to, {v.kind} value, int32_t count)", body, 2)


def store_group(w: Writer, lanes: IntegerVectors, values: list[str], pointer: str, count: int) -> None:
    """Four vectors of outputs within bounds, channels in order: the first `count` of them."""
    v = lanes.v
    if lanes.dtype == "int8":
        result = joined(w, lanes.set, values, lanes.bounds)
        whole = v.store(pointer, result)
        w(f"{whole if count == v.bytes else w.call(WRITING[v.bits], pointer, result, str(count))};")
        return
    half = v.bytes // 2
    for index, (first, second) in enumerate((values[:2], values[2:])):
        real = min(half, count - index * half)
        if real <= 0:
            return
        result = v.use(w, "packs_epi32", first, second)
        for operation, bound, none in zip(("max_epi16", "min_epi16"), lanes.bounds, WORDS, strict=True):
            if bound != none:
                result = v.use(w, operation, result, v.spelt("set1_epi16", str(bound)))
        place = f"{pointer} + {half}" if index else pointer
        w(f"{v.store(place, result) if real == half else w.call(WRITING_WORDS[v.bits], place, result, str(real))};")


def _writing_words(v: Vectors) -> Instruction:
    body = f"""\
int16_t words[{v.bytes // 2}];
{v.store("words", "value")};
for (int32_t i = 0; i < count; ++i) {{
    to[i] = words[i];
}}"""
    return Instruction(f"write_words_{v.bits}", f"void {{name}}(int16_t *to, {v.kind} value, int32_t count)", body, 2)


WRITING_WORDS = {v.bits: _writing_words(v) for v in (SSE, AVX2, AVX512)}
WRITING = {v.bits: _writing(v) for v in (SSE, AVX2, AVX512)}
