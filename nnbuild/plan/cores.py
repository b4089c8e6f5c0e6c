"""Cores that share the work of a step."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cores:
    """How many compute a step together, and what that costs the step: `fork` cycles, and `each` for every core.

    Waking a thread of a PC takes some thousands of cycles; a core that waits for an interrupt some dozens.
    """

    count: int = 1
    fork: float = 50_000
    each: float = 0


ALONE = Cores()
