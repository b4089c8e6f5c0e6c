"""The spellings of integer operations that the widths of x86 share; exceptions are in a width's file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from nnbuild.isa.vectors import Spelling, Vectors

LOWEST = {8: -128, 16: -32768}


@dataclass(frozen=True)
class Width:
    """The intrinsics of vectors of `bits` bits."""

    bits: int

    def __call__(self, operation: str, *operands: str) -> str:
        return f"_mm{'' if self.bits == 128 else self.bits}_{operation}({', '.join(operands)})"

    @property
    def kind(self) -> str:
        return f"__m{self.bits}i"

    def load(self, pointer: str) -> str:
        return self(f"loadu_si{self.bits}", f"(const {self.kind} *)(const void *)({pointer})")

    def store(self, pointer: str, value: str) -> str:
        return self(f"storeu_si{self.bits}", f"({self.kind} *)(void *)({pointer})", value)

    def half(self, pointer: str) -> str:
        """Half as many bytes, in a smaller vector."""
        if self.bits == 128:
            return f"_mm_loadl_epi64((const __m128i *)(const void *)({pointer}))"
        return Width(self.bits // 2).load(pointer)


def spellings(bits: int) -> dict[str, Spelling]:
    v = Width(bits)
    si = f"si{bits}"
    return {
        "load": v.load("from"),
        "load_wide": v.load("from"),
        "store": v.store("to", "a"),
        "each_wide": v("set1_epi64" if bits == 512 else "set1_epi64x", "a"),
        "sub": v("sub_epi32", "a", "b"),
        "mul": v("mullo_epi32", "a", "b"),
        "min": v("min_epi32", "a", "b"),
        "max": v("max_epi32", "a", "b"),
        "xor": v(f"xor_{si}", "a", "b"),
        "shift_left_each": v("sllv_epi32", "a", "by"),
        "shift_right_each": v("srav_epi32", "a", "by"),
        "inputs": lambda depth: v.load("from"),
        "weights": lambda depth: v.load("from") if depth == 4 else v("cvtepi8_epi16", v.half("from")),
        "repeat": lambda depth: v("broadcastd_epi32", "_mm_loadu_si32(from)"),
        "dot": dot(bits, {2: ""}),
        "lift": lambda by: _lift(v, by),
        "centre": centre(bits, v("cvtepi8_epi16", v.half("from + i"))),
        "copy": _copied(v, 16, v.load("from + i"), "to[i] = from[i]"),
        "fill": lambda depth: _fill(v, 32 // depth),
        "mix": lambda depth, vector, block: _mix(v, depth, vector),
        "sums_across": sums_across(bits),
        **{f"{name}_across": across(bits, of) for name, of in (("sum", "add"), ("max", "max"))},
    }


def sums_across(bits: int) -> Spelling:
    """In each turn two vectors become one: within 128 bits by zipping them, then by exchanging parts of 128 bits."""
    v = Width(bits)
    far = {
        128: (),
        256: (("permute2x128_si256", "0x20", "0x31"),),
        512: (("shuffle_i32x4", "0x88", "0xdd"),) * 2,
    }[bits]
    near = ((f"unpack{{}}_epi{size}", "lo", "hi") for size in (32, 64))
    turns = [*near, *((f"{name}", *picks) for name, *picks in far)]

    def spelt(count: int) -> str:
        names, lines = [f"v{i}" for i in range(count)], []
        for turn, (name, *picks) in enumerate(turns):
            pairs = [(names[i], names[min(i + 1, len(names) - 1)]) for i in range(0, len(names), 2)]
            names = [f"turn{turn}{i}" for i in range(len(pairs))]
            for to, pair in zip(names, pairs, strict=True):
                parts = (v(name.format(p), *pair, *([] if "{}" in name else [p])) for p in picks)
                lines.append(f"const {v.kind} {to} = {v('add_epi32', *parts)};")
        return "\n".join([*lines, f"return {names[0]};"])

    return spelt


LARGER = "_mm_sub_epi32(first, _mm_and_si128(_mm_cmpgt_epi32(second, first), _mm_sub_epi32(first, second)))"
"""The larger numbers of two vectors, by SSE2."""


def across(bits: int, operation: str) -> Spelling:
    """All lanes become one number: both halves of a vector become one of half the size."""
    if bits == 512:
        return f"_mm512_reduce_{operation}_epi32(a)"
    step = LARGER if (bits, operation) == (128, "max") else f"_mm_{operation}_epi32(first, second)"
    lines = ["__m128i first = a, second;"]
    if bits == 256:
        lines = [
            "__m128i first = _mm256_castsi256_si128(a), second = _mm256_extracti128_si256(a, 1);",
            f"first = {step};",
        ]
    for swap in ("0x4e", "0xb1"):
        lines += [f"second = _mm_shuffle_epi32(first, {swap});", f"first = {step};"]
    return "\n".join([*lines, "return _mm_cvtsi128_si32(first);"])


SUM_OF_RUNS = f"""\
const __m128i low = _mm_set1_epi8(15), one = _mm_set1_epi8(1);
const __m128i table = _mm_loadu_si128((const __m128i *)(const void *)values);
const __m128i order = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
__m256i total = _mm256_setzero_si256();
int32_t a = sum, b = 0;

