"""Holds what the proof thinks an instruction does against the emulator."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from unicorn import arm_const

from benchmarks.replay import LR, REGISTERS, SP, STATUS
from nnbuild.bound.block import compiled, is_branch, write_all
from nnbuild.bound.image import Image
from nnbuild.bound.instruction import Instruction, decode, it_conditions
from nnbuild.bound.memory import Memory, WildStore
from nnbuild.bound.register_distance import MARKED, new_mark
from nnbuild.bound.writer import SLOT, Writer
from nnbuild.bound.writer import VALUES as NAMES
from nnbuild.cycles.clock import Processor

CORE = [*REGISTERS, SP, LR]
FLOATS = [getattr(arm_const, f"UC_ARM_REG_S{number}") for number in range(32)]
WINDOW = 512
"""Bytes of memory around where the instruction's addresses point."""


def sequences(image: Image, start: int, end: int) -> Iterator[tuple[Instruction, ...]]:
    """Each instruction by itself; those of a conditional block together with what opens it."""
    at = start
    while at < end:
        i = decode(image.code_at(at), at)
        if i is None:
            at += 2
            continue
        found = [i]
        if i.name.startswith("it"):
            for condition in it_conditions(i.text):
                found.append(decode(image.code_at(found[-1].next), found[-1].next, condition) or i)
        yield tuple(found)
        at = found[-1].next


def form(sequence: Sequence[Instruction]) -> tuple[object, ...]:
    """What makes two instructions the same kind of thing."""
    return tuple(
        (
            *(i.name, i.sets_flags, i.condition != "", i.writeback, i.post, i.size),
            *((o.kind, bool(o.offset), o.shift, o.reg in ("sp", "pc")) for o in i.operands),
        )
        for i in sequence
    )


def branches(sequence: Sequence[Instruction]) -> bool:
    return any(is_branch(i) for i in sequence)


class Pin:
    """One image in the emulator; `memory` is where addresses may point."""

    def __init__(self, image: Image, memory: int) -> None:
        self._image, self._memory = image, memory
        self._cpu = Processor(image).cpu
        self._access = Memory(image).functions
        self._chance = random.Random(7)
        self._cpu.reg_write(arm_const.UC_ARM_REG_FPEXC, 0x4000_0000)

    def check(self, sequence: Sequence[Instruction], rounds: int) -> None:
        w = Writer()
        write_all(w, sequence)
        run = compiled(w, "0", self._access)
        for _ in range(rounds):
            self._round(sequence, run)

    def _round(self, sequence: Sequence[Instruction], run: Any) -> None:
        chance = self._chance
        values = self._values(sequence)
        hidden = {name for name in NAMES if chance.random() < chance.choice((0.0, 0.2, 0.6))}
        hidden -= {o.reg for i in sequence for o in i.operands if o.kind == "mem" and i.name.startswith(("st", "vst"))}
        content = [chance.getrandbits(32) for _ in range(WINDOW // 4)]
        known = {place for place in range(len(content)) if chance.random() < 0.7}
        state = [None if name in hidden else values[name] for name in NAMES]
        together = [name for name in MARKED if name in hidden and chance.random() < 0.5]
        marks = dict(zip(together, self._apart(len(together)), strict=True))
        state += [marks.get(name) for name in MARKED]
        words = {self._memory + 4 * place: content[place] for place in known}
        try:
            run(state, words)
        except WildStore:
            return
        for _ in range(2):
            again, filled = dict(values), list(content)
            for name in hidden:
                again[name] = self._any(name)
            for name in together:
                again[name] = again[together[0]] + marks[name] - marks[together[0]] & 0xFFFF_FFFF
            for place in range(len(content)):
                filled[place] = content[place] if place in known else chance.getrandbits(32)
            if not self._agrees(sequence, again, filled, state, words):
                return  # an unknown address pointed to where nothing is

    def _values(self, sequence: Sequence[Instruction]) -> dict[str, int]:
        values = {name: self._any(name) for name in NAMES}
        middle = self._memory + WINDOW // 2
        for i in sequence:
            for operand in i.operands:
                if operand.kind == "mem":
                    if operand.reg in values:
                        values[operand.reg] = middle + 4 * self._chance.randrange(4) - (operand.value & ~3)
                    if operand.offset:
                        values[operand.offset] = 4 * self._chance.randrange(4)
            if i.name.startswith(("ldm", "stm", "vldm", "vstm")):
                values[i.operands[0].reg] = middle
            if i.name in ("push", "pop", "vpush", "vpop"):
                values["sp"] = middle
        return values

    def _apart(self, count: int) -> list[int]:
        """Marks of so many registers that are known to be so far apart."""
        first, near = new_mark(), (0, 4, 16, 0xFFFF_FFFC, self._chance.getrandbits(32))
        return [first + self._chance.choice(near) for _ in range(count)]

    def _any(self, name: str) -> int:
        chance = self._chance
        if name in ("c", "v"):
            return chance.getrandbits(1)
        if name == "nz":
            return chance.choice((0, 1, 0x8000_0000))
        if name == "sp":
            return self._memory + WINDOW // 2
        return chance.choice((chance.getrandbits(32), chance.getrandbits(5), chance.getrandbits(32) | 0xFFFF_0000, 0))

    def _agrees(self, sequence: Any, values: dict[str, int], content: list[int], state: Any, words: Any) -> bool:
        cpu = self._cpu
        for name, register in zip(NAMES[:15], CORE, strict=True):
            cpu.reg_write(register, values[name])
        floats = any(i.name.startswith("v") for i in sequence)
        for number, register in enumerate(FLOATS if floats else ()):
            cpu.reg_write(register, values[f"s{number}"])
        flags = (values["nz"] >> 31) << 31 | (values["nz"] == 0) << 30 | values["c"] << 29 | values["v"] << 28
        cpu.reg_write(STATUS, flags | 1 << 24)
        cpu.mem_write(self._memory, b"".join(word.to_bytes(4, "little") for word in content))
        try:
            cpu.emu_start(sequence[0].address | 1, sequence[-1].next)
        except Exception:
            return False
        self._compare(sequence, state, words, FLOATS if floats else [])
        return True

    def _compare(self, sequence: Any, state: Any, words: Any, floats: list[int]) -> None:
        cpu, text = self._cpu, "; ".join(i.text for i in sequence)
        status = cpu.reg_read(STATUS)
        wanted = {name: cpu.reg_read(register) for name, register in zip(NAMES[:15], CORE, strict=True)}
        wanted |= {f"s{number}": cpu.reg_read(register) for number, register in enumerate(floats)}
        wanted |= {"c": status >> 29 & 1, "v": status >> 28 & 1}
        for name, value in wanted.items():
            assert state[SLOT[name]] in (None, value), f"{text}: {name}"
        bases: dict[int, int] = {}
        for name in MARKED:
            mark = state[SLOT[f"{name}_mark"]]
            if mark is not None:
                base = wanted[name] - mark & 0xFFFF_FFFF
                assert bases.setdefault(mark >> 32, base) == base, f"{text}: {name} is not as far apart as said"
        nz = state[SLOT["nz"]]
        assert nz is None or (nz >> 31, nz == 0) == (status >> 31 & 1, bool(status >> 30 & 1)), f"{text}: flags"
        for place, word in words.items():
            found = int.from_bytes(cpu.mem_read(place, 4), "little")
            assert word == found, f"{text}: memory at {place - self._memory}"
