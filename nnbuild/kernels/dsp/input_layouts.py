"""Layouts of inputs for a tile: words of two 16-bit numbers, interleaved for two positions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from nnbuild.base.cost_model import OpCounts
from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Instruction, Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.loops.window_loops import total
from nnbuild.kernels.parts.overlaps import SIZES

STORE_TWO = Row("{0} = {1};", 1, 2)
MOVE = Row("{0} = {1};", 2, 1)
AT_ONCE = 4
"""Groups of four inputs up to which no loop is needed."""
LONGEST_COPY = 24
"""Unrolled instructions at most."""
CALL_CYCLES = 8


def expand(
    w: Writer, dtype: str, patch: str, sources: tuple[str, ...], count: int, most: int = 2, apart: bool = False
) -> None:
    """Prints a call that lays out `count` inputs, a multiple of 4, of one or two positions; up to `most` groups of four
    per iteration, or AT_ONCE without a loop. `apart`: stores each word separately, in fewer cycles and more
    instructions."""
    once = count // 4 <= AT_ONCE and most > 1
    unroll = count // 4 if once else next(size for size in range(most, 0, -1) if count // 4 % size == 0)
    routine, bill = _routine(dtype, len(sources), unroll, once, apart)
    w.bill(CALL_CYCLES, CALL_CYCLES)
    w.add(bill.times(count / 4 / unroll))
    w(f"{w.call(routine, patch, *sources, *([] if once else [str(count // 4 // unroll)]))};")


def natural(w: Writer, to: str, source: str, count: int) -> None:
    """Prints the widening of bytes to 16-bit numbers in their order, padded with zeros to a multiple of four."""
    body = Writer("{prefix}")
    with body.loop("i", "count", trips=1):
        body(body.use(c99.LET, "all", DSP.call(body, "load_bytes", "from", of=(4,))))
        for half in ("even", "odd"):
            body(body.use(c99.LET, half, DSP.call(body, f"p_{half}_bytes", "all")))
        pair = DSP.call(body, "p_low_halves", "even", "odd"), DSP.call(body, "p_high_halves", "odd", "even")
        body(f"{DSP.call(body, 'store_two', '(int32_t *)to', *pair)};")
        body("from += 4;")
        body("to += 4;")
        body.bill(2)
    head = "void {name}(int16_t *to, const int8_t *from, int32_t count)"
    routine = body.routine("natural_order", head)
    whole = count // 4
    if whole:
        w.bill(CALL_CYCLES, CALL_CYCLES)
        w.add(body.counts.times(whole))
        w(f"{w.call(routine, to, source, str(whole))};")
    for at in range(4 * whole, -(-count // 4) * 4):
        w(w.use(MOVE, f"{to}[{at}]", f"{source}[{at}]" if at < count else "0"))


def _routine(dtype: str, positions: int, unroll: int, once: bool, apart: bool) -> tuple[Instruction, OpCounts]:
    """The routine, and the cost of an iteration."""
    w = Writer("{prefix}")
    names = ("a", "b")[:positions]
    loads, words = (_load_bytes, _bytes) if dtype == "int8" else (_load_halves, _halves)
    together = 2 if apart else 1
    with nullcontext() if once else w.loop("i", "count", trips=1):
        for first in range(0, unroll, together):
            quads = range(first, min(first + together, unroll))
            for quad in quads:
                loads(w, names, quad)
            for quad in quads:
                _store(w, names, quad, words(w, quad), apart)
        for name, step in () if once else ((*((name, 4) for name in names), ("patch", positions))):
            w(f"{name} += {step * unroll};")
            w.bill(1)
    pointers = ", ".join(f"const {C_TYPES[dtype]} *{name}" for name in names)
    head = f"void {{name}}(int64_t *patch, {pointers}{'' if once else ', int32_t count'})"
    name = f"expand_{dtype}_{positions}x{4 * unroll}{'_once' if once else ''}{'_apart' if apart else ''}"
    return w.routine(name, head), w.counts


def _load_bytes(w: Writer, names: tuple[str, ...], quad: int) -> None:
    for name in names:
        w(w.use(c99.LET, f"{name}{quad}", DSP.call(w, "load_bytes", f"{name} + {4 * quad}", of=(4,))))


def _bytes(w: Writer, quad: int) -> list[Callable[[str], str]]:
    """The words of a position's four inputs."""
    return [lambda n: DSP.call(w, "p_even_bytes", f"{n}{quad}"), lambda n: DSP.call(w, "p_odd_bytes", f"{n}{quad}")]


def _load_halves(w: Writer, names: tuple[str, ...], quad: int) -> None:
    for name in names:
        for half in range(2):
            loaded = DSP.call(w, "p_load", f"{name} + {4 * quad + 2 * half}")
            w(w.use(c99.LET, f"{name}{quad}_{half}", loaded))


def _halves(w: Writer, quad: int) -> list[Callable[[str], str]]:
    return [lambda n: f"{n}{quad}_0", lambda n: f"{n}{quad}_1"]


def _store(w: Writer, names: tuple[str, ...], quad: int, words: list[Callable[[str], str]], apart: bool) -> None:
    """Stores the words: interleaved for two positions, consecutive for one."""
    values = [(words[0]("a"), words[1]("a"))] if len(names) == 1 else [(word("a"), word("b")) for word in words]
    for index, (first, second) in enumerate(values):
        place = len(values) * quad + index
        if apart:
            w(f"{DSP.call(w, 'store_each', f'patch + {place}' if place else 'patch', first, second)};")
        else:
            w(w.use(STORE_TWO, f"patch[{place}]", DSP.call(w, "two", first, second)))


def copy(w: Writer, dtype: str, to: str, source: str, count: int, ops: Vectors = DSP) -> None:
    """Copies `count` elements, four bytes at a time."""
    if dtype != "int8":
        to, source, count = f"((int8_t *){to})", f"((const int8_t *){source})", count * SIZES[dtype]
    done = 0
    if count // 4 > LONGEST_COPY:
        done = count // 16 * 16
        with w.loop("i", done, step=16):
            for byte in range(0, 16, 4):
                _copy_quad(w, ops, to, source, f"i + {byte}" if byte else "i")
    for byte in range(done, count // 4 * 4, 4):
        _copy_quad(w, ops, to, source, str(byte))
    for byte in range(count // 4 * 4, count):
        w(w.use(MOVE, _at(to, str(byte)), _at(source, str(byte))))


def _copy_quad(w: Writer, ops: Vectors, to: str, source: str, at: str) -> None:
    loaded = ops.call(w, "load_bytes", total(source, at), of=(4,))
    w(f"{ops.call(w, 'write_bytes', total(to, at), loaded)};")


def fill(w: Writer, dtype: str, to: str, value: int, count: int, ops: Vectors = DSP) -> None:
    if dtype == "int8" and count >= 4:
        byte = value & 0xFF
        word = int.from_bytes(bytes([byte] * 4), "little", signed=True)
        with w.loop("i", count // 4 * 4, step=4):
            w(f"{ops.call(w, 'write_bytes', f'{to} + i', str(word))};")
        for i in range(count // 4 * 4, count):
            w(w.use(MOVE, _at(to, str(i)), str(value)))
        return
    with w.loop("i", count):
        w(w.use(MOVE, _at(to, "i"), str(value)))


def _at(pointer: str, index: str) -> str:
    base, plus, offset = pointer.partition(" + ")
    return f"{base}[{offset} + {index}]" if plus else f"{base}[{index}]"
