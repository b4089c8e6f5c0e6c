"""Cores that share the work of a step."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OwnMemory:
    """Memory that every core has of its own: bytes, and cycles that a core takes to copy one of them."""

    size: int
    copy: float = 0


@dataclass(frozen=True)
class Cores:
    """How many compute a step together, and what that costs the step: `fork` cycles, and `each` for every core.

    Waking a thread of a PC takes some thousands of cycles; a core that waits for an interrupt some dozens.

    local: what each computes in, with copies of all it reads there, if that is wanted.
    speeds: how much each does while the fastest does 1; none where all are alike.
    """

    count: int = 1
    fork: float = 50_000
    each: float = 0
    local: OwnMemory | None = None
    speeds: tuple[float, ...] = ()

    def speed(self, core: int) -> float:
        return self.speeds[core] if self.speeds else 1.0


ALONE = Cores()
