"""Calls and jumps out of the functions of a file, read from its instructions and relocations.

Used for the call graph of objects without compiler data, and to find the callers of a function in a linked image, which
has no relocations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from nnbuild.audit.code import Chunk, Code, Instruction
from nnbuild.audit.elf import ObjectFile
from nnbuild.audit.relocations import CALL_TYPES, MARKER_TYPES, Relocation, call_target

IMMEDIATE = re.compile(r"(?:^|, ?)#?(-?0x[0-9a-f]+|-?\d+)$")
RIP_SLOT = re.compile(r"\[rip ([+-]) (0x[0-9a-f]+|\d+)\]")
ARM_BRANCH = re.compile(r"^(?:bl?x?(?:eq|ne|hs|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|al)?(?:\.w)?|cbn?z)$")
A64_DIRECT = re.compile(r"^(?:bl?|b\.\w+|cbn?z|tbn?z)$")
PPC_BRANCH = re.compile(r"^b(?:d?n?z|lt|le|eq|ge|gt|ne|so|ns|un|nu|c)?[tf]?(?:l?r|ctr)?l?[+-]?$")
RISCV_DIRECT = re.compile(r"^(?:c\.)?(?:jal|j|beq|bne|blt|bge|bltu|bgeu|beqz|bnez|blez|bgez|bltz|bgtz)$")
SLOT_TYPES = ("_JUMP_SLOT", "_GLOB_DAT", "_JMP_SLOT")


class Branch(NamedTuple):
    """A call or jump. With neither `target` nor `symbol` its destination is known only at run time."""

    address: int
    is_call: bool
    target: int | None
    symbol: str
    switch: bool = False
    """An indirect jump with the shape of a switch statement."""


class CallReader:
    """Reads the branches of one file."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._file: ObjectFile = code.locator.file
        reader = {"x86": self._x86, "x86-64": self._x86, "arm": self._arm, "aarch64": self._aarch64}
        reader |= {"powerpc": self._powerpc, "powerpc64": self._powerpc}
        self._decode = reader.get(self._file.machine, self._riscv)

    @cached_property
    def _relocations(self) -> dict[int, Relocation]:
        """Relocations in code by address."""
        found: dict[int, Relocation] = {}
        for table in self._code.locator.relocations:
            if table.target is not None and table.target.executable:
                base = self._file.bases[table.target.number]
                for entry in table.entries():
                    if entry.type not in MARKER_TYPES:
                        found[base + entry.offset] = entry
        return found

    @cached_property
    def _slots(self) -> dict[int, str]:
        """Addresses of the slots that the dynamic linker fills, with the symbol of each."""
        found = {}
        for table in self._code.locator.relocations:
            if table.dynamic and not self._file.relocatable:
                for entry in table.entries():
                    if entry.symbol is not None and entry.type.endswith(SLOT_TYPES):
                        found[entry.offset] = entry.symbol.name
        return found

    @cached_property
    def stubs(self) -> dict[int, str]:
        """Addresses of the PLT stubs of a linked file, with the symbol each jumps to."""
        found: dict[int, str] = {}
        for chunk in self._code.chunks():
            if chunk.section.name.startswith(".plt") and self._slots:
                found.update(self._x86_stubs(chunk) if self._file.machine != "aarch64" else self._aarch64_stubs(chunk))
        return found

    def _x86_stubs(self, chunk: Chunk) -> Iterator[tuple[int, str]]:
        for instruction in self._code.instructions(chunk):
            name = self._slot_symbol(instruction)
            if name:
                # Stubs have 16 bytes, except in sections of 8-byte ones.
                step = 8 if chunk.section.entry_size == 8 else 16
                yield instruction.address // step * step, name

    def _aarch64_stubs(self, chunk: Chunk) -> Iterator[tuple[int, str]]:
        page = start = 0
        for address, _, mnemonic, operands in self._code.instructions(chunk):
            if mnemonic == "adrp" and operands.startswith("x16, #"):
                start, page = address, int(operands.split("#")[1], 16)
            elif mnemonic == "ldr" and operands.startswith("x17, [x16"):
                slot = page + (int(operands.split("#")[1].rstrip("]"), 16) if "#" in operands else 0)
                if slot in self._slots:
                    yield start, self._slots[slot]

    def _slot_symbol(self, instruction: Instruction) -> str:
        match = RIP_SLOT.search(instruction.operands)
        if match is None:
            return ""
        distance = int(match[2], 0) * (-1 if match[1] == "-" else 1)
        return self._slots.get(instruction.address + instruction.size + distance, "")

    def branches(self, chunk: Chunk) -> Iterator[Branch]:
        """The branches in a chunk, without plain jumps inside it."""
        recent: list[Instruction] = []
        for instruction in map(Instruction._make, self._code.lines_of(chunk)):
            branch = self._decode(instruction, recent)
            if branch is not None and not self._inner(branch, chunk):
                yield branch
            recent.append(instruction)
            del recent[:-8]

    def _inner(self, branch: Branch, chunk: Chunk) -> bool:
        if branch.is_call or branch.target is None or branch.symbol:
            return False
        return chunk.start <= branch.target < chunk.start + len(chunk.code)

    def _relocation_in(self, instruction: Instruction) -> Relocation | None:
        places = range(instruction.address, instruction.address + instruction.size)
        return next((self._relocations[place] for place in places if place in self._relocations), None)

    def _direct(self, instruction: Instruction, is_call: bool, relocation: Relocation | None) -> Branch | None:
        """A branch to a fixed address: that of its relocation or, without one, of its operand."""
        if relocation is not None and relocation.type in CALL_TYPES and relocation.symbol is not None:
            target = call_target(self._file, relocation)
            return Branch(instruction.address, is_call, target, relocation.symbol.name if target is None else "")
        match = IMMEDIATE.search(instruction.operands)
        if match is None:
            return None
        target = int(match[1], 0)
        return Branch(instruction.address, is_call, target, self.stubs.get(target, "") if self._slots else "")

    def _x86(self, instruction: Instruction, recent: list[Instruction]) -> Branch | None:
        name, operands = instruction.mnemonic.rsplit(" ", 1)[-1], instruction.operands
        if name != "call" and name[0] != "j":
            return None
        is_call, relocation = name == "call", self._relocation_in(instruction)
        through_slot = relocation is not None and "GOTPCREL" in relocation.type
        if operands.startswith(("0x", "-0x")) or operands.isdigit() or through_slot:
            return self._direct(instruction, is_call, relocation)
        symbol = self._slot_symbol(instruction) if self._slots else ""
        switch = not is_call and ("notrack" in instruction.mnemonic or "*" in operands or _added(recent, operands))
        return Branch(instruction.address, is_call, None, symbol, switch)

    def _arm(self, instruction: Instruction, recent: list[Instruction]) -> Branch | None:
        name, operands = instruction.mnemonic, instruction.operands
        if name in ("tbb", "tbh") or (operands.startswith("pc, ") and name.split(".")[0] in ("ldr", "mov", "add")):
            return Branch(instruction.address, False, None, "", True)
        if not ARM_BRANCH.match(name):
            return None
        is_call = name.startswith("bl") and name not in ("bls", "blo", "blt", "ble", "bls.w", "blo.w", "blt.w", "ble.w")
        if "#" in operands:
            return self._direct(instruction, is_call, self._relocation_in(instruction))
        return None if operands == "lr" else Branch(instruction.address, is_call, None, "")

    def _aarch64(self, instruction: Instruction, recent: list[Instruction]) -> Branch | None:
        name, operands = instruction.mnemonic, instruction.operands
        if A64_DIRECT.match(name):
            return self._direct(instruction, name == "bl", self._relocation_in(instruction))
        if name.startswith("blr"):
            return Branch(instruction.address, True, None, "")
        if name == "br" or name.startswith("bra"):
            return Branch(instruction.address, False, None, "", _added(recent, operands))
        return None

    def _powerpc(self, instruction: Instruction, recent: list[Instruction]) -> Branch | None:
        """`bl` calls, `b` and its conditions jump; computed addresses go through the counter register."""
        name = instruction.mnemonic.rstrip("+-")
        if not PPC_BRANCH.match(name):
            return None
        if "ctr" in name:
            is_call = name.endswith("l")
            return Branch(instruction.address, is_call, None, "", not is_call and _counted_sum(recent))
        if name.endswith("lr") or name.endswith("lrl"):
            return Branch(instruction.address, True, None, "") if name.endswith("lrl") else None
        return self._direct(instruction, name.endswith("l") and name != "bdnzl", self._relocation_in(instruction))

    def _riscv(self, instruction: Instruction, recent: list[Instruction]) -> Branch | None:
        name, operands = instruction.mnemonic.removeprefix("c."), instruction.operands
        relocation = self._relocations.get(instruction.address)
        if name == "auipc" and relocation is not None and relocation.type.startswith("R_RISCV_CALL"):
            register = operands.split(",")[0]
            return self._direct(instruction, register in ("ra", "t0"), relocation)
        if name in ("jalr", "jr"):
            pair = recent[-1] if recent else None
            if pair is not None and pair.mnemonic == "auipc":
                return self._riscv_pair(instruction, pair)
            register = operands.split(",")[-1].strip().split("(")[-1].rstrip(")")
            is_call = name == "jalr" and not operands.startswith("zero")
            if not is_call and register in ("ra", "t0"):
                return None
            return Branch(instruction.address, is_call, None, "", not is_call and _table_load(recent))
        if not RISCV_DIRECT.match(name):
            return None
        match = IMMEDIATE.search(operands)
        if match is None:
            return None
        is_call = name == "jal" and not operands.startswith("zero")
        if relocation is not None and relocation.type in CALL_TYPES:
            return self._direct(instruction, is_call, relocation)
        return Branch(instruction.address, is_call, instruction.address + int(match[1], 0), "")

    def _riscv_pair(self, jump: Instruction, upper: Instruction) -> Branch | None:
        """`auipc` and `jalr`: a call further than 1 MB, or to a function that the linker has yet to place."""
        if upper.address in self._relocations:
            return None  # already reported at the auipc
        register, page = [part.strip() for part in upper.operands.split(",")][:2]
        match = re.search(r"(-?(?:0x[0-9a-f]+|\d+))\(" + register + r"\)|, ?(-?(?:0x[0-9a-f]+|\d+))$", jump.operands)
        low = int(match[1] or match[2], 0) if match else 0
        target = upper.address + (int(page, 0) << 12) + low
        return Branch(jump.address, jump.mnemonic.endswith("jalr") and not jump.operands.startswith("zero"), target, "")


def _added(recent: list[Instruction], register: str) -> bool:
    """Whether the register of a jump was just computed by an addition, as from a table of offsets."""
    for earlier in reversed(recent):
        if earlier.operands.split(",")[0] == register:
            return earlier.mnemonic == "add"
    return False


def _counted_sum(recent: list[Instruction]) -> bool:
    """PowerPC: whether the value last moved to the counter was just added up, or loaded from a table."""
    moves = [index for index, earlier in enumerate(recent) if earlier.mnemonic == "mtctr"]
    if not moves:
        return False
    before, register = recent[: moves[-1]], recent[moves[-1]].operands
    made = next((each for each in reversed(before) if each.operands.split(",")[0] == register), None)
    return made is not None and made.mnemonic in ("add", "lwzx", "ldx")


def _table_load(recent: list[Instruction]) -> bool:
    """RISC-V: the address was loaded from, or added to, an indexed table shortly before the jump."""
    names = [earlier.mnemonic.removeprefix("c.") for earlier in recent]
    return "add" in names and any(name in ("lw", "ld", "slli", "sh2add") for name in names)
