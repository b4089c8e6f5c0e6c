"""The rows of the table of vector operations that integer kernels use; `ops` defines rows.

Some depend on `depth`, the neighbouring inputs of a channel that one multiplication takes: four `bytes` a lane, two
`words`, or a scalar that multiplies all lanes of `halves`. Input bytes may have been increased by `lift`; then they are
multiplied as unsigned numbers.

Inputs of neighbouring taps are interleaved, channel by channel: `mix` turns `depth` vectors, one a tap, into as many
whose lanes each hold the taps of one channel. `block` lanes of each take neighbouring channels before the next vector
does; `store_mixed` restores the order of channels.
"""

from __future__ import annotations

from nnbuild.isa.ops import EACH, Family, Operation

TAPS = {4: "bytes", 2: "words", 1: "halves"}
"""The kind of value with so many inputs a lane."""
READY = {4: "int8_t", 2: "int16_t", 1: "int8_t"}
"""The C type of inputs prepared for it."""
WRAPPED = "(int32_t)((uint32_t)a.at[i] {0} (uint32_t){1})"
MOST_STORES = 16
"""Copies of a number that are written without a loop."""


def _sums(meaning: str, cycles: float = 0.5, operands: str = "sums a, sums b") -> Operation:
    return Operation("sums", operands, meaning, cycles)


def _settle(count: int) -> Operation:
    """Sums that are complete before later code starts."""
    names = "abcd"[:count]
    operands, unused = ", ".join(f"sums *{name}" for name in names), "\n".join(f"(void){name};" for name in names)
    return Operation("void", operands, unused, 0.0)


def _shift(meaning: str) -> Family:
    return lambda by: _sums(meaning.format(by=by), 0.5, "sums a")


def _widen(count: int) -> Operation:
    """Reads the first `count` bytes only; the other lanes do not count."""
    return _sums(f"i < {count} ? from[i] : 0", 1.0 if count % 4 == 0 else 3.0, "const int8_t *from")


def _widen_words(count: int) -> Operation:
    """The same for 16-bit numbers."""
    return _widen(count)._replace(operands="const int16_t *from")


def _scaled(alternating: int) -> Operation:
    """(a * multiplier + addend) >> 32 in 64 bits. The addends of even lanes come before those of odd ones where they
    alternate, elsewhere those of the first half before those of the second."""
    addend = "(i % 2 ? second : first).at[i / 2]" if alternating else "(i / H ? second : first).at[i % H]"
    total = f"(uint64_t)((int64_t)a.at[i] * multiplier.at[i]) + (uint64_t){addend.replace('H', '(LANES / 2)')}"
    return _sums(f"(int32_t)((int64_t)({total}) >> 32)", 3.0, "sums a, sums multiplier, wide first, wide second")


def _all(depth: int, value: str, operands: str, cycles: float) -> Operation:
    """A vector of taps, with an expression for element i."""
    kind = TAPS[depth]
    loop = f"for (int32_t i = 0; i < LANES * {depth}; ++i) r.at[i] = {value};"
    return Operation(kind, operands, f"{kind} r;\n\n{loop}\nreturn r;", cycles)


def _short(kind: str) -> dict[str, Operation | Family]:
    """Operations on 16-bit numbers, as many as `words` or `halves` have."""
    count, mark = ("LANES * 2", "w") if kind == "words" else ("LANES", "h")

    def of(value: str, operands: str = f"{kind} a, {kind} b") -> Operation:
        loop = f"for (int32_t i = 0; i < {count}; ++i) r.at[i] = (int16_t)({value});"
        return Operation(kind, operands, f"{kind} r;\n\n{loop}\nreturn r;", 0.5)

    return {
        f"{mark}_add": of("a.at[i] + b.at[i]"),
        f"{mark}_sub": of("a.at[i] - b.at[i]"),
        f"{mark}_shift_left": lambda by: of(f"a.at[i] * {1 << by}", f"{kind} a"),
        f"{mark}_load": of("from[i]", "const int16_t *from"),
        f"{mark}_store": Operation(
            "void", f"int16_t *to, {kind} a", f"for (int32_t i = 0; i < {count}; ++i) to[i] = a.at[i];"
        ),
    }


