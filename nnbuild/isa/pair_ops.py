"""The rows of the table for cores without vectors: two 16-bit numbers in one word, and products of whole words.

A pair is an int32_t that holds two int16, the first in its low half. One load or store moves two words as an int64_t.
"""

from __future__ import annotations

from nnbuild.isa.ops import Family, Operation

WORD = "int32_t"


def _words(meaning: str, operands: str = "a, b", cycles: float = 1) -> Operation:
    """An operation on words."""
    return Operation(WORD, ", ".join(f"{WORD} {name}" for name in operands.split(", ")), meaning, cycles)


def _product(a: str, b: str) -> str:
    """Adds the products of two halves of the operands to the sum."""
    return f"(int32_t)((uint32_t)sum + (uint32_t)({a} * {b}))"


LOW_A, HIGH_A, LOW_B, HIGH_B = "(int16_t)a", "(a >> 16)", "(int16_t)b", "(b >> 16)"
BOTH = f"(uint32_t)({LOW_A} * {LOW_B}) + (uint32_t)({HIGH_A} * {HIGH_B})"
HALVES = "(int32_t)((uint32_t)(uint16_t)(int8_t){low} | (uint32_t)(int8_t){high} << 16)"


def _each_half(low: str, high: str) -> str:
    """Two results, the lower of which stays within its half."""
    return f"(int32_t)((({low}) & 0xffffU) | (({high}) << 16))"


def _halves(operation: str) -> Operation:
    return _words(
        _each_half(f"(uint32_t)a {operation} (uint32_t)b", f"((uint32_t)a >> 16) {operation} ((uint32_t)b >> 16)")
    )


def _joined(shift: int) -> Operation:
    """16 bits of each of two words, from `shift` on."""
    low, high = f"(uint32_t)low >> {shift} & 0xffffU", f"(uint32_t)high << {16 - shift} & 0xffff0000U"
    return _words(f"(int32_t)(({low}) | ({high}))", "low, high", 2)


def _exchanged(low: str, high: str) -> Operation:
    """Exchanges the second operand's halves first."""
    return _words(_each_half(f"(uint32_t)a {low} ((uint32_t)b >> 16)", f"((uint32_t)a >> 16) {high} (uint32_t)b"))


def _half_of(operation: str) -> Operation:
    """Computed in 17 bits, then halved."""
    low, high = f"({LOW_A} {operation} {LOW_B}) >> 1", f"({HIGH_A} {operation} {HIGH_B}) >> 1"
    return _words(_each_half(f"(uint32_t)({low})", f"(uint32_t)({high})"))


def _extremes(order: str) -> Operation:
    low, high = (f"(uint32_t)({a} {order} {b} ? {a} : {b})" for a, b in ((LOW_A, LOW_B), (HIGH_A, HIGH_B)))
    return _words(_each_half(low, high), cycles=2)


def _shifted(by: int) -> str:
    return f"(uint32_t)b >> {by}" if by else "(uint32_t)b"


def _added_bytes(shift: int) -> Operation:
    low, high = (f"(uint32_t)(int8_t)({place} & 0xffU)" for place in (_shifted(shift), _shifted(shift + 16)))
    return _words(_each_half(f"(uint32_t)a + {low}", f"((uint32_t)a >> 16) + {high}"))


def _high(rounded: str = "") -> str:
    return f"(int32_t)((uint32_t)(((int64_t)a * b{rounded}) >> 32) + (uint32_t)sum)"


def _saturate(bits: int, shift: int = 0) -> Operation:
    """Shifts a number right, then saturates it to a signed type of `bits` bits."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    first = f"a >>= {shift};\n" if shift else ""
    return _words(f"{first}return a < {low} ? {low} : a > {high} ? {high} : a;", "a")


def _load_bytes(count: int) -> Operation:
    """`count` consecutive bytes at any address, the first one lowest."""
    parts = [f"(uint32_t)(uint8_t)from[{i}]" + (f" << {8 * i}" if i else "") for i in range(count)]
    return Operation(
        WORD,
        "const int8_t *from",
        f"(int32_t)({' | '.join(parts)})",
        1 if count == 4 else 2 * count - 1,
        1 if count == 4 else count,
    )


EXTREME_BYTES = """\
uint32_t out = 0;

