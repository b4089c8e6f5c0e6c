"""Addends that REL entries leave in the code, and the names of relocation types."""

from __future__ import annotations

import struct

import pytest

from nnbuild.audit.relocations import implicit_addend, type_name


@pytest.mark.parametrize(
    ("high", "low", "offset"),
    [
        (0xF7FF, 0xFFFE, -4),
        (0xF000, 0xF800, 0),
        (0xF000, 0xF801, 2),
        (0xF001, 0xF800, 0x1000),
        (0xF000, 0xF000, 0x400000),
        (0xF000, 0xD800, 0x800000),
        (0xF400, 0xF800, -0x400000),
        (0xF400, 0xD000, -0x1000000),
    ],
)
@pytest.mark.parametrize("kind", ["R_ARM_THM_CALL", "R_ARM_THM_JUMP24"])
def test_thumb_branches(kind: str, high: int, low: int, offset: int) -> None:
    assert implicit_addend(kind, struct.pack("<2xHH", high, low), 2, True) == offset
    assert implicit_addend(kind, struct.pack(">2xHH", high, low), 2, False) == offset


@pytest.mark.parametrize(
    ("kind", "word", "addend"),
    [
        ("R_ARM_CALL", 0xEBFFFFFE, -8),
        ("R_ARM_JUMP24", 0xEA000002, 8),
        ("R_ARM_PREL31", 0x7FFFFFFC, -4),
        ("R_ARM_PREL31", 0x80000010, 16),
        ("R_ARM_ABS32", 0xFFFFFFFF, -1),
        ("R_ARM_TARGET1", 0x40, 0x40),
        ("R_386_PC32", 0xFFFFFFFC, -4),
        ("R_ARM_MOVW_ABS_NC", 0xE3000000, 0),
    ],
)
def test_other_addends(kind: str, word: int, addend: int) -> None:
    assert implicit_addend(kind, struct.pack("<I", word), 0, True) == addend


def test_an_addend_past_the_end_of_its_section_is_none() -> None:
    assert implicit_addend("R_ARM_CALL", b"\0\0", 0, True) == 0


@pytest.mark.parametrize(
    ("machine", "number", "name"),
    [
        ("x86-64", 4, "R_X86_64_PLT32"),
        ("x86-64", 41, "R_X86_64_GOTPCRELX"),
        ("x86", 43, "R_386_GOT32X"),
        ("arm", 10, "R_ARM_THM_CALL"),
        ("aarch64", 283, "R_AARCH64_CALL26"),
        ("riscv", 19, "R_RISCV_CALL_PLT"),
        ("powerpc", 249, "R_PPC_REL16"),
        ("powerpc", 250, "R_PPC_REL16_LO"),
        ("powerpc", 251, "R_PPC_REL16_HI"),
        ("powerpc", 252, "R_PPC_REL16_HA"),
        ("riscv", 255, "unknown relocation 255"),
        ("unknown machine 21", 1, "unknown relocation 1"),
    ],
)
def test_type_names(machine: str, number: int, name: str) -> None:
    assert type_name(machine, number) == name
