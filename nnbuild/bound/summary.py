"""What a call does whatever its arguments are, so that a helper that is called very often is followed only once.

The helper starts with unknown arguments and unknown memory. Everything else that its caller has in registers is a
`Token`, which can be kept and brought back but not looked at: a helper that computes with one has no summary.
"""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.bound.block import Value
from nnbuild.bound.state import State
from nnbuild.bound.writer import REGISTERS, SLOT, VALUES

OFTEN = 20_000
"""Unknown conditions met in a function, after which a summary is tried; and at least so many in a call:"""
MANY = 8
SMALL = 2_000
"""Instructions beyond which a function is no helper."""
SP, LR = SLOT["sp"], SLOT["lr"]
KEPT = [SLOT[name] for name in VALUES if name not in ("r0", "r1", "r2", "r3", "r12", "sp", "nz", "c", "v")]


class Token:
    """The unknown value that a register had before the call. Arithmetic with it raises TypeError."""

    def __init__(self, slot: int) -> None:
        self.slot = slot


NO_SUMMARY = (TypeError, AttributeError)
"""What computing with a token raises."""


@dataclass(frozen=True)
class Summary:
    state: State
    lowest: int
    """It writes only from here up to its caller's stack pointer."""

    def apply(self, caller: State) -> None:
        """The state behind the call. The link register holds nothing that is known."""
        before, stack = caller.registers, caller.registers[SP]
        after = [before[each.slot] if isinstance(each, Token) else each for each in self.state.registers]
        after[LR] = None
        after[len(VALUES) :] = [None] * (len(REGISTERS) - len(VALUES))  # other numbers in every call
        assert stack is not None
        for place in range(self.lowest & ~3, stack, 4):
            caller.words.pop(place, None)
        caller.registers = after
        caller.count += self.state.count
        caller.cycles += self.state.cycles


def opening(stack: int) -> State:
    """The state in which a summary begins."""
    registers: list[Value] = [None] * len(REGISTERS)
    for slot in KEPT:
        registers[slot] = Token(slot)  # type: ignore[call-overload]
    registers[SP] = stack
    return State(registers, {})
