"""Loads, stores and moves between registers of both kinds."""

from __future__ import annotations

from nnbuild.bound.instruction import Instruction, Operand
from nnbuild.bound.operands import MASK, Meaningless, pc_of, shifted, singles, written
from nnbuild.bound.writer import Writer

LOADS = {"ldr": (4, ""), "ldrb": (1, ""), "ldrh": (2, ""), "ldrsb": (1, "0x80"), "ldrsh": (2, "0x8000")}
STORES = {"str": 4, "strb": 1, "strh": 2}


def _place(w: Writer, i: Instruction, operand: Operand) -> tuple[str, tuple[str, ...]]:
    """The address of an operand, before write-back."""
    if operand.kind != "mem":
        raise Meaningless
    base, needs = (f"{pc_of(i):#x}", ()) if operand.reg == "pc" else (operand.reg, (operand.reg,))
    if operand.offset:
        added = shifted(operand.offset, operand.shift, operand.amount)
        return f"(({base} + {added}) & {MASK})", (*needs, operand.offset)
    disp = 0 if i.post else operand.value
    return (f"(({base} + {disp}) & {MASK})" if disp else base), needs


def _write_back(w: Writer, i: Instruction, operand: Operand) -> None:
    if i.writeback:
        step = i.operands[-1].value if i.post else operand.value
        w.move(operand.reg, operand.reg, step)


def load(w: Writer, target: str, address: str, needs: tuple[str, ...], size: int, sign: str = "") -> None:
    w.set("t", f"L{size}(m, {address})", needs, perhaps=True)
    w.set(target, f"((t ^ {sign}) - {sign}) & {MASK}" if sign else "t", ("t",))


def store(w: Writer, i: Instruction, source: str, address: str, needs: tuple[str, ...], size: int) -> None:
    for name in needs:
        w.use(name)
    value = "None" if not source or w.is_unknown((source,)) else w.use(source)
    if w.conditional and value != "None":
        value = f"{value} if p else None"
    where = "None" if w.is_unknown(needs) else w.guarded(address, needs)
    w.line(f"S{size}(m, {where}, {value}, {i.address:#x})")


def load_one(w: Writer, i: Instruction) -> None:
    (target,), place = written(i.operands[:1]), i.operands[1]
    size, sign = LOADS[i.name]
    address, needs = _place(w, i, place)
    w.set("a", address, needs)
    _write_back(w, i, place)
    load(w, target, "a", ("a",), size, sign)


def store_one(w: Writer, i: Instruction) -> None:
    (source,), place = written(i.operands[:1]), i.operands[1]
    address, needs = _place(w, i, place)
    store(w, i, source, address, needs, STORES[i.name])
    _write_back(w, i, place)


def load_pair(w: Writer, i: Instruction) -> None:
    targets, place = written(i.operands[:2]), i.operands[2]
    address, needs = _place(w, i, place)
    w.set("a", address, needs)
    _write_back(w, i, place)
    for number, target in enumerate(targets):
        load(w, target, f"a + {4 * number}", ("a",), 4)


def store_pair(w: Writer, i: Instruction) -> None:
    sources, place = written(i.operands[:2]), i.operands[2]
    address, needs = _place(w, i, place)
    for number, source in enumerate(sources):
        store(w, i, source, f"{address} + {4 * number}" if number else address, needs, 4)
    _write_back(w, i, place)


def push(w: Writer, i: Instruction) -> None:
    names = written(i.operands)
    w.set("sp", f"(sp - {4 * len(names)}) & {MASK}", ("sp",))
    for number, name in enumerate(names):
        store(w, i, name, f"sp + {4 * number}", ("sp",), 4)


def store_many(w: Writer, i: Instruction) -> None:
    base, *names = written(i.operands)
    if base in names:
        raise Meaningless
    down = 4 * len(names) if i.name == "stmdb" else 0
    for number, name in enumerate(names):
        store(w, i, name, f"({base} + {4 * number - down}) & {MASK}", (base,), 4)
    if i.writeback:
        w.move(base, base, 4 * len(names) - 2 * down)


def load_many(w: Writer, i: Instruction) -> None:
    """LDM and POP; a loaded program counter becomes `target`, for the branch that follows."""
    names = [each.reg for each in i.operands]
    base = "sp" if i.name == "pop" else names.pop(0)
    down = 4 * len(names) if i.name == "ldmdb" else 0
    w.set("a", f"({base} - {down}) & {MASK}" if down else base, (base,))
    if i.writeback or i.name == "pop":
        w.move(base, base, 4 * len(names) - 2 * down)
    for number, name in enumerate(names):
        load(w, "target" if name == "pc" else name, f"a + {4 * number}", ("a",), 4)


# Floating point: values are unknown, but registers also keep integers and pointers for a while


def float_move(w: Writer, i: Instruction) -> None:
    kinds = [each.reg[:1] if each.kind == "reg" else "" for each in i.operands]
    core = [each.reg for each in i.operands if each.reg in CORE]
    if len(i.operands) == 2 and len(core) == 1 and "d" not in kinds and all(kinds):
        target, source = i.operands[0].reg, i.operands[1].reg
        w.set(target, source, (source,))
    elif len(core) == 2 and i.operands[0].reg in CORE:
        w.forget(core)
    elif len(core) == 2:
        w.forget(singles(tuple(each for each in i.operands if each.reg not in CORE)))
    elif not core:
        w.forget(singles(i.operands[:1]))
    else:
        raise Meaningless


CORE = frozenset([*(f"r{number}" for number in range(13)), "sp", "lr"])


def float_flags(w: Writer, i: Instruction) -> None:
    """VMRS: flags of a comparison, or the whole status in a register."""
    if i.operands[0].reg.startswith("apsr"):
        w.forget(("nz", "c", "v"))
    else:
        w.forget(written(i.operands[:1]))


def float_load(w: Writer, i: Instruction) -> None:
    w.forget(singles(i.operands[:1]))


def float_store(w: Writer, i: Instruction) -> None:
    address, needs = _place(w, i, i.operands[1])
    for number in range(len(singles(i.operands[:1]))):
        store(w, i, "", f"{address} + {4 * number}" if number else address, needs, 4)


def float_many(w: Writer, i: Instruction) -> None:
    """VPUSH, VPOP, VLDM, VSTM."""
    stack = i.name in ("vpush", "vpop")
    base = "sp" if stack else written(i.operands[:1])[0]
    names = singles(i.operands if stack else i.operands[1:])
    down = 4 * len(names) if i.name in ("vpush", "vstmdb", "vldmdb") else 0
    if i.name in ("vpush", "vstmia", "vstmdb"):
        for number in range(len(names)):
            store(w, i, "", f"({base} + {4 * number - down}) & {MASK}", (base,), 4)
    else:
        w.forget(names)
    if stack or i.writeback:
        w.move(base, base, 4 * len(names) - 2 * down)


def no_change(w: Writer, i: Instruction) -> None:
    """A comparison of floats changes only the flags that VMRS reads."""


def status(w: Writer, i: Instruction) -> None:
    w.forget(written(i.operands[:1]))
