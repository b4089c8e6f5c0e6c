"""Finds contradictions in a board's table: clocks, serial port, memories, part."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from nnbuild.board.board import MAX_RATE_ERROR, Board, Firmware, Memory
from nnbuild.board.clocks import Clocks, clocks_of
from nnbuild.board.families import Family, candidates, families, family_conflicts

PARTS = Path(__file__).with_name("parts.toml")


@dataclass(frozen=True)
class Divider:
    """How a serial port derives its rate: the prescale of its clock and the limits of its divider; or, for fractional
    ports, the step as a fraction of its clock."""

    over: int = 1
    under: int = 1
    least: int = 1
    most: int = 65_535
    step: int | None = None


DIVIDERS = {
    "cmsdk": Divider(least=16, most=1_048_575),
    "esp32": Divider(over=16, least=16),
    "flexcomm": Divider(under=16, most=65_536),
    "nrf51": Divider(step=1 << 20),
    "ns16550": Divider(under=16),
    "pl011": Divider(over=4, least=64, most=4_194_303),
    "sercom": Divider(step=1 << 20),
    "stm32_usart_v1": Divider(least=16),
    "stm32_usart_v2": Divider(least=16),
}
LPUART = Divider(over=256, least=768, most=1_048_575)


def _divider(firmware: Firmware) -> Divider:
    if firmware.defines.get("NN_UART_BRR_SCALE", 1) == LPUART.over:
        return LPUART
    return DIVIDERS.get(firmware.uart, Divider())


@dataclass(frozen=True)
class Part:
    """A chip, from its datasheet. One that can start with either of two kinds of core lists both."""

    family: str
    core: str
    hertz: int
    apb1: int
    apb2: int
    memory: Mapping[str, tuple[int, ...]]
    hertz_a_wait: int = 0
    unboosted_a_wait: int = 0
    boost_over: int = 0
    chip: int | None = None
    voltages: tuple[int, ...] = ()
    voltage: int = 0
    numbers: Mapping[str, Any] = field(default_factory=dict)
    pages: tuple[tuple[int, int], ...] = ()
    no_code: tuple[str, ...] = ()


@cache
def parts() -> Mapping[str, Part]:
    return {name: Part(**table) for name, table in tomllib.loads(PARTS.read_text("utf-8")).items()}


def contradictions(board: Board) -> tuple[str, ...]:
    """Contradictions as sentences, gravest first; none for boards without firmware."""
    if board.firmware is None:
        return ()
    return tuple(_all(board, board.firmware))


def _all(board: Board, firmware: Firmware) -> Iterator[str]:
    part = None
    named = board.table.get("part")
    if named is not None:
        part = parts().get(named)
        if part is None:
            yield f"part = {named!r} is not a known part: {', '.join(parts())}. Leave it out if yours is another."
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
    yield from _family(firmware, clocks, part)
    yield from _serial(board, firmware)
    yield from _memories(board, firmware, part)
    if part is not None:
        yield from _part(board, part)


def _family(firmware: Firmware, clocks: Clocks | None, part: Part | None) -> Iterator[str]:
    """What no family with the table's start code allows; if the part is known, only its family counts."""
    possible = candidates(part.family if part is not None else None, firmware)
    of_part = part.numbers if part is not None else {}
    found = [[*_pll(each, clocks), *family_conflicts(each, firmware, of_part)] for each in possible]
    if found:
        yield from (sentence for sentence in found[0] if all(sentence in other for other in found))


def _pll(family: Family, clocks: Clocks | None) -> Iterator[str]:
    for what, name in (("its PLL would run at", "vco"), ("its PLL would be fed by", "input")):
        made = None if clocks is None else clocks.vco if name == "vco" else clocks.pll
        low, high = family.pll.get(name, (0, 0))
        if made is not None and high and not low <= made <= high:
            yield f"{what} {_mega(made)}; it must stay from {_mega(low)} to {_mega(high)}."


