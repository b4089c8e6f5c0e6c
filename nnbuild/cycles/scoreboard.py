"""Cores whose instructions wait for each other's results: Cortex-M33, and M7, which is less documented."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nnbuild.bound.instruction import Instruction
from nnbuild.cycles.pipeline import TABLES, leaves
from nnbuild.cycles.registers import (
    ACCUMULATING,
    LONG_PAIRS,
    WIDE_RESULTS,
    accumulator,
    address_registers,
    base_name,
    in_memory,
    is_load,
    is_store,
    read,
    shifts,
    words,
    written,
)


@dataclass(frozen=True)
class Scoreboard:
    """width: instructions that may start per cycle. double: words that a load or store moves per cycle.

    The result of a load is ready after `load` cycles, that of a multiplication or a shifted operand after `multiply`;
    an accumulator is needed one cycle later. free: instructions that pair with a short instruction at no cost.
    predicted: whether branches are predicted.
    """

    width: int = 1
    double: int = 1
    load: int = 2
    multiply: int = 2
    shifted: int = 2
    divide: int = 7
    predicted: bool = False

    @property
    def one_bus(self) -> bool:
        return self.width == 1

    def costs(self, body: Sequence[Instruction], in_flash: Sequence[bool]) -> list[int]:
        """Cycles added by each instruction."""
        ready: dict[str, int] = {}
        starts: list[int] = []
        cycle, free, count, used = 0, 0, 0, _Used()
        for at, i in enumerate(body):
            want = max((ready.get(name, 0) - self._early(i, name) for name in read(i)), default=0)
            if self.width == 1 and at and _beside(i) and body[at - 1].size == 2:
                starts.append(cycle)
                continue
            if not 0 < count < self.width or want > cycle or not used.takes(i):
                cycle, count, used = max(free, want), 0, _Used()
            starts.append(cycle)
            used.note(i)
            held = self._held(i)
            count = self.width if held > 1 else count + 1
            free = max(free, cycle + held)
            for name in written(i):
                ready[name] = cycle + (held if name in address_registers(i) else held - 1 + self._late(i))
        return [after - start for start, after in zip(starts, [*starts[1:], free], strict=True)] if body else []

    def _early(self, i: Instruction, name: str) -> int:
        return 1 if name in accumulator(i) and name not in {o.reg for o in i.operands[1:-1]} else 0

    def _held(self, i: Instruction) -> int:
        """Cycles before the next instruction can start."""
        name = base_name(i)
        if in_memory(i):
            return max(1, -(-words(i) // self.double))
        if name in ("udiv", "sdiv"):
            return self.divide
        if name in ("vdiv", "vsqrt"):
            return 14
        if name.startswith("v") and name in ACCUMULATING and not self.predicted:
            return 3
        return 2 if i.name in TABLES or (name == "mul" and i.size == 2 and self.width == 1 and i.sets_flags) else 1

    def _late(self, i: Instruction) -> int:
        """Cycles from its start to its result."""
        name = base_name(i)
        if is_load(i):
            return self.load
        if name in (*ACCUMULATING, *WIDE_RESULTS, *LONG_PAIRS, "mul") or name.startswith(("smm", "smu", "smlal")):
            return self.multiply
        if name.startswith("v") or name in ("ssat", "usat"):
            return self.multiply
        return self.shifted if shifts(i) else 1

    def taken(self, i: Instruction, target: Instruction | None) -> int:
        if is_load(i):
            return 3
        if i.name in ("bx", "blx"):
            return 1 if self.predicted else 2
        return 0 if self.predicted or not i.condition else 1


class _Used:
    """Resources in use in one cycle: one multiplier, one memory access, written registers."""

    def __init__(self) -> None:
        self._kinds: set[str] = set()
        self._made: set[str] = set()

    def takes(self, i: Instruction) -> bool:
        kind = _kind(i)
        return (kind == "plain" or kind not in self._kinds) and not self._made & (read(i) | written(i))

    def note(self, i: Instruction) -> None:
        self._kinds.add(_kind(i))
        self._made |= written(i)


def _kind(i: Instruction) -> str:
    if in_memory(i):
        return "store" if is_store(i) else "load"
    if leaves(i):
        return "branch"
    name = base_name(i)
    if name.startswith("v"):
        return "float"
    return "multiply" if name.startswith(("mul", "mla", "mls", "sm", "um")) else "plain"


def _beside(i: Instruction) -> bool:
    return i.name == "nop" or i.name.startswith("it") or (i.size == 2 and i.name == "b")
