"""A vector set: a few properties, and its spellings of the table's operations.

A kernel requests operations by name and gets C expressions, so one text serves every set. Operations without a spelling
are computed by their meaning. Sums of products may be fused (`fma`); functions use `mul` and `add`, which are never
fused, so that they give the same bits on every set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from nnbuild.base.c_scopes import Scopes
from nnbuild.base.literals import float_literal
from nnbuild.base.writer import INDENT, Instruction, Writer
from nnbuild.isa.across_ops import ACROSS
from nnbuild.isa.byte_ops import BYTES
from nnbuild.isa.instructions_spelt import instructions_spelt
from nnbuild.isa.integer_ops import INTEGERS
from nnbuild.isa.ops import EACH, FLOATS, KINDS, Operation
from nnbuild.isa.pair_ops import PAIRS
from nnbuild.ops.base import Clamp

Spelling = str | Callable[..., str]
"""A function body, or the expression that it returns; callable with the operation's parameters, if any."""
_STATEMENT = re.compile(r"(\s*(?:for \([^()]*\) )?)(.*;)$")
KIND = re.compile(rf"\b({'|'.join(KINDS)})\b")
BY_NUMBER = ("add", "sub", "mul", "min", "max", "and", "xor", "upper", "high_rounded", "round_each")
"""Operations whose last operand may be one number, for sets with instructions that take a scalar."""


def _by_number(operation: Operation) -> Operation:
    others, _, name = operation.operands.rpartition(", sums ")
    meaning = operation.meaning.replace(f"{name}.at[i]", name)
    return operation._replace(operands=f"{others}, int32_t {name}", meaning=meaning)


