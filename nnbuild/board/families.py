"""Properties shared by the parts of a family, and what contradicts them in a board's table: families/*.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from nnbuild.board.board import Firmware
from nnbuild.board.clocks import FAMILIES as START_CODES

FOLDER = Path(__file__).with_name("families")
PIN = re.compile(r"(?:P([A-K]))?(\d+)(?::(\d+))?")


@dataclass(frozen=True)
class Family:
    """soc, uarts, timers: the parts of firmware/ that support it. numbers: what its start code requires, one value or
    one of several; ranges: limits of numbers. factors: PLL factors and their register bits. ports: the serial ports
    that its start code can enable, each with its own numbers and the pins it may send and receive on: port, pin and
    alternate function, as in PA2:7. boost: the number that requests more voltage."""

    soc: str
    uarts: tuple[str, ...]
    timers: tuple[str, ...] = ()
    openocd: str | None = None
    boost: str | None = None
    pll: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)
    factors: Mapping[str, int] = field(default_factory=dict)
    ports: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@cache
def families() -> Mapping[str, Family]:
    tables = {file.stem: tomllib.loads(file.read_text("utf-8")) for file in sorted(FOLDER.glob("*.toml"))}
    return {name: Family(**table) for name, table in tables.items()}


def candidates(family: str | None, firmware: Firmware) -> tuple[Family, ...]:
    """The family of a known part; otherwise those of its start code that match the numbers, or all of them."""
    if family is not None:
        return (families()[family],)
    all_of_it = [each for each in families().values() if each.soc == firmware.soc]
    return tuple(each for each in all_of_it if _fits(each, firmware.defines)) or tuple(all_of_it)


def _fits(family: Family, numbers: Mapping[str, int]) -> bool:
    wanted = {name: right if isinstance(right, list) else [right] for name, right in family.numbers.items()}
    return all(numbers[name] in right for name, right in wanted.items() if name in numbers)


def family_conflicts(family: Family, firmware: Firmware, of_part: Mapping[str, Any]) -> Iterator[str]:
    """Conflicts with the family, and with the part's own numbers."""
    if firmware.soc != family.soc and firmware.soc in START_CODES:
        yield f"[firmware] soc = {firmware.soc!r}, but the part is started by {family.soc!r}."
        return
    for name, chosen, known in (("uart", firmware.uart, family.uarts), ("timer", firmware.timer, family.timers)):
        ours = {each for other in families().values() for each in (other.uarts if name == "uart" else other.timers)}
        if chosen in ours and chosen not in known:
            has = " or ".join(map(repr, known)) or "none to be named"
            yield f"[firmware] {name} = {chosen!r}, but the part has {has}."
    numbers = firmware.defines
    for name, right in {**family.numbers, **of_part}.items():
        allowed = right if isinstance(right, list) else [right]
        if name in numbers and numbers[name] not in allowed:
            yield f"{name} = {_shown(name, numbers[name])}, but the part's is {_any(name, allowed)}."
    for name, (low, high) in family.ranges.items():
        if name in numbers and not low <= numbers[name] <= high:
            yield f"{name} = {numbers[name]}; it goes from {low} to {high}."
    yield from _factor(family, numbers)
    if "NN_UART_BASE" in numbers:
        yield from _port(family, firmware, numbers)


def _factor(family: Family, numbers: Mapping[str, int]) -> Iterator[str]:
    times, bits = numbers.get("NN_PLL_TIMES"), numbers.get("NN_PLL_BITS")
    if not family.factors or times is None or bits is None:
        return
    right = family.factors.get(str(times))
    if right is None:
        known = ", ".join(name for name in family.factors if name != "mask")
        yield f"NN_PLL_TIMES = {times} is not a factor of the part's PLL, which has {known}."
    elif bits & family.factors["mask"] != right:
        yield f"NN_PLL_BITS = {bits:#x} does not stand for times {times}: that is {right:#x}."


def _port(family: Family, firmware: Firmware, numbers: Mapping[str, int]) -> Iterator[str]:
    base = numbers["NN_UART_BASE"]
    found = [(name, port) for name, port in family.ports.items() if port["NN_UART_BASE"] == base]
    if not found:
        known = ", ".join(f"{name} at {port['NN_UART_BASE']:#x}" for name, port in family.ports.items())
        yield f"NN_UART_BASE = {base:#x} is not a serial port that its start code turns on, which are {known}."
        return
    name, port = found[0]
    for word, right in port.items():
        if not word.startswith("NN_"):
            continue
        if word not in numbers:
            # F4 and F1 have no such scale, and ports without interrupts are polled.
            if word != "NN_UART_IRQ" or firmware.architecture == "cortex_m":
                yield f"[firmware.defines] does not say {word}, which is {_shown(word, right)} for {name}."
        elif numbers[word] != right:
            yield f"{word} = {_shown(word, numbers[word])}, but that of {name} is {_shown(word, right)}."
    for way, word in (("send", "NN_UART_TX_PIN"), ("receive", "NN_UART_RX_PIN")):
        pins = port.get("tx" if way == "send" else "rx", ())
        if pins and word in numbers and not any(_is(pin, numbers, word) for pin in pins):
            yield f"{name} cannot {way} by {_pin(pins[0], numbers, word)}: take {_list(pins)}."


def _is(pin: str, numbers: Mapping[str, int], word: str) -> bool:
    letter, number, function = _parts(pin)
    return (
        numbers[word] == number
        and (letter is None or numbers.get("NN_UART_PORT") == letter)
        and (function is None or numbers.get("NN_UART_AF") == function)
    )


def _parts(pin: str) -> tuple[int | None, int, int | None]:
    found = PIN.fullmatch(pin)
    assert found is not None, pin
    letter, number, function = found.groups()
    return (
        ord(letter) - ord("A") if letter is not None else None,
        int(number),
        int(function) if function is not None else None,
    )


def _pin(like: str, numbers: Mapping[str, int], word: str) -> str:
    """The board's pin, in the notation of its family's table."""
    letter, _, function = _parts(like)
    port = numbers.get("NN_UART_PORT", 0)
    text = f"P{chr(ord('A') + port)}{numbers[word]}" if letter is not None else f"pin {numbers[word]}"
    return text if function is None else f"{text} with NN_UART_AF = {numbers.get('NN_UART_AF')}"


def _list(pins: list[str]) -> str:
    shown = []
    for pin in pins:
        _, _, function = _parts(pin)
        shown.append(pin if function is None else f"{pin.split(':')[0]} with {function}")
    return " or ".join(shown)


def _any(name: str, allowed: list[int]) -> str:
    return " or ".join(_shown(name, each) for each in allowed)


def _shown(name: str, value: int) -> str:
    """Addresses and masks in hexadecimal."""
    return f"{value:#x}" if value > 0xFFFF and not name.endswith("HERTZ") else str(value)