def _repeat(depth: int, bits: int = 8) -> Operation:
    if depth == 1:
        return Operation("int32_t", f"const int{bits}_t *from", "from[0]", 0.5)
    return _all(depth, f"from[i % {depth}]", f"const {READY[depth]} *from", 0.5)


def _repeat_apart(depth: int, outputs: int, channels: int, step: int) -> Operation:
    """Like `repeat`, but for inputs of several outputs, `step` apart, with a lane for every channel of each."""
    output = f"(i / {depth} < {outputs * channels} ? i / {depth} / {channels} * {step} : 0)"
    return _all(depth, f"from[{output} + i % {depth}]", f"const {READY[depth]} *from", 1.0)


def _dot(depth: int, lift: int, lane: str = "i") -> Operation:
    """a + the products of each lane's inputs, or of one lane's, and each lane's weights."""
    x = f"{'(uint8_t)' if lift else ''}x.at[{lane} * {depth} + k]"
    if depth == 1:
        return _sums("a.at[i] + x * w.at[i]", 0.5, "sums a, int32_t x, halves w")
    total = f"total += (uint32_t)({x} * w.at[i * {depth} + k]);"
    body = f"""\
for (int32_t i = 0; i < LANES; ++i) {{
    uint32_t total = (uint32_t)a.at[i];

    for (int32_t k = 0; k < {depth}; ++k) {total}
    a.at[i] = (int32_t)total;
}}
return a;"""
    return _sums(body, 0.5 if depth == 4 else 0.8, f"sums a, {TAPS[depth]} x, {TAPS[depth]} w")


def _words_apart_of(lane: int) -> Operation:
    """a + the products of one lane's two inputs; the first weights of all lanes precede the second ones."""
    products = [f"(uint32_t)(x.at[{2 * lane + k}] * w.at[i + {k} * LANES])" for k in range(2)]
    return _sums(f"(int32_t)((uint32_t)a.at[i] + {' + '.join(products)})", 1.0, "sums a, words x, words w")


def _copying(to: str, source: str, value: str, more: str = "", times: int = 1) -> Operation:
    """Writes `count` numbers, each of them `times` times."""
    operands = f"{to} *to, const {source} *from, int32_t count{more}"
    if times == 1:
        return Operation("void", operands, f"for (int32_t i = 0; i < count; ++i) to[i] = ({to})({value});", 4.0)
    stores = "".join(f"    to[i + {k}] = value;\n" for k in range(times))
    if times > MOST_STORES:
        stores = f"    for (int32_t k = 0; k < {times}; ++k) to[i + k] = value;\n"
    copied = f"    const {to} value = ({to})({value.replace('from[i]', '*from')});\n\n{stores}    from += 1;\n"
    return Operation("void", operands, f"for (int32_t i = 0; i < count; i += {times}) {{\n{copied}}}", 4.0)


def _lift(by: int, times: int = 1) -> Operation:
    """Bytes prepared to be multiplied four at a time."""
    return _copying("int8_t", "int8_t", f"(uint8_t)from[i] + {by}" if by else "from[i]", times=times)


def _centre(times: int = 1) -> Operation:
    return _copying("int16_t", "int8_t", "from[i] - zero", ", int32_t zero", times)


def _copy(times: int = 1) -> Operation:
    return _copying("int16_t", "int16_t", "from[i]", times=times)


def _fill(depth: int) -> Operation:
    """Fills `count` prepared inputs with one value, or up to a vector more."""
    kind = READY[depth]
    return Operation(
        "void", f"{kind} *to, int32_t count, {kind} value", "for (int32_t i = 0; i < count; ++i) to[i] = value;", 4.0
    )


