"""The packed tile of two positions and four channels in assembly for Cortex-M4.

It needs all registers but the stack pointer: 8 sums, 2 inputs, 2 words of weights, 2 pointers. Other values lie in the
frame of the surrounding function. Loads come in runs, as consecutive loads overlap; pointers stand four bytes before
their target, so that the last load of a run advances them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nnbuild.base.cost_model import OpCounts
from nnbuild.base.writer import Writer
from nnbuild.isa.arm import GUARD
from nnbuild.kernels.dsp.scaling import Scaling
from nnbuild.kernels.dsp.weight_layouts import RAISED
from nnbuild.numeric.rounding import INT8

WHERE = f"{GUARD} && defined(__OPTIMIZE__) && !defined(__clang__)"
"""Where r7 is not the frame pointer."""
FIRST, SECOND = ("r0", "r1", "r2", "r3"), ("r4", "r5", "r6", "r7")
"""The sums of both positions."""
X, K = "r8", "r9"
CLOBBERED = [f"r{number}" for number in range(13)] + ["lr", "cc", "memory"]
SHORT = 8
"""Pairs per iteration where the code, with the code around it, must fit the caches of slow flash."""
STRETCH = 16
"""Pairs between advances of a pointer: a load can advance it by at most 255 bytes."""
PAIR_BYTES = 8
"""Bytes of inputs, and of weights, per pair."""


TURN = 8
"""Pairs per iteration of the tile with the number of pairs as argument; each remaining pair takes PAIR_CODE bytes."""
PAIR_CODE = 48


@dataclass(frozen=True)
class Lines:
    """Inputs in `rows` lines of `length` numbers, `pairs` of each under a window; windows are `step` apart."""

    rows: int
    pairs: int
    step: int
    length: int

    def mark(self) -> str:
        return f"lines_{self.rows}_{self.pairs}_{self.step}_{self.length}"


@dataclass(frozen=True)
class Iterations:
    """`count` iterations over `size` pairs, after `skipped` ones."""

    size: int
    count: int
    skipped: int


def turns(pairs: int, most: int) -> Iterations:
    count = -(-pairs // most)
    size = -(-pairs // count)
    return Iterations(size, count, size * count - pairs)


def serves(scaling: Scaling) -> bool:
    """Whether one multiplication, an offset (possibly one less below zero) and a shift make outputs from sums."""
    form = scaling.form
    return form is not None and form.left in (RAISED, 1) and form.below in (0, 1) and scaling.bits == 8


def body(
    scaling: Scaling, pairs: int, longest: int, in_ram: bool, lines: Lines | None = None, apart: bool = False
) -> tuple[str, OpCounts]:
    """The C of the routine with parameters patch, k, to0, to1 and blocks, and the cost of a block. An iteration has up
    to `longest` pairs. `apart`: starts and scaling constants lie at another parameter, scales."""
    there, read, told = turns(pairs, longest), PAIR_BYTES * pairs, 16 * len(scaling.columns)
    if lines:
        there, read = Iterations(lines.pairs, lines.rows, 0), 2 * lines.length * lines.rows
    text = [
        f"const uintptr_t x = (uintptr_t)patch - {4 + _skipped_bytes(there)};",
        f"{'' if apart else 'const '}uintptr_t constants = (uintptr_t){'scales' if apart else 'k'} - {4 + told};",
        *(["uintptr_t weights = (uintptr_t)k - 4;"] if apart else []),
        "const uintptr_t last = (uintptr_t)to0 + 4 * (uint32_t)blocks;",
        f"const uintptr_t end = (uintptr_t)patch + {read - 4};" if there.count > 1 else "",
        "",
        "__asm__ volatile(",
    ]
    tally = Writer("")
    code = ["ldr.w r9, %[constants]", ".balign 4", "1:"]
    with tally.loop("block", "blocks", trips=1):
        code += _start(tally, there, told)
        code += _turned(tally, "constants", "weights") if apart else []
        code += _entered(tally, there)
        with tally.trips(there.count):
            code += _products(tally, there, in_ram, lines)
        code += _turned(tally, "weights", "constants") if apart else []
        code += _outputs(tally, scaling)
    own = ["weights", "constants"] if apart else []
    read_only = ["x", *([] if apart else ["constants"]), "last", *(["end"] if there.count > 1 else [])]
    return "\n".join([*text, *_ended(code, ["to0", "to1", *own], read_only)]), tally.counts


def _ended(code: Sequence[str], changed: Sequence[str], read: Sequence[str]) -> list[str]:
    """An assembly statement's lines, with its operands and clobbers."""
    outputs, inputs = (", ".join(f'[{n}] "{k}"({n})' for n in names) for names, k in ((changed, "+m"), (read, "m")))
    clobbered = ", ".join(f'"{name}"' for name in CLOBBERED)
    return [*(f'    "{line}\\n\\t"' for line in code), f"    : {outputs}", f"    : {inputs}", f"    : {clobbered});"]


