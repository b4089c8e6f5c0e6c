"""Elementwise sums and products of two int8 tensors on Cortex-M4 and up, four bytes of a word at a time."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.kernels.contract import Names, all_int8, reason_of
from nnbuild.kernels.dsp.scaling import ANY, LONG, Scaling, chosen, scaled
from nnbuild.kernels.loops.strided import Loops, operand_loops
from nnbuild.kernels.loops.window_loops import product, total
from nnbuild.kernels.parts.residual import exact_sum
from nnbuild.numeric.linear_sum import LinearSum
from nnbuild.numeric.requant import Layer, RuleName
from nnbuild.numeric.requant_product import Form
from nnbuild.numeric.requant_twice import Highs, highs
from nnbuild.numeric.rounding import INT8, INT32, ints
from nnbuild.ops.binary import Binary, formats, operands
from nnbuild.ops.integer import bounds
from nnbuild.ops.site import Site

AT_ONCE = 16
"""Elements per iteration."""
WORD = 4
ODD = Row("{0} & mask", 1)
FORMS = (Form(level=ANY), Form(level=ANY, rounded=True), Form(left=1, level=ANY, rounded=True, below=1))
"""Forms of scaling products, cheapest first; the last is TFLite's own rule, for doubled products."""
ROOM = ints([INT32[1]])


class Sum:
    """Two multiplications and a saturating shift per element.

    Bytes are taken two at a time as the upper halves of 16-bit numbers. The coefficients are exact for every pair of
    numbers (see `numeric.linear_sum`), so no table is needed.
    """

    def __init__(self, site: Site[Binary], found: LinearSum) -> None:
        self.found = found
        self.limits = bounds(site.attributes.clamp, site.outputs[0])

    def begin(self, w: Writer) -> None:
        w(f"const int32_t mask = {0xFF00FF00 - (1 << 32)};")

    def halves(self, w: Writer, name: str, word: str) -> None:
        """Declares the bytes of a word as halves: the second and fourth are in place already."""
        w(w.use(c99.LET, f"even_{name}", DSP.call(w, "masked_left8", "mask", word)))
        w(w.use(c99.LET, f"odd_{name}", w.use(ODD, word)))

    def single(self, name: str, element: str) -> str:
        """One element as a lower half."""
        return f"{element} * 256"

    def element(self, w: Writer, a: str, b: str, high: bool, target: str) -> None:
        half = "p_wide_high" if high else "p_wide_low"
        partial = DSP.call(w, half, str(self.found.second), b, str(self.found.start))
        value = DSP.call(w, half, str(self.found.first), a, partial)
        value = DSP.call(w, "saturate", value, of=(8, self.found.shift))
        if self.limits == INT8:
            w(w.use(c99.STORE_BYTE, target, value))
            return
        with w.block(""):
            w(f"int32_t value = {value};")
            c99.bound(w, self.limits, "value")
            w(w.use(c99.STORE_BYTE, target, "value"))


class Product:
    """Bytes less their zero points as halves; one of them doubled where `doubled`."""

    def __init__(self, site: Site[Binary], doubled: bool = False) -> None:
        self.doubled = {"a": False, "b": doubled}
        self.zeros = dict(zip("ab", formats(site).zeros[:2], strict=True))

    def begin(self, w: Writer) -> None:
        for name, zero in self.zeros.items():
            if zero:
                w(f"const int32_t zero_{name} = {_pair(-zero)};")

    def halves(self, w: Writer, name: str, word: str) -> None:
        for part in ("even", "odd"):
            if self.zeros[name]:
                value = DSP.call(w, f"p_add_{part}_bytes", f"zero_{name}", word)
            else:
                value = DSP.call(w, f"p_{part}_bytes", word)
            if self.doubled[name]:
                w(w.use(c99.LET, f"single_{part}", value))
                value = DSP.call(w, "p_add", *[f"single_{part}"] * 2)
            w(w.use(c99.LET, f"{part}_{name}", value))

    def single(self, name: str, element: str) -> str:
        value = c99.added(element, -self.zeros[name])
        return f"({value}) * 2" if self.doubled[name] else value

    def element(self, w: Writer, a: str, b: str, high: bool, target: str) -> None:
        with w.block(""):
            self.scaled(w, a, b, "high" if high else "low")
            w(w.use(c99.STORE_BYTE, target, "value"))

    def scaled(self, w: Writer, a: str, b: str, half: str) -> None:
        """Declares `value`, the output of these halves."""
        raise NotImplementedError


