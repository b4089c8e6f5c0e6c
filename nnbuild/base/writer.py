"""Prints indented C and keeps the bill: what is printed inside a loop is charged once for every trip."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

INDENT = "    "
LOOP_CYCLES = 3  # compare, add, branch
HELPER_CYCLES = 40


@dataclass(frozen=True)
class Row:
    """One instruction as the compiler spells it, with its price: portable C, or an intrinsic of the compiler's.

    `text` has {0}, {1} … for its operands.
    """

    text: str
    cycles: float


@dataclass(frozen=True)
class Instruction:
    """One instruction as a C function of ours: `native` where the macro `guard` is defined, elsewhere `meaning`.

    So a kernel for one processor computes the same bits when its C is compiled for another. `head` declares the
    function with {name} in the place of its name; `native` and `meaning` are its body in either case. `uses` are
    functions that the body calls, and types, as {prefix}_name. A type has no head, but two declarations. With
    `outlined` it is a routine that stays a function of its own, so that many places share it and the compiler keeps
    its registers to it.
    """

    name: str
    head: str
    meaning: str
    cycles: float
    native: str = ""
    guard: str = ""
    uses: tuple[Instruction, ...] = ()
    outlined: bool = False


class Writer:
    """`helpers` collects the vendored functions that the printed code calls, `instructions` those of an ISA."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.helpers: set[str] = set()
        self.instructions: dict[str, Instruction] = {}
        self.cycles = 0.0
        self._lines: list[str] = []
        self._depth = 0
        self._trips = 1.0

    def __call__(self, text: str = "") -> None:
        self._lines.append(INDENT * self._depth + text if text else "")

    def use(self, row: Row, *operands: str) -> str:
        self.bill(row.cycles)
        return row.text.format(*operands)

    def helper(self, name: str, *operands: str) -> str:
        """A call of the vendored `name`, which the emitted file will carry under its own prefix."""
        self.helpers.add(name)
        self.bill(HELPER_CYCLES)
        return f"{self.prefix}_{name}({', '.join(operands)})"

    def call(self, instruction: Instruction, *operands: str) -> str:
        """The instruction's value for these operands."""
        self._define(instruction)
        self.bill(instruction.cycles)
        return f"{self.prefix}_{instruction.name}({', '.join(operands)})"

    def _define(self, instruction: Instruction) -> None:
        for used in instruction.uses:
            self._define(used)
        known = self.instructions.setdefault(instruction.name, instruction)
        assert known == instruction, f"two instructions are called {instruction.name}"

    def bill(self, cycles: float) -> None:
        self.cycles += self._trips * cycles

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        if head == "else" and self._lines[-1].endswith("}"):
            self._lines[-1] += " else {"
        else:
            self(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self("}")

    @contextmanager
    def function(self, signature: str) -> Iterator[None]:
        self(signature)
        with self.block(""):
            yield

    @contextmanager
    def loop(
        self, variable: str, stop: int | str, *, start: int | str = 0, step: int = 1, trips: float | None = None
    ) -> Iterator[None]:
        """`trips` prices a loop whose bounds are known only at run time."""
        if trips is None:
            assert isinstance(stop, int) and isinstance(start, int), "a run-time loop must be given its trips"
            trips = max(0, -(-(stop - start) // step))
        outside, self._trips = self._trips, self._trips * trips
        self.cycles += self._trips * LOOP_CYCLES
        advance = f"++{variable}" if step == 1 else f"{variable} += {step}"
        with self.block(f"for (int32_t {variable} = {start}; {variable} < {stop}; {advance})"):
            yield
        self._trips = outside

    @contextmanager
    def trips(self, count: float) -> Iterator[None]:
        """Code that runs `count` times for each run of what surrounds it, without a loop of its own being printed."""
        outside, self._trips = self._trips, self._trips * count
        yield
        self._trips = outside

    def __str__(self) -> str:
        return "\n".join(self._lines) + "\n"