def _skipped_bytes(there: Iterations) -> int:
    """The distance of the pointers from the first pair."""
    return PAIR_BYTES * (there.skipped % STRETCH)


def _start(w: Writer, there: Iterations, told: int) -> list[str]:
    """The pointer stands before the previous block's scaling constants, of so many bytes."""
    places = [f"{told + 4 * number}]" for number in range(1, 5)]
    sums = [f"ldr.w {name}, [{K}, #{at}" for name, at in zip(FIRST, places, strict=True)]
    lines = [f"ldr.w {X}, %[x]", *sums[:-1], f"{sums[-1]}!"]
    if there.count > 1:
        lines += [f"mov {second}, {first}" for first, second in zip(FIRST, SECOND, strict=True)]
    w.bill(len(lines))
    w.runs(1)
    return lines


def _turned(w: Writer, before: str, behind: str) -> list[str]:
    """The pointer to constants turns into the one to weights, or back."""
    w.bill(2)
    return [f"str.w {K}, %[{before}]", f"ldr.w {K}, %[{behind}]"]


def _entered(w: Writer, there: Iterations) -> list[str]:
    """The beginning of the loop, whose first pairs may be skipped."""
    lines = []
    if there.skipped:
        lines = [f"sub.w {K}, {K}, #{_skipped_bytes(there)}", "b.w 3f"]
        w.bill(len(lines) + 1)
    return lines if there.count == 1 else [*lines, ".balign 4", "2:"]


def _products(w: Writer, there: Iterations, in_ram: bool, along: Lines | None) -> list[str]:
    lines = []
    for pair in range(there.size):
        last = pair + 1 == there.size
        at, moved = PAIR_BYTES * (pair % STRETCH), "!" if last or (pair + 1) % STRETCH == 0 else ""
        begun = FIRST if pair == 0 and there.count == 1 else SECOND  # without a loop, both start from one register
        if pair == there.skipped and there.skipped:
            lines.append("3:")
        if along:
            lines += [
                f"ldr.w {x}, [{X}, #{4 * pair + 4 + apart}]" for x, apart in (("r10", 0), ("r11", 2 * along.step))
            ]
        else:
            lines += [f"ldr.w r10, [{X}, #{at + 4}]", f"ldr.w r11, [{X}, #{at + 8}]{moved}"]
        lines += [f"ldr.w r12, [{K}, #{at + 4}]", f"ldr.w lr, [{K}, #{at + 8}]{moved}"]
        for both, upper in (("r12", 1), ("lr", 3)):
            lines += [f"smlad {SECOND[upper]}, r11, {both}, {begun[upper]}"]
            lines += [f"smlad {FIRST[upper]}, r10, {both}, {FIRST[upper]}", f"sxtb16 {both}, {both}"]
        for both, lower in (("r12", 0), ("lr", 2)):
            lines += ["ldr.w r12, %[end]"] if last and both == "lr" and there.count > 1 else []
            lines += [f"smlad {SECOND[lower]}, r11, {both}, {begun[lower]}"]
            lines += [f"smlad {FIRST[lower]}, r10, {both}, {FIRST[lower]}"]
    if along and there.count > 1:
        lines.append(f"addw {X}, {X}, #{2 * along.length}")
    w.bill(14 * there.size + bool(along))
    w.runs(there.size * (1 if in_ram else 2))
    if there.count > 1:
        w.bill(3)
        w.runs(1)
        lines += [f"cmp.w {X}, r12", "bne.w 2b"]
    return lines


