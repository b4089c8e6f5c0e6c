"""A Cortex-M board in the CPU emulator unicorn, installed by pip: a processor, memory, one serial port, one counter.

It runs as a separate program, so that its owner can end it, and serves the board's port over standard input and output:

    python -m nnbuild.device.unicorn_board IMAGE --memory ORIGIN:LENGTH … --uart BASE --counter ADDRESS

The port has no interrupt; the firmware polls it, and a sleep ends when a byte arrives. A fault ends the program with a
message on standard error.

With --beside, a simulated accelerator is mapped into memory. Its interrupt is the only one: it is taken between two
blocks of instructions if enabled and not masked, and ends when its handler returns.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import os
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from elftools.elf.elffile import ELFFile

from nnbuild.base.mapped_device import MappedDevice
from nnbuild.device.simulated import SimulatedDevice

PERIPHERALS = (0x4000_0000, 0x1000_0000)
CORE = (0xE000_0000, 0x0010_0000)
AIRCR = 0xE000_ED0C
NOWHERE = 0xFFFF_FFF0
RETURN = 0x1FFF_F000
"""Return address of a handler: nothing is executed there."""
SR, DR = 0, 4  # the USART's registers, as in firmware/uart/uart_stm32_usart_v1.c
RXNE, TC, TXE = 1 << 5, 1 << 6, 1 << 7
WAIT_FOR_INTERRUPT = 0xBF30
NVIC = (0xE000_E100, 0xE000_E180)
"""Registers that enable and disable interrupts by writing ones: eight words each."""
PAGE = 4096
FRAME = 32
"""Bytes that an exception pushes; floating-point registers are saved elsewhere."""
STACKED = ("R0", "R1", "R2", "R3", "R12", "LR", "PC", "XPSR")
KEPT = (*STACKED, "FPSCR", *(f"S{number}" for number in range(16)))


class UnicornBoard:
    def __init__(
        self,
        image: Path,
        memories: Sequence[tuple[int, int]],
        uart: int,
        counter: int,
        beside: MappedDevice | None = None,
    ) -> None:
        unicorn: Any = importlib.import_module("unicorn")
        self._consts: Any = importlib.import_module("unicorn.arm_const")
        self._error = unicorn.UcError
        self._image = image
        self._uart, self._counter = uart, counter
        self._instructions = 0
        self._lengths: dict[tuple[int, int], int] = {}
        self._arrived: deque[int] = deque()
        self._incoming: SimpleQueue[bytes] = SimpleQueue()
        self._leaving = bytearray()
        self._pause = False
        self._restart = False
        self._ended = False
        self._enabled = [0] * 8
        self._vectors = 0
        self._before: dict[int, int] | None = None
        self._interrupts = False
        self._cpu = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
        self._cpu.ctl_set_cpu_model(self._consts.UC_CPU_ARM_CORTEX_M4)
        for origin, length in memories:
            self._cpu.mem_map(origin, -(-length // 4096) * 4096)
        for origin, length in (PERIPHERALS, CORE):
            self._cpu.mmio_map(origin, length, self._read, origin, self._write, origin)
        self._cpu.hook_add(unicorn.UC_HOOK_BLOCK, self._count)
        self._device = SimulatedDevice(beside) if beside is not None else None
        if self._device is not None:
            place = self._device.place
            memory = ctypes.addressof(self._device.memory)
            self._cpu.mem_map_ptr(place.memory, place.bytes, unicorn.UC_PROT_ALL, memory)
            self._cpu.mmio_map(place.registers, PAGE, self._read_device, None, self._write_device, None)

    def serve(self) -> int:
        """Runs until the host is gone (returns 0) or the processor cannot continue (returns 1)."""
        Thread(target=self._listen, daemon=True).start()
        self._start()
        while not self._ended:
            try:
                self._cpu.emu_start(self._pc() | 1, NOWHERE if self._before is None else RETURN)
            except self._error as problem:
                print(f"fault at pc {self._pc():#010x}: {problem}", file=sys.stderr)
                return 1
            self._send()
            if self._restart:
                self._start()
            elif self._before is not None and self._pc() & ~1 == RETURN:
                self._return()
            elif self._interrupts:
                self._interrupt()
            elif self._asleep():
                self._receive(None)
        if self._device is not None:
            self._device.close()
        return 0

    def _start(self) -> None:
        """Power-on: loads the image and takes stack pointer and start address from its vector table."""
        self._restart = self._interrupts = False
        self._before = None
        with self._image.open("rb") as file:
            pieces = [(s["p_paddr"], s.data()) for s in ELFFile(file).iter_segments("PT_LOAD") if s["p_filesz"]]
        for address, data in pieces:
            self._cpu.mem_write(address, data)
        first = min(address for address, _ in pieces)
        stack, start = (int.from_bytes(self._cpu.mem_read(first + at, 4), "little") for at in (0, 4))
        self._vectors = first
        self._cpu.reg_write(self._consts.UC_ARM_REG_CONTROL, 0)
        self._cpu.reg_write(self._consts.UC_ARM_REG_SP, stack)
        self._cpu.reg_write(self._consts.UC_ARM_REG_PC, start)

    def _pc(self) -> int:
        return int(self._cpu.reg_read(self._consts.UC_ARM_REG_PC))

    def _asleep(self) -> bool:
        """Whether the processor stopped directly after a wait for an interrupt."""
        before = int.from_bytes(self._cpu.mem_read(self._pc() - 2, 2), "little")
        return before == WAIT_FOR_INTERRUPT

    def _count(self, cpu: Any, address: int, size: int, data: object) -> None:
        key = (address, size)
        count = self._lengths.get(key)
        if count is None:
            count = self._lengths[key] = instructions_in(bytes(cpu.mem_read(address, size)))
        device = self._device
        if device is not None:
            if device.due(self._instructions):
                device.move(self._instructions)
            if device.interrupt and self._takes(device.place.interrupt):
                self._interrupts = True
                cpu.emu_stop()  # before this block, which is counted when it executes
                return
        self._instructions += count

    def _takes(self, number: int) -> bool:
        """Whether the processor accepts this interrupt now."""
        enabled = self._enabled[number // 32] >> number % 32 & 1
        return bool(enabled) and self._before is None and not self._register("PRIMASK")

    def _register(self, name: str) -> int:
        return int(self._cpu.reg_read(getattr(self._consts, f"UC_ARM_REG_{name}")))

    def _interrupt(self) -> None:
        """Enters the handler with an exception frame on the stack, as on hardware; it returns to RETURN."""
        assert self._device is not None
        self._interrupts = False
        names = {name: getattr(self._consts, f"UC_ARM_REG_{name}") for name in KEPT}
        self._before = {number: int(self._cpu.reg_read(number)) for number in names.values()}
        top = self._register("SP")
        frame = (top - FRAME) & ~7
        words = b"".join((self._before[names[name]] & 0xFFFF_FFFF).to_bytes(4, "little") for name in STACKED)
        self._cpu.mem_write(frame, words)
        self._before[self._consts.UC_ARM_REG_SP] = top
        handler = self._cpu.mem_read(self._vectors + 4 * (16 + self._device.place.interrupt), 4)
        self._cpu.reg_write(self._consts.UC_ARM_REG_SP, frame)
        self._cpu.reg_write(self._consts.UC_ARM_REG_LR, RETURN | 1)
        self._cpu.reg_write(self._consts.UC_ARM_REG_PC, int.from_bytes(handler, "little"))

    def _return(self) -> None:
        """Restores the interrupted state."""
        before, self._before = self._before, None
        assert before is not None
        program = self._consts.UC_ARM_REG_PC
        for number, value in before.items():
            if number != program:
                self._cpu.reg_write(number, value)
        self._cpu.reg_write(program, before[program] | 1)

    def _read_device(self, cpu: Any, offset: int, size: int, data: object) -> int:
        assert self._device is not None
        self._device.move(self._instructions)
        return self._device.read(offset)

    def _write_device(self, cpu: Any, offset: int, size: int, value: int, data: object) -> None:
        assert self._device is not None
        self._device.move(self._instructions)
        self._device.write(offset, value)

    def _read(self, cpu: Any, offset: int, size: int, origin: int) -> int:
        address = origin + offset
        if address == self._uart + SR:
            return TXE | TC | (RXNE if self._ready() else 0)
        if address == self._uart + DR:
            self._pause = True
            return self._arrived.popleft() if self._arrived else 0
        if address == self._counter:
            return self._instructions & 0xFFFF_FFFF
        return 0

    def _write(self, cpu: Any, offset: int, size: int, value: int, origin: int) -> None:
        address = origin + offset
        if address == self._uart + DR:
            self._leaving.append(value & 0xFF)
        elif address == AIRCR:
            self._restart = True
            cpu.emu_stop()
        elif NVIC[0] <= address < NVIC[0] + 32:
            self._enabled[(address - NVIC[0]) // 4] |= value
        elif NVIC[1] <= address < NVIC[1] + 32:
            self._enabled[(address - NVIC[1]) // 4] &= ~value

    def _ready(self) -> bool:
        """Whether a byte is available. Never two in a row, as on a real line: the program runs in between."""
        paused, self._pause = self._pause, False
        if not paused:
            self._receive(0.0)
        return not paused and bool(self._arrived)

    def _receive(self, patience: float | None) -> None:
        """Receives bytes from the host; waits up to `patience` only when no byte is left."""
        if self._arrived:
            return
        self._send()
        try:
            data = self._incoming.get(patience != 0.0, patience)
        except Empty:
            return
        self._arrived.extend(data)
        if not data:
            self._ended = True
            self._cpu.emu_stop()

    def _listen(self) -> None:
        """Receives from the host in a thread, because not every system can poll a pipe."""
        data = b"first"
        while data:
            data = os.read(0, 65536)
            self._incoming.put(data)

    def _send(self) -> None:
        while self._leaving:
            del self._leaving[: os.write(1, self._leaving)]


def instructions_in(code: bytes) -> int:
    """Counts Thumb instructions: those that start with 0b11101 or more have two halves."""
    count = at = 0
    while at < len(code):
        at += 4 if code[at + 1] >> 3 >= 0b11101 else 2
        count += 1
    return count


def _pair(text: str) -> tuple[int, int]:
    origin, _, length = text.partition(":")
    return int(origin, 0), int(length, 0)


def _number(text: str) -> int:
    return int(text, 0)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="A Cortex-M4 board in unicorn, with its serial port on standard input and output."
    )
    parser.add_argument("image", type=Path)
    parser.add_argument("--memory", action="append", type=_pair, required=True)
    parser.add_argument("--uart", type=_number, required=True)
    parser.add_argument("--counter", type=_number, required=True)
    parser.add_argument("--beside", type=MappedDevice.parsed, help="REGISTERS,MEMORY,BYTES,INTERRUPT,LIBRARY")
    options = parser.parse_args(arguments)
    return UnicornBoard(options.image, options.memory, options.uart, options.counter, options.beside).serve()


if __name__ == "__main__":
    raise SystemExit(main())