for (int byte = 0; byte < 32; byte += 8) {{
    const int8_t x = (int8_t)((uint32_t)a >> byte & 0xffU);
    const int8_t y = (int8_t)((uint32_t)b >> byte & 0xffU);

    out |= (uint32_t)(uint8_t)(x {0} y ? x : y) << byte;
}}
return (int32_t)out;"""
TWO = "(int64_t)((uint64_t)(uint32_t)high << 32 | (uint32_t)low)"
LOAD_FOUR = """\
*a = (int32_t)from[0];
*b = (int32_t)(from[0] >> 32);
*c = (int32_t)from[1];
*d = (int32_t)(from[1] >> 32);
return from + 2;"""
LOAD_BOTH = """\
*second = (int32_t)(x[0] >> 32);
*third = (int32_t)k[0];
*fourth = (int32_t)(k[0] >> 32);
return (int32_t)x[0];"""

TWO_BY_TWO = """\
for (int i = 0; i < 4; ++i)
    found[i] = 0;
for (; x < end; x += 4, k += 2) {
    for (int at = 0; at < 2; ++at) {
        const uint32_t first = (uint32_t)x[at] * (uint32_t)k[0];
        const uint32_t both = first + (uint32_t)x[at + 2] * (uint32_t)k[1] - 32769U;

        found[2 * at] += (int32_t)(both & 0xffffU);
        found[2 * at + 1] += (int32_t)both >> 16;
    }
}
return k;"""


def _two_by_two(turn: int) -> Operation:
    """Sums of two positions by two channels, weights in halves of words, for `turn` pairs of inputs per iteration."""
    return Operation(
        "const int32_t *", "const int32_t *x, const int32_t *k, const int32_t *end, int32_t *found", TWO_BY_TWO, 45
    )


TWO_BY_TWO_WORDS = """\
for (int i = 0; i < 4; ++i)
    found[i] = 0;
for (; x < end; x += 2, k += 2) {
    for (int i = 0; i < 4; ++i)
        found[i] = (int32_t)((uint32_t)found[i] + (uint32_t)x[i / 2] * k[i % 2]);
}
return k;"""


def _two_by_two_words(turn: int) -> Operation:
    """Sums of two positions by two channels, of words times bytes, for `turn` inputs per iteration."""
    head = "const int32_t *x, const uint8_t *k, const int32_t *end, int32_t *found"
    return Operation("const uint8_t *", head, TWO_BY_TWO_WORDS, 32)


ONE_BY_FOUR = """\
for (int i = 0; i < 5; ++i)
    found[i] = 0;
