"""The registers that an instruction reads and writes, as far as they affect timing."""

from __future__ import annotations

from nnbuild.bound.instruction import Instruction

MANY = ("push", "pop", "ldm", "ldmdb", "stm", "stmdb", "vpush", "vpop", "vldmia", "vldmdb", "vstmia", "vstmdb")
WIDE_RESULTS = ("umull", "smull", "umlal", "smlal", "umaal")
COMPARISONS = ("cmp", "cmn", "tst", "teq", "vcmp", "vcmpe")
BRANCHES = ("b", "bl", "bx", "blx", "cbz", "cbnz", "tbb", "tbh")
ACCUMULATING: tuple[str, ...] = (
    "mla",
    "mls",
    "smmla",
    "smmlar",
    "smmls",
    "smmlsr",
    "vfma",
    "vfms",
    "vfnma",
    "vfnms",
    "vmla",
    "vmls",
)
ACCUMULATING += tuple(f"sml{kind}" for kind in ("ad", "adx", "sd", "sdx", "abb", "abt", "atb", "att", "awb", "awt"))
LONG_PAIRS = tuple(f"sml{kind}" for kind in ("ald", "aldx", "sld", "sldx", "albb", "albt", "altb", "altt"))


def base_name(i: Instruction) -> str:
    """The name without the floating-point type."""
    return i.name.split(".")[0]


def is_load(i: Instruction) -> bool:
    return i.name.startswith(("ldr", "ldm", "pop", "vldr", "vldm", "vpop", "tbb", "tbh"))


def is_store(i: Instruction) -> bool:
    return i.name.startswith(("str", "stm", "push", "vstr", "vstm", "vpush"))


def in_memory(i: Instruction) -> bool:
    return is_load(i) or is_store(i)


def words(i: Instruction) -> int:
    """Memory words of a load or store; bytes and halfwords count as words."""
    if i.name in ("ldrd", "strd"):
        return 2
    listed = i.operands
    if i.name in MANY and not i.name.endswith(("push", "pop")):
        listed = listed[1:]
    if i.name in MANY or i.name.startswith(("vldr", "vstr")):
        return sum(2 if each.reg.startswith("d") else 1 for each in listed if each.kind == "reg")
    return 1


def address_registers(i: Instruction) -> frozenset[str]:
    """The registers in the address of a load or store."""
    if i.name in MANY:
        return frozenset({"sp"} if i.name.endswith(("push", "pop")) else {i.operands[0].reg})
    found = {name for each in i.operands if each.kind == "mem" for name in (each.reg, each.offset) if name}
    return frozenset(found - {"pc"})


def indexed(i: Instruction) -> bool:
    """Whether an address is the sum of two registers."""
    return any(each.kind == "mem" and each.offset for each in i.operands)


def written(i: Instruction) -> frozenset[str]:
    """The registers that it writes, including a base with write-back."""
    named = [each.reg for each in i.operands if each.kind == "reg"]
    base = address_registers(i) if i.writeback or i.name.endswith(("push", "pop")) else frozenset()
    if is_store(i) or base_name(i) in (*COMPARISONS, *BRANCHES) or i.name.startswith("it"):
        return base
    if i.name in ("pop", "vpop"):
        return base | frozenset(named)
    if i.name in MANY:
        return base | frozenset(named[1:])
    count = 2 if i.name in ("ldrd", *WIDE_RESULTS, *LONG_PAIRS) else 1
    return base | frozenset(named[:count])


def read(i: Instruction) -> frozenset[str]:
    """The registers that it reads, including those of its address."""
    named = [each.reg for each in i.operands if each.kind == "reg"]
    addresses = address_registers(i)
    if is_store(i):
        skipped = 1 if i.name in MANY and not i.name.endswith("push") else 0
        return addresses | frozenset(named[skipped:])
    if is_load(i):
        return addresses
    if base_name(i) in (*COMPARISONS, *BRANCHES):
        return frozenset(named)
    if base_name(i) in ACCUMULATING and base_name(i).startswith("v"):
        return frozenset(named)
    if i.name in ("umlal", "smlal", "umaal", *LONG_PAIRS, "movt", "bfi"):
        return frozenset(named)
    sources = named[2:] if i.name in ("umull", "smull") else named[1:]
    two_operands = len(named) + sum(each.kind == "imm" for each in i.operands) == 2
    renewing = i.name.startswith(("mov", "mvn", "adr", "rsb", "neg", "v", "sxt", "uxt", "rev", "clz", "rbit"))
    return frozenset(named if two_operands and not renewing else sources)


def accumulator(i: Instruction) -> frozenset[str]:
    """The sum register of a multiply-accumulate."""
    if base_name(i) not in ACCUMULATING:
        return frozenset()
    return frozenset({i.operands[0].reg if base_name(i).startswith("v") else i.operands[-1].reg})


def shifts(i: Instruction) -> bool:
    """Whether its second operand is shifted."""
    return any(each.kind == "reg" and each.shift for each in i.operands)