def held(value: str, low: int, high: int) -> str:
    return f"({value} < {low} ? {low} : {value} > {high} ? {high} : {value})"


def bounded(low: int, high: int, bits: int) -> int:
    """Instructions that clamp numbers of `bits` bits."""
    return (low > -(1 << (bits - 1))) + (high < (1 << (bits - 1)) - 1)


def _store(bits: int) -> Family:
    """Stores the first `count` lanes, clamped and narrowed."""

    def stored(low: int, high: int, count: int) -> Operation:
        kind = f"int{bits}_t"
        body = f"for (int32_t i = 0; i < {count}; ++i) to[i] = ({kind}){held('a.at[i]', low, high)};"
        cycles = (1.5 if bits == 16 else 2.0) + 0.5 * bounded(low, high, bits) + 0.5 * (count & (count - 1) != 0)
        return Operation("void", f"{kind} *to, sums a", body, cycles)

    return stored


def mixed(depth: int, vector: int, lane: str, block: int) -> str:
    """A C expression for the channel whose taps a lane of this vector holds; for words, within half of the channels."""
    return f"{lane} / {block} * {block} * {depth} + {vector} * {block} + {lane} % {block}"


def _mix(depth: int, vector: int, block: int) -> Operation:
    names = "abcd"[:depth]
    channel = mixed(depth, vector, "i", block)
    lines = "\n".join(f"    r.at[i * {depth} + {k}] = {name}.at[{channel}];" for k, name in enumerate(names))
    kind = TAPS[depth]
    body = f"{kind} r;\n\n{EACH}{{\n{lines}\n}}\nreturn r;"
    return Operation(kind, ", ".join(f"{kind} {name}" for name in names), body, 0.75)


def _store_mixed(depth: int, block: int, low: int, high: int, count: int) -> Operation:
    """Stores the first `count` channels of four vectors of sums as bytes, undoing the order of `mix`."""
    return _stored(depth, "abcd", (block, low, high, count), "int8_t")


def _store_mixed_words(block: int, low: int, high: int, count: int) -> Operation:
    """The same for two vectors, as words."""
    return _stored(2, "ab", (block, low, high, count), "int16_t")


def _stored(depth: int, names: str, numbers: tuple[int, int, int, int], kind: str) -> Operation:
    block, low, high, count = numbers
    lines = []
    for vector, name in enumerate(names):
        half, which = divmod(vector, depth)
        channel = f"{half * depth} * LANES + {mixed(depth, which, 'i', block)}"
        value = held(f"{name}.at[i]", low, high)
        lines.append(f"    if ({channel} < {count}) to[{channel}] = ({kind}){value};")
    body = "\n".join([f"{EACH}{{", *lines, "}"])
    cycles = 2.0 + 0.5 * bounded(low, high, 8 if kind == "int8_t" else 16)
    return Operation("void", f"{kind} *to, " + ", ".join(f"sums {name}" for name in names), body, cycles)


MATRICES = """\
for (int32_t i = 0; i < LANES; ++i) {
    for (int32_t k = 0; k < 8; ++k) a.at[i] += x.at[i / 2 * 8 + k] * w.at[i % 2 * 8 + k];
}
return a;"""
"""Two rows of eight bytes times two others: the sums of a row's products with both are consecutive."""


def _halves(high: int) -> Operation:
    """The lower or upper halves of two vectors, concatenated."""
    by = "(LANES / 2)"
    return _sums(f"i < {by} ? a.at[i + {high} * {by}] : b.at[i - {1 - high} * {by}]")


def _halves_of_bytes(high: int) -> Operation:
    by = "LANES * 2"
    place = f"i < {by} ? a.at[i + {high} * ({by})] : b.at[i - {1 - high} * ({by})]"
    loop = f"for (int32_t i = 0; i < LANES * 4; ++i) r.at[i] = {place};"
    return Operation("bytes", "bytes a, bytes b", f"bytes r;\n\n{loop}\nreturn r;", 0.5)