class Scaled(Product):
    """Products scaled like the sums of a convolution."""

    def __init__(self, site: Site[Binary], scaling: Scaling) -> None:
        super().__init__(site, scaling.doubled)
        self.scaling = scaling
        self.start = -int(scaling.centre[0] * scaling.factor[0])

    def begin(self, w: Writer) -> None:
        super().begin(w)
        for name, values in self.scaling.columns.items():
            kind = "int64_t" if self.scaling.function in LONG else "int32_t"
            w(f"const {kind} {name} = {int(values[0])};")
        if self.start:
            w(f"const int32_t start = {self.start};")

    def scaled(self, w: Writer, a: str, b: str, half: str) -> None:
        operation, start = (f"p_{half}_{half}", ["start"]) if self.start else (f"p_{half}_product", [])
        w(f"int32_t value = {DSP.call(w, operation, a, b, *start)};")
        form, names = self.scaling.form, {name: name for name in self.scaling.columns}
        if form is not None and form.below == 1:
            w(f"const int32_t signed_offset = {DSP.call(w, 'add_sign', 'value', 'offset')};")
            names["offset"] = "signed_offset"
            form = replace(form, below=0)
        scaled(w, replace(self.scaling, form=form), "value", names)


class RoundedTwice(Product):
    """Products scaled by TFLite's own two roundings."""

    def __init__(self, site: Site[Binary], numbers: Highs) -> None:
        super().__init__(site)
        self.numbers = numbers

    def begin(self, w: Writer) -> None:
        super().begin(w)
        for name in ("first", "second", "zero"):
            w(f"const int32_t {name} = {getattr(self.numbers, name)};")

    def scaled(self, w: Writer, a: str, b: str, half: str) -> None:
        w(f"const int32_t product = {DSP.call(w, f'p_{half}_product', a, b)};")
        w(f"const int32_t fine = {DSP.call(w, 'high_rounded_add', 'product', 'first', 'product')};")
        whole = DSP.call(w, "high_rounded_add", "fine", "second", "zero")
        w(f"int32_t value = {DSP.call(w, 'saturate', whole, of=(8, 0))};")
        if self.numbers.bounds != INT8:
            c99.bound(w, self.numbers.bounds, "value")


def _pair(value: int) -> int:
    """A number in both halves of a word."""
    return int(np.uint32((value & 0xFFFF) * 0x10001).astype(np.int32))


@lru_cache(maxsize=256)
def rule_of(site: Site[Binary]) -> Sum | Product | str:
    """How an element is computed, or why it cannot be."""
    reason = all_int8(site)
    if reason:
        return reason
    match site.attributes.function:
        case "add" | "subtract":
            found = exact_sum(site)
            return Sum(site, found) if found else "no coefficients give every sum exactly"
        case "multiply":
            return _product(site)
    return "it adds, subtracts and multiplies only"


def _product(site: Site[Binary]) -> Product | str:
    """One high product where numbers for it exist, then two; then TFLite's rule for doubled products."""
    form, limits = formats(site), bounds(site.attributes.clamp, site.outputs[0])
    farthest = [[limit - zero for limit in INT8] for zero in form.zeros[:2]]
    ends = [a * b for a in farthest[0] for b in farthest[1]]
    rule: RuleName = "once" if form.once else "twice"
    reals = np.array([form.real_product()])
    layer = Layer(rule, reals, form.zeros[2], limits, ints([min(ends)]), ints([max(ends)]))
    found = chosen(layer, FORMS[:2], ints([0]), ROOM, 8)
    if not isinstance(found, str) and found.form is not None:
        return Scaled(site, found)
    numbers = highs(layer.channels[0])
    if numbers is not None:
        return RoundedTwice(site, numbers)
    found = chosen(layer, FORMS, ints([1]), ROOM, 8)
    return found if isinstance(found, str) else Scaled(site, found)


def refused(site: Site[Binary]) -> str | None:
    return reason_of(rule_of(site)) or operand_loops(site).no_vectors(WORD)


