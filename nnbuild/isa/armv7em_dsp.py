"""The instructions of Cortex-M4 and M7 for two 16-bit numbers in one word, each with its meaning in portable C.

A pair is an int32_t that holds two int16: the first in its low half. `pair64` holds two words in one int64_t, so that
one LDRD or STRD moves both.
"""

from __future__ import annotations

from nnbuild.base.writer import Instruction

GUARD = "defined(__ARM_FEATURE_DSP) && defined(__GNUC__)"
"""Where the native spelling holds: gcc's and clang's inline assembly, on a core that has these instructions."""


def _native(mnemonic: str, *operands: str, suffix: str = "") -> str:
    """The body of a function that is one instruction."""
    places = ", ".join(f"%{i}" for i in range(len(operands) + 1))
    inputs = ", ".join(f'"r"({name})' for name in operands)
    return f'int32_t out;\n\n__asm__("{mnemonic} {places}{suffix}" : "=r"(out) : {inputs});\nreturn out;'


def _one(name: str, operands: tuple[str, ...], meaning: str, mnemonic: str = "", suffix: str = "") -> Instruction:
    head = f"int32_t {{name}}({', '.join(f'int32_t {operand}' for operand in operands)})"
    native = _native(mnemonic or name, *operands, suffix=suffix)
    return Instruction(name, head, meaning, 1, native, GUARD)


SMLAD = _one(
    "smlad",
    ("a", "b", "sum"),
    "const int32_t low = (int16_t)a * (int16_t)b;\n"
    "const int32_t high = (a >> 16) * (b >> 16);\n\n"
    "return (int32_t)((uint32_t)sum + (uint32_t)low + (uint32_t)high);",
)
"""sum + both products of two pairs."""

SMUAD = _one(
    "smuad",
    ("a", "b"),
    "const int32_t low = (int16_t)a * (int16_t)b;\n"
    "const int32_t high = (a >> 16) * (b >> 16);\n\n"
    "return (int32_t)((uint32_t)low + (uint32_t)high);",
)

SMLABB = _one(
    "smlabb",
    ("a", "b", "sum"),
    "return (int32_t)((uint32_t)sum + (uint32_t)((int16_t)a * (int16_t)b));",
)
"""sum + the product of the low halves."""

SMLATB = _one(
    "smlatb",
    ("a", "b", "sum"),
    "return (int32_t)((uint32_t)sum + (uint32_t)((a >> 16) * (int16_t)b));",
)
SMLABT = _one(
    "smlabt",
    ("a", "b", "sum"),
    "return (int32_t)((uint32_t)sum + (uint32_t)((int16_t)a * (b >> 16)));",
)
SMLATT = _one(
    "smlatt",
    ("a", "b", "sum"),
    "return (int32_t)((uint32_t)sum + (uint32_t)((a >> 16) * (b >> 16)));",
)

_SPREAD = "return (int32_t)((uint32_t)(uint16_t)(int8_t){low} | (uint32_t)(int8_t){high} << 16);"

SXTB16 = _one("sxtb16", ("bytes",), _SPREAD.format(low="bytes", high="(bytes >> 16)"))
"""The first and the third byte of a word as a pair."""

SXTB16_ROR8 = _one(
    "sxtb16_ror8", ("bytes",), _SPREAD.format(low="(bytes >> 8)", high="(bytes >> 24)"), "sxtb16", ", ror #8"
)
"""The second and the fourth byte."""

PKHBT = _one("pkhbt", ("a", "b"), "return (int32_t)(((uint32_t)a & 0xffffU) | (uint32_t)b << 16);", suffix=", lsl #16")
"""The low halves of two words as a pair."""

PKHTB = _one(
    "pkhtb",
    ("a", "b"),
    "return (int32_t)(((uint32_t)a & 0xffff0000U) | ((uint32_t)b >> 16));",
    suffix=", asr #16",
)
"""The high halves of b and a, in this order, as a pair."""

SADD16 = _one(
    "sadd16",
    ("a", "b"),
    "const uint32_t low = ((uint32_t)a + (uint32_t)b) & 0xffffU;\n"
    "const uint32_t high = ((uint32_t)a & 0xffff0000U) + ((uint32_t)b & 0xffff0000U);\n\n"
    "return (int32_t)(high | low);",
)
SSUB16 = _one(
    "ssub16",
    ("a", "b"),
    "const uint32_t low = ((uint32_t)a - (uint32_t)b) & 0xffffU;\n"
    "const uint32_t high = ((uint32_t)a & 0xffff0000U) - ((uint32_t)b & 0xffff0000U);\n\n"
    "return (int32_t)(high | low);",
)

