"""A set of vector instructions: a few facts, and how it spells the operations of the table.

A kernel asks for an operation by name and gets a C expression, so one text serves every set. What a set does not
spell is computed by its meaning. Sums of products may be fused (`fma`); functions use `mul` and `add`, which are never
fused, so that they give the same bits on every set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from nnbuild.base.literals import float_literal
from nnbuild.base.scopes import Scopes
from nnbuild.base.writer import INDENT, Instruction, Writer
from nnbuild.isa.across_ops import ACROSS
from nnbuild.isa.integer_ops import INTEGERS
from nnbuild.isa.ops import EACH, FLOATS, KINDS, Operation
from nnbuild.isa.pair_ops import PAIRS
from nnbuild.ops.base import Clamp

Spelling = str | Callable[..., str]
"""The body of a function, or the expression it returns; made from the operation's parameters where it has some."""
_STATEMENT = re.compile(r"(\s*(?:for \([^()]*\) )?)(.*;)$")
KIND = re.compile(rf"\b({'|'.join(KINDS)})\b")
OPERATIONS = FLOATS | INTEGERS | PAIRS | ACROSS
MEANING_CYCLES = 2.0
"""Of one lane of an operation that is computed by its meaning."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """One set.

    name: the set's, and that of its kernels. `lanes` numbers of 32 bits in each of `registers` registers, of which a
    sum of products takes `temporaries` for itself.
    guard: where the compiler has the set's own types and spellings.
    types: the C types of the kinds.
    spellings: of operations, in C; `a`, `b` … are the operands that the table names.
    repeats: how many neighbouring floats can be repeated through all lanes.
    cycles: of operations whose price is not the usual one.
    kernels: what the set has kernels of its own for: "float", "integer", of which "sums" are the layers with weights,
    or, where products of integers are summed across the lanes, "across"; the others are those of a set it contains.
    totals: the core registers that hold such sums, where compilers must be told; and the one of the pointer to inputs.

    subscripts: whether C takes one lane of the set's types as it does an element of an array; then what is not spelt
    is computed so.

    Of integers: bytes of inputs are multiplied `depth` at a time, as words where that is 2, and are lifted by `lift`
    before. `block` lanes stay side by side where taps are interleaved, all unless it is given. 64-bit numbers go with
    even and odd lanes where they are `alternating`, else with either half. Lanes are shifted by `powers` of two, as
    products, or by counts. From `reach` bytes the inputs of several outputs are brought together in one vector. Bytes
    of weights must be `least_weight` at least.
    """

    name: str
    guard: str
    lanes: int
    registers: int
    types: Mapping[str, str]
    spellings: Mapping[str, Spelling]
    temporaries: int = 0
    repeats: tuple[int, ...] = (1,)
    cycles: Mapping[str, float] = field(default_factory=dict)
    kernels: tuple[str, ...] = ("float", "integer")
    totals: tuple[str, ...] = ()
    pointer: str = ""
    subscripts: bool = False
    depth: int = 2
    lift: int = 0
    block: int = 0
    alternating: bool = False
    powers: bool = False
    reach: int = 0
    least_weight: int = -128

    @property
    def apart(self) -> bool:
        """Whether it takes 64-bit numbers as their lower and their upper halves."""
        return "scaled_apart" in self.spellings

    @property
    def rounds(self) -> bool:
        """Whether it has TFLite's roundings as instructions."""
        return "high_rounded" in self.spellings

    @cache  # noqa: B019  # sets live as long as the program
    def instruction(self, name: str, *parameters: int | str) -> Instruction:
        """An operation of the table as a function of this set's."""
        row, spelt = OPERATIONS[name], self.spellings.get(name, "")
        operation = row if isinstance(row, Operation) else row(*parameters)
        native = spelt if isinstance(spelt, str) else spelt(*parameters)
        kinds = dict.fromkeys(KIND.findall(f"{operation.result} {operation.operands}"))
        if kinds and not native and self.subscripts:
            native = self._meaning(operation).replace(".at[", "[")
        marks = [self.name, name, "x".join(map(str, parameters)).replace("-", "m")]
        space = "" if operation.result.endswith("*") else " "
        usual = MEANING_CYCLES * self.lanes if kinds and not spelt else operation.cycles
        return Instruction(
            "_".join(mark for mark in marks if mark),
            self.typed(f"{operation.result}{space}{{name}}({operation.operands})"),
            self._meaning(operation),
            self.cycles.get(name, usual),
            self.typed(_body(native, operation.result)) if native else "",
            self.guard if native else "",
            uses=tuple(self.kind(kind) for kind in kinds),
            words=operation.words,
        )

    def kind(self, kind: str) -> Instruction:
        """The C type of a kind of values."""
        meaning = f"typedef {_counted(KINDS[kind], self.lanes)} {{name}};"
        native = f"typedef {self.types[kind]} {{name}};" if kind in self.types else ""
        return Instruction(f"{self.name}_{kind}", "", meaning, 0, native, self.guard if native else "")

    def typed(self, text: str) -> str:
        """C in which the kinds are this set's types."""
        return KIND.sub(rf"{{prefix}}_{self.name}_\1", text)

    def _meaning(self, operation: Operation) -> str:
        body = operation.meaning
        if ";" not in body and operation.result in KINDS:
            body = f"{operation.result} r;\n\n{EACH}r.at[i] = {body};\nreturn r;"
        body = _counted(_body(body, operation.result), self.lanes)
        return self.typed("\n".join(_folded(line) for line in body.splitlines()))

    def price(self, name: str, *parameters: int | str) -> float:
        return self.instruction(name, *parameters).cycles

    def call(self, w: Writer, name: str, *operands: str, of: tuple[int | str, ...] = ()) -> str:
        """The expression of an operation `of` some parameters, with its price on the bill."""
        return w.call(self.instruction(name, *of), *operands)

    def let(self, w: Writer, kind: str, name: str, value: str, const: str = "const ") -> None:
        """Declares a variable of a kind."""
        w(f"{const}{w.prefix}_{self.name}_{kind} {name} = {value};")

    def declare_total(self, w: Writer, name: str, index: int) -> None:
        """Declares the total of this number of a tile, where the set's totals want to be."""
        plain = "#define {name}(total) int32_t total"
        native = (
            f'#define {{name}}(total) register int32_t total __asm__("{self.totals[index]}")' if self.totals else ""
        )
        pinned = Instruction(f"{self.name}_total{index}", "", plain, 0, native, self.guard if native else "")
        w(f"{w.call(pinned, name)};")

    def declare_pointer(self, w: Writer, kind: str, name: str, value: str) -> None:
        """Declares a pointer that the compiler keeps, so that what lies behind it needs no other one."""
        plain = "#define {name}(type, pointer, value) const type *pointer = value"
        pinned = f'register const type *pointer __asm__("{self.pointer}") = value'
        opaque = '__asm__ volatile("" : "+r"(pointer))'
        native = f"#define {{name}}(type, pointer, value) \\\n{INDENT}{pinned}; \\\n{INDENT}{opaque}"
        kept = Instruction(f"{self.name}_pointer", "", plain, 1, native, self.guard)
        w(f"{w.call(kept, kind, name, value)};")

    # Floats

    def use(self, w: Writer, operation: str, *operands: str) -> str:
        return self.call(w, f"f_{operation}", *operands)

    def accumulate(self, w: Writer, total: str, a: str, b: str) -> None:
        """total += a * b."""
        w(f"{total} = {self.use(w, 'fma', a, b, total)};")

    def load(self, w: Writer, pointer: str, count: int | None = None) -> str:
        """The vector at a pointer; where it is given, only `count` lanes are read and the others are zero."""
        whole = count is None or count >= self.lanes
        return self.call(w, "f_load", pointer) if whole else self.call(w, "f_load_first", pointer, of=(count or 0,))

    def store(self, w: Writer, pointer: str, value: str, count: int | None = None) -> None:
        """Writes a vector to a pointer; where it is given, only the first `count` lanes."""
        if count is None or count >= self.lanes:
            w(f"{self.call(w, 'f_store', pointer, value)};")
        else:
            w(f"{self.call(w, 'f_store_first', pointer, value, of=(count,))};")

    def kept(self, w: Writer, value: str, count: int) -> str:
        """The first lanes of a value, and zeros."""
        if count >= self.lanes:
            return value
        bits = self.call(w, "and", self.use(w, "bits", value), self.call(w, "mask", of=(count, -1, 0)))
        return self.call(w, "f_of_bits", bits)

    def broadcast(self, w: Writer, pointer: str, depth: int) -> str:
        """The `depth` floats at a pointer, repeated through all lanes."""
        return self.call(w, "f_repeat", pointer, of=(depth,))

    def each(self, w: Writer, value: float | str) -> str:
        """The same number in every lane."""
        return self.call(w, "f_each", value if isinstance(value, str) else float_literal(value))

    def across(self, w: Writer, operation: str, value: str, count: int | None = None) -> str:
        """The sum, maximum … of all lanes in every lane, or that of the first `count` lanes in each of them."""
        steps = max(1, ((count or self.lanes) - 1).bit_length())
        return self.call(w, "f_across", value, of=(operation, 1 << steps))

    def declare(self, w: Writer, name: str, value: str) -> None:
        self.let(w, "floats", name, value, "")

    def bound(self, w: Writer, bounds: Clamp, variable: str) -> None:
        """Puts the lanes of a variable within bounds. The variable comes second: so a NaN stays one."""
        for operation, limit in (("max", bounds.low), ("min", bounds.high)):
            if limit is not None:
                w(f"{variable} = {self.use(w, operation, self.each(w, limit), variable)};")