def emit(w: Writer, site: Site[Binary], names: Names) -> None:
    walks = operand_loops(site)
    rule = rule_of(site)
    assert not isinstance(rule, str)
    left, right = operands(names.inputs, names.packed)
    once = {name for name, single in zip("ab", walks.repeated[1:], strict=True) if single}
    rule.begin(w)
    gate = broadcast_rows(walks)
    if gate:
        _by_rows(w, rule, gate, (left, right, names.outputs[0]))
        return

    def run(at: list[str], count: str, trips: int) -> None:
        for name, pointer, place in (("to", names.outputs[0], at[0]), ("a", left, at[1]), ("b", right, at[2])):
            if name in once:
                w(f"const int32_t {name} = {rule.single(name, f'{pointer}[{place}]')};")
                w(f"const int32_t both_{name} = (int32_t)((uint32_t)(uint16_t){name} * 65537U);")
            else:
                w(f"{'' if name == 'to' else 'const '}int8_t *{name} = {total(pointer, place)};")
        w(f"const int8_t *const last = to + {count};")
        w.bill(10)
        _run(w, rule, once, trips)

    walks.runs(w, run)


def _run(w: Writer, rule: Sum | Product, once: set[str], trips: int) -> None:
    walking = [name for name in ("a", "b", "to") if name not in once]
    with w.block(f"while (last - to >= {AT_ONCE})"), w.trips(trips // AT_ONCE):
        w.bill(3)
        for at in range(0, AT_ONCE, WORD):
            with w.block(""):
                _word(w, rule, once, at)
        for pointer in walking:
            w(w.use(c99.STEP, pointer, str(AT_ONCE)))
    with w.block("while (to < last)"), w.trips(trips % AT_ONCE):
        w.bill(5)
        a, b = (name if name in once else f"one_{name}" for name in "ab")
        for name in "ab":
            if name not in once:
                w(w.use(c99.LET, f"one_{name}", rule.single(name, f"*{name}++")))
        rule.element(w, a, b, False, "*to++")


def _word(w: Writer, rule: Sum | Product, once: set[str], at: int, held: str = "") -> None:
    for name in "ab":
        if name not in once:
            w(w.use(c99.LET, f"word_{name}", DSP.call(w, "load_bytes", total(name, str(at)), of=(WORD,))))
            rule.halves(w, name, f"word_{name}")
    for byte in range(WORD):
        part = ("even", "odd")[byte % 2]
        a, b = (f"both_{name}" if name in once and name != held else f"{part}_{name}" for name in "ab")
        rule.element(w, a, b, byte > 1, f"to[{at + byte}]")


BROADCAST_ROWS = 4
"""Rows per iteration."""


def broadcast_rows(walks: Loops) -> tuple[int, int, str] | None:
    """(rows, channels, operand) where one operand has a single row: its four channels stay in registers."""
    strides = [walk.strides for walk in walks.walks]
    for name, own, other in (("b", strides[2], strides[1]), ("a", strides[1], strides[2])):
        if len(own) == 2 and own == (0, 1) and other == strides[0] and walks.sizes[1] % WORD == 0:
            return walks.sizes[0], walks.sizes[1], name
    return None


def _by_rows(w: Writer, rule: Sum | Product, gate: tuple[int, int, str], pointers: tuple[str, str, str]) -> None:
    """Four channels at a time, for all rows."""
    rows, channels, held = gate
    walking = "a" if held == "b" else "b"
    of = dict(zip(("a", "b", "to"), pointers, strict=True))
    with w.loop("c", channels, step=WORD):
        w.bill(16)
        for name, kind in ((walking, "const "), ("to", "")):
            w(f"{kind}int8_t *{name} = {total(of[name], product('begin', channels), 'c')};")
        w(w.use(c99.LET, "word", DSP.call(w, "load_bytes", total(of[held], "c"), of=(WORD,))))
        rule.halves(w, held, "word")
        w("int32_t left = end - begin;")
        with w.block(f"for (; left >= {BROADCAST_ROWS}; left -= {BROADCAST_ROWS})"), w.trips(rows // BROADCAST_ROWS):
            w.bill(4)
            for row in range(BROADCAST_ROWS):
                with w.block(""):
                    _word(w, rule, {held}, row * channels, held)
            for pointer in (walking, "to"):
                w(f"{pointer} += {BROADCAST_ROWS * channels};")
        with w.block("for (; left > 0; --left)"), w.trips(rows % BROADCAST_ROWS):
            w.bill(4)
            with w.block(""):
                _word(w, rule, {held}, 0, held)
            for pointer in (walking, "to"):
                w(f"{pointer} += {channels};")
