"""The clocks that each family's start code sets up: firmware/soc/<family>/nn_soc.c in numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nnbuild.board.board import Board

MEGA = 1_000_000


@dataclass(frozen=True)
class Clocks:
    """Frequencies in hertz of the processor, the serial port's input and the two peripheral buses; of the PLL's input
    and its oscillator, if any; the wait states that the start code sets, and the frequency of the bus that they count,
    where that is not the processor's."""

    cpu: int
    uart: int
    apb1: int
    apb2: int
    pll: int | None = None
    vco: int | None = None
    waits: int | None = None
    flash: int | None = None


def _stm32f4(numbers: Mapping[str, int]) -> Clocks:
    """16 MHz / 16 into the PLL, times N, / 2."""
    vco = MEGA * numbers["NN_PLL_N"]
    cpu = vco // 2
    apb1, apb2 = cpu // 4, cpu // 2
    uart = apb2 if numbers["NN_UART_ON_APB2"] else apb1
    return Clocks(cpu, uart, apb1, apb2, MEGA, vco, numbers["NN_FLASH_WAITS"])


def _stm32f1(numbers: Mapping[str, int]) -> Clocks:
    """8 MHz, or half of it, times N; processor and buses are divided as the bits say."""
    pll = 8 * MEGA // numbers["NN_PLL_DIVIDER"] * numbers["NN_PLL_TIMES"]
    bits = numbers["NN_PLL_BITS"]
    cpu = pll // (2 << (bits >> 4 & 7) if bits >> 7 & 1 else 1)
    first, second = (cpu // (2 << (bits >> at & 3) if bits >> at + 2 & 1 else 1) for at in (8, 11))
    return Clocks(cpu, second, first, second)


def _stm32l4(numbers: Mapping[str, int]) -> Clocks:
    """16 MHz / M into the PLL, times N, / 2; no bus is divided."""
    pll = 16 * MEGA // numbers["NN_PLL_M"]
    vco = pll * numbers["NN_PLL_N"]
    cpu = vco // 2
    return Clocks(cpu, cpu, cpu, cpu, pll, vco, numbers["NN_FLASH_WAITS"])


def _stm32u5(numbers: Mapping[str, int]) -> Clocks:
    """16 MHz into the PLL, times N, / 2; no bus is divided."""
    vco = 16 * MEGA * numbers["NN_PLL_N"]
    cpu = vco // 2
    return Clocks(cpu, cpu, cpu, cpu, 16 * MEGA, vco, numbers["NN_FLASH_WAITS"])


def _stm32h7(numbers: Mapping[str, int]) -> Clocks:
    """64 MHz / M into the PLL, times N, / 2; buses at that or half of it, peripheral buses at half of that. Flash wait
    states count bus cycles."""
    pll = 64 * MEGA // numbers["NN_PLL_M"]
    vco = pll * numbers["NN_PLL_N"]
    cpu = vco // 2
    bus = cpu // 2 if numbers["NN_BUS_HALVED"] else cpu
    return Clocks(cpu, bus // 2, bus // 2, bus // 2, pll, vco, numbers["NN_FLASH_WAITS"], bus)


def _fixed(numbers: Mapping[str, int]) -> Clocks:
    cpu, uart = numbers["NN_CPU_HERTZ"], numbers["NN_UART_HERTZ"]
    return Clocks(cpu, uart, uart, uart)


def _rp(numbers: Mapping[str, int], divider: int) -> Clocks:
    """12 MHz times N, divided by two dividers."""
    vco = 12 * MEGA * numbers["NN_PLL_N"]
    cpu = vco // divider
    return Clocks(cpu, cpu, cpu, cpu, 12 * MEGA, vco)


def _esp32(numbers: Mapping[str, int]) -> Clocks:
    """480 MHz / 3 or / 6; the serial port is fed by the 40 MHz crystal."""
    return Clocks(480 * MEGA // numbers["NN_PLL_DIVIDER"], 40 * MEGA, 80 * MEGA, 80 * MEGA)


def _samd51(numbers: Mapping[str, int]) -> Clocks:
    """1 MHz times N."""
    cpu = MEGA * numbers["NN_PLL_N"]
    return Clocks(cpu, 48 * MEGA, cpu, cpu, MEGA, cpu)


FAMILIES: Mapping[str, Callable[[Mapping[str, int]], Clocks]] = {
    "esp32c3": _esp32,
    "esp32c6": _esp32,
    "fixed": _fixed,
    "lpc55s69": lambda numbers: Clocks(*4 * (96 * MEGA,), waits=numbers["NN_FLASH_WAITS"]),
    "nrf51": lambda numbers: Clocks(numbers["NN_CPU_HERTZ"], 16 * MEGA, 16 * MEGA, 16 * MEGA),
    "rp2040": lambda numbers: _rp(numbers, 12),
    "rp2350": lambda numbers: _rp(numbers, 10),
    "samd51": _samd51,
    "stm32f1": _stm32f1,
    "stm32f4": _stm32f4,
    "stm32h7": _stm32h7,
    "stm32l4": _stm32l4,
    "stm32u5": _stm32u5,
}


def clocks_of(family: str, numbers: Mapping[str, int]) -> Clocks | None:
    """None for a user's own start code. A missing number raises KeyError."""
    made = FAMILIES.get(family)
    return made(numbers) if made is not None else None


def clock_of(board: Board) -> int:
    """Processor frequency of a board with firmware; 0 where unknown."""
    if board.firmware is None:
        return 0
    made = clocks_of(board.firmware.soc, board.firmware.defines)
    return made.cpu if made is not None else 0