RUNS_OPERANDS = "const uint8_t *k, int32_t count, const int8_t *values, const int8_t *x, int32_t sum"
RUNS = """\
for (int32_t i = 0; i < count; ++i) {
    x += k[i] & 15;
    sum += *x * values[k[i] >> 4];
    x += 1;
}
return sum;"""
"""A byte gives the number of inputs to skip, and the index of the next one's weight among 16. A set may read 16 bytes
beyond the last one, and the inputs that these lead to."""
WINDOWS_OPERANDS = (
    "const uint8_t *k, const uint8_t *counts, const int8_t *values, const uint8_t *x, int32_t count, int32_t *to"
)
WINDOWS = """\
for (; count > 0; --count) {
    uint32_t place = 255;

    for (int32_t row = 0; row < 2; ++row) {
        for (int32_t left = counts[row]; left > 0; --left) {
            place = (place + (*k & 15U) + 1U) & 255U;
            to[row] += x[place] * values[*k >> 4];
            k += 1;
        }
    }
    counts += 2;
    x += 256;
}"""
"""The same for two rows of weights, in windows of 256 inputs: the second row's bytes follow the first row's, whose
number is given. A set may read 64 bytes beyond the last one."""


INTEGERS: dict[str, Operation | Family] = {
    "load": _sums("from[i]", 0.5, "const int32_t *from"),
    "store": Operation("void", "int32_t *to, sums a", "for (int32_t i = 0; i < LANES; ++i) to[i] = a.at[i];", 0.5),
    "widen": _widen,
    "widen_words": _widen_words,
    "widen_repeated_words": lambda times, count: _sums(
        f"i < {count} ? from[i / {times}] : 0", 1.0, "const int16_t *from"
    ),  # the first lanes, `times` of which are equal
    "load_wide": Operation(
        "wide",
        "const int64_t *from",
        "wide r;\n\nfor (int32_t i = 0; i < LANES / 2; ++i) r.at[i] = from[i];\nreturn r;",
        0.5,
    ),
    "each": _sums("a", 0.2, "int32_t a"),
    "each_wide": Operation(
        "wide", "int64_t a", "wide r;\n\nfor (int32_t i = 0; i < LANES / 2; ++i) r.at[i] = a;\nreturn r;", 0.2
    ),
    "mask": lambda count, first, others: _sums(f"i < {count} ? {first} : {others}", 0.2, "void"),
    "add": _sums(WRAPPED.format("+", "b.at[i]")),
    "sub": _sums(WRAPPED.format("-", "b.at[i]")),
    "mul": _sums(WRAPPED.format("*", "b.at[i]")),
    "min": _sums("a.at[i] < b.at[i] ? a.at[i] : b.at[i]"),
    "max": _sums("a.at[i] > b.at[i] ? a.at[i] : b.at[i]"),
    "and": _sums("a.at[i] & b.at[i]"),
    "xor": _sums("a.at[i] ^ b.at[i]"),
    "shift_left": _shift("(int32_t)((uint32_t)a.at[i] << {by})"),
    "shift_right": _shift("a.at[i] >> {by}"),
    "shift_down": _shift("(int32_t)((uint32_t)a.at[i] >> {by})"),
    "shift_down_by": _sums("(int32_t)((uint32_t)a.at[i] >> by)", 0.5, "sums a, int32_t by"),
    "shift_left_each": _sums("(int32_t)((uint32_t)a.at[i] << by.at[i])", 0.5, "sums a, sums by"),
    "shift_right_each": _sums("a.at[i] >> by.at[i]", 0.5, "sums a, sums by"),
    "shift_by_powers": _sums("(int32_t)((int64_t)a.at[i] * (uint32_t)b.at[i] >> 31)", 4.0),
    "scaled": _scaled,
    "scaled_apart": _sums(
        "(int32_t)((a.at[i] * (int64_t)multiplier.at[i] + (int64_t)((uint64_t)(int64_t)high.at[i] << 32 | "
        "(uint32_t)low.at[i])) >> 32)",
        3.0,
        "sums a, sums multiplier, sums low, sums high",
    ),  # the same with the addends' lower and upper halves
    "upper": _sums("(int32_t)((int64_t)a.at[i] * b.at[i] >> 32)", 1.5),
    "upper_plus": _sums("(int32_t)(((int64_t)a.at[i] * b.at[i] + c.at[i]) >> 32)", 3.0, "sums a, sums b, sums c"),
    # TFLite's two roundings: the doubled high product rounds halves up; the shift, after `away`, away from zero
    "high_rounded": _sums("(int32_t)(((int64_t)a.at[i] * b.at[i] + (1 << 30)) >> 31)", 0.5),
    "away": _sums("a.at[i] + (a.at[i] >> 31)", 0.5, "sums a"),
    "round_each": _sums("(int32_t)((a.at[i] + (((int64_t)1 << by.at[i]) >> 1)) >> by.at[i])", 0.5, "sums a, sums by"),
    # contiguous prepared inputs, weights, and the `depth` inputs at a pointer in every lane
    "inputs": lambda depth: _all(depth, "from[i]", f"const {READY[depth]} *from", 0.5),
    "weights": lambda depth: _all(depth, "from[i]", "const int8_t *from", 0.5 if depth == 4 else 1.0),
    "repeat": _repeat,
    "repeat_apart": _repeat_apart,
    "dot": _dot,
    # the same for weights stored with the first two of every lane first
    "weights_apart": _all(4, "from[i / 4 * 2 + i % 4 / 2 * LANES * 2 + i % 2]", "const int8_t *from", 0.5),
    "dot_apart_of": lambda lane: _dot(4, 0, str(lane)),
    "words_apart_of": _words_apart_of,
    # 16-bit numbers; halves are multiplied by one number, from words or a register
    **_short("words"),
    **_short("halves"),
    "h_mac": _sums("(int32_t)((uint32_t)a.at[i] + (uint32_t)(x * w.at[i]))", 0.5, "sums a, int32_t x, halves w"),
    "h_mac_of": lambda lane: _sums(
        f"(int32_t)((uint32_t)a.at[i] + (uint32_t)(x.at[{lane}] * w.at[i]))", 0.5, "sums a, words x, halves w"
    ),
    "settled": _sums("a.at[i]", 0.0, "sums a"),  # later code does not start before
    "settle": _settle,
    "mmla": _sums(MATRICES, 0.5, "sums a, bytes x, bytes w"),
    "low_halves": _halves(0),
    "high_halves": _halves(1),
    "low_halves_of_bytes": _halves_of_bytes(0),
    "high_halves_of_bytes": _halves_of_bytes(1),
    "anew": Operation("const int8_t *", "const int8_t *from", "from", 0.0),  # its target is not loaded before
    "dot_lanes": _sums("a.at[i] + x.at[i] * w.at[i]", 0.5, "sums a, halves x, halves w"),
    "dot_of": lambda lane: _dot(4, 0, str(lane)),
    "sum_of_runs": Operation("int32_t", RUNS_OPERANDS, RUNS, 40.0),
    "sum_of_windows": Operation("void", WINDOWS_OPERANDS, WINDOWS, 30.0),
    "lift": _lift,
    "centre": _centre(),
    "copy": _copy(),
    "lift_repeated": _lift,
    "centre_repeated": _centre,
    "copy_repeated": _copy,
    "fill": _fill,
    "store_bytes": _store(8),
    "store_words": _store(16),
    "mix": _mix,
    "store_mixed": _store_mixed,
    "store_mixed_words": _store_mixed_words,
}
