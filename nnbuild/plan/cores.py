"""Cores that share the work of a step."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OwnMemory:
    """Local memory of each core: its bytes, and the cycles a core takes to copy one byte."""

    size: int
    copy: float = 0


@dataclass(frozen=True)
class Cores:
    """How many cores compute a step together, and the overhead: `fork` cycles, plus `each` for every core.

    Waking a thread of a PC takes some thousands of cycles; a core that waits for an interrupt some dozens.

    local: core-local memory, if steps are to be computed there on copies.
    speeds: speed of each core relative to the fastest; empty where all are alike.
    """

    count: int = 1
    fork: float = 50_000
    each: float = 0
    local: OwnMemory | None = None
    speeds: tuple[float, ...] = ()

    def speed(self, core: int) -> float:
        return self.speeds[core] if self.speeds else 1.0


ALONE = Cores()