for (; count > 0; count -= 16) {{
    const __m128i there = _mm_cmpgt_epi8(_mm_set1_epi8((int8_t)(count < 16 ? count : 16)), order);
    const __m128i both = _mm_loadu_si128((const __m128i *)(const void *)k);
    __m128i after = _mm_add_epi8(_mm_and_si128(both, low), one);
    uint8_t places[16];
    int8_t weights[16];

    after = _mm_add_epi8(after, _mm_slli_si128(after, 1));
    after = _mm_add_epi8(after, _mm_slli_si128(after, 2));
    after = _mm_add_epi8(after, _mm_slli_si128(after, 4));
    after = _mm_add_epi8(after, _mm_slli_si128(after, 8)); /* up to 256: one less fits a byte */
    after = _mm_sub_epi8(after, one);
    _mm_storeu_si128((__m128i *)(void *)places, after);
    const __m128i codes = _mm_and_si128(_mm_srli_epi16(both, 4), low);
    const __m128i chosen = _mm_and_si128(_mm_shuffle_epi8(table, codes), there);
    _mm_storeu_si128((__m128i *)(void *)weights, chosen);
{"".join(f"    {'ab'[i % 2]} += x[places[{i}]] * weights[{i}];" + chr(10) for i in range(8, 16))}\
    const __m256i found = _mm256_i32gather_epi32((const int *)(const void *)x, _mm256_cvtepu8_epi32(after), 1);
    const __m256i inputs = _mm256_srai_epi32(_mm256_slli_epi32(found, 24), 24);
    total = _mm256_add_epi32(total, _mm256_mullo_epi32(inputs, _mm256_cvtepi8_epi32(chosen)));
    x += places[15] + 1;
    k += 16;
}}
const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(total), _mm256_extracti128_si256(total, 1));
const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
return a + b + _mm_cvtsi128_si32(two) + _mm_extract_epi32(two, 1);"""
"""The prefix sum of sixteen bytes locates the inputs; those beyond the last one get weight zero. Half of them are
gathered, the others multiplied one by one: either method alone is slower."""


def dot(bits: int, steps: dict[int, str]) -> Spelling:
    """The empty assembly keeps gcc from assigning the sums of two iterations different registers, and from delaying the
    additions. Being volatile, it also keeps gcc from reordering loads of weights: from the second cache that took a
    third more time. `steps` names the instruction for each depth; where there is none, it takes two."""
    v = Width(bits)

    def spelt(depth: int, lift: int) -> str:
        step = steps[depth]
        value = v(step, "a", "x", "w") if step else v("add_epi32", "a", v("madd_epi16", "x", "w"))
        return f'a = {value};\n__asm__ volatile("" : "+{"v" if bits == 512 else "x"}"(a));\nreturn a;'

    return spelt


def vnni(base: Vectors, name: str, suffix: str) -> Vectors:
    """A set with products of four bytes in one instruction: unsigned inputs, signed weights."""
    steps = {depth: f"{operation}_{suffix}epi32" for depth, operation in ((4, "dpbusd"), (2, "dpwssd"))}
    spellings, cycles = {**base.spellings, "dot": dot(32 * base.lanes, steps)}, {**base.cycles, "dot": 0.5}
    return replace(base, name=name, kernels=("integer",), depth=4, lift=128, spellings=spellings, cycles=cycles)


def scaled(bits: int, halves: str) -> Spelling:
    """Exact 64-bit products, even and odd lanes separately; `halves` joins the upper halves of both to one vector."""
    v = Width(bits)
    upper = [v("srli_epi64", name, "32") for name in ("a", "multiplier")]
    even = v("add_epi64", v("mul_epi32", "a", "multiplier"), "first")
    odd = v("add_epi64", v("mul_epi32", *upper), "second")
    return lambda alternating: f"const {v.kind} even = {even}, odd = {odd};\nreturn {halves};"


def upper(bits: int, halves: str) -> dict[str, Spelling]:
    """The upper halves of products, floored; with a number added before; and of doubled ones, rounded."""
    v = Width(bits)
    one, (a, b, c) = v("set1_epi32", "1"), (v("srli_epi64", name, "32") for name in "abc")
    products = f"const {v.kind} low = {v('mul_epi32', 'a', 'b')}, high = {v('mul_epi32', a, b)};"
    return uppers_of(v, products, (v("mul_epi32", "c", one), v("mul_epi32", c, one)), halves)


def uppers_of(v: Width, products: str, added: tuple[str, str], halves: str) -> dict[str, Spelling]:
    """The same from statements that declare the products of even lanes and of odd ones, `low` and `high`, and the 64
    bits of c's numbers in either lanes."""
    sums = (v("add_epi64", name, more) for name, more in zip(("low", "high"), added, strict=True))
    plus = "const {0} even = {1};\nconst {0} odd = {2};".format(v.kind, *sums)
    half = v("set1_epi64" if v.bits == 512 else "set1_epi64x", "1 << 30")
    even, odd = (v("slli_epi64", v("add_epi64", name, half), "1") for name in ("low", "high"))
    rounded = f"{products}\nconst {v.kind} even = {even};\nconst {v.kind} odd = {odd};\nreturn {halves};"
    floored = f"{products}\nreturn {halves.replace('even', 'low').replace('odd', 'high')};"
    return {"upper": floored, "upper_plus": f"{products}\n{plus}\nreturn {halves};", "high_rounded": rounded}


