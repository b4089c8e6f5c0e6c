"""Operands of instructions as Python expressions."""

from __future__ import annotations

from nnbuild.bound.instruction import Instruction, Operand
from nnbuild.bound.writer import Writer

MASK = "0xffffffff"


class Meaningless(Exception):
    """The instruction has no defined semantics here."""


def written(operands: tuple[Operand, ...]) -> list[str]:
    names = [each.reg for each in operands if each.kind == "reg"]
    if len(names) != len(operands) or "pc" in names:
        raise Meaningless
    return names


def singles(operands: tuple[Operand, ...]) -> list[str]:
    """The single registers that floating-point operands stand for."""
    names = []
    for each in operands:
        number = int(each.reg[1:]) if each.reg[:1] in ("s", "d") and each.reg[1:].isdigit() else -1
        if number < 0 or (each.reg[0] == "d" and number > 15):
            raise Meaningless
        names += [each.reg] if each.reg[0] == "s" else [f"s{2 * number}", f"s{2 * number + 1}"]
    return names


def pc_of(i: Instruction) -> int:
    """The program counter's value as read in addresses and ADR."""
    return (i.address + 4) & ~3


def value(w: Writer, i: Instruction, operand: Operand) -> tuple[str, tuple[str, ...]]:
    """An operand as an expression, and the registers it needs."""
    if operand.kind == "imm":
        return f"{operand.value & 0xFFFFFFFF:#x}", ()
    if operand.kind != "reg":
        raise Meaningless
    if operand.reg == "pc":
        if operand.shift:
            raise Meaningless
        return f"{i.address + 4:#x}", ()
    name = operand.reg
    return shifted(name, operand.shift, operand.amount), (name,)


def shifted(name: str, shift: str, amount: int) -> str:
    match shift, amount:
        case ("", _) | (_, 0):
            return name
        case ("lsl", _):
            return f"(({name} << {amount}) & {MASK})"
        case ("lsr", _):
            return f"({name} >> {amount})"
        case ("asr", _):
            return f"(((({name} ^ 0x80000000) - 0x80000000) >> {amount}) & {MASK})"
        case ("ror", _):
            return f"((({name} >> {amount}) | ({name} << {32 - amount})) & {MASK})"
    raise Meaningless
