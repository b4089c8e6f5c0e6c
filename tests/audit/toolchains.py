"""The compilers the audit's tests use, and the objects they make from lines of C."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Toolchain:
    """A compiler for one machine. `soft_double`: it turns double arithmetic into calls of helper functions."""

    name: str
    machine: str
    command: tuple[str, ...]
    objdump: str
    soft_double: bool = False
    pic: tuple[str, ...] = ("-fPIC",)

    @property
    def is_gcc(self) -> bool:
        return "gcc" in self.command[0]

    @property
    def missing(self) -> str:
        return "" if shutil.which(self.command[0]) else f"{self.command[0]} is not installed"

    def compile(self, directory: Path, name: str, source: str, flags: Sequence[str] = ("-O2", "-g")) -> Path:
        """Writes `name`.c and compiles it to `name`.o beside it."""
        path = directory / f"{name}.c"
        path.write_text(source, "utf-8")
        pic = () if any(flag in self.pic for flag in flags) else ("-fno-pic",)
        command = [*self.command, "-c", *pic, "-ffreestanding", *flags, path.name, "-o", f"{name}.o"]
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return directory / f"{name}.o"


CORTEX_M4 = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
RV32 = ("-march=rv32imac", "-mabi=ilp32")
RV32E = ("-march=rv32emac", "-mabi=ilp32e")
RV64 = ("-march=rv64imac", "-mabi=lp64", "-mcmodel=medany")
RV64_FLOATS = ("-march=rv64gc", "-mabi=lp64d")

ALL = (
    Toolchain("x86-64-gcc", "x86-64", ("gcc", "-fcf-protection=none"), "objdump"),
    Toolchain("x86-64-clang", "x86-64", ("clang", "--target=x86_64-linux-gnu"), "objdump"),
    Toolchain("arm-gcc", "arm", ("arm-none-eabi-gcc", *CORTEX_M4), "arm-none-eabi-objdump", True),
    Toolchain("arm-clang", "arm", ("clang", "--target=arm-none-eabi", *CORTEX_M4), "arm-none-eabi-objdump", True),
    Toolchain("aarch64-gcc", "aarch64", ("aarch64-linux-gnu-gcc",), "aarch64-linux-gnu-objdump"),
    Toolchain("aarch64-clang", "aarch64", ("clang", "--target=aarch64-linux-gnu"), "aarch64-linux-gnu-objdump"),
    Toolchain("riscv-gcc", "riscv", ("riscv64-unknown-elf-gcc", *RV32), "riscv64-unknown-elf-objdump", True),
    Toolchain("powerpc-gcc", "powerpc", ("powerpc-linux-gnu-gcc",), "powerpc-linux-gnu-objdump"),
    Toolchain("powerpc64-gcc", "powerpc64", ("powerpc64-linux-gnu-gcc",), "powerpc64-linux-gnu-objdump"),
    Toolchain("powerpc64-clang", "powerpc64", ("clang", "--target=powerpc64-linux-gnu"), "powerpc64-linux-gnu-objdump"),
    Toolchain("powerpc64le-gcc", "powerpc64", ("powerpc64le-linux-gnu-gcc",), "powerpc64le-linux-gnu-objdump"),
    Toolchain("riscv-clang", "riscv", ("clang", "--target=riscv32", *RV32), "riscv64-unknown-elf-objdump", True),
    Toolchain("rv32e-gcc", "riscv", ("riscv64-unknown-elf-gcc", *RV32E), "riscv64-unknown-elf-objdump", True),
    Toolchain("rv64-gcc", "riscv", ("riscv64-unknown-elf-gcc", *RV64), "riscv64-unknown-elf-objdump", True),
    Toolchain("rv32e-clang", "riscv", ("clang-19", "--target=riscv32", *RV32E), "riscv64-unknown-elf-objdump", True),
    Toolchain("rv64-clang", "riscv", ("clang-19", "--target=riscv64", *RV64), "riscv64-unknown-elf-objdump", True),
    Toolchain("rv64-linux-gcc", "riscv", ("riscv64-linux-gnu-gcc", *RV64_FLOATS), "riscv64-unknown-elf-objdump"),
)


RELATIVES = (
    "aarch64-clang",
    "powerpc64-clang",
    "powerpc64le-gcc",
    "rv32e-gcc",
    "rv64-gcc",
    "rv32e-clang",
    "rv64-clang",
)
"""Compilers that differ little from one of the others: these are tested in slow runs."""


def parameters(toolchains: Sequence[Toolchain] = ALL) -> list[object]:
    """For parametrize: one case for each compiler, skipped by name where it is not installed."""
    return [
        pytest.param(
            chain,
            id=chain.name,
            marks=[
                pytest.mark.skipif(bool(chain.missing), reason=chain.missing),
                *([pytest.mark.slow] if chain.name in RELATIVES else []),
            ],
        )
        for chain in toolchains
    ]


def by_name(name: str) -> Toolchain:
    return next(chain for chain in ALL if chain.name == name)
