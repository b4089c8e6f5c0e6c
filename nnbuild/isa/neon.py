"""Four 32-bit numbers at a time on 64-bit Arm, with multiplication by one lane of another vector.

Instructions round halves exactly like TFLite's reference, so its own constants serve.
"""

from __future__ import annotations

from nnbuild.isa import arm64, byte_spellings
from nnbuild.isa.vectors import Spelling, Vectors

LOWEST = {8: -128, 16: -32768}

_FLOAT_LOADS = {
    1: "vld1q_lane_f32(from, vdupq_n_f32(0.0f), 0)",
    2: "vcombine_f32(vld1_f32(from), vdup_n_f32(0.0f))",
    3: "vld1q_lane_f32(from + 2, vcombine_f32(vld1_f32(from), vdup_n_f32(0.0f)), 2)",
}
_FLOAT_STORES = {
    1: "vst1q_lane_f32(to, a, 0)",
    2: "vst1_f32(to, vget_low_f32(a))",
    3: "vst1_f32(to, vget_low_f32(a));\nvst1q_lane_f32(to + 2, a, 2);",
}
_REPEATS = {
    1: "vld1q_dup_f32(from)",
    2: "vcombine_f32(vld1_f32(from), vld1_f32(from))",
    4: "vld1q_f32(from)",
}
_UPPERS = "return vuzp2q_s32(vreinterpretq_s32_s64(low), vreinterpretq_s32_s64(high));"
_SCALED = f"""\
const int64x2_t low = vmlal_s32(first, vget_low_s32(a), vget_low_s32(multiplier));
const int64x2_t high = vmlal_high_s32(second, a, multiplier);
{_UPPERS}"""
_UPPER = f"""\
const int64x2_t low = vmull_s32(vget_low_s32(a), vget_low_s32(b)), high = vmull_high_s32(a, b);
{_UPPERS}"""
_UPPER_PLUS = f"""\
const int64x2_t low = vaddw_s32(vmull_s32(vget_low_s32(a), vget_low_s32(b)), vget_low_s32(c));
const int64x2_t high = vaddw_high_s32(vmull_high_s32(a, b), c);
{_UPPERS}"""
_BYTES_DOT = """\
const int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(w));
return vpadalq_s16(a, vpaddq_s16(low, vmull_high_s8(x, w)));"""
WORDS_DOT = """\
const int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(w));
return vaddq_s32(a, vpaddq_s32(low, vmull_high_s16(x, w)));"""
_FOUR = "(const int32_t *)(const void *)from"
_QUAD = f"vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vld1_dup_s32({_FOUR})))))"
_PRODUCT = 'float32x4_t product = vmulq_f32(a, b);\n\n__asm__("" : "+w"(product));\nreturn product;'
"""A product that no compiler contracts to a fused multiply-add: clang's -ffp-contract=fast heeds no pragma."""


def _join(depth: int, positions: int, channels: int) -> str:
    names = [name if at < positions else "abcd"[positions - 1] for at, name in enumerate("abcd")]
    pairs = [f"vpaddq_f32({names[i]}, {names[i + 1]})" for i in (0, 2)]
    if depth == 4:
        return f"vpaddq_f32({pairs[0]}, {pairs[1]})"
    return pairs[0] if channels == 2 else f"vuzp1q_f32({pairs[0]}, {pairs[0]})"


def _across(operation: str, count: int) -> str:
    steps = ("vrev64q_f32(a)", "vextq_f32(a, a, 2)")[: count.bit_length() - 1]
    return "\n".join([*(f"a = v{operation}q_f32(a, {swapped});" for swapped in steps), "return a;"])


def _held(values: list[str]) -> str:
    return f"const int32_t held[4] = {{{', '.join(values)}}};\n\nreturn vld1q_s32(held);"


def _first(count: int, whole: str) -> str:
    return whole if count == 4 else _held([f"from[{i}]" if i < count else "0" for i in range(4)])


def _copied(bits: int, value: str, one: str) -> str:
    """The body of a copy of `count` numbers, a vector at a time."""
    step = 128 // bits
    return f"""\
int32_t i = 0;

for (; i + {step} <= count; i += {step}) vst1q_s{bits}(to + i, {value});
for (; i < count; ++i) to[i] = {one};"""


def _centre() -> str:
    zeros = "const int16x8_t zeros = vdupq_n_s16((int16_t)zero);\n"
    return zeros + _copied(16, "vsubq_s16(vmovl_s8(vld1_s8(from + i)), zeros)", "(int16_t)(from[i] - zero)")