SMMLA = _one(
    "smmla",
    ("a", "b", "sum"),
    "return (int32_t)((uint32_t)(((int64_t)a * b) >> 32) + (uint32_t)sum);",
)
"""sum + the high word of a product."""

SMMLAR = _one(
    "smmlar",
    ("a", "b", "sum"),
    "return (int32_t)((uint32_t)(((int64_t)a * b + INT64_C(0x80000000)) >> 32) + (uint32_t)sum);",
)
"""The same with the product rounded to its high word, halves up."""

SMMUL = _one("smmul", ("a", "b"), "return (int32_t)(((int64_t)a * b) >> 32);")
SMMULR = _one("smmulr", ("a", "b"), "return (int32_t)(((int64_t)a * b + INT64_C(0x80000000)) >> 32);")


def saturation(bits: int, signed: bool = True) -> Instruction:
    """Holds a number within a type of so many bits."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    kind = "ssat" if signed else "usat"
    return Instruction(
        f"{kind}{bits}",
        "int32_t {name}(int32_t a)",
        f"return a < {low} ? {low} : a > {high} ? {high} : a;",
        1,
        f'int32_t out;\n\n__asm__("{kind} %0, #{bits}, %1" : "=r"(out) : "r"(a));\nreturn out;',
        GUARD,
    )


SSAT8 = saturation(8)
SSAT16 = saturation(16)
USAT8 = saturation(8, signed=False)

_UNALIGNED = "defined(__ARM_FEATURE_UNALIGNED) && defined(__GNUC__)"

LOAD_BYTES = Instruction(
    "load_bytes",
    "int32_t {name}(const int8_t *from)",
    "const uint32_t low = (uint32_t)(uint8_t)from[0] | (uint32_t)(uint8_t)from[1] << 8;\n"
    "const uint32_t high = (uint32_t)(uint8_t)from[2] | (uint32_t)(uint8_t)from[3] << 8;\n\n"
    "return (int32_t)(low | high << 16);",
    1,
    "int32_t out;\n\n__builtin_memcpy(&out, from, sizeof out);\nreturn out;",
    _UNALIGNED,
)
"""Four bytes, wherever they lie."""

STORE_BYTES = Instruction(
    "store_bytes",
    "void {name}(int8_t *to, int32_t bytes)",
    "to[0] = (int8_t)bytes;\nto[1] = (int8_t)(bytes >> 8);\nto[2] = (int8_t)(bytes >> 16);\n"
    "to[3] = (int8_t)(bytes >> 24);",
    1,
    "__builtin_memcpy(to, &bytes, sizeof bytes);",
    _UNALIGNED,
)

LOAD_PAIR = Instruction(
    "load_pair",
    "int32_t {name}(const int16_t *from)",
    "return (int32_t)((uint32_t)(uint16_t)from[0] | (uint32_t)from[1] << 16);",
    1,
    "int32_t out;\n\n__builtin_memcpy(&out, from, sizeof out);\nreturn out;",
    _UNALIGNED,
)
"""Two int16, wherever they lie."""

PAIR64 = Instruction(
    "pair64",
    "int64_t {name}(int32_t low, int32_t high)",
    "return (int64_t)((uint64_t)(uint32_t)high << 32 | (uint32_t)low);",
    0,
)
"""Two words for one STRD."""

LOAD_FOUR = Instruction(
    "load_four",
    "const int64_t *{name}(const int64_t *from, int32_t *a, int32_t *b, int32_t *c, int32_t *d)",
    "*a = (int32_t)from[0];\n*b = (int32_t)(from[0] >> 32);\n"
    "*c = (int32_t)from[1];\n*d = (int32_t)(from[1] >> 32);\nreturn from + 2;",
    1,
    'register int32_t first __asm__("r4");\n'
    'register int32_t second __asm__("r5");\n'
    'register int32_t third __asm__("r6");\n'
    'register int32_t fourth __asm__("r8");\n\n'
    '__asm__("ldmia %0!, {%1, %2, %3, %4}"\n'
    '        : "+r"(from), "=r"(first), "=r"(second), "=r"(third), "=r"(fourth)\n'
    '        : "m"(*(const int64_t(*)[2])from));\n'
    "*a = first;\n*b = second;\n*c = third;\n*d = fourth;\nreturn from;",
    GUARD,
)
"""Four words by one LDM; the value is the place behind them. LDM wants its registers in ascending order."""
