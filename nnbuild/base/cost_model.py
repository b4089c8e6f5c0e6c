"""What printed code does, as far as its time depends on it, and what that costs on a part."""

from __future__ import annotations

from dataclasses import dataclass

CODE_BYTES = 3.9
"""Of an instruction in a hot loop, most of which are long."""


@dataclass(frozen=True)
class Pace:
    """A part: cycles of an instruction; beyond these, of a word that is loaded (or of two that are stored together), of
    a run of loads that overlap, of a branch that is taken, and of a multiplication; and its flash: cycles that one read
    waits, the bytes it brings, and the bytes of code that are kept."""

    instruction: float = 1
    word: float = 1
    branch: float = 1
    wait_cycles: int = 0
    read_bytes: int = 16
    cache_bytes: int = 0
    load_run: float = 1
    product: float = 0

    @property
    def fetch_stall(self) -> float:
        """Cycles that code which is not kept waits for each read of it, though the next one is on its way."""
        if not self.wait_cycles:
            return 0
        return max(1.2, self.wait_cycles + 1 - 1.45 * self.read_bytes / CODE_BYTES)


@dataclass(frozen=True)
class LoopBody:
    """The body of a loop: bytes of code, those of them that are in no loop inside that is too large by itself, and
    how often it is run."""

    size: float
    exclusive: float
    times: float


@dataclass(frozen=True)
class OpCounts:
    """Instructions, words that are loaded, branches that are taken, bytes of constants that are read from where they
    are stored, bodies of loops, runs of loads that overlap, whose words are not counted, and multiplications where a
    kernel may meet slow ones."""

    instructions: float = 0
    words: float = 0
    branches: float = 0
    constants: float = 0
    bodies: tuple[LoopBody, ...] = ()
    runs: float = 0
    products: float = 0

    def times(self, count: float) -> OpCounts:
        bodies = tuple(LoopBody(each.size, each.exclusive, each.times * count) for each in self.bodies)
        rest = self.words * count, self.branches * count, self.constants * count
        return OpCounts(self.instructions * count, *rest, bodies, self.runs * count, self.products * count)

    def plus(self, other: OpCounts) -> OpCounts:
        return OpCounts(
            self.instructions + other.instructions,
            self.words + other.words,
            self.branches + other.branches,
            self.constants + other.constants,
            self.bodies + other.bodies,
            self.runs + other.runs,
            self.products + other.products,
        )

    def cycles(self, pace: Pace, least: float) -> float:
        """On this part; every constant is read once, `least` bytes, whatever else is."""
        computing = self.instructions * pace.instruction + self.words * pace.word + self.branches * pace.branch
        computing += self.runs * pace.load_run + self.products * pace.product
        waiting = max(self.constants, least) / pace.read_bytes * (pace.wait_cycles + 0.2 * (pace.wait_cycles > 0))
        far = sum(body.times * body.exclusive for body in self.bodies if body.size > pace.cache_bytes)
        return computing + waiting + far / pace.read_bytes * pace.fetch_stall