NUMBERS = {f"{name}_by": _by_number(row) for name in BY_NUMBER if isinstance(row := INTEGERS[name], Operation)}
OPERATIONS = FLOATS | INTEGERS | NUMBERS | BYTES | PAIRS | ACROSS
FEW_REGISTERS = 16
GATHER_CYCLES = 2.5
"""Cycles of a gathered number up to which gathering pays."""
MOVE_CYCLES = 3
"""Instructions that move a vector: its load, its store, the loop's end."""
MEANING_CYCLES = 2.0
"""Cycles per lane of an operation computed by its meaning."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Vectors:
    """The properties of a set.

    name: of the set and its kernels. `lanes`: 32-bit numbers in each of `registers` registers, of which a sum of
    products needs `temporaries`.
    guard: the condition for the set's own types and spellings.
    types: the C types of the kinds.
    spellings: of operations, in C; `a`, `b` … are the operands named in the table.
    repeats: how many neighbouring floats can be repeated through all lanes.
    cycles: of operations with an unusual cost.
    kernels: what the set has kernels for: "float" and "integer", of which "float_sums" and "sums" are the layers with
    weights, or, where products of integers are summed across the lanes, "across"; "tables" are look-ups, "bytes"
    copies and maxima of bytes. Others come from a set it contains.
    totals: the core registers of such sums, where compilers must be told; and the one of the pointer to inputs.

    in_order: whether the processor starts one instruction at a time, so that an operation costs as many as its spelling
    has; elsewhere the table's usual cost holds, which is that of processors that start several.
    unsaved: whether its vectors cannot wait on the stack, as their size is unknown until run time.
    subscripts: whether C can subscript the set's types like arrays; meanings then use that.

    For integers: input bytes are multiplied `depth` at a time, as words where that is 2, after adding `lift`. `block`
    lanes stay together where taps are interleaved, by default all. 64-bit numbers belong to even and odd lanes where
    they are `alternating`, else to either half. Lanes are shifted by products with `powers` of two, or by counts. From
    `reach` bytes the inputs of several outputs are joined in one vector. Weights must be at least `least_weight`.
    """

    name: str
    guard: str
    registers: int
    lanes: int = 1
    types: Mapping[str, str] = field(default_factory=dict)
    spellings: Mapping[str, Spelling] = field(default_factory=dict)
    temporaries: int = 0
    repeats: tuple[int, ...] = (1,)
    cycles: Mapping[str, float] = field(default_factory=dict)
    kernels: tuple[str, ...] = ("float", "integer")
    totals: tuple[str, ...] = ()
    pointer: str = ""
    in_order: bool = False
    unsaved: bool = False
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
        """Whether it handles 64-bit numbers as lower and upper halves."""
        return "scaled_apart" in self.spellings

    @property
    def rounds(self) -> bool:
        """Whether it has instructions for TFLite's roundings."""
        return "away" in self.spellings

    @property
    def gathers(self) -> bool:
        """Whether it gathers numbers faster than it looks them up one by one."""
        return "gather" in self.spellings and self.price("gather") <= GATHER_CYCLES * self.lanes

    @property
    def sparing(self) -> bool:
        """Whether registers are so few that values are loaded at their use."""
        return self.registers < FEW_REGISTERS

    @property
    def by_number(self) -> bool:
        """Whether it multiplies all lanes by one number without repeating it first."""
        return "f_fma_by" in self.spellings

    @property
    def tile_registers(self) -> int:
        """The registers for a tile's sums, its weights and one input, which needs none where it stays a number."""
        return self.registers - self.temporaries + self.by_number

    @cache  # noqa: B019  # sets live as long as the program
    def instruction(self, name: str, *parameters: int | str) -> Instruction:
        """An operation of the table as a function in this set."""
        row, spelt = OPERATIONS[name], self.spellings.get(name, "")
        operation = row if isinstance(row, Operation) else row(*parameters)
        native = spelt if isinstance(spelt, str) else spelt(*parameters)
        kinds = dict.fromkeys(KIND.findall(f"{operation.result} {operation.operands}"))
        if kinds and not native and self.subscripts:
            native = self._meaning(operation).replace(".at[", "[")
        marks = [self.name, name, "x".join(map(str, parameters)).replace("-", "m")]
        space = "" if operation.result.endswith("*") else " "
        usual = MEANING_CYCLES * self.lanes if kinds and not spelt else operation.cycles
        usual = instructions_spelt(native) if self.in_order and spelt else usual
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
        """C with the kinds replaced by this set's types."""
        return KIND.sub(rf"{{prefix}}_{self.name}_\1", text)

    def _meaning(self, operation: Operation) -> str:
        body = operation.meaning
        if ";" not in body and operation.result in KINDS:
            body = f"{operation.result} r;\n\n{EACH}r.at[i] = {body};\nreturn r;"
        body = _counted(_body(body, operation.result), self.lanes)
        return self.typed("\n".join(_folded(line) for line in body.splitlines()))

    def moving(self, count: float, size: int = 1) -> float:
        """Cycles of a loop that moves `count` numbers of `size` bytes."""
        if self.in_order:
            return MOVE_CYCLES * count * size / (4 * self.lanes)
        return count / (4 * self.lanes)

    def price(self, name: str, *parameters: int | str) -> float:
        return self.instruction(name, *parameters).cycles

    def call(self, w: Writer, name: str, *operands: str | int, of: tuple[int | str, ...] = ()) -> str:
        """The expression of an operation with parameters `of`, billed at its cost. A number stands for a vector of
        it."""
        if operands and isinstance(operands[-1], int) and f"{name}_by" in self.spellings:
            name, operands = f"{name}_by", (*operands[:-1], str(operands[-1]))
        texts = [self.call(w, "each", str(each)) if isinstance(each, int) else each for each in operands]
        return w.call(self.instruction(name, *of), *texts)

    def let(self, w: Writer, kind: str, name: str, value: str, const: str = "const ") -> None:
        """Declares a variable of a kind."""
        w(f"{const}{w.prefix}_{self.name}_{kind} {name} = {value};")

    def declare_total(self, w: Writer, name: str, index: int) -> None:
        """Declares a total of a tile, in the register that the set assigns to it."""
        plain = "#define {name}(total) int32_t total"
        native = (
            f'#define {{name}}(total) register int32_t total __asm__("{self.totals[index]}")' if self.totals else ""
        )
        pinned = Instruction(f"{self.name}_total{index}", "", plain, 0, native, self.guard if native else "")
        w(f"{w.call(pinned, name)};")

    def declare_pointer(self, w: Writer, kind: str, name: str, value: str) -> None:
        """Declares a pointer that the compiler keeps in a register, and addresses nearby values from."""
        plain = "#define {name}(type, pointer, value) const type *pointer = value"
        pinned = f'register const type *pointer __asm__("{self.pointer}") = value'
        opaque = '__asm__ volatile("" : "+r"(pointer))'
        native = f"#define {{name}}(type, pointer, value) \\\n{INDENT}{pinned}; \\\n{INDENT}{opaque}"
        kept = Instruction(f"{self.name}_pointer", "", plain, 1, native, self.guard)
        w(f"{w.call(kept, kind, name, value)};")

    # Floats

    def use(self, w: Writer, operation: str, *operands: str | float, of: tuple[int, ...] = ()) -> str:
        texts = [each if isinstance(each, str) else self.each(w, each) for each in operands]
        return self.call(w, f"f_{operation}", *texts, of=of)

    def accumulate(self, w: Writer, total: str, a: str, b: str) -> None:
        """total += a * b."""
        w(f"{total} = {self.use(w, 'fma', a, b, total)};")

    def declare_factor(self, w: Writer, name: str, pointer: str) -> None:
        """Declares the number at a pointer, which is to multiply all lanes."""
        if self.by_number:
            w(f"const float {name} = *({pointer});")
        else:
            self.declare(w, name, self.broadcast(w, pointer, 1))

    def accumulate_by(self, w: Writer, total: str, factor: str, b: str) -> None:
        """total += factor * b, with a factor declared as above."""
        if self.by_number:
            w(f"{total} = {self.use(w, 'fma_by', factor, b, total)};")
        else:
            self.accumulate(w, total, factor, b)

    def load(self, w: Writer, pointer: str, count: int | None = None) -> str:
        """The vector at a pointer; with a `count`, only so many lanes are read and the others are zero."""
        whole = count is None or count >= self.lanes
        return self.call(w, "f_load", pointer) if whole else self.call(w, "f_load_first", pointer, of=(count or 0,))

    def load_bytes(self, w: Writer, pointer: str) -> str:
        """The bytes at a pointer as floats."""
        return self.call(w, "f_of_sums", self.call(w, "widen", pointer, of=(self.lanes,)))

    def store(self, w: Writer, pointer: str, value: str, count: int | None = None) -> None:
        """Writes a vector to a pointer; with a `count`, only the first lanes."""
        if count is None or count >= self.lanes:
            w(f"{self.call(w, 'f_store', pointer, value)};")
        else:
            w(f"{self.call(w, 'f_store_first', pointer, value, of=(count,))};")

    def kept(self, w: Writer, value: str, count: int) -> str:
        """The first lanes of a value, zeros in the others."""
        if count >= self.lanes:
            return value
        return self.call(w, "f_of_bits", self.kept_sums(w, self.use(w, "bits", value), count))

    def kept_sums(self, w: Writer, value: str, count: int) -> str:
        """The same for integers."""
        whole = count >= self.lanes
        return value if whole else self.call(w, "and", value, self.call(w, "mask", of=(count, -1, 0)))

    def broadcast(self, w: Writer, pointer: str, depth: int) -> str:
        """The `depth` floats at a pointer, repeated through all lanes."""
        return self.call(w, "f_repeat", pointer, of=(depth,))

    def each(self, w: Writer, value: float | str) -> str:
        """The same number in every lane."""
        return self.call(w, "f_each", value if isinstance(value, str) else float_literal(value))

    def across(self, w: Writer, operation: str, value: str, count: int | None = None) -> str:
        """The sum, maximum … of all lanes in every lane, or that of the first `count` lanes in each of these."""
        steps = max(1, ((count or self.lanes) - 1).bit_length())
        return self.call(w, "f_across", value, of=(operation, 1 << steps))

    def declare(self, w: Writer, name: str, value: str) -> None:
        self.let(w, "floats", name, value, "")

    def bound(self, w: Writer, bounds: Clamp, variable: str) -> None:
        """Clamps the lanes of a variable, which is the second operand, so that a NaN stays one."""
        for operation, limit in (("max", bounds.low), ("min", bounds.high)):
            if limit is not None:
                w(f"{variable} = {self.use(w, operation, self.each(w, limit), variable)};")


