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
    wait: int = 0
    read: int = 16
    kept: int = 0
    run: float = 1
    product: float = 0

    @property
    def late(self) -> float:
        """Cycles that code which is not kept waits for each read of it, though the next one is on its way."""
        if not self.wait:
            return 0
        return max(1.2, self.wait + 1 - 1.45 * self.read / CODE_BYTES)


@dataclass(frozen=True)
class Body:
    """The body of a loop: bytes of code, those of them that are in no loop inside that is too large by itself, and
    how often it is run."""

    size: float
    own: float
    times: float


@dataclass(frozen=True)
class Bill:
    """Instructions, words that are loaded, branches that are taken, bytes of constants that are read from where they
    are stored, bodies of loops, runs of loads that overlap, whose words are not counted, and multiplications where a
    kernel may meet slow ones."""

    instructions: float = 0
    words: float = 0
    branches: float = 0
    constants: float = 0
    bodies: tuple[Body, ...] = ()
    runs: float = 0
    products: float = 0

    def times(self, count: float) -> Bill:
        bodies = tuple(Body(each.size, each.own, each.times * count) for each in self.bodies)
        rest = self.words * count, self.branches * count, self.constants * count
        return Bill(self.instructions * count, *rest, bodies, self.runs * count, self.products * count)

    def plus(self, other: Bill) -> Bill:
        return Bill(
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
        computing += self.runs * pace.run + self.products * pace.product
        waiting = max(self.constants, least) / pace.read * (pace.wait + 0.2 * (pace.wait > 0))
        far = sum(body.times * body.own for body in self.bodies if body.size > pace.kept)
        return computing + waiting + far / pace.read * pace.late
