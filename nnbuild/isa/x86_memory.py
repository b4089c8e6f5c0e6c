"""Bytes from and to memory as vectors of 32-bit numbers, no byte more than are there."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa.x86_scaling import (
    LARGER_BYTES_SSE2,
    LARGER_SSE2,
    PACKED_BYTES,
    PACKED_WORDS,
    SMALLER_BYTES_SSE2,
    SMALLER_SSE2,
)
from nnbuild.isa.x86_vectors import AVX2, AVX512, SSE, Vectors

BYTES = (-128, 127)
WORDS = (-32768, 32767)


def at(pointer: str, by: int) -> str:
    return f"{pointer} + {by}" if by else pointer


def larger(w: Writer, v: Vectors, a: str, b: str) -> str:
    return w.call(LARGER_SSE2, a, b) if v is SSE else v.use(w, "max_epi32", a, b)


def smaller(w: Writer, v: Vectors, a: str, b: str) -> str:
    return w.call(SMALLER_SSE2, a, b) if v is SSE else v.use(w, "min_epi32", a, b)


def within(w: Writer, v: Vectors, value: str, limit: tuple[int, int]) -> str:
    """32-bit numbers within bounds."""
    low, high = (v.spelt("set1_epi32", str(bound)) for bound in limit)
    return smaller(w, v, larger(w, v, value, low), high)


def packed(w: Writer, v: Vectors, value: str, limit: tuple[int, int]) -> str:
    """The lanes as bytes within bounds, from the lowest byte of a 128-bit vector on."""
    result = w.call(PACKED_BYTES[v.bits], value)
    for which, (bound, none) in enumerate(zip(limit, BYTES, strict=True)):
        if bound == none:
            continue
        constant = f"_mm_set1_epi8({bound})"
        if v is SSE:
            result = w.call((LARGER_BYTES_SSE2, SMALLER_BYTES_SSE2)[which], result, constant)
        else:
            result = SSE.use(w, ("max_epi8", "min_epi8")[which], result, constant)
    return result


def write_bytes(w: Writer, v: Vectors, value: str, limit: tuple[int, int], pointer: str, count: int) -> None:
    """Stores the first `count` lanes as bytes within bounds."""
    name = f"{value}_bytes"
    w(f"const __m128i {name} = {packed(w, v, value, limit)};")
    w.bill(0.5)
    if count == 16:
        w(f"{SSE.store(pointer, name)};")
    elif count == 8:
        w(f"_mm_storel_epi64({SSE.address(pointer, '')}, {name});")
    elif count == 4:
        w(f"_mm_storeu_si32({pointer}, {name});")
    elif v is AVX512:
        w(f"_mm_mask_storeu_epi8({pointer}, {(1 << count) - 1:#x}, {name});")
    else:
        _write_parts(w, name, pointer, count)


def _write_parts(w: Writer, value: str, pointer: str, count: int) -> None:
    done = 0
    for size in (4, 2, 1):
        if not count & size:
            continue
        part = SSE.use(w, "srli_si128", value, str(done)) if done else value
        if size == 1:
            w(f"*({at(pointer, done)}) = (int8_t)_mm_cvtsi128_si32({part});")
        else:
            w(f"_mm_storeu_si{8 * size}({at(pointer, done)}, {part});")
        done += size


def write_words(w: Writer, v: Vectors, value: str, limit: tuple[int, int], pointer: str, count: int) -> None:
    """Stores the first `count` lanes as 16-bit numbers within bounds."""
    name, half = f"{value}_words", AVX2 if v is AVX512 else SSE
    w(f"const {half.kind} {name} = {packed_words(w, v, half, value, limit)};")
    w.bill(0.5)
    if count == v.lanes:
        whole = half.store(pointer, name) if v is not SSE else f"_mm_storel_epi64({SSE.address(pointer, '')}, {name})"
        w(f"{whole};")
    elif v is AVX512:
        w(f"_mm256_mask_storeu_epi16({pointer}, {(1 << count) - 1:#x}, {name});")
    else:
        _write_word_parts(w, name, pointer, count)


def packed_words(w: Writer, v: Vectors, half: Vectors, value: str, limit: tuple[int, int]) -> str:
    result = w.call(PACKED_WORDS[v.bits], value)
    for operation, bound, none in zip(("max_epi16", "min_epi16"), limit, WORDS, strict=True):
        if bound != none:
            result = half.use(w, operation, result, half.spelt("set1_epi16", str(bound)))
    return result


def _write_word_parts(w: Writer, value: str, pointer: str, count: int) -> None:
    done = 0
    for size in (4, 2, 1):
        if not count & size:
            continue
        part = SSE.use(w, "srli_si128", value, str(2 * done)) if done else value
        place = at(pointer, done)
        store = f"_mm_storel_epi64({SSE.address(place, '')}, {part})" if size == 4 else ""
        w(f"{store or f'_mm_storeu_si{16 * size}({place}, {part})'};")
        done += size


def reads_parts(v: Vectors) -> bool:
    """Whether it can read fewer bytes than it has lanes."""
    return v is AVX512


def read_bytes(w: Writer, v: Vectors, pointer: str, count: int) -> str:
    """The first `count` bytes as 32-bit numbers."""
    w.bill(1)
    if v is AVX512:
        whole = SSE.load(pointer) if count == 16 else f"_mm_maskz_loadu_epi8({(1 << count) - 1:#x}, {pointer})"
        return v.spelt("cvtepi8_epi32", whole)
    assert count == v.lanes
    if v is AVX2:
        return v.spelt("cvtepi8_epi32", f"_mm_loadl_epi64({SSE.address(pointer)})")
    loaded = f"_mm_loadu_si32({pointer})"
    return f"_mm_srai_epi32(_mm_unpacklo_epi16({_twice(loaded)}, {_twice(loaded)}), 24)"


def _twice(loaded: str) -> str:
    return f"_mm_unpacklo_epi8({loaded}, {loaded})"
