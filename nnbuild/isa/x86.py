"""The vector extensions of x86-64, their features and common spellings. Other spellings have a file per width."""

from __future__ import annotations

from nnbuild.isa.isa import Isa, extended
from nnbuild.isa.vectors import Spelling

HARMFUL = ("no-tree-ter", "no-predictive-commoning")
"""The first delays integer additions behind their multiplications, the second spills convolutions' overlapping
loads."""
GUARD = "defined(__x86_64__) && defined(__GNUC__) && !defined(NN_PORTABLE)"
"""A compiler with the intrinsics and the function attribute `target`. NN_PORTABLE selects the meanings."""

SSE2 = Isa(
    name="sse2",
    summary="the baseline of x86-64: 4 floats or 8 int16 at a time",
    features=frozenset({"sse2"}),
    architectures=("native", "x86_64"),
    includes=("immintrin.h",),
    guard=GUARD,
    target="sse2",
    cpu_flags=("sse2",),
    gcc_options=HARMFUL,
)
SSSE3 = extended(SSE2, "ssse3", "byte shuffles and byte products, since 2006", target="ssse3", cpu_flags=("ssse3",))
AVX2_FMA = extended(
    SSSE3,
    "avx2_fma",
    "8 floats or 16 int16 at a time, multiplied and added in one, since 2013",
    target="avx2,fma,bmi2",
    cpu_flags=("avx2", "fma", "bmi2"),
)
AVX_VNNI = extended(
    AVX2_FMA, "avx_vnni", "32 int8 products a step on 256 bits", target="avxvnni", cpu_flags=("avx_vnni",)
)
AVX512 = extended(
    AVX2_FMA,
    "avx512",
    "16 floats at a time, 32 registers",
    target="avx512f,avx512bw,avx512dq,avx512vl",
    cpu_flags=("avx512f", "avx512bw", "avx512dq", "avx512vl"),
)
AVX512_VNNI = extended(
    AVX512, "avx512_vnni", "64 int8 products a step", target="avx512vnni", cpu_flags=("avx512_vnni",)
)

AVX512_VBMI = extended(
    AVX512_VNNI, "avx512_vbmi", "bytes looked up in 256 at once", target="avx512vbmi", cpu_flags=("avx512vbmi",)
)

ISAS = (SSE2, SSSE3, AVX2_FMA, AVX_VNNI, AVX512, AVX512_VNNI, AVX512_VBMI)


def types(bits: int) -> dict[str, str]:
    """The C types of a width's registers."""
    return {"floats": f"__m{bits}"} | dict.fromkeys(("sums", "wide", "bytes", "words"), f"__m{bits}i")


def spellings(bits: int) -> dict[str, Spelling]:
    """The intrinsics of a width."""
    v = "_mm" if bits == 128 else f"_mm{bits}"
    two = {name: f"{v}_{name}_ps(a, b)" for name in ("add", "sub", "div", "max", "min")}
    found: dict[str, Spelling] = {f"f_{name}": text for name, text in two.items()}
    return found | {
        "f_mul": f"{product(bits)}\nreturn product;",
        "f_load": f"{v}_loadu_ps(from)",
        "f_store": f"{v}_storeu_ps(to, a)",
        "f_each": f"{v}_set1_ps(a)",
        "f_sqrt": f"{v}_sqrt_ps(a)",
        "f_bits": f"{v}_castps_si{bits}(a)",
        "f_of_bits": f"{v}_castsi{bits}_ps(a)",
        "f_of_sums": f"{v}_cvtepi32_ps(a)",
        "fetch": "_mm_prefetch((const char *)from, _MM_HINT_T1)",
        "each": f"{v}_set1_epi32(a)",
        "add": f"{v}_add_epi32(a, b)",
        "and": f"{v}_and_si{bits}(a, b)",
        "shift_left": lambda by: f"{v}_slli_epi32(a, {by})",
        "shift_right": lambda by: f"{v}_srai_epi32(a, {by})",
        "shift_down": lambda by: f"{v}_srli_epi32(a, {by})",
        "shift_down_by": f"{v}_srl_epi32(a, _mm_cvtsi32_si128(by))",
        "mask": lambda *lanes: f"{v}_set_epi32({mask(bits // 32, *lanes)})",
    }


def product(bits: int) -> str:
    """The lines of a product that no compiler fuses with an addition: clang's -ffp-contract=fast heeds no pragma."""
    v, register = ("_mm" if bits == 128 else f"_mm{bits}"), "v" if bits == 512 else "x"
    barrier = f'#if defined(__clang__)\n__asm__("" : "+{register}"(product));\n#endif'
    return f"{types(bits)['floats']} product = {v}_mul_ps(a, b);\n\n{barrier}"


def mask(lanes: int, count: int, first: int, others: int) -> str:
    """A value for every lane, highest first, as the `set` intrinsics take them."""
    return ", ".join(str(first if lane < count else others) for lane in reversed(range(lanes)))


def order(lanes: list[int]) -> str:
    """Lane numbers as the `set` intrinsics take them."""
    return ", ".join(str(lane) for lane in reversed(lanes))


def join(bits: int, swaps: tuple[str, ...], permute: str) -> Spelling:
    """Sums of neighbouring lanes of up to four vectors: two vectors are added for the cost of one, as half of the lanes
    of a horizontal add would be unused. `swaps` exchange lanes 128 bits or farther apart; `permute` orders the sums."""
    v, lanes = ("_mm" if bits == 128 else f"_mm{bits}"), bits // 32
    kind = types(bits)["floats"]

    def joined(first: str, second: str) -> str:
        even, odd = (f"{v}_shuffle_ps({first}, {second}, {picks})" for picks in ("0x88", "0xdd"))
        return f"{v}_add_ps({even}, {odd})"

    def spelt(depth: int, positions: int, channels: int) -> str:
        names = "abcd"[:positions]
        if depth == 2:
            lines = [f"{kind} sum = {joined(names[0], names[-1])};"]
        else:
            second = joined(names[2], names[-1]) if positions > 2 else "first"
            lines = [
                f"const {kind} first = {joined(names[0], names[min(1, positions - 1)])};",
                f"{kind} sum = {joined('first', second)};",
            ]
        lines += [f"sum = {v}_add_ps(sum, {swap});" for swap in swaps[: max(0, depth.bit_length() - 3)]]
        places = [place(depth, position, channel) for position in range(positions) for channel in range(channels)]
        if places != list(range(len(places))):
            filled = [places[lane % len(places)] for lane in range(lanes)]
            lines.append(f"sum = {permute.format(*filled, order=order(filled))};")
        return "\n".join([*lines, "return sum;"])

    return spelt


def place(depth: int, position: int, channel: int) -> int:
    """The lane in which `join` leaves a sum."""
    if depth == 2:
        return channel // 2 * 4 + position * 2 + channel % 2
    return channel * depth + position


def across(bits: int, swaps: tuple[str, ...]) -> Spelling:
    """Exchanges lanes over growing distances."""
    v = "_mm" if bits == 128 else f"_mm{bits}"
    near = tuple(f"{v}_shuffle_ps(a, a, {picks})" for picks in ("0xb1", "0x4e"))
    far = tuple(swap.replace("sum", "a") for swap in swaps)

    def spelt(operation: str, count: int) -> str:
        steps = (*near, *far)[: count.bit_length() - 1]
        return "\n".join([*(f"a = {v}_{operation}_ps(a, {swap});" for swap in steps), "return a;"])

    return spelt
