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
    """One instruction of an ISA: its spelling in C, its price, and what it means in portable C.

    `text` has {0}, {1} … for its operands. `meaning` is a static inline definition of the function that `text`
    calls; it is empty where the text is portable C already.
    """

    text: str
    cycles: float
    meaning: str = ""


class Writer:
    """`helpers` collects the vendored functions that the printed code calls."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.helpers: set[str] = set()
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
