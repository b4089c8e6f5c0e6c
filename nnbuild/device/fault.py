"""Explains a device's fault report."""

from __future__ import annotations

import signal
import struct
from collections.abc import Mapping, Sequence

CORTEX_M, RISCV, SIGNAL, CORE = 1, 2, 3, 4

_NAMES: Mapping[int, tuple[str, ...]] = {
    CORTEX_M: ("r0", "r1", "r2", "r3", "r12", "lr", "pc", "xpsr", "cfsr", "hfsr", "mmfar", "bfar", "sp"),
    RISCV: ("mcause", "mepc", "mtval", "ra", "sp"),
    SIGNAL: ("signal",),
    CORE: ("core", "reason", "order"),
}

# Bits of the Configurable Fault Status Register (Armv7-M and Armv8-M Mainline).
_CFSR: Mapping[int, str] = {
    0: "instruction access refused by the MPU",
    1: "data access refused by the MPU",
    3: "MPU fault while returning from an exception",
    4: "MPU fault while entering an exception",
    5: "MPU fault while saving FPU registers",
    8: "bus error on an instruction fetch",
    9: "bus error on a data access",
    10: "bus error on an earlier data access",
    11: "bus error while returning from an exception",
    12: "bus error while entering an exception (stack overflow?)",
    13: "bus error while saving FPU registers",
    16: "undefined instruction",
    17: "invalid state (a jump to an even address?)",
    18: "invalid return from an exception",
    19: "coprocessor or FPU not enabled",
    20: "stack limit exceeded",
    24: "unaligned access",
    25: "division by zero",
}

_LOST: Mapping[int, str] = {
    1: "did not return within the time limit",
    2: "stopped with a fault",
    3: "did not start",
}

_MCAUSE: Mapping[int, str] = {
    0: "instruction address misaligned",
    1: "instruction access fault",
    2: "illegal instruction",
    4: "load address misaligned",
    5: "load access fault",
    6: "store address misaligned",
    7: "store access fault",
}


def explain_fault(report: bytes) -> str:
    """One paragraph about a fault: cause, place and registers."""
    words = struct.unpack(f"<{len(report) // 4}I", report[: len(report) // 4 * 4])
    if not words or words[0] not in _NAMES:
        return f"The processor stopped with a fault of an unknown kind ({report.hex()})."
    kind, registers = words[0], dict(zip(_NAMES[words[0]], words[1:], strict=False))
    if kind == SIGNAL:
        return f"The program stopped with {_signal_name(registers.get('signal', 0))}."
    if kind == CORE:
        return _lost_core(registers, words[4:])
    listing = ", ".join(f"{name} {value:#010x}" for name, value in registers.items())
    return f"The processor stopped with a fault: {_reason(kind, registers)}. Registers: {listing}."


def fault_next_step(report: bytes) -> str:
    """The user's next step after a fault."""
    if report[:4] == struct.pack("<I", SIGNAL):
        return "Build it with -fsanitize=address,undefined, or run it under a debugger."
    if report[:4] == struct.pack("<I", CORE):
        return "The next sequence restarts that core; if it fails again, use fewer cores with --cores."
    return "Look up the pc in the ELF with addr2line; the usual cause is a stack that is too small."


def _lost_core(told: Mapping[str, int], words: Sequence[int]) -> str:
    core, order = told.get("core", 0), told.get("order", 0)
    reason = _LOST.get(told.get("reason", 0), "was lost")
    registers = f" Its fault record: {', '.join(f'{word:#010x}' for word in words)}." if any(words) else ""
    return f"Core {core} {reason}, at order {order} since the start.{registers}"


def _signal_name(number: int) -> str:
    try:
        return f"{signal.Signals(number).name} ({signal.strsignal(number)})"
    except ValueError:
        return f"signal {number}"


def _reason(kind: int, registers: Mapping[str, int]) -> str:
    if kind == RISCV:
        cause = _MCAUSE.get(registers.get("mcause", 0), "trap")
        return f"{cause} at pc {registers.get('mepc', 0):#010x}"
    reasons = _bits(registers.get("cfsr", 0)) or ["hard fault"]
    place = f"at pc {registers.get('pc', 0):#010x}"
    address = registers.get("bfar", 0) if registers.get("cfsr", 0) & 1 << 15 else None
    if registers.get("cfsr", 0) & 1 << 7:
        address = registers.get("mmfar", 0)
    return f"{', '.join(reasons)} {place}" + (f", address {address:#010x}" if address is not None else "")


def _bits(cfsr: int) -> Sequence[str]:
    return [text for bit, text in _CFSR.items() if cfsr >> bit & 1]