def repeat_apart(bits: int, broadcast: str) -> Spelling:
    """The inputs of all outputs are in 16 bytes, which are shuffled."""
    v, lanes = Width(bits), bits // 32

    def spelt(depth: int, outputs: int, channels: int, step: int) -> str:
        apart = [lane // channels * step * 4 // depth if lane < outputs * channels else 0 for lane in range(lanes)]
        picks = ", ".join(f"{0x03020100 + 0x01010101 * first:#010x}" for first in reversed(apart))
        return v("shuffle_epi8", broadcast, v("set_epi32", picks))

    return spelt


def centre(bits: int, widened: str) -> str:
    """Bytes widened to words, less their zero point."""
    v = Width(bits)
    zeros = f"const {v.kind} zeros = {v('set1_epi16', '(int16_t)zero')};\n"
    return zeros + _copied(v, 16, v("sub_epi16", widened, "zeros"), "to[i] = (int16_t)(from[i] - zero)")


def set_first(bits: int, count: int) -> str:
    """The first `count` numbers as 32-bit ones, each read separately."""
    return Width(bits)("set_epi32", *(f"from[{i}]" if i < count else "0" for i in reversed(range(bits // 32))))


def _copied(v: Width, size: int, vector: str, one: str) -> str:
    """The body of a copy of `count` numbers of `size` bits, a vector at a time."""
    step = v.bits // size
    return f"""\
int32_t i = 0;

for (; i + {step} <= count; i += {step}) {{
    {v.store("to + i", vector)};
}}
for (; i < count; ++i) {one};"""


def _lift(v: Width, by: int) -> str:
    """By inverting the top bit."""
    if by == 0:
        return _copied(v, 8, v.load("from + i"), "to[i] = from[i]")
    assert by == 128
    top = f"const {v.kind} top = {v('set1_epi8', '-128')};\n"
    lifted = v(f"xor_si{v.bits}", v.load("from + i"), "top")
    body = top + _copied(v, 8, lifted, "to[i] = (int8_t)(from[i] ^ -128)")
    if v.bits < 512:
        return body
    rest = """\
if (i < count) {
    const __mmask64 rest = ((__mmask64)1 << (count - i)) - 1;

    _mm512_mask_storeu_epi8(to + i, rest, _mm512_xor_si512(_mm512_maskz_loadu_epi8(rest, from + i), top));
}"""
    return body[: body.rindex("for (")] + rest


def _fill(v: Width, bits: int) -> str:
    return f"""\
const {v.kind} all = {v(f"set1_epi{bits}", "value")};

for (int32_t i = 0; i < count; i += {v.bits // bits}) {{
    {v.store("to + i", "all")};
}}"""


def _mix(v: Width, depth: int, vector: int) -> str:
    def zipped(size: int, part: int, a: str, b: str) -> str:
        return v(f"unpack{('lo', 'hi')[part]}_epi{size}", a, b)

    if depth == 2:
        return zipped(16, vector, "a", "b")
    half, part = divmod(vector, 2)
    return zipped(16, part, zipped(8, half, "a", "b"), zipped(8, half, "c", "d"))


Hold = Callable[[Width, str, int, int, int], str]
"""(width, value, bits, low, high): clamps saturated numbers to closer bounds."""


def bounded(v: Width, value: str, size: int, low: int, high: int) -> str:
    for operation, bound, none in (("max", low, LOWEST[size]), ("min", high, -LOWEST[size] - 1)):
        if bound != none:
            value = v(f"{operation}_epi{size}", value, v(f"set1_epi{size}", str(bound)))
    return value


def stores(bits: int, packed: dict[int, str], ordered: str, hold: Hold = bounded) -> dict[str, Spelling]:
    """`packed` narrows the lanes of a to bytes or words, saturated; `ordered` undoes the interleaving of packed pairs
    of vectors."""
    v = Width(bits)

    def stored(size: int) -> Spelling:
        small = Width(max(128, bits * size // 32))

        def spelt(low: int, high: int, count: int) -> str:
            return _stored(small, size, hold(small, packed[size], size, low, high), count, bits == 512)

        return spelt

    def mixed(depth: int, block: int, low: int, high: int, count: int) -> str:
        pairs = v("packs_epi16", v("packs_epi32", "a", "b"), v("packs_epi32", "c", "d"))
        value = ordered.format(pairs) if depth == 2 else pairs
        return _stored(v, 8, hold(v, value, 8, low, high), count, bits == 512)

    def mixed_words(block: int, low: int, high: int, count: int) -> str:
        return _stored(v, 16, hold(v, v("packs_epi32", "a", "b"), 16, low, high), count, bits == 512)

    return {
        "store_bytes": stored(8),
        "store_words": stored(16),
        "store_mixed": mixed,
        "store_mixed_words": mixed_words,
    }


def _stored(v: Width, size: int, value: str, count: int, masked: bool) -> str:
    """Writes the first `count` numbers of a vector. A later load of what follows them would wait for a masked store."""
    if masked and v.bits > 128 >= count * size:
        v, value = Width(128), v(f"castsi{v.bits}_si128", value)
    if count * size == v.bits:
        return v.store("to", value)
    if masked and v.bits > 128:
        return v(f"mask_storeu_epi{size}", "to", f"UINT64_C({(1 << count) - 1:#x})", value)
    lines = [f"const {v.kind} all = {value};"]
    if v.bits > 128:
        lines = [f"int{size}_t held[{v.bits // size}];", "", *lines[1:], f"{v.store('held', value)};"]
        return "\n".join([*lines, f"for (int32_t i = 0; i < {count}; ++i) to[i] = held[i];"])
    done = 0
    for part in (64, 32, 16, 8):
        if count * size & part:
            rest = v("srli_si128", "all", str(done // 8)) if done else "all"
            place = f"to + {done // size}" if done else "to"
            lines.append(_part(part, place, rest))
            done += part
    return "\n".join(lines)


def _part(size: int, to: str, value: str) -> str:
    if size == 64:
        return f"_mm_storel_epi64((__m128i *)(void *)({to}), {value});"
    return f"*({to}) = (int8_t)_mm_cvtsi128_si32({value});" if size == 8 else f"_mm_storeu_si{size}({to}, {value});"