def _fill(depth: int) -> str:
    bits = 32 // depth
    return f"for (int32_t i = 0; i < count; i += {4 * depth}) vst1q_s{bits}(to + i, vdupq_n_s{bits}(value));"


def _mix(depth: int, vector: int, block: int) -> str:
    def zipped(bits: int, part: int, a: str, b: str) -> str:
        return f"vzip{part + 1}q_s{bits}({a}, {b})"

    if depth == 2:
        return zipped(16, vector, "a", "b")
    half, part = divmod(vector, 2)
    pairs = [f"vreinterpretq_s16_s8({zipped(8, half, *names)})" for names in ("ab", "cd")]
    return f"vreinterpretq_s8_s16({zipped(16, part, *pairs)})"


def _stored(value: str, bits: int, low: int, high: int, count: int) -> str:
    """Stores the first `count` numbers of a register or half of one, clamped."""
    wide = "q" if count * bits > 64 else ""
    for operation, bound, none in (("max", low, LOWEST[bits]), ("min", high, -LOWEST[bits] - 1)):
        if bound != none:
            value = f"v{operation}{wide}_s{bits}({value}, vdup{wide}_n_s{bits}({bound}))"
    if count * bits in (64, 128):
        return f"vst1{wide}_s{bits}(to, {value})"
    lines = [f"const int{bits}x{(128 if wide else 64) // bits}_t all = {value};", ""]
    done = 0
    for part in (64, 32, 16, 8):
        if count * bits & part:
            cast = f"(int{part}_t *)(void *)({'to' if done == 0 else f'to + {done // bits}'})"
            lane = f"vreinterpret{wide}_s{part}_s{bits}(all)" if part != bits else "all"
            lines.append(f"vst1{wide}_lane_s{part}({cast}, {lane}, {done // part});")
            done += part
    return "\n".join(lines)


def _apart_of(lane: int) -> str:
    """Two products fit 16 bits, as no weight is -128."""
    first, second = (0x0100 + 0x0101 * (4 * lane + pair) for pair in (0, 2))
    picks = [f"vreinterpret_u8_u16(vdup_n_u16({pick:#06x}))" for pick in (first, second)]
    return f"""\
const int8x16_t near = vqtbl1q_s8(x, vcombine_u8({", ".join(picks)}));
const int16x8_t two = vmull_s8(vget_low_s8(near), vget_low_s8(w));
return vpadalq_s16(a, vmlal_high_s8(two, near, w));"""


def _store(bits: int) -> Spelling:
    words = "vqmovn_s32(a)"
    value = words if bits == 16 else f"vqmovn_s16(vcombine_s16({words}, vdup_n_s16(0)))"
    return lambda low, high, count: _stored(value, bits, low, high, count)


def _joined(a: str, b: str) -> str:
    return f"vqmovn_high_s32(vqmovn_s32({a}), {b})"


def _store_mixed(depth: int, block: int, low: int, high: int, count: int) -> str:
    halves = f"vqmovn_s16({_joined('a', 'b')})"
    if count <= 8:
        return f"(void)c;\n(void)d;\n{_statement(_stored(halves, 8, low, high, count))}"
    return _stored(f"vqmovn_high_s16({halves}, {_joined('c', 'd')})", 8, low, high, count)


def _store_mixed_words(block: int, low: int, high: int, count: int) -> str:
    if count <= 4:
        return f"(void)b;\n{_statement(_stored('vqmovn_s32(a)', 16, low, high, count))}"
    return _stored(_joined("a", "b"), 16, low, high, count)


def _statement(body: str) -> str:
    return body if ";" in body else f"{body};"


