"""Means, sums and extremes on Cortex-M4 and up, a word at a time: four bytes, or two 16-bit numbers.

Where axes follow the reduced ones, a word holds neighbouring outputs; otherwise its numbers belong to one output and
are combined at the end. Sums of up to 256 bytes are kept in halves of words.
"""

from __future__ import annotations

from collections.abc import Callable

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.kernels.loops.window_loops import total

WORD = {"int8": 4, "int16": 2}
"""Numbers of a word."""
HELD = 256
"""Bytes whose sum fits half a word."""
UNROLLED = 4
LOAD = Row("const int32_t {0} = {1};", 1)
EXTREMES = {
    ("max", "int8"): ("max_bytes", -0x7F7F7F80),
    ("min", "int8"): ("min_bytes", 0x7F7F7F7F),
    ("max", "int16"): ("p_max", -0x7FFF8000),
    ("min", "int16"): ("p_min", 0x7FFF7FFF),
}
"""The operation that combines two words, and its identity."""
HALVES = ("(int16_t)(even & 0xffff)", "(int16_t)(odd & 0xffff)", "(even >> 16)", "(odd >> 16)")
BOTH = ("(int16_t)(word & 0xffff)", "word >> 16")
ONES = "INT32_C(65537)"

Take = Callable[[str], None]


def columns(w: Writer, function: str, kind: str, size: int, step: int, count: int) -> list[str]:
    """Expressions for `count` neighbouring outputs; the variable `value` points at the first row's numbers."""
    if (function, kind) in EXTREMES:
        _extremes(w, function, kind, size, step, count)
        return _numbers(kind)[:count]
    sums = [f"sum{k}" for k in range(count)]
    for name in sums:
        w(f"int32_t {name} = 0;")
    if kind == "int16":
        _words(w, kind, size, step, count, lambda word: _add_both(w, sums))
        return sums

    def gather() -> None:
        for name, half in zip(sums, HALVES, strict=False):
            w.bill(2)
            w(f"{name} += {half};")

    _halves(w, size, step, count, gather)
    return sums


def row(w: Writer, function: str, kind: str, size: int) -> str:
    """An expression for the output of `size` contiguous numbers from the variable `value` on."""
    words, rest = divmod(size, WORD[kind])
    operation = c99.LARGER if function == "max" else c99.SMALLER if function == "min" else c99.ADD
    w(f"int32_t result = {'0' if operation is c99.ADD else 'value[0]'};")
    if words and (function, kind) in EXTREMES:
        with w.block(""):
            _extremes(w, function, kind, words, WORD[kind], WORD[kind])
            for number in _numbers(kind):
                w(w.use(operation, "result", number))
    elif words and kind == "int16":

        def add(word: str) -> None:
            w(f"result = {DSP.call(w, 'p_dot', word, ONES, 'result')};")

        _words(w, kind, words, WORD[kind], WORD[kind], add)
    elif words:

        def gather() -> None:
            w.bill(7)
            w(f"result += {' + '.join(HALVES)};")

        _halves(w, words, WORD[kind], WORD[kind], gather)
    if rest == 1:
        w(w.use(operation, "result", "value[0]"))
    elif rest:
        with w.block(f"for (int32_t i = 0; i < {rest}; ++i)"), w.trips(rest):
            w(w.use(operation, "result", "value[i]"))
    return "result"


def _numbers(kind: str) -> list[str]:
    """Those of the word `best`."""
    if kind == "int8":
        return [f"(int8_t)((uint32_t)best >> {8 * k} & 0xffU)" for k in range(WORD[kind])]
    return ["(int16_t)(best & 0xffff)", "(best >> 16)"]


def _add_both(w: Writer, sums: list[str]) -> None:
    for name, number in zip(sums, BOTH, strict=False):
        w(w.use(c99.STEP, name, number))


def _extremes(w: Writer, function: str, kind: str, times: int, step: int, count: int) -> None:
    operation, start = EXTREMES[function, kind]
    w(f"int32_t best = INT32_C({start});")

    def take(word: str) -> None:
        w(f"best = {DSP.call(w, operation, 'best', word)};")

    _words(w, kind, times, step, count, take)


def _halves(w: Writer, times: int, step: int, count: int, gather: Callable[[], None]) -> None:
    """Sums the bytes of words into the halves of `even` and `odd`; `gather` runs whenever these may be full."""
    turns, rest = divmod(times, HELD)

    def take(word: str) -> None:
        for name in ("even", "odd"):
            w(f"{name} = {DSP.call(w, f'p_add_{name}_bytes', name, word)};")

    for often, words in ((turns, HELD), (int(rest > 0), rest)):
        with w.loop("turn", often):
            w("int32_t even = 0;")
            w("int32_t odd = 0;")
            _words(w, "int8", words, step, count, take)
            gather()


def _words(w: Writer, kind: str, times: int, step: int, count: int, take: Take) -> None:
    """Takes words of `count` numbers, `step` numbers apart, from `value` on, which advances."""

    def load(place: str) -> str:
        if kind == "int8":
            return DSP.call(w, "load_bytes", place, of=(count,))
        return DSP.call(w, "p_load", place) if count == WORD[kind] else c99.at(place)

    def one(at: int) -> None:
        with w.block(""):
            w(w.use(LOAD, "word", load(total("value", str(at)))))
            take("word")

    if times >= UNROLLED:
        with w.loop("i", times // UNROLLED):
            for k in range(UNROLLED):
                one(k * step)
            w(f"value += {UNROLLED * step};")
    for _ in range(times % UNROLLED):
        one(0)
        w(f"value += {step};")
