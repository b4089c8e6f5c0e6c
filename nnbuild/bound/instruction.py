"""Thumb instructions as plain values, decoded by capstone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from nnbuild.audit.code import INSTALL_HINT, find_capstone
from nnbuild.base.errors import ToolMissing

CONDITIONS = ("eq", "ne", "hs", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le")
NAMES = {"sb": "r9", "sl": "r10", "fp": "r11", "ip": "r12", "r13": "sp", "r14": "lr", "r15": "pc"}
SHIFTS = {1: "asr", 2: "lsl", 3: "lsr", 4: "ror", 5: "rrx", 6: "asr", 7: "lsl", 8: "lsr", 9: "ror", 10: "rrx"}
REG, IMM, MEM = 1, 2, 3


class Operand(NamedTuple):
    """A register (perhaps shifted), an immediate value, or a memory operand; `other` is anything else."""

    kind: str
    reg: str = ""
    value: int = 0
    """The immediate value, or the displacement of a memory operand."""
    offset: str = ""
    """The index register."""
    shift: str = ""
    amount: int = 0
    """The shift of the register or of the index."""


@dataclass(frozen=True)
class Instruction:
    address: int
    size: int
    name: str
    """Without width, condition and the S suffix."""
    operands: tuple[Operand, ...]
    sets_flags: bool
    condition: str
    """Empty for unconditional instructions."""
    writeback: bool
    post: bool
    text: str

    @property
    def next(self) -> int:
        return self.address + self.size


@cache
def _engine() -> Any:
    found = find_capstone()
    if found is None:
        raise ToolMissing("nnbuild bound", "reading instructions needs the package capstone.", INSTALL_HINT)
    engine = found.Cs(found.CS_ARCH_ARM, found.CS_MODE_THUMB | found.CS_MODE_MCLASS)
    engine.detail = True
    return engine


def decode(code: bytes, address: int, condition: str = "") -> Instruction | None:
    """Decodes the first instruction in `code`; None if there is none.

    `condition` is that of the surrounding IT block. Inside one, narrow arithmetic sets no flags.
    """
    engine = _engine()
    entry = next(engine.disasm(code[:4], address, 1), None)
    if entry is None:
        return None
    own = _condition(entry)
    name, flags = _name(entry, own)
    if condition and entry.size == 2 and name not in ("cmp", "cmn", "tst"):
        flags = False
    operands = tuple(_operand(engine, each) for each in entry.operands)
    return Instruction(
        address=entry.address,
        size=entry.size,
        name=name,
        operands=operands,
        sets_flags=flags,
        condition=condition or own,
        writeback=bool(entry.writeback),
        post=bool(entry.post_index),
        text=f"{entry.mnemonic} {entry.op_str}".strip(),
    )


def _condition(entry: Any) -> str:
    """The condition of a conditional branch; for `it`, that of the following instructions."""
    is_branch = entry.mnemonic.startswith("b") and len(entry.operands) == 1 and entry.operands[0].type == IMM
    return CONDITIONS[entry.cc - 1] if is_branch and 1 <= entry.cc <= 14 else ""


def _name(entry: Any, own: str) -> tuple[str, bool]:
    name = entry.mnemonic.split(".")[0] if not entry.mnemonic.startswith("v") else entry.mnemonic
    if own:
        name = name.removesuffix(own)
    flags = bool(entry.update_flags) and name.endswith("s") and name not in ("mls", "vmrs")
    return (name[:-1] if flags else name), flags or name in ("cmp", "cmn", "tst", "teq")


def register(name: str) -> str:
    return NAMES.get(name, name)


def _operand(engine: Any, each: Any) -> Operand:
    shift, amount = SHIFTS.get(each.shift.type, ""), each.shift.value
    if each.shift.type >= 6 and each.shift.type <= 10:
        return Operand("other")  # shifted by a register, which no Thumb operand is
    if each.type == REG:
        return Operand("reg", register(engine.reg_name(each.reg)), shift=shift, amount=amount)
    if each.type == IMM:
        return Operand("imm", value=-each.imm if each.subtracted else each.imm)
    if each.type == MEM:
        base = register(engine.reg_name(each.mem.base))
        index = register(engine.reg_name(each.mem.index)) if each.mem.index else ""
        if index and (shift not in ("", "lsl") or each.mem.scale < 0):
            return Operand("other")
        return Operand("mem", base, each.mem.disp, index, shift, amount)
    return Operand("other")


def it_conditions(text: str) -> tuple[str, ...]:
    """The conditions of the instructions after an `it` instruction, from its text: `itte eq` is eq, eq, ne."""
    pattern, _, first = text.partition(" ")
    number = CONDITIONS.index(first)
    return tuple(CONDITIONS[number ^ (letter == "e")] for letter in "t" + pattern[2:])
