"""Summarizes a call for all arguments, so that a helper that is called very often is followed only once.

The helper starts with unknown arguments and unknown memory. Its caller's other registers contain `Token`s, which can be
saved and restored but not inspected: a helper that computes with one has no summary.
"""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.bound.block import Value
from nnbuild.bound.state import State
from nnbuild.bound.writer import REGISTERS, SLOT, VALUES

OFTEN = 20_000
"""Unknown conditions in a function after which a summary is tried, and the minimum per call:"""
MANY = 8
SMALL = 2_000
"""Maximum instructions of a helper."""
SP, LR = SLOT["sp"], SLOT["lr"]
KEPT = [SLOT[name] for name in VALUES if name not in ("r0", "r1", "r2", "r3", "r12", "sp", "nz", "c", "v")]


class Token:
    """The unknown value of a register before the call. Arithmetic with it raises TypeError."""

    def __init__(self, slot: int) -> None:
        self.slot = slot


NO_SUMMARY = (TypeError, AttributeError)
"""Errors from computing with a token."""


@dataclass(frozen=True)
class Summary:
    state: State
    lowest: int
    """It writes only between this address and its caller's stack pointer."""

    def apply(self, caller: State) -> None:
        """The state after the call. The link register is unknown."""
        before, stack = caller.registers, caller.registers[SP]
        after = [before[each.slot] if isinstance(each, Token) else each for each in self.state.registers]
        after[LR] = None
        after[len(VALUES) :] = [None] * (len(REGISTERS) - len(VALUES))  # they differ in every call
        assert stack is not None
        for place in range(self.lowest & ~3, stack, 4):
            caller.words.pop(place, None)
        caller.registers = after
        caller.count += self.state.count
        caller.cycles += self.state.cycles


def opening(stack: int) -> State:
    """The state in which a summary starts."""
    registers: list[Value] = [None] * len(REGISTERS)
    for slot in KEPT:
        registers[slot] = Token(slot)  # type: ignore[call-overload]
    registers[SP] = stack
    return State(registers, {})