FLOATS: dict[str, Spelling] = {
    **{f"f_{name}": f"v{name}q_f32(a, b)" for name in ("add", "sub", "div", "max", "min")},
    "f_mul": _PRODUCT,
    "f_fma": "vfmaq_f32(c, a, b)",
    "f_fma_of": lambda lane: f"vfmaq_laneq_f32(c, b, a, {lane})",
    "f_load": "vld1q_f32(from)",
    "f_load_first": _FLOAT_LOADS.__getitem__,
    "f_load_repeated": lambda times, count: (
        "const float32x2_t a = vld1_f32(from);\n\nreturn vcombine_f32(vdup_lane_f32(a, 0), vdup_lane_f32(a, 1));"
    ),
    "f_store": "vst1q_f32(to, a)",
    "f_store_first": _FLOAT_STORES.__getitem__,
    "f_each": "vdupq_n_f32(a)",
    "f_repeat": _REPEATS.__getitem__,
    "f_sqrt": "vsqrtq_f32(a)",
    "f_if_less": "vbslq_f32(vcltq_f32(a, b), then, otherwise)",
    "f_join": _join,
    "f_across": _across,
    "f_bits": "vreinterpretq_s32_f32(a)",
    "f_of_bits": "vreinterpretq_f32_s32(a)",
    "f_of_sums": "vcvtq_f32_s32(a)",
    "fetch": "__builtin_prefetch(from)",
}
INTEGERS: dict[str, Spelling] = {
    **{"load": "vld1q_s32(from)", "store": "vst1q_s32(to, a)"},
    "widen": lambda count: _first(count, _QUAD),
    "widen_words": lambda count: _first(count, "vmovl_s16(vld1_s16(from))"),
    "load_wide": "vld1q_s64(from)",
    "each": "vdupq_n_s32(a)",
    "each_wide": "vdupq_n_s64(a)",
    "mask": lambda count, first, others: _held([str(first if i < count else others) for i in range(4)]),
    **{name: f"v{name}q_s32(a, b)" for name in ("add", "sub", "mul", "min", "max", "and")},
    "xor": "veorq_s32(a, b)",
    "shift_left": lambda by: f"vshlq_n_s32(a, {by})",
    "shift_right": lambda by: f"vshrq_n_s32(a, {by})" if by else "a",
    "shift_down": lambda by: f"vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a), {by}))" if by else "a",
    "shift_left_each": "vshlq_s32(a, by)",
    "shift_down_by": "vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(a), vdupq_n_s32(-by)))",
    "shift_right_each": "vshlq_s32(a, vnegq_s32(by))",
    "scaled": lambda alternating: _SCALED,
    **{f"{name}_across": f"v{of}vq_s32(a)" for name, of in (("sum", "add"), ("max", "max"))},
    **{"upper": _UPPER, "upper_plus": _UPPER_PLUS, "high_rounded": "vqrdmulhq_s32(a, b)"},
    "gather": _held([f"from[vgetq_lane_s32(a, {i})]" for i in range(4)]),
    **{"away": "vsraq_n_s32(a, a, 31)", "round_each": "vrshlq_s32(a, vnegq_s32(by))"},
    "inputs": lambda depth: f"vld1q_s{32 // depth}(from)",
    "weights": lambda depth: "vld1q_s8(from)" if depth == 4 else "vmovl_s8(vld1_s8(from))",
    "repeat": lambda depth: f"vreinterpretq_s{32 // depth}_s32(vld1q_dup_s32({_FOUR}))",
    "dot": lambda depth, lift: _BYTES_DOT if depth == 4 else WORDS_DOT,
    **{f"w_{name}": f"v{name}q_s16(a, b)" for name in ("add", "sub")},
    "w_shift_left": lambda by: f"vshlq_n_s16(a, {by})",
    **{"w_load": "vld1q_s16(from)", "w_store": "vst1q_s16(to, a)"},
    "dot_halves": "vmlal_high_s16(vmlal_s16(a, vget_low_s16(x), vget_low_s16(w)), x, w)",
    "h_load": "vld1_s16(from)",
    "h_mac_of": lambda lane: f"vmlal_laneq_s16(a, w, x, {lane})",
    "weights_apart": "vld1q_s8(from)",
    "dot_apart_of": _apart_of,
    "words_apart_of": lambda lane: (
        f"vmlal_high_laneq_s16(vmlal_laneq_s16(a, vget_low_s16(w), x, {2 * lane}), w, x, {2 * lane + 1})"
    ),
    "lift": lambda by: _copied(8, "vld1q_s8(from + i)", "from[i]"),
    "centre": _centre(),
    "copy": _copied(16, "vld1q_s16(from + i)", "from[i]"),
    **byte_spellings.NEON,
    "fill": _fill,
    **{f"store_{of}": _store(bits) for of, bits in (("bytes", 8), ("words", 16))},
    "mix": _mix,
    "store_mixed": _store_mixed,
    "store_mixed_words": _store_mixed_words,
}

NEON = Vectors(
    name="neon",
    guard=arm64.GUARD,
    lanes=4,
    registers=32,
    types={
        "floats": "float32x4_t",
        "sums": "int32x4_t",
        "wide": "int64x2_t",
        "words": "int16x8_t",
        "halves": "int16x4_t",
        "bytes": "int8x16_t",
    },
    repeats=tuple(_REPEATS),
    kernels=("float", "integer", "tables", "bytes"),
    spellings=FLOATS | INTEGERS,
    cycles={"dot": 2.0, "dot_apart_of": 2.0, "look_up": 12.0, "gather": 10.0},
    depth=4,
    least_weight=-127,
)
VECTORS = (NEON,)
