"""In-order cores with fixed cycles per instruction: Cortex-M0, M0+, M3 and M4.

The figures are from Arm's technical reference manuals, plus effects measured on chips: overlapping loads and stores,
addresses that wait for the preceding instruction, and fetching long instructions across words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nnbuild.bound.instruction import Instruction
from nnbuild.cycles.registers import (
    ACCUMULATING,
    MANY,
    WIDE_RESULTS,
    address_registers,
    base_name,
    in_memory,
    indexed,
    is_load,
    is_store,
    read,
    words,
    written,
)

SYNCHRONIZING = ("dmb", "dsb", "isb")
TABLES = ("tbb", "tbh")
COMPARES_REGISTER = ("cbz", "cbnz")


def leaves(i: Instruction) -> bool:
    """Whether it may continue elsewhere than at the next instruction."""
    names = [each.reg for each in i.operands if each.kind == "reg"]
    if i.name in ("b", "bl", "bx", "blx", *COMPARES_REGISTER, *TABLES):
        return True
    return "pc" in (names if i.name in ("pop", "ldm", "ldmdb") else names[:1]) and not is_store(i)


@dataclass(frozen=True)
class Small:
    """Cortex-M0 and M0+: every instruction separately."""

    multiply: int
    refill: int
    call: int

    @property
    def one_bus(self) -> bool:
        return False  # each transfer takes its own cycle, and the costs include it

    def costs(self, body: Sequence[Instruction], in_flash: Sequence[bool]) -> list[int]:
        return [self._cost(i) for i in body]

    def _cost(self, i: Instruction) -> int:
        if i.name in MANY:
            return 1 + words(i)
        if in_memory(i):
            return 2
        if i.name == "mul":
            return self.multiply
        return 3 if i.name in (*SYNCHRONIZING, "mrs", "msr") else 1

    def taken(self, i: Instruction, target: Instruction | None) -> int:
        """Additional cycles of a taken branch."""
        if i.name in ("pop", "ldm"):
            return self.refill + 1
        return self.call if i.name == "bl" else self.refill


@dataclass(frozen=True)
class Classic:
    """Cortex-M3 and M4: loads and stores overlap with following ones."""

    accumulate: int
    long_multiply: int
    long_accumulate: int
    divide: int

    @property
    def one_bus(self) -> bool:
        return True

    def costs(self, body: Sequence[Instruction], in_flash: Sequence[bool]) -> list[int]:
        found: list[int] = []
        before: Instruction | None = None
        for at, i in enumerate(body):
            cost = self._own(i, before, at > 0 and in_flash[at] == in_flash[at - 1])
            if before is not None:
                cost += self._waits(i, before)
            if cost > 1 and i.next % 4 == 2 and len(body) > at + 3 and all(b.size == 4 for b in body[at + 1 : at + 4]):
                cost += 1
            found.append(cost)
            before = i
        return found

    def _own(self, i: Instruction, before: Instruction | None, same_memory: bool) -> int:
        if i.name in ("ldrd", "strd"):
            return 3
        if i.name in MANY:
            return 1 + words(i)
        if _single(i):
            if before is not None and _opens(before) and same_memory and not _made(before) & address_registers(i):
                return 0 if is_store(i) and not indexed(i) else 1
            return 2 if is_load(i) or indexed(i) else 1
        if before is not None and i.name == "nop" and _opens(before):
            return 0
        if i.name.startswith("it"):
            return 0 if before is not None and before.size == 2 else 1
        return self._computing(i)

    def _computing(self, i: Instruction) -> int:
        name = base_name(i)
        if name in ("mla", "mls"):
            return self.accumulate
        if name in WIDE_RESULTS:
            return self.long_multiply if name in ("umull", "smull") else self.long_accumulate
        if name in ("udiv", "sdiv"):
            return self.divide
        if name in ("vdiv", "vsqrt"):
            return 14
        if name.startswith("v") and name in ACCUMULATING:
            return 3
        if name == "vmov" and len(i.operands) > 2:
            return 2
        if name in TABLES:
            return 2
        return 4 if name in SYNCHRONIZING else 2 if name == "mrs" else 1

    def _waits(self, i: Instruction, before: Instruction) -> int:
        """Wait cycles for the preceding instruction: an address it produces, a store, a floating-point result."""
        cost = 0
        if in_memory(i):
            made = _made(before)
            back = before.writeback or before.name in MANY
            if made & address_registers(i) and not (_single(before) and is_load(before) and not back):
                cost += 1
            if is_load(i) and _single(before) and is_store(before):
                cost += 1
        if before.name.startswith("v") and not in_memory(before) and written(before) & read(i):
            cost += 1
        return cost

    def taken(self, i: Instruction, target: Instruction | None) -> int:
        across = int(target is not None and target.size == 4 and target.address % 4 == 2)
        if i.name in ("bx", "blx"):
            return 2 + across
        return (3 if is_load(i) else 1) + across


def _single(i: Instruction) -> bool:
    """A load or store of one word, which may overlap with another."""
    return in_memory(i) and i.name not in ("ldrd", "strd", *MANY) and not leaves(i)


def _opens(i: Instruction) -> bool:
    """Whether a load's last cycle is still to come, for another load or store to use."""
    return _single(i) and is_load(i) and not i.writeback


def _made(i: Instruction) -> frozenset[str]:
    return written(i)
