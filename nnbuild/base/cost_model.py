"""Operation counts of printed code, and the cycles they cost on a part."""

from __future__ import annotations

from dataclasses import dataclass

CODE_BYTES = 3.9
"""Mean size of an instruction in a hot loop; most are 32 bits wide there."""


@dataclass(frozen=True)
class Pace:
    """Timing of a part: cycles per instruction; additional cycles per loaded word (or two words stored together), per
    run of overlapping loads, per taken branch and per multiplication; and its flash: wait cycles of a read, bytes per
    read, and bytes of code that are cached."""

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
        """Cycles that uncached code waits for each flash read, with the next read already under way."""
        if not self.wait_cycles:
            return 0
        return max(1.2, self.wait_cycles + 1 - 1.45 * self.read_bytes / CODE_BYTES)


@dataclass(frozen=True)
class LoopBody:
    """The body of a loop: bytes of code, those not in an inner loop that is too large by itself, and how often it
    runs."""

    size: float
    exclusive: float
    times: float


@dataclass(frozen=True)
class OpCounts:
    """Counts of instructions, loaded words, taken branches, bytes of constants read from storage, loop bodies, runs of
    overlapping loads (whose words are not counted), multiplications where a kernel may meet slow ones, operations on
    floats where there may be no unit for them, and products of 64 bits where a core may have only those of 32."""

    instructions: float = 0
    words: float = 0
    branches: float = 0
    constants: float = 0
    bodies: tuple[LoopBody, ...] = ()
    runs: float = 0
    products: float = 0
    floats: float = 0
    wides: float = 0

    def times(self, count: float) -> OpCounts:
        bodies = tuple(LoopBody(each.size, each.exclusive, each.times * count) for each in self.bodies)
        rest = self.words * count, self.branches * count, self.constants * count
        slow = self.runs * count, self.products * count, self.floats * count, self.wides * count
        return OpCounts(self.instructions * count, *rest, bodies, *slow)

    def plus(self, other: OpCounts) -> OpCounts:
        return OpCounts(
            self.instructions + other.instructions,
            self.words + other.words,
            self.branches + other.branches,
            self.constants + other.constants,
            self.bodies + other.bodies,
            self.runs + other.runs,
            self.products + other.products,
            self.floats + other.floats,
            self.wides + other.wides,
        )

    def cycles(self, pace: Pace, least: float) -> float:
        """Cycles on a part. Constants are read at least once: `least` bytes."""
        computing = self.instructions * pace.instruction + self.words * pace.word + self.branches * pace.branch
        computing += self.runs * pace.load_run + self.products * pace.product
        waiting = max(self.constants, least) / pace.read_bytes * (pace.wait_cycles + 0.2 * (pace.wait_cycles > 0))
        far = sum(body.times * body.exclusive for body in self.bodies if body.size > pace.cache_bytes)
        return computing + waiting + far / pace.read_bytes * pace.fetch_stall