def in_vectors(w: Writer, width: int, count: int, name: str = "c", spelt_out: int = 0) -> Iterator[tuple[str, int]]:
    """The loop `name` over `count` values: where the next ones are, and how many, at most `width`.

    Where there are no more than `spelt_out` turns they are printed one by one.
    """
    whole, rest = divmod(count, width)
    if whole > spelt_out:
        with w.loop(name, whole * width, step=width):
            yield name, width
    else:
        yield from ((str(turn * width), width) for turn in range(whole))
    if rest:
        with w.block(""):
            yield str(whole * width), rest


def _counted(text: str, lanes: int) -> str:
    """The text for so many lanes, every number of elements being written as one number."""
    text = re.sub(r"LANES \* (\d+)", lambda found: str(lanes * int(found[1])), text)
    return re.sub(r"\(LANES / 2\)|LANES / 2", str(lanes // 2), text).replace("LANES", str(lanes))


def _folded(line: str) -> str:
    """A line of a meaning whose numbers are computed."""
    found = _STATEMENT.match(line)
    return f"{found[1]}{Scopes().statement(found[2]) or found[2]}" if found else line


def _body(spelling: str, result: str) -> str:
    if ";" in spelling:
        return spelling
    return f"{spelling};" if result == "void" else f"return {spelling};"
