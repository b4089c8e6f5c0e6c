"""The rows of the table for sets that sum products across the lanes into one number, and what such sums need.

A total is an int32_t, the unfinished sum of one output; `depth` gives the type of its inputs: 4 bytes or 2 words.
Totals of four outputs are joined to a vector, whose lanes share one scale (`_by`) or have one each.
"""

from __future__ import annotations

from nnbuild.isa.integer_ops import READY, TAPS, bounded, held
from nnbuild.isa.ops import EACH, Family, Operation

MOVED = "by{at} < 0 ? a.at[i] >> -by{at} : (int32_t)((uint32_t)a.at[i] << by{at})"
HIGH = "(int32_t)(((int64_t)a.at[i] * by{at} + INT64_C({half})) >> 31)"


def _sums(meaning: str, operands: str, cycles: float = 1) -> Operation:
    return Operation("sums", operands, meaning, cycles)


def _total(start: str, more: str) -> Family:
    """Adds the products of all lanes to the total."""

    def summed(depth: int) -> Operation:
        kind = TAPS[depth]
        body = f"""\
uint32_t sum = {start};

for (int32_t i = 0; i < LANES * {depth}; ++i) sum += (uint32_t)(x.at[i] * w.at[i]);
return (int32_t)sum;"""
        return Operation("int32_t", f"{more}{kind} x, {kind} w", body, 1)

    return summed


def _aligned(depth: int) -> Operation:
    """Loads consecutive inputs from an address that is a multiple of four."""
    kind = TAPS[depth]
    loop = f"for (int32_t i = 0; i < LANES * {depth}; ++i) r.at[i] = from[i];"
    return Operation(kind, f"const {READY[depth]} *from", f"{kind} r;\n\n{loop}\nreturn r;", 1)


def _store_apart(bits: int, apart: int, channels: int, positions: int, low: int, high: int) -> Operation:
    """Stores the outputs of up to four positions, `apart` from each other, of one channel or two neighbouring ones.
    Lanes without a position repeat the last one."""
    kind, names = f"int{bits}_t", "ab"[:channels]
    lines = [f"    to[i * {apart} + {c}] = ({kind}){held(f'{name}.at[i]', low, high)};" for c, name in enumerate(names)]
    body = "\n".join([f"for (int32_t i = 0; i < {positions}; ++i) {{", *lines, "}"])
    return Operation(
        "void", f"{kind} *to, " + ", ".join(f"sums {name}" for name in names), body, 6 + bounded(low, high, bits)
    )


def _store_places(low: int, high: int) -> Operation:
    """Stores bytes to the places in a table, alternately from either vector."""
    values = [held(f"{name}.at[i]", low, high) for name in "ab"]
    lines = [f"    to[at[2 * i + {k}]] = (int8_t){value};" for k, value in enumerate(values)]
    body = "\n".join(["for (int32_t i = 0; i < LANES; ++i) {", *lines, "}"])
    return Operation("void", "int8_t *to, sums a, sums b, const uint16_t *at", body, 5 + bounded(low, high, 8))


def _sums_across(count: int) -> Operation:
    """Lane i is the sum of all lanes of vector i, of `count` vectors; other lanes do not count."""
    names = [f"v{i}" for i in range(count)]
    lines = ["sums r = v0;", "uint32_t sum;", ""]
    for lane, name in enumerate(names):
        added = f"for (int32_t k = 0; k < LANES; ++k) sum += (uint32_t){name}.at[k];"
        lines += ["sum = 0;", added, f"r.at[{lane}] = (int32_t)sum;"]
    body = "\n".join([*lines, "return r;"])
    return _sums(body, ", ".join(f"sums {name}" for name in names), 0.9 * count + 1)


def _across(step: str) -> Operation:
    """All lanes become one number."""
    body = f"""\
int32_t all = a.at[0];

for (int32_t i = 1; i < LANES; ++i) all = {step};
return all;"""
    return Operation("int32_t", "sums a", body, 4)


ACROSS: dict[str, Operation | Family] = {
    "aligned": _aligned,
    # a pointer that the compiler keeps in a register, and addresses nearby values from
    "here": lambda depth: Operation(f"const {READY[depth]} *", f"const {READY[depth]} *from", "from", 1),
    # the end of a loop that the compiler must not know: it would unroll the loop wholly and load ahead of the registers
    "loop_end": Operation("int32_t", "int32_t a", "a", 0),
    "total": _total("(uint32_t)sum_before", "int32_t sum_before, "),
    "first_total": _total("0", ""),
    "total_long": Operation(
        "int64_t",
        "int64_t sum_before, words x, words w",
        "for (int32_t i = 0; i < LANES * 2; ++i) sum_before += x.at[i] * w.at[i];\nreturn sum_before;",
        2,
    ),
    # a lane gets a product of the lower half of the words, and one of the upper half
    "dot_halves": _sums(
        "(int32_t)((uint32_t)a.at[i] + (uint32_t)(x.at[i] * w.at[i]) + (uint32_t)(x.at[i + LANES] * w.at[i + LANES]))",
        "sums a, words x, words w",
    ),
    "sum_across": _across("(int32_t)((uint32_t)all + (uint32_t)a.at[i])"),
    "sums_across": _sums_across,
    "max_across": _across("all > a.at[i] ? all : a.at[i]"),
    "join": _sums("i == 0 ? a : i == 1 ? b : i == 2 ? c : d", "int32_t a, int32_t b, int32_t c, int32_t d", 2),
    "high_by": lambda half: _sums(HIGH.format(at="", half=half), "sums a, int32_t by"),
    "high_each": lambda half: _sums(HIGH.format(at=".at[i]", half=half), "sums a, sums by"),
    # to the right by as many bits as `by` is below 0, or to the left
    "moved_by": _sums(MOVED.format(at=""), "sums a, int32_t by"),
    "moved_by_each": _sums(MOVED.format(at=".at[i]"), "sums a, sums by"),
    "less_below": _sums("a.at[i] - (b.at[i] < 0 ? by : 0)", "sums a, sums b, int32_t by", 2),
    "less_below_each": _sums("a.at[i] - (b.at[i] < 0 ? by.at[i] : 0)", "sums a, sums b, sums by", 3),
    "store_apart": _store_apart,
    "store_places": _store_places,
    # floats: so many lanes at a distance, or to the places at even or odd indices of a table
    "f_store_apart": lambda positions, apart: Operation(
        "void", "float *to, floats a", f"for (int32_t i = 0; i < {positions}; ++i) to[i * {apart}] = a.at[i];", 4
    ),
    "f_store_places": lambda odd: Operation(
        "void", "float *to, floats a, const uint16_t *at", f"{EACH}to[at[2 * i + {odd}]] = a.at[i];", 5
    ),
    # two bytes per 16-bit lane from the places in a table: those of its first half, and of its second
    "gather": _sums("from[a.at[i]]", "const int32_t *from, sums a", 6),
    "gather_two": Operation(
        "bytes",
        "const int8_t *from, const uint16_t *at",
        """\
bytes r;

for (int32_t i = 0; i < LANES * 2; ++i) {
    r.at[i * 2] = from[at[i]];
    r.at[i * 2 + 1] = from[at[LANES * 2 + i]];
}
return r;""",
        5,
    ),
    # sums of products of two bytes, minus the numbers in a vector of 32 bits each
    "multiply_add_by": _sums(
        "(int32_t)((uint32_t)c.at[i] + (uint32_t)a.at[i] * (uint32_t)by)", "sums c, sums a, int32_t by"
    ),
}
