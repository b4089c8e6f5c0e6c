"""Maximum cycles of instructions, for processors whose manuals give them, at zero wait states.

The figures are from the "instruction set summary" in Arm's technical reference manuals of Cortex-M3 (r2p1) and
Cortex-M4 (r0p1), each at its worst: no two loads overlap, every taken branch refills the pipeline in 3 cycles, every
result of the floating-point unit is awaited by the next instruction. Effects measured on silicon beyond the manuals are
added wherever they could occur: an address produced by the preceding instruction, a load after a store, and fetching a
long instruction across words after a multi-cycle one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nnbuild.bound.instruction import Instruction

REFILL = 3


@dataclass(frozen=True)
class Prices:
    name: str
    accumulate: int
    """MLA and MLS."""
    long_multiply: int
    long_accumulate: int
    divide: int

    def body(self, body: Sequence[Instruction], end: Instruction | None) -> int:
        """The instructions of a block without its final branch."""
        total, before = 0, None
        everything = [*body, end] if end is not None else list(body)
        for at, i in enumerate(body):
            cost = self._plain(i)
            if _addresses(i):
                cost += before is None or not _addresses(i).isdisjoint(_made(before))
                cost += (before is None or _stores(before)) and not _stores(i)
            if cost > 1 and i.next % 4 == 2 and all(each.size == 4 for each in everything[at + 1 : at + 4]):
                cost += 1
            total, before = total + cost, i
        return total

    def _plain(self, i: Instruction) -> int:
        registers = len(i.operands)
        match i.name:
            case "ldrd" | "strd":
                return 3
            case "push" | "pop":
                return 1 + registers
            case "ldm" | "stm" | "ldmdb" | "stmdb":
                return registers
            case "mla" | "mls":
                return self.accumulate
            case "umull" | "smull":
                return self.long_multiply
            case "umlal" | "smlal" | "umaal":
                return self.long_accumulate
            case "udiv" | "sdiv":
                return self.divide
            case "mrs":
                return 2
            case "dmb" | "dsb" | "isb":
                return 1 + REFILL
        if i.name.startswith(("ldr", "str")):
            return 2
        return _float(i) if i.name.startswith("v") else 1

    def branch(self, i: Instruction) -> tuple[int, int]:
        """(cycles when not taken, when taken). A fetch across words costs one more."""
        if i.name in ("tbb", "tbh"):
            return 1, 2 + REFILL
        if i.name in ("pop", "ldm", "ldmdb"):
            return 1, 1 + len(i.operands) + REFILL
        if i.name == "ldr":
            return 1, 2 + REFILL
        return 1, 1 + REFILL


MANY = ("push", "pop", "ldm", "ldmdb", "stm", "stmdb", "vpush", "vpop", "vldmia", "vldmdb", "vstmia", "vstmdb")


def _addresses(i: Instruction) -> set[str]:
    """The registers in the address of a load or store."""
    if i.name in MANY:
        return {"sp"} if i.name.endswith(("push", "pop")) else {i.operands[0].reg}
    found = {name for each in i.operands if each.kind == "mem" for name in (each.reg, each.offset) if name}
    return found - {"pc"} or ({"pc"} if found else set())


def _made(i: Instruction) -> set[str]:
    """At least the registers that an instruction writes."""
    found = {each.reg for each in i.operands if each.kind == "reg"}
    return found | (_addresses(i) if i.writeback or i.name in MANY else set())


def _stores(i: Instruction) -> bool:
    return i.name.startswith(("st", "push", "vst", "vpush"))


def _float(i: Instruction) -> int:
    words = sum(2 if each.reg.startswith("d") else 1 for each in i.operands if each.reg[:1] in ("s", "d"))
    kind = i.name.split(".")[0]
    if kind in ("vdiv", "vsqrt"):
        return 15
    if kind in ("vfma", "vfms", "vfnma", "vfnms", "vmla", "vmls", "vnmla", "vnmls"):
        return 4
    if kind in ("vpush", "vpop", "vldmia", "vldmdb", "vstmia", "vstmdb", "vldr", "vstr"):
        return 2 + words
    return 3 if kind == "vmov" and len(i.operands) > 2 else 2


CORES = {
    "cortex-m3": Prices("Cortex-M3", accumulate=2, long_multiply=5, long_accumulate=7, divide=12),
    "cortex-m4": Prices("Cortex-M4", accumulate=1, long_multiply=1, long_accumulate=1, divide=12),
}
