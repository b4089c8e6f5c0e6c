"""Runs functions of a linked program in the emulator unicorn and times their instructions."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nnbuild.base.errors import CheckFailed, ToolMissing, UsageError
from nnbuild.board.board import FlashSpeed
from nnbuild.bound.image import Image
from nnbuild.cycles.blocks import CODE, Block, Core, Timing, branch, read_block, timed
from nnbuild.cycles.flash import Port
from nnbuild.cycles.load_addresses import Watch, has_floats
from nnbuild.cycles.pipeline import leaves

PAGE = 4096
BACK = 0x7FFF_F000
Spans = Sequence[tuple[int, int]]
LESSONS = 3
"""Executions of a block that are watched in detail, to find which of its loads read flash."""


@dataclass(frozen=True)
class Time:
    """Cycles by cause: one per instruction, and the additional ones."""

    instructions: int = 0
    loads: int = 0
    branches: int = 0
    others: int = 0
    flash_code: int = 0
    flash_data: int = 0

    @property
    def cycles(self) -> int:
        return self.instructions + self.loads + self.branches + self.others + self.flash_code + self.flash_data

    def plus(self, other: Time) -> Time:
        return Time(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


def unicorn() -> tuple[Any, Any]:
    try:
        return importlib.import_module("unicorn"), importlib.import_module("unicorn.arm_const")
    except ImportError:
        raise ToolMissing(
            "cycles", "this needs the emulator unicorn, which is not installed.", "pip install unicorn"
        ) from None


class Processor:
    """A program in memory, whose functions can be called."""

    def __init__(self, image: Image, model: str = "CORTEX_M4") -> None:
        self.image = image
        engine, self._names = unicorn()
        self._error = engine.UcError
        self.cpu: Any = engine.Uc(engine.UC_ARCH_ARM, engine.UC_MODE_THUMB | engine.UC_MODE_MCLASS)
        self.cpu.ctl_set_cpu_model(getattr(self._names, f"UC_CPU_ARM_{model}"))
        spans = [(region.start, region.end) for region in image.constant] + list(image.writable) + [(BACK, BACK + 2)]
        for page in sorted({page for start, end in spans for page in range(start // PAGE, -(-end // PAGE))}):
            self.cpu.mem_map(page * PAGE, PAGE)
        for region in image.constant:
            self.cpu.mem_write(region.start, region.data)
        self.stack = (image.symbol("nn_stack_high") or max(end for _, end in image.writable)) & ~7

    def register(self, name: str) -> int:
        return int(getattr(self._names, f"UC_ARM_REG_{name}"))

    def call(self, name: str, *arguments: int, below: int = 0) -> int:
        """Returns the function's result."""
        for number, value in enumerate(arguments):
            self.cpu.reg_write(self.register(f"R{number}"), value)
        self.cpu.reg_write(self.register("SP"), self.stack - below)
        self.cpu.reg_write(self.register("LR"), BACK | 1)
        if name not in self.image.functions:
            raise UsageError(self.image.name, f"it has no function {name!r}.", "Give the program.elf of a build.")
        try:
            self.cpu.emu_start(self.image.functions[name] | 1, BACK)
        except self._error as problem:
            place = self.image.name_of(int(self.cpu.reg_read(self.register("PC"))))
            step = "Profile it in the board's own emulator, without --cycles."
            raise CheckFailed("cycles", f"the emulator cannot continue at {place}: {problem}.", step) from None
        return int(self.cpu.reg_read(self.register("R0")))