def in_vectors(
    w: Writer, width: int, count: int, name: str = "c", unrolled: int = 0, rolled: Vectors | None = None
) -> Iterator[tuple[str, int]]:
    """The loop `name` over `count` values: yields (offset of the next values, their number, at most `width`).

    Up to `unrolled` iterations are unrolled. The compiler must not unroll the loop of a `rolled` set whose registers
    are few.
    """
    whole, rest = divmod(count, width)
    if whole > unrolled:
        stop = str(whole * width)
        if rolled is not None and "loop_end" in rolled.spellings:
            stop = rolled.call(w, "loop_end", stop)
        with w.loop(name, stop, step=width, trips=whole):
            yield name, width
    else:
        yield from ((str(turn * width), width) for turn in range(whole))
    if rest:
        with w.block(""):
            yield str(whole * width), rest


def _counted(text: str, lanes: int) -> str:
    """The text for so many lanes, with element counts evaluated."""
    text = re.sub(r"LANES \* (\d+)", lambda found: str(lanes * int(found[1])), text)
    return re.sub(r"\(LANES / 2\)|LANES / 2", str(lanes // 2), text).replace("LANES", str(lanes))


def _folded(line: str) -> str:
    """A line of a meaning with its constants evaluated."""
    found = _STATEMENT.match(line)
    return f"{found[1]}{Scopes().statement(found[2]) or found[2]}" if found else line


def _body(spelling: str, result: str) -> str:
    if ";" in spelling:
        return spelling
    return f"{spelling};" if result == "void" else f"return {spelling};"
