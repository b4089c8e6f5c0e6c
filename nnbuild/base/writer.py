"""Prints indented C and counts its operations: those in a loop count once per iteration.

Integers are folded while printing: single-iteration loops, known conditions and headless blocks leave only their
statements, and a constant that folds to a number is printed where it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from nnbuild.base.c_scopes import NAME, Scopes, drop_unread
from nnbuild.base.cost_model import CODE_BYTES, LoopBody, OpCounts
from nnbuild.base.helper_costs import helper_cost

T = TypeVar("T")
INDENT = "    "
LOOP_CYCLES = 3  # compare, add, branch
LARGE = 1000
"""Loop bodies larger than this are not counted again in the loops around them."""
HELPER_CODE = 12
"""Instructions of a vendored function's code in the calling loop."""


@dataclass(frozen=True)
class Row:
    """One instruction as portable C or a compiler intrinsic, with its price.

    `text` has {0}, {1} … for its operands. words: words that it loads; products: its multiplications; floats: its
    operations on floats; wides: its products of 64 bits.
    """

    text: str
    cycles: float
    words: float = 0
    products: float = 0
    floats: float = 0
    wides: float = 0


@dataclass(frozen=True)
class Instruction:
    """One instruction as a printed C function: `native` where the macro `guard` is defined, otherwise `meaning`.

    So a kernel for one processor computes the same bits when its C is compiled for another. `head` declares the
    function with {name} in place of its name; `native` and `meaning` are its bodies. `uses` are functions and types
    that the body refers to as {prefix}_name. A type has no head, but two declarations. `outlined` makes it a routine
    that is never inlined, so that many places share it and the compiler keeps its registers to it.
    """

    name: str
    head: str
    meaning: str
    cycles: float
    native: str = ""
    guard: str = ""
    uses: tuple[Instruction, ...] = ()
    outlined: bool = False
    words: float = 0
    products: float = 0

    @property
    def pins(self) -> bool:
        """Whether it declares a variable in a certain register, which no call preserves: where one is used, nothing
        between its uses may be called, even by compilers that prefer few bytes or do not optimize."""
        return not self.head and "register " in self.native