def _clocks(board: Board, firmware: Firmware, clocks: Clocks, part: Part | None) -> Iterator[str]:
    divider = _divider(firmware)
    feeds = clocks.uart * divider.over / divider.under
    rates = board.rates
    # [serial] names the port's clock, in a table with a step too.
    if rates is not None and rates.hertz != feeds:
        off = 100 * abs(feeds / rates.hertz - 1)
        yield (
            f"[serial] clock = {rates.hertz:_.0f}, but its start code feeds the port with {feeds:_.0f}: every rate "
            f"would be off by {off:.0f} %."
        )
    if board.emulator is None:  # an emulated machine may have another clock than stated
        told = re.search(r"(\d+) MHz", board.summary)
        if told is not None and int(told[1]) * 1_000_000 != clocks.cpu:
            yield f"its summary says {told[0]}, its clocks make {_mega(clocks.cpu)}."
    told_cpu = firmware.defines.get("NN_CPU_HERTZ", clocks.cpu)
    if told_cpu != clocks.cpu:
        yield f"NN_CPU_HERTZ = {told_cpu:_}, its clocks make {_mega(clocks.cpu)}."
    if rates is not None and divider.step is not None and rates.step != rates.hertz / divider.step:
        yield f"[serial] step = {rates.step}, but the port counts {rates.hertz / divider.step!r} baud."
    waits_are_cycles = clocks.waits is not None and clocks.flash is None
    if waits_are_cycles and board.flash_speed.wait not in (0, clocks.waits):
        yield f"[flash.speed] wait = {board.flash_speed.wait}, but its start code sets {clocks.waits} wait states."
    if part is None:
        return
    for name, hertz, most in (
        ("the processor", clocks.cpu, part.hertz),
        ("the first peripheral bus", clocks.apb1, part.apb1),
        ("the second peripheral bus", clocks.apb2, part.apb2),
    ):
        if hertz > most:
            yield f"{name} would run at {_mega(hertz)}; the part allows {_mega(most)}."
    boosted = True
    word = families()[part.family].boost
    if word is not None:
        boosted = bool(firmware.defines.get(word, 0))
        if boosted and not part.boost_over:
            yield f"{word} = 1, but the part has no {'over-drive' if word == 'NN_OVERDRIVE' else 'boost'}."
        if part.boost_over and clocks.cpu > part.boost_over and not boosted:
            yield f"{_mega(clocks.cpu)} needs {word} = 1: the part's voltage allows {_mega(part.boost_over)} without."
    if part.voltages:
        scale = firmware.defines.get("NN_VOLTAGE_SCALE", part.voltage)
        most = part.voltages[scale - 1] if 1 <= scale <= len(part.voltages) else 0
        if clocks.cpu > most:
            yield f"{_mega(clocks.cpu)} needs more than the voltage scale {scale}, which allows {_mega(most)}."
    a_wait = part.hertz_a_wait if boosted or not part.unboosted_a_wait else part.unboosted_a_wait
    if a_wait and clocks.waits is not None:
        reads = clocks.flash or clocks.cpu
        needed = -(-reads // a_wait) - 1
        if clocks.waits < needed:
            yield f"its flash needs {needed} wait states at {_mega(reads)}, NN_FLASH_WAITS is {clocks.waits}."


def _serial(board: Board, firmware: Firmware) -> Iterator[str]:
    rates, numbers = board.rates, firmware.defines
    if rates is None:
        yield "[serial] does not say the port's clock."
    elif not rates.makes(board.baud):
        found = rates.nearest(board.baud)
        off = f"{100 * abs(found / board.baud - 1):.1f} % off, of at most {100 * MAX_RATE_ERROR:g} %"
        yield f"baud = {board.baud:_}, but the port makes {found:_.0f}: {off}."
    divider = _divider(firmware)
    if rates is not None and divider.step is None:
        if rates.least < divider.least:
            yield f"[serial] least = {rates.least}, but the port divides by {divider.least} at least."
        if rates.most > divider.most:
            yield f"[serial] most = {rates.most:_}, but the port divides by {divider.most:_} at most."
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
    yield from _code(board, part)
    for memory in board.memories:
        for other in board.memories:
            if memory.name < other.name and _overlap(memory, other):
                yield f"its memories {memory.name!r} and {other.name!r} overlap."
        if part is not None and not any(_within(memory, where) for where in part.memory.values()):
            has = ", ".join(f"{size:,} at {at:#010x}" for at, size, *_ in part.memory.values())
            yield (
                f"its memory {memory.name!r}, {memory.length:,} bytes at {memory.origin:#010x}, is not in the part, "
                f"which has {has}."
            )
        if part is not None and memory.data != (read_at := _data_of(memory, part)):
            step = "leave it out" if read_at is None else f"write data = {read_at:#x}"
            yield f"its memory {memory.name!r} is not read where its data says: {step}."
    guard = firmware.defines.get("NN_LOCKED_BEGIN", 0) + firmware.defines.get("NN_LOCKED_SIZE", 0)
    if guard and "ram" in memories and guard != memories["ram"].origin:
        yield f"the locked region below the RAM ends at {guard:#x}, the RAM begins at {memories['ram'].origin:#x}."
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


def _code(board: Board, part: Part | None) -> Iterator[str]:
    name = board.code_memory
    if name is None:
        return
    there = ", ".join(repr(memory.name) for memory in board.memories if memory.name != "flash")
    if name == "flash":
        yield "[memory] code = 'flash' is where code lies by default: leave it out."
    elif all(memory.name != name for memory in board.memories):
        yield f"[memory] code = {name!r}, but there is no such memory: use one of {there}."
    elif part is not None and name in part.no_code:
        yield f"[memory] code = {name!r}, from which the part executes nothing."
    if board.architecture != "cortex_m":
        yield f"[memory] code = {name!r} is for Cortex-M: leave it out."


def _part(board: Board, part: Part) -> Iterator[str]:
    if board.core not in part.core.split(" or "):
        yield f"it is compiled for a {board.core}, the part is a {part.core}."
    if board.flash is not None and part.chip is not None and board.flash.chip != part.chip:
        yield f"[flash] chip = {board.flash.chip:#x}, but the part's bootloader answers {part.chip:#x}."
    if board.flash is None:
        return
    pages = tuple(size for count, size in part.pages for _ in range(count))
    whole = next((memory.length for memory in board.memories if memory.name == "flash"), 0)
    if pages and board.flash.pages and sum(pages) == whole and board.flash.pages != pages:
        yield f"[flash] pages are not the part's, which are {[list(each) for each in part.pages]}."
    names = board.table["flash"].get("names", {})
    target = families()[part.family].openocd
    if target is not None and "openocd" in board.table["flash"]["tools"] and names.get("openocd", target) != target:
        yield f"[flash.names] openocd = {names['openocd']!r}, but the part's is {target!r}."
    called, asked = str(names.get("pyocd", "")), str(board.table["part"])[:9]
    if called and asked not in called:
        yield f"[flash.names] pyocd = {called!r} is another part than {board.table['part']!r}."


def _data_of(memory: Memory, part: Part) -> int | None:
    """The address at which the part reads data of this memory, if different."""
    return next((where[2] for where in part.memory.values() if len(where) > 2 and _within(memory, where)), None)


def _overlap(one: Memory, other: Memory) -> bool:
    return one.origin in other or other.origin in one


def _within(memory: Memory, where: tuple[int, ...]) -> bool:
    origin, length, *_ = where
    return origin <= memory.origin and memory.origin + memory.length <= origin + length


def _mega(hertz: int) -> str:
    return f"{hertz / 1_000_000:g} MHz"