class Clock(Processor):
    """`flash` may be slower than the core; `spans` are its address ranges."""

    def __init__(self, image: Image, core: Core, flash: FlashSpeed, spans: Spans, model: str) -> None:
        super().__init__(image, model)
        self._core, self._flash, self._spans = core, flash, spans
        self._port = Port(flash)
        self._blocks: dict[tuple[int, int], Block] = {}
        self._running: Block | None = None
        self._words: list[int] = []
        self._places: list[int] = []
        self._close = False
        self._now = 0
        self._counts = [0] * 6
        engine, _ = unicorn()
        self._pc = self.register("PC")
        self._numbers: dict[str, int] = {}
        self._watch: Watch | None = None
        if has_floats(image):
            self._watch = Watch(image, tuple(range(first, last) for first, last in spans), self._value)
            for place in self._watch.apart:
                self.cpu.hook_add(engine.UC_HOOK_CODE, self._watch.step, begin=place, end=place)
        else:
            for first, last in spans:
                self.cpu.hook_add(engine.UC_HOOK_MEM_READ, self._load, begin=first, end=last - 1)
        self.cpu.hook_add(engine.UC_HOOK_BLOCK, self._enter)

    def time(self, name: str, *arguments: int) -> Time:
        """Times a call."""
        self._counts, self._running = [0] * 6, None
        self._words.clear()
        self._places.clear()
        self.call(name, *arguments)
        self._finish(BACK)
        return Time(*self._counts)

    def _load(self, cpu: Any, access: int, address: int, size: int, value: int, data: object) -> None:
        self._words.append(address)
        if self._close:
            self._places.append(cpu.reg_read(self._pc))

    def _value(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = self.register(name.upper())
        return int(self.cpu.reg_read(number))

    def _enter(self, cpu: Any, address: int, size: int, data: object) -> None:
        block, before = self._block(address, size), self._running
        if before is not None and before.end == address and before.body and not leaves(before.last):
            self._running = self._block(before.address, address + size - before.address)  # a page of memory ended
            before.conditional |= self._running.conditional  # both are watched equally
        else:
            if before is not None:
                self._finish(address)
            self._running = block
        self._running.seen += 1
        self._close = self._running.conditional or self._running.seen <= LESSONS
        if self._watch is not None:
            self._watch.enter(address, block.body)

    def _block(self, address: int, size: int) -> Block:
        block = self._blocks.get((address, size))
        if block is None:
            block = self._blocks[address, size] = read_block(self.image, address, size)
        return block

    def _finish(self, to: int) -> None:
        block, words = self._running, self._words
        assert block is not None, "a function has at least one block"
        if self._watch is not None:
            for place, word in self._watch.take():
                words.append(word)
                self._places.append(place)
        if self._close:
            block.learn(self._places)
            block.timings.pop(len(words), None)
        self._places.clear()
        timing = block.timings.get(len(words))
        if timing is None:
            timing = block.timings[len(words)] = self._timed(block, len(words))
        away = block.branches.get(to)
        if away is None:
            away = block.branches[to] = branch(block, self._core, self.image, to)
        code = data = 0
        if self._flash.wait:
            code, data = self._waits(timing, words, away)
        counts, own = self._counts, len(block.body)
        counts[0] += own
        counts[1] += timing.loads
        counts[2] += away
        counts[3] += timing.cycles - own - timing.loads
        counts[4] += code
        counts[5] += data
        self._now += away
        words.clear()

    def _waits(self, timing: Timing, words: Sequence[int], away: int) -> tuple[int, int]:
        now, code, data, at = self._now, 0, 0, 0
        port, read = self._port, self._flash.read
        for passed, kind, unit in timing.events:
            now += passed
            if kind == CODE:
                stall = port.fetch(unit, now)
                code += stall
            elif at < len(words):
                stall = port.load(words[at] // read, now)
                data += stall
                at += 1
            else:
                continue
            now += stall
        self._now = now + timing.rest
        return code, data

    def _timed(self, block: Block, count: int) -> Timing:
        pattern = block.patterns.get(count)
        if pattern is None:
            nearest = min(block.patterns, key=lambda known: abs(known - count))
            pattern = block.patterns[nearest]
        slow = self._flash.wait and any(first <= block.address < last for first, last in self._spans)
        return timed(block, self._core, pattern, self._flash.read if slow else 0)