class Writer:
    """`helpers` collects the vendored functions that the printed code calls, `instructions` those of an instruction
    set."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.helpers: set[str] = set()
        self.instructions: dict[str, Instruction] = {}
        self.cycles = 0.0
        self._words = self._branches = self._constants = self._straight = self._runs = self._products = 0.0
        self._floats = self._wides = 0.0
        self._bodies: list[LoopBody] = []
        self._lines: list[str] = []
        self._depth = 0
        self._trips = 1.0
        self._scopes = Scopes()
        self._decided: dict[int, int] = {}
        """Depth -> known value of the condition that an `else` may follow."""

    def __call__(self, text: str = "") -> None:
        line = self._scopes.statement(text)
        if line is not None:
            self._print(line)

    def _print(self, text: str) -> None:
        self._decided.pop(self._depth, None)
        self._lines.append(INDENT * self._depth + text if text else "")

    def use(self, row: Row, *operands: str) -> str:
        self.bill(row.cycles, row.words, row.products, row.floats, row.wides)
        return row.text.format(*operands)

    def helper(self, name: str, *operands: str) -> str:
        """A call of the vendored function `name`, which the file will contain under its own prefix."""
        self.helpers.add(name)
        cycles, floats, wides = helper_cost(name, operands)
        self.bill(cycles, floats=floats, wides=wides)
        self._straight += HELPER_CODE - cycles
        return f"{self.prefix}_{name}({', '.join(operands)})"

    def call(self, instruction: Instruction, *operands: str) -> str:
        """A call of the instruction with these operands."""
        self._add_instruction(instruction)
        self.bill(instruction.cycles, instruction.words, instruction.products)
        return f"{self.prefix}_{instruction.name}({', '.join(operands)})"

    def _add_instruction(self, instruction: Instruction) -> None:
        for used in instruction.uses:
            self._add_instruction(used)
        known = self.instructions.setdefault(instruction.name, instruction)
        assert known == instruction, f"two instructions are called {instruction.name}"

    def routine(self, name: str, head: str) -> Instruction:
        """What was printed here as a routine. It costs nothing itself: its callers add its counts."""
        return Instruction(name, head, str(self), 0, uses=tuple(self.instructions.values()), outlined=True)

    def bill(self, cycles: float, words: float = 0, products: float = 0, floats: float = 0, wides: float = 0) -> None:
        """Counts operations, among them `words` that are loaded, `products` that are multiplications, `floats`, and
        `wides`, products of 64 bits."""
        self.cycles += self._trips * cycles
        self._products += self._trips * products
        self._floats += self._trips * floats
        self._wides += self._trips * wides
        self._words += self._trips * words
        self._straight += cycles

    def runs(self, count: float) -> None:
        """Counts runs of overlapping loads."""
        self._runs += self._trips * count

    def reads(self, constants: float) -> None:
        """Counts bytes of constants read from storage."""
        self._constants += self._trips * constants

    @property
    def counts(self) -> OpCounts:
        return OpCounts(
            self.cycles,
            self._words,
            self._branches,
            self._constants,
            tuple(self._bodies),
            self._runs,
            self._products,
            self._floats,
            self._wides,
        )

    def add(self, bill: OpCounts) -> None:
        """Adds the counts of a routine that is called here."""
        mine = bill.times(self._trips)
        self.cycles += mine.instructions
        self._words += mine.words
        self._branches += mine.branches
        self._constants += mine.constants
        self._runs += mine.runs
        self._products += mine.products
        self._floats += mine.floats
        self._wides += mine.wides
        self._bodies += mine.bodies
        self._straight += 2

    @contextmanager
    def body(self, times: float) -> Iterator[None]:
        """Records the body of a loop that runs `times` times."""
        straight, inner = self._straight, len(self._bodies)
        self._branches += times
        yield
        size = (self._straight - straight) * CODE_BYTES
        large = sum(body.exclusive for body in self._bodies[inner:] if body.size > LARGE)
        self._bodies.append(LoopBody(size, max(0.0, size - large), times))

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        head, decided = self._scopes.head(head)
        before = self._decided.pop(self._depth, None) if head.startswith("else") else None
        if before is not None:
            head, decided = head.removeprefix("else").strip(), (0 if before else decided)
        if decided == 0:
            with self._dropped():
                yield
        elif not head or decided == 1:
            with self._plain():
                yield
        else:
            with self._braces(head):
                yield
        if decided is not None or before == 1:
            self._decided[self._depth] = 1 if before == 1 or decided else 0

    @contextmanager
    def _braces(self, head: str) -> Iterator[None]:
        if head.startswith("else") and self._lines[-1].endswith("}"):
            self._lines[-1] += f" {head} {{"
        else:
            self._print(f"{head} {{" if head else "{")
        self._depth += 1
        self._scopes.open(printed=True)
        first = len(self._lines)
        yield
        self._without_unused(first)
        self._scopes.close()
        self._depth -= 1
        self._print("}")

    def _without_unused(self, first: int) -> None:
        for at in sorted(self._scopes.unused(self._lines[first:]), reverse=True):
            del self._lines[first + at]

    @contextmanager
    def _plain(self) -> Iterator[None]:
        """Prints the statements without a block."""
        self._scopes.open(printed=False)
        yield
        self._scopes.close()

    @contextmanager
    def _dropped(self) -> Iterator[None]:
        """Prints nothing: the code is unreachable, and so is what only it would call."""
        kept = len(self._lines), set(self.helpers), dict(self.instructions)
        with self._plain(), self.trips(0):
            yield
        self._scopes.lose(self._lines[kept[0] :])
        del self._lines[kept[0] :]
        self.helpers, self.instructions = kept[1:]

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """What is printed for each item has names of its own."""
        for item in items:
            with self.block(""):
                yield item

    @contextmanager
    def function(self, signature: str, parameters: Iterable[str] = ()) -> Iterator[None]:
        """Marks those `parameters` that the function does not use, which compilers would warn about."""
        self._print(signature)
        with self._braces(""):
            first = len(self._lines)
            yield
            self._without_unused(first)
            self._lines[first:] = drop_unread(self._lines[first:])
            used = set().union(*(NAME.findall(line) for line in self._lines[first:]))
            for name in parameters:
                if name not in used:
                    self._print(f"(void){name};")

    @contextmanager
    def loop(
        self, variable: str, stop: int | str, *, start: int | str = 0, step: int = 1, trips: float | None = None
    ) -> Iterator[None]:
        """`trips` prices a loop whose bounds are only known at run time. A range of a single work item is printed as an
        `if`."""
        first, last = self._scopes.folded(str(start)), self._scopes.bound(str(stop))
        known = [int(bound) for bound in (first, last) if bound.lstrip("-").isdigit()]
        count = max(0, -(-(known[1] - known[0]) // step)) if len(known) == 2 else None
        if trips is None:
            assert count is not None, "a run-time loop must be given its trips"
            trips = count
        outside, self._trips = self._trips, self._trips * trips
        self.cycles += self._trips * LOOP_CYCLES
        if count == 0:
            with self._dropped():
                yield
        elif count == 1:
            with self._plain():
                self._scopes.number(variable, known[0])
                yield
        elif (first, last, step, trips) == ("begin", "end", 1, 1):
            with self.block("if (begin < end)"):
                self._scopes.number(variable, 0)
                yield
        else:
            with self.body(self._trips), self._counted(variable, first, last, step, count):
                yield
        self._trips = outside

    @contextmanager
    def _counted(self, variable: str, start: str, stop: str, step: int, count: int | None) -> Iterator[None]:
        self._scopes.open(printed=True)
        low = 0 if start == "begin" else self._scopes.range_of(start)[0]
        high = self._scopes.range_of(stop.partition(" && ")[0])[1] - 1 if count is None else low + (count - 1) * step
        name = self._scopes.declare(variable, (low, high))
        advance = f"++{name}" if step == 1 else f"{name} += {step}"
        with self._braces(f"for (int32_t {name} = {start}; {name} < {stop}; {advance})"):
            yield
        self._scopes.close()

    @contextmanager
    def trips(self, count: float) -> Iterator[None]:
        """Code that runs `count` times per execution of its surroundings, without a printed loop."""
        outside, self._trips = self._trips, self._trips * count
        if count > 1:
            with self.body(self._trips):
                yield
        else:
            yield
        self._trips = outside

    @property
    def nbytes(self) -> int:
        """Of the printed text, about."""
        return sum(map(len, self._lines))

    def __str__(self) -> str:
        self._without_unused(0)
        return "\n".join(self._lines) + "\n"