def _outputs(w: Writer, scaling: Scaling) -> list[str]:
    """Scales and stores channel by channel. Scaling constants are loaded into free registers in as few runs as
    possible, each before a store, which is then free or does not delay a load."""
    told = [
        (f"{role}{channel}", f"[{K}, #{4 * (channel * len(scaling.columns) + at + 1)}]")
        for channel in range(4)
        for at, role in enumerate(scaling.columns)
    ]
    waiting = [*told, ("last", "%[last]")]
    signed = scaling.form is not None and bool(scaling.form.below)
    pointers = ["ldr.w r10, %[to0]", "ldr.w r11, %[to1]"]
    free, held = ["r12", "lr", "r8"], dict[str, str]()
    lines: list[str] = []
    stores: list[str] = []
    for channel in range(4):
        run = pointers if channel == int(signed) else []
        while waiting and free:
            name, place = waiting.pop(0)
            held[name] = free.pop(0)
            run = [*run, f"ldr.w {held[name]}, {place}"]
        w.runs(bool(run))
        lines += [*run, *stores, *([] if channel % 2 else _apart(scaling, channel))]
        own = {role: held.pop(f"{role}{channel}") for role in scaling.columns}
        spare = ("r10", "r11") if channel == 0 else ("r0", "r4")
        lines += _scaled(scaling, channel, own, spare)
        stores = [f"strb.w {FIRST[channel]}, [r10], #1", f"strb.w {SECOND[channel]}, [r11], #1"]
        free += own.values()
        free += [] if channel == 0 else [FIRST[channel - 1], SECOND[channel - 1]]
        free = [name for name in free if not (signed and name in ("r0", "r4"))]
    lines += [*stores, "str.w r10, %[to0]", "str.w r11, %[to1]", f"cmp.w r10, {held['last']}", "bne.w 1b"]
    w.bill(sum(not line.startswith("it") for line in lines))
    return lines


def _apart(scaling: Scaling, channel: int) -> list[str]:
    """Separates the sums of a channel and the next, both shifted left equally."""
    assert scaling.form is not None
    left, lines = scaling.form.left or 0, []
    for sums in (FIRST, SECOND):
        lower, upper = sums[channel : channel + 2]
        lines += [f"sub.w {upper}, {upper}, {lower}", f"lsl.w {lower}, {lower}, #{left}"]
        lines += [f"asr.w {upper}, {upper}, #{RAISED - left}"] if left < RAISED else []
    return lines


def _scaled(scaling: Scaling, channel: int, told: Mapping[str, str], spare: Sequence[str]) -> list[str]:
    form, values = scaling.form, (FIRST[channel], SECOND[channel])
    assert form is not None
    lines, offsets = [], [told["offset"]] * 2
    if form.below:
        offsets = list(spare)
        lines = [f"add.w {own}, {told['offset']}, {sums}, asr #31" for own, sums in zip(offsets, values, strict=True)]
    high = "smmlar" if form.rounded else "smmla"
    for value, offset in zip(values, offsets, strict=True):
        lines.append(f"{high} {value}, {value}, {told['multiplier']}, {offset}")
    for value in values:
        if form.level is None:
            lines += [f"asr.w {value}, {value}, {told['shift']}", f"ssat {value}, #8, {value}"]
        else:
            lines.append(f"ssat {value}, #8, {value}, asr #{form.level}")
    for limit, usual, worse in ((scaling.low, INT8[0], "lt"), (scaling.high, INT8[1], "gt")):
        if limit != usual:
            for value in values:
                lines += [f"cmp.w {value}, #{limit}", f"it {worse}", f"mov{worse}.w {value}, #{limit}"]
    return lines


