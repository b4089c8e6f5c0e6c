"""Firmware of boards that no emulator has, from where the part's ROM goes on: a core in unicorn, memory where the part
has some, registers that say they are ready, and a serial port. Start code, linker script and drivers are the real ones.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from nnbuild.board.board import Board
from nnbuild.board.clocks import clocks_of
from nnbuild.board.tables import find
from nnbuild.device.link import Link
from nnbuild.device.session import open_model, run_samples
from nnbuild.device.transport import Transport
from nnbuild.jobs.job import Place, build_program, samples_for
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.jobs.program_files import descriptor_of
from nnbuild.ops import interpret
from tests.boards.conftest import needs_tools
from tests.frontend.keras_files import h5_bytes, put, small

REGISTERS = ((0x4000_0000, 0x0020_0000), (0x6000_0000, 0x0010_0000), (0xE000_0000, 0x0010_0000))
PAGE = 4096
SLEEP = bytes.fromhex("bff34f8f30bf")
"""DSB and WFI: the port is looked at without an interrupt here."""
AT_ONCE = 100_000
"""Instructions between two looks at the line."""
RP2350 = {
    0x4002_0008: 0xFFFF_FFFF, 0x4004_8004: 1 << 31, 0x4001_0038: 1 << 2, 0x4001_0044: 1 << 1, 0x4005_0000: 1 << 31,
    0x400D_000C: 0x4000_0003,
}  # fmt: skip
READY: Mapping[str, Mapping[int, int]] = {
    "pico2": RP2350,
    "pico2-riscv": RP2350,
    "lpcxpresso55s69": {0x4003_4FE0: 1 << 2},
    "esp32c3-devkitm": {},
    "esp32c6-devkitc": {0x6009_6110: 1 << 16},
}
"""What registers say while a part starts: that it is ready, and what its ROM has left."""


class Port:
    """A serial port by its registers: where a byte is written and read, and what its status says."""

    def __init__(self, data: int, read: int, status: Mapping[int, Callable[[bool], int]]) -> None:
        self.data, self.read, self.status = data, read, status


PORTS = {
    "pl011": Port(0, 0, {0x18: lambda there: 0 if there else 1 << 4}),
    "flexcomm": Port(0xE20, 0xE30, {0xE04: lambda there: 0x30 | there << 6, 0x08: lambda there: 1 << 3}),
    "esp32": Port(0, 0, {0x1C: lambda there: int(there), 0x6C: lambda there: 0, 0x70: lambda there: 0}),
}


def blocks_entry(image: bytes, base: int) -> tuple[str, int, int]:
    """What an RP2350's ROM takes from the block in the first 4 KB: the cores, the first instruction and the stack.
    RP2350 data sheet, 5.9."""
    at = next(at for at in range(0, 4096, 4) if image[at : at + 4] == b"\xd3\xde\xff\xff")
    first, words, places = at + 4, 0, {}
    while image[first + 4 * words] != 0xFF:
        kind, size = image[first + 4 * words], image[first + 4 * words + 1]
        places[kind] = struct.unpack_from(f"<{size}I", image, first + 4 * words)
        words += size
    last, link, end = struct.unpack_from("<III", image, first + 4 * words)
    assert (last, link, end) == (words << 8 | 0xFF, 0, 0xAB12_3579)
    flags = places[0x42][0] >> 16
    assert next(iter(places)) == 0x42 and flags & 15 == 1 and flags >> 12 == 1, "an executable of an RP2350"
    if flags >> 8 & 7 == 1:
        return "riscv", places[0x44][1], places[0x44][2]
    assert flags >> 4 & 3 == 2, "secure"
    stack, start = struct.unpack_from("<II", image, places[0x03][1] - base)
    return "arm", start, stack


class FromRom(Transport):
    """A board from the moment its ROM is done."""

    def __init__(self, board: Board, program: Path, ready: Mapping[int, int]) -> None:
        unicorn: Any = pytest.importorskip("unicorn")
        assert board.firmware is not None
        self.written: dict[int, int] = {}
        self._registers = dict(ready)
        self._port = PORTS[board.firmware.uart]
        self._base = board.firmware.defines["NN_UART_BASE"]
        self._arrived: deque[int] = deque()
        self._sent = bytearray()
        self._passed = 0.0
        flash = board.memory("flash")
        with program.open("rb") as file:
            pieces = [(s["p_paddr"], s.data()) for s in ELFFile(file).iter_segments("PT_LOAD") if s["p_filesz"]]
        size = max(at + len(data) for at, data in pieces) - flash.origin
        image = bytearray(-(-size // PAGE) * PAGE)
        for at, data in pieces:
            image[at - flash.origin : at - flash.origin + len(data)] = data
        if board.firmware.soc.startswith("esp32"):
            assert image[:8] == bytes.fromhex("1d04dbae1d04dbae"), "what direct boot looks for"
            cores, start, stack = "riscv", flash.origin + 8, 0
        elif board.firmware.soc == "rp2350":
            cores, start, stack = blocks_entry(image, flash.origin)
        else:
            cores, (stack, start) = "arm", struct.unpack_from("<II", image)
        self.cores = cores
        if cores == "arm":
            consts: Any = pytest.importorskip("unicorn.arm_const")
            self._cpu = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
            self._cpu.ctl_set_cpu_model(consts.UC_CPU_ARM_CORTEX_M33)
            self._pc, stacks = consts.UC_ARM_REG_PC, consts.UC_ARM_REG_SP
            image = image.replace(SLEEP, SLEEP[:4] + bytes.fromhex("00bf"))
        else:
            consts = pytest.importorskip("unicorn.riscv_const")
            self._cpu = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32)
            self._pc, stacks = consts.UC_RISCV_REG_PC, consts.UC_RISCV_REG_SP
            without_own_counters(image)
        for origin in {flash.origin, flash.data or flash.origin}:
            self._cpu.mem_map(origin, len(image), unicorn.UC_PROT_READ | unicorn.UC_PROT_EXEC)
            self._cpu.mem_write(origin, bytes(image))
        ram = board.memory("ram")
        self._cpu.mem_map(ram.origin, ram.length)
        self._cpu.mem_write(ram.origin, b"\xaa" * ram.length)
        for origin, length in REGISTERS:
            self._cpu.mmio_map(origin, length, self._read, origin, self._write, origin)
        self._cpu.reg_write(stacks, stack)
        self._thumb = start & 1
        self._cpu.reg_write(self._pc, start)

    def _read(self, cpu: Any, offset: int, size: int, origin: int) -> int:
        at = origin + offset - self._base
        if at in self._port.status:
            return self._port.status[at](bool(self._arrived))
        if at == self._port.read:
            return self._arrived.popleft() if self._arrived else 0
        return self._registers.get(origin + offset, 0)

    def _write(self, cpu: Any, offset: int, size: int, value: int, origin: int) -> None:
        if origin + offset == self._base + self._port.data:
            self._sent.append(value & 0xFF)
        self.written[origin + offset] = value

    def write(self, data: bytes) -> None:
        self._arrived.extend(data)

    def read(self, timeout: float) -> bytes:
        for _ in range(50):
            self._cpu.emu_start(self._cpu.reg_read(self._pc) | self._thumb, 0, count=AT_ONCE)
            if self._sent and not self._arrived:
                break
        self._passed += 0.0 if self._sent else 1.0
        sent, self._sent = bytes(self._sent), bytearray()
        return sent

    def close(self) -> None:
        self._cpu.emu_stop()

    def now(self) -> float:
        return self._passed


def without_own_counters(image: bytearray) -> None:
    """Registers of Espressif's own, and one that unicorn has not: not written, and read from the common counter."""
    for at in range(0, len(image) - 4, 2):
        word = int.from_bytes(image[at : at + 4], "little")
        number = word >> 20
        if word & 0x7F == 0x73 and number in (0x320, 0x7E0, 0x7E1):
            image[at : at + 4] = (0x13).to_bytes(4, "little")
        elif word & 0x7F == 0x73 and number == 0x7E2:
            image[at : at + 4] = (word & 0xFFFFF | 0xB00 << 20).to_bytes(4, "little")


