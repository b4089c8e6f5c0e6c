"""The stack frames of RISC-V functions that save vectors, which clang's .stack_sizes leave out.

Their size depends on the processor's vector registers. Where the compiler is told how long these are, it makes room by
a second constant. Nor does .stack_sizes count what is lost where the stack pointer is rounded down.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

LONGEST_REGISTER = 65_536 // 8
"""Bytes of the longest vector registers that the architecture allows."""
_SCALED = re.compile(r"(?:c\.)?sub sp, sp, ")
_READ_LENGTH = re.compile(r"csrr (\w+), (?:vlenb|0xc22|3106)$")
_OPERATION = re.compile(r"(?:c\.)?(\w+) (\w+)(?:, (-?\w+))?(?:, (-?\w+))?$")
_DESTINATION = re.compile(r"\S+ (\w+)")
_CALL = re.compile(r"(?:c\.)?(?:jal|jalr|call)\b")
_ADDED = re.compile(r"sh([123])add")
Size = tuple[int, int]
"""Bytes, and vector registers."""


def saves_vectors(lines: Sequence[str]) -> bool:
    """Whether a function's instructions make room for vector registers of a length that only the processor knows."""
    return any(_SCALED.match(line) for line in lines) and any(_READ_LENGTH.match(line) for line in lines)


def frame_of(lines: Iterable[str]) -> Size | None:
    """The most by which a function's instructions lower the stack pointer; None where they do not say."""
    known: dict[str, Size] = {"zero": (0, 0)}
    fixed = registers = 0
    for line in lines:
        if length := _READ_LENGTH.match(line):
            known[length[1]] = (0, 1)
            continue
        found = _OPERATION.match(line)
        if found is None or _CALL.match(line):
            _forget(known, line)
            continue
        name, to = found[1], found[2]
        operands = [each for each in found.groups()[2:] if each is not None]
        if to == "sp":
            lowered = _lowered(name, operands, known)
            if lowered is None:
                return None
            fixed, registers = fixed + lowered[0], registers + lowered[1]
            continue
        value = _value(name, to, operands, known)
        known.pop(to, None)
        if value is not None:
            known[to] = value
    return fixed, registers


def _forget(known: dict[str, Size], line: str) -> None:
    """What an instruction that is not followed may change: its first operand, and by a call any register."""
    if _CALL.match(line):
        known.clear()
        known["zero"] = (0, 0)
    elif found := _DESTINATION.match(line):
        known.pop(found[1], None)


def _lowered(name: str, operands: list[str], known: dict[str, Size]) -> Size | None:
    """By how much an instruction on the stack pointer lowers it; nothing where it raises or restores it."""
    first, by = operands if len(operands) == 2 else ("sp", operands[0])
    if first != "sp":  # from the frame pointer, at the end
        return (0, 0) if name in ("addi", "sub", "add") else None
    if name in ("addi", "addi16sp", "andi"):  # rounded down to a multiple, it falls by less than that
        return max(0, -int(by, 0)), 0
    size = known.get(by)
    if size is None or name not in ("add", "sub"):
        return None
    sign = 1 if name == "sub" else -1
    return max(0, sign * size[0]), max(0, sign * size[1])


def _value(name: str, to: str, operands: list[str], known: dict[str, Size]) -> Size | None:
    """What a register holds afterwards, where that can be told."""
    if name == "li":
        return int(operands[0], 0), 0
    if name == "lui":
        upper = int(operands[0], 0) << 12
        return (upper - (1 << 32) if upper >= 1 << 31 else upper), 0
    sources = operands if len(operands) == 2 else [to, *operands]
    first = known.get(sources[0])
    if name == "mv":
        return known.get(operands[0])
    if first is None or len(sources) < 2:
        return None
    if name in ("addi", "addiw"):
        return first[0] + int(sources[1], 0), first[1]
    if name == "slli":
        return first[0] << int(sources[1], 0), first[1] << int(sources[1], 0)
    second = known.get(sources[1])
    if second is None:
        return None
    if name == "mul":
        (factor, none), (size, some) = sorted((first, second), key=lambda each: each[1])
        return (size * factor, some * factor) if none == 0 else None
    shifted = _ADDED.match(name)
    shift = int(shifted[1]) if shifted else 0
    sign = -1 if name in ("sub", "subw") else 1
    if shifted or name in ("add", "addw", "sub", "subw"):
        return (first[0] << shift) + sign * second[0], (first[1] << shift) + sign * second[1]
    return None