def shared(scaling: Scaling, pairs: int, told: bool, bounded: bool) -> tuple[str, OpCounts]:
    """The C of the routine whose numbers of pairs and channels are arguments, with parameters patch, k, to0 and to1,
    and the cost of a block. `told`: offsets are stored rather than computed."""
    text = [
        "const uintptr_t end = (uintptr_t)(patch + k[0]);",
        "int32_t left = k[1];",
        f"uint32_t entry = ((uint32_t)-k[0] & {TURN - 1}) * {PAIR_CODE} + 1;",
        "",
        "__asm__ volatile(",
    ]
    w = Writer("")
    code = ["ldr.w r9, %[k]", f"add.w r9, r9, #{20 if bounded else 12}", "adr.w r12, 2f", "ldr.w r8, %[entry]"]
    code += ["add.w r12, r12, r8", "str.w r12, %[entry]", "1:", "ldr.w r8, %[patch]", f"ldm.w {K}!, {{r0-r3}}"]
    code += ["ldr.w r12, %[entry]", *(f"mov {second}, {first}" for first, second in zip(FIRST, SECOND, strict=True))]
    code += ["bx r12", ".balign 4", "2:"]
    w.bill(9, 6)
    with w.loop("turn", "turns", trips=-(-pairs // TURN)):
        pass
    for _ in range(TURN):
        code += [f"ldrd r10, r11, [{X}], #8", f"ldrd r12, lr, [{K}], #8"]
        for both, sums in (("r12", 1), ("lr", 3)):
            code += [f"smlad {half[sums]}, {x}, {both}, {half[sums]}" for half, x in ((SECOND, "r11"), (FIRST, "r10"))]
            code += [f"sxtb16 {both}, {both}"]
        for both, sums in (("r12", 0), ("lr", 2)):
            code += [f"smlad {half[sums]}, {x}, {both}, {half[sums]}" for half, x in ((SECOND, "r11"), (FIRST, "r10"))]
    code += ["ldr.w r12, %[end]", f"cmp.w {X}, r12", "bne.w 2b"]
    w.bill(12 * pairs, 4 * pairs)
    behind = len(code)
    for channel in (0, 2):
        code += _apart(scaling, channel)
    code += [f"ldr.w lr, [{K}], #4"]
    for channel in range(4):
        code += _scaled_of(scaling, channel, told)
    if bounded:
        code += _within()
    code += ["ldr.w r8, %[to0]", "ldr.w r10, %[to1]", "ldr.w r11, %[left]", "cmp.w r11, #4", "blt.n 3f"]
    code += ["str.w r0, [r8], #4", "str.w r4, [r10], #4", "str.w r8, %[to0]", "str.w r10, %[to1]"]
    code += ["subs.w r11, r11, #4", "str.w r11, %[left]", "bne.w 1b", "b.n 4f"]
    w.bill(len(code) - behind - 1, 10 if told else 13)
    code += ["3:", "strb.w r0, [r8], #1", "strb.w r4, [r10], #1", "lsrs r0, r0, #8", "lsrs r4, r4, #8"]
    code += ["subs.w r11, r11, #1", "bne.n 3b", "4:"]
    names = ("patch", "k", "end", *([] if told else ["zero"]), *BOUNDS[bounded])
    text[3:3] = [] if told else ["const int32_t zero = k[2];"]
    text[3:3] = ["const int32_t lows = k[3], highs = k[4];"] if bounded else []
    return "\n".join([*text, *_ended(code, ("to0", "to1", "left", "entry"), names)]), w.counts


BOUNDS = {False: (), True: ("lows", "highs")}


def _scaled_of(scaling: Scaling, channel: int, told: bool) -> list[str]:
    """Both outputs of a channel, each a byte of a word; lr holds the shifts of four."""
    form, values = scaling.form, (FIRST[channel], SECOND[channel])
    assert form is not None
    lines = [f"uxtb.w r11, lr, ror #{8 * channel}" if channel else "uxtb.w r11, lr"]
    if told:
        lines += [f"ldrd r10, r8, [{K}], #8"]
    else:
        lines += ["ldr.w r12, %[zero]", f"ldr.w r10, [{K}], #4", "lsl.w r12, r12, r11", "asr.w r8, r12, #1"]
    for value, offset in zip(values, ("r12", "r8"), strict=True):
        lines += [f"add.w {offset}, r8, {value}, asr #31"] if form.below else []
        lines += [f"smmla{'r' * form.rounded} {value}, {value}, r10, {offset if form.below else 'r8'}"]
    for value in values:
        lines += [f"asr.w {value}, {value}, r11", f"ssat {value}, #8, {value}"]
    if channel:
        lines += [f"bfi {half[0]}, {half[channel]}, #{8 * channel}, #8" for half in (FIRST, SECOND)]
    return lines


def _within() -> list[str]:
    """Clamps four bytes at a time."""
    lines = []
    for name in BOUNDS[True]:
        lines.append(f"ldr.w r8, %[{name}]")
        for word in (FIRST[0], SECOND[0]):
            less = f"{word}, r8" if name == "lows" else f"r8, {word}"
            lines += [f"ssub8 r12, {less}", f"sel {word}, {word}, r8"]
    return lines