for (; x < end; ++x, k += 4) {
    for (int i = 0; i < 4; ++i)
        found[i] = (int32_t)((uint32_t)found[i] + (uint32_t)(*x * k[i]));
    found[4] = (int32_t)((uint32_t)found[4] + (uint32_t)*x);
}
return k;"""


def _one_by_four(turn: int) -> Operation:
    """Sums of words times the bytes of four channels, and of the words alone, for `turn` inputs per iteration."""
    head = "const int16_t *x, const uint8_t *k, const int16_t *end, int32_t *found"
    return Operation("const uint8_t *", head, ONE_BY_FOUR, 32)


def _step(bits: int) -> Family:
    """Advances by the number of elements of `bits` bits in a byte of the word."""
    kind = f"const int{bits}_t *"

    def step(byte: int) -> Operation:
        far = f"((uint32_t)word >> {8 * byte} & 0xffU)" if byte else "((uint32_t)word & 0xffU)"
        return Operation(kind, f"{kind}from, int32_t word", f"from + {far}{' / 2' if bits == 16 else ''}", 1)

    return step


def _add_byte(byte: int) -> Operation:
    """Adds an unsigned byte of the word to an index."""
    return _words(f"(int32_t)((uint32_t)a + ((uint32_t)b >> {8 * byte} & 0xffU))")


def _pair_at(index: int) -> str:
    return f"(int32_t)((uint32_t)(uint16_t)from[{index}] | (uint32_t)from[{index + 1}] << 16)"


PAIRS: dict[str, Operation | Family] = {
    # products
    "p_dot": _words(f"(int32_t)((uint32_t)sum + {BOTH})", "a, b, sum"),
    "p_products": _words(f"(int32_t)({BOTH})"),
    "p_low_product": _words(f"{LOW_A} * {LOW_B}"),
    "p_high_product": _words(f"{HIGH_A} * {HIGH_B}"),
    "p_low_low": _words(_product(LOW_A, LOW_B), "a, b, sum"),
    "p_low_high": _words(_product(LOW_A, HIGH_B), "a, b, sum"),
    "p_high_low": _words(_product(HIGH_A, LOW_B), "a, b, sum"),
    "p_high_high": _words(_product(HIGH_A, HIGH_B), "a, b, sum"),
    "p_long_dot": Operation(
        "int64_t",
        "int32_t a, int32_t b, int64_t sum",
        f"sum + (int64_t)({LOW_A} * {LOW_B}) + (int64_t)({HIGH_A} * {HIGH_B})",
        1,
    ),
    "p_wide_low": _words(f"(int32_t)((uint32_t)(((int64_t)a * {LOW_B}) >> 16) + (uint32_t)sum)", "a, b, sum"),
    "p_wide_high": _words(f"(int32_t)((uint32_t)(((int64_t)a * {HIGH_B}) >> 16) + (uint32_t)sum)", "a, b, sum"),
    "add_sign": _words("sum + (a >> 31)", "a, sum"),
    "high": _words("(int32_t)(((int64_t)a * b) >> 32)", cycles=3),  # b is at least 0
    "high_by_upper": _words("(int32_t)(((int64_t)a * (b >> 16)) >> 16)", cycles=3),  # the lower half of b is 0
    "high_add": _words(_high(), "a, b, sum"),
    "high_long_add": _words(_high(" + ((int64_t)a * lower >> 32)"), "a, b, lower, sum", cycles=4),
    "high_rounded_add": _words(_high(" + ((int64_t)1 << 31)"), "a, b, sum"),
    "multiply_add": Operation("float", "float a, float b, float sum", "sum + {prefix}_product(a, b)", 1),
    # sums and limits
    "p_add": _halves("+"),
    "p_sub": _halves("-"),
    "p_add_turned": _exchanged("-", "+"),  # a + j b of complex numbers
    "p_sub_turned": _exchanged("+", "-"),
    "p_half_sum": _half_of("+"),
    "p_half_difference": _half_of("-"),
    "p_magnitudes": _words(
        _each_half(f"(uint32_t)({LOW_A} < 0 ? -{LOW_A} : {LOW_A})", f"(uint32_t)({HIGH_A} < 0 ? -{HIGH_A} : {HIGH_A})"),
        "a",
        2,
    ),
    "p_max": _extremes(">"),
    "p_min": _extremes("<"),
    "p_add_even_bytes": _added_bytes(0),
    "p_add_odd_bytes": _added_bytes(8),
    "saturate": _saturate,
    "max_bytes": _words(EXTREME_BYTES.format(">"), cycles=2),
    "min_bytes": _words(EXTREME_BYTES.format("<"), cycles=2),
    # from bytes to pairs, and halves of two words as one
    "p_even_bytes": _words(HALVES.format(low="word", high="(word >> 16)"), "word"),
    "p_odd_bytes": _words(HALVES.format(low="(word >> 8)", high="(word >> 24)"), "word"),
    "p_even_unsigned": _words("(int32_t)((uint32_t)word & 0xff00ffU)", "word"),
    "p_odd_unsigned": _words("(int32_t)((uint32_t)word >> 8 & 0xff00ffU)", "word"),
    "p_low_halves": _words("(int32_t)(((uint32_t)a & 0xffffU) | (uint32_t)b << 16)"),
    "p_high_halves": _words("(int32_t)(((uint32_t)a & 0xffff0000U) | ((uint32_t)b >> 16))"),
    "p_mixed_halves": _words("(int32_t)(((uint32_t)a & 0xffffU) | ((uint32_t)b & 0xffff0000U))"),
    "p_joined": _joined,
    "masked_right": lambda by: _words(f"(int32_t)((uint32_t)mask & (uint32_t)a >> {by})", "mask, a"),
    "masked_left8": _words("(int32_t)((uint32_t)mask & (uint32_t)a << 8)", "mask, a"),
    # memory
    "load_bytes": _load_bytes,
    "write_bytes": Operation(
        "void",
        "int8_t *to, int32_t word",
        "\n".join(["to[0] = (int8_t)word;", *(f"to[{i}] = (int8_t)(word >> {8 * i});" for i in range(1, 4))]),
        1,
    ),
    "move_down": Operation(  # to a lower address, or a separate buffer
        "void",
        "int8_t *to, const int8_t *from, int32_t size",
        "for (int32_t i = 0; i < size; ++i)\n    to[i] = from[i];",
        9,
    ),
    "p_load": Operation(WORD, "const int16_t *from", _pair_at(0), 1, 1),
    "p_low_at": Operation(WORD, "const int32_t *from", "(int16_t)from[0]", 1, 1),
    "p_high_at": Operation(WORD, "const int32_t *from", "from[0] >> 16", 1, 1),
    "p_load_two": Operation(
        WORD, "const int16_t *from, int32_t *second", f"*second = {_pair_at(2)};\nreturn {_pair_at(0)};", 1, 2
    ),
    "two": Operation("int64_t", "int32_t low, int32_t high", TWO, 0),
    "load_two": Operation(WORD, "const int32_t *from, int32_t *second", "*second = from[1];\nreturn from[0];", 1, 2),
    "store_two": Operation(
        "void", "int32_t *to, int32_t first, int32_t second", "to[0] = first;\nto[1] = second;", 1, 2
    ),
    "store_each": Operation("void", "int64_t *to, int32_t low, int32_t high", f"*to = {TWO};", 2),
    "load_four": Operation(
        "const int64_t *", "const int64_t *from, int32_t *a, int32_t *b, int32_t *c, int32_t *d", LOAD_FOUR, 1, 4
    ),
    "load_four_more": Operation(
        "const int64_t *", "const int64_t *from, int32_t *a, int32_t *b, int32_t *c, int32_t *d", LOAD_FOUR, 1, 4
    ),
    "load_both": Operation(
        WORD, "const int64_t *x, const int64_t *k, int32_t *second, int32_t *third, int32_t *fourth", LOAD_BOTH, 4, 1
    ),
    "p_add_byte": _add_byte,
    "p_step8": _step(8),
    "p_step16": _step(16),
    "at_word": Operation("const int64_t *", "const int64_t *pointer", "pointer", 0),
    "anywhere": Operation("int32_t *", "int32_t *pointer", "pointer", 0),  # compilers do not know its target
    "kept": Operation("uint32_t", "uint32_t a", "a", 1),  # a constant that stays in its register
    "two_by_two": _two_by_two,
    "two_by_two_words": _two_by_two_words,
    "one_by_four": _one_by_four,
    # loads behind it are not moved before loops
    "again": Operation("const void *", "const void *pointer", "pointer", 0),
}