@pytest.mark.turns(2)
@pytest.mark.emulator
@pytest.mark.parametrize("name", READY)
def test_a_program_runs_from_where_the_rom_goes_on(tmp_path: Path, name: str) -> None:
    board = find(name)
    needs_tools(board)
    model = put(tmp_path / "small.h5", h5_bytes(*small()))
    compiled = compile_model(Options(model, name, "int8"))
    program = build_program(compiled, Place(tmp_path / "built"))
    samples = samples_for(compiled, None)
    with FromRom(board, program, READY[name]) as transport:
        link = Link(transport)
        info = open_model(link, descriptor_of(compiled))
        assert board.firmware is not None and link.greeting is not None
        clocks = clocks_of(board.firmware.soc, board.firmware.defines)
        assert clocks is not None and (link.greeting.hertz, link.greeting.unit) == (clocks.cpu, "cycles")
        runs = run_samples(link, info, list(samples)[:2])
    wanted = interpret.run(compiled.graph, {key: value[:2] for key, value in samples.inputs.items()}, "float64")
    for output, values in zip(compiled.graph.outputs, runs.raw, strict=True):
        np.testing.assert_array_equal(values, wanted[output])
    if name == "esp32c6-devkitc":
        with FromRom(board, program, {}) as transport:  # its PLL off
            assert Link(transport).hello().hertz == 40_000_000
