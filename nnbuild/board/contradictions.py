"""What in a board's table cannot be true at once: its clocks, its serial port, its memories, its part."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nnbuild.board.board import FARTHEST_OFF, Board, Firmware, Memory
from nnbuild.board.clocks import Clocks, clocks_of

PARTS = Path(__file__).with_name("parts.toml")
UART_SCALES = {"ns16550": (1, 16), "pl011": (4, 1), "flexcomm": (1, 16), "esp32": (16, 1)}
"""The divider of a serial port counts in other units than its clock."""


@dataclass(frozen=True)
class Part:
    """A chip, as its maker describes it. One that starts by either of two kinds of core has both."""

    core: str
    hertz: int
    apb1: int
    apb2: int
    memory: Mapping[str, tuple[int, int]]
    hertz_a_wait: int = 0
    boost_over: int = 0
    chip: int | None = None
    voltages: tuple[int, ...] = ()
    voltage: int = 0


@dataclass(frozen=True)
class Port:
    """A serial port of a family: its interrupt, the bus it hangs on, the bit that turns it on."""

    name: str
    interrupt: int
    on_apb2: bool
    bit: int


STM32F4_PORTS = {
    0x40011000: Port("USART1", 37, True, 4),
    0x40011400: Port("USART6", 71, True, 5),
    0x40004400: Port("USART2", 38, False, 17),
    0x40004800: Port("USART3", 39, False, 18),
    0x40004C00: Port("UART4", 52, False, 19),
    0x40005000: Port("UART5", 53, False, 20),
}


@cache
def parts() -> Mapping[str, Part]:
    return {name: Part(**table) for name, table in tomllib.loads(PARTS.read_text("utf-8")).items()}


def contradictions(board: Board) -> tuple[str, ...]:
    """Sentences, the gravest first; none of a board that is not bare."""
    if board.firmware is None:
        return ()
    return tuple(_all(board, board.firmware))


def _all(board: Board, firmware: Firmware) -> Iterator[str]:
    part = None
    named = board.table.get("part")
    if named is not None:
        part = parts().get(named)
        if part is None:
            yield f"part = {named!r} is none of those known: {', '.join(parts())}."
    try:
        clocks = clocks_of(firmware.soc, firmware.defines)
    except KeyError as missing:
        yield f"[firmware.defines] does not say {missing}, which the start code of {firmware.soc} asks for."
        clocks = None
    except ZeroDivisionError:
        zeros = " or ".join(name for name, value in firmware.defines.items() if value == 0)
        yield f"the start code of {firmware.soc} divides by one of its [firmware.defines] that is 0: {zeros}."
        clocks = None
    if clocks is not None:
        yield from _clocks(board, firmware, clocks, part)
    yield from _serial(board, firmware)
    yield from _memories(board, firmware, part)
    if part is not None:
        yield from _part(board, part)


def _clocks(board: Board, firmware: Firmware, clocks: Clocks, part: Part | None) -> Iterator[str]:
    if clocks.vco is not None and not clocks.vco_range[0] <= clocks.vco <= clocks.vco_range[1]:
        low, high = clocks.vco_range
        yield f"its PLL would run at {_mega(clocks.vco)}; it must stay from {_mega(low)} to {_mega(high)}."
    over, under = UART_SCALES.get(firmware.uart, (firmware.defines.get("NN_UART_BRR_SCALE", 1), 1))
    feeds = clocks.uart * over / under
    rates = board.rates
    # A table that gives a step says of what it is one; one that gives a clock says the clock.
    if rates is not None and rates.hertz != feeds:
        off = 100 * abs(feeds / rates.hertz - 1)
        yield (
            f"[serial] clock = {rates.hertz:_.0f}, but its start code feeds the port with {feeds:_.0f}: every rate "
            f"would be off by {off:.0f} %."
        )
    if board.emulator is None:  # an emulated machine may have another clock than it says
        told = re.search(r"(\d+) MHz", board.summary)
        if told is not None and int(told[1]) * 1_000_000 != clocks.cpu:
            yield f"its summary says {told[0]}, its clocks make {_mega(clocks.cpu)}."
    if clocks.waits is not None and board.flash_speed.wait not in (0, clocks.waits):
        yield f"[flash.speed] wait = {board.flash_speed.wait}, but its start code sets {clocks.waits} wait states."
    if part is None:
        return
    for name, hertz, most in (
        ("the processor", clocks.cpu, part.hertz),
        ("the first peripheral bus", clocks.apb1, part.apb1),
        ("the second peripheral bus", clocks.apb2, part.apb2),
    ):
        if hertz > most:
            yield f"{name} would run at {_mega(hertz)}; the part bears {_mega(most)}."
    boosted = bool(firmware.defines.get("NN_OVERDRIVE", 0))
    if boosted and not part.boost_over:
        yield "NN_OVERDRIVE = 1, but the part has no over-drive."
    if part.boost_over and clocks.cpu > part.boost_over and not boosted:
        yield f"{_mega(clocks.cpu)} needs NN_OVERDRIVE = 1: the part's voltage bears {_mega(part.boost_over)} without."
    if part.voltages:
        scale = firmware.defines.get("NN_VOLTAGE_SCALE", part.voltage)
        most = part.voltages[scale - 1] if 1 <= scale <= len(part.voltages) else 0
        if clocks.cpu > most:
            yield f"{_mega(clocks.cpu)} needs more than the voltage scale {scale}, which bears {_mega(most)}."
    if part.hertz_a_wait and clocks.waits is not None:
        needed = -(-clocks.cpu // part.hertz_a_wait) - 1
        if clocks.waits < needed:
            yield f"its flash needs {needed} wait states at {_mega(clocks.cpu)}, NN_FLASH_WAITS is {clocks.waits}."


def _serial(board: Board, firmware: Firmware) -> Iterator[str]:
    rates, numbers = board.rates, firmware.defines
    if rates is None:
        yield "[serial] does not say the port's clock."
    elif not rates.makes(board.baud):
        found = rates.nearest(board.baud)
        off = f"{100 * abs(found / board.baud - 1):.1f} % off, where {100 * FARTHEST_OFF:g} are borne"
        yield f"baud = {board.baud:_}, but the port makes {found:_.0f}: {off}."
    if firmware.soc == "stm32f4" and "NN_UART_BASE" in numbers:
        port = STM32F4_PORTS.get(numbers["NN_UART_BASE"])
        if port is None:
            yield f"NN_UART_BASE = {numbers['NN_UART_BASE']:#x} is no serial port of the family."
        else:
            wanted = {
                "NN_UART_IRQ": port.interrupt, "NN_UART_ON_APB2": int(port.on_apb2), "NN_UART_ENABLE_BIT": port.bit,
            }  # fmt: skip
            for name, value in wanted.items():
                if numbers.get(name) != value:
                    yield f"{name} = {numbers.get(name)}, but that of {port.name} is {value}."
    pins = [numbers.get(name) for name in ("NN_UART_TX_PIN", "NN_UART_RX_PIN")]
    if pins[0] is not None and pins[0] == pins[1]:
        yield f"the serial port sends and receives on one pin, {pins[0]}."
    if firmware.soc.startswith("stm32"):
        for name in ("NN_UART_TX_PIN", "NN_UART_RX_PIN", "NN_UART_AF"):
            if not 0 <= numbers.get(name, 0) <= 15:
                yield f"{name} = {numbers[name]}; they go from 0 to 15."


def _memories(board: Board, firmware: Firmware, part: Part | None) -> Iterator[str]:
    memories = {memory.name: memory for memory in board.memories}
    for name in ("flash", "ram", *firmware.context_memory):
        if name not in memories:
            yield f"[memory] has no {name!r}."
    for memory in board.memories:
        for other in board.memories:
            if memory.name < other.name and _overlap(memory, other):
                yield f"its memories {memory.name!r} and {other.name!r} overlap."
        if part is not None and not any(_within(memory, where) for where in part.memory.values()):
            has = ", ".join(f"{size:,} at {at:#010x}" for at, size in part.memory.values())
            yield (
                f"its memory {memory.name!r}, {memory.length:,} bytes at {memory.origin:#010x}, is not in the part, "
                f"which has {has}."
            )
    pages = board.flash.pages if board.flash is not None else ()
    if pages and "flash" in memories and sum(pages) != memories["flash"].length:
        yield f"its flash has {memories['flash'].length:,} bytes, its pages {sum(pages):,}."
    ram = memories.get("ram")
    if (
        ram is not None
        and board.stack_budget is not None
        and board.stack_budget + firmware.link_payload * 2 > ram.length
    ):
        yield f"the stack and the link alone fill its RAM of {ram.length:,} bytes."


def _part(board: Board, part: Part) -> Iterator[str]:
    if board.core not in part.core.split(" or "):
        yield f"it is compiled for a {board.core}, the part is a {part.core}."
    if board.flash is not None and part.chip is not None and board.flash.chip != part.chip:
        yield f"[flash] chip = {board.flash.chip:#x}, but the part's bootloader answers {part.chip:#x}."


def _overlap(one: Memory, other: Memory) -> bool:
    return one.origin in other or other.origin in one


def _within(memory: Memory, where: tuple[int, int]) -> bool:
    origin, length = where
    return origin <= memory.origin and memory.origin + memory.length <= origin + length


def _mega(hertz: int) -> str:
    return f"{hertz / 1_000_000:g} MHz"
