"""The stack that compilers' own helpers take is what the toolchains' tables state for them, or less."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache

import pytest

from nnbuild.backends.object_audit import HELPERS
from nnbuild.board.board import Toolchain
from nnbuild.board.tables import find

CORES = ["microbit", "stm32f100", "stm32f405", "mps3-an547", "rv32"]
FUNCTION = re.compile(r"^[0-9a-f]+ <([\w.$]+)>:$")
PUSH = re.compile(r"\s(?:push|stmdb\s+sp!,|stmfd\s+sp!,)\w*(?:\.w)?\s*\{([^}]*)\}")
SUBTRACT = re.compile(r"\ssub(?:\.w|w)?\s+sp,\s*(?:sp,\s*)?#(\d+)")
STORE_BELOW = re.compile(r"\sstrd?(?:\.w)?\s.*\[sp, #-(\d+)\]!")
RISCV = re.compile(r"\sadd(?:i|i16sp)?\s+sp,(?:sp,)?-(\d+)")
CALL = re.compile(
    r"\s(?:bl?|b\.w|b\.n|jal?|j|call|tail)(?:\.n|\.w)?\s+(?:ra,|zero,)?[0-9a-f]+ <([\w.$]+?)(?:\+0x[0-9a-f]+)?>"
)
RELOCATION = re.compile(r"R_(?:ARM_THM_\w*CALL|ARM_THM_JUMP24|RISCV_CALL\w*|RISCV_JAL)\s+([\w.$]+)")


def registers(text: str) -> int:
    """How many a list such as `r4-r7, lr` names."""
    count = 0
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        count += int(last[1:]) - int(first[1:]) + 1 if last else 1
    return count


def lowered_by(line: str) -> int:
    """Bytes by which an instruction moves the stack pointer down."""
    if found := PUSH.search(line):
        return 4 * registers(found[1])
    found = SUBTRACT.search(line) or STORE_BELOW.search(line) or RISCV.search(line)
    return int(found[1]) if found else 0


def library(board: str) -> tuple[Toolchain, dict[str, int], dict[str, set[str]]]:
    """Of every function in the compiler's library: the sum of all it pushes, and what it calls."""
    chain = find(board).toolchains[0]
    if shutil.which(chain.command[0]) is None:
        pytest.skip(f"{chain.command[0]} is not installed")
    ask = [*chain.command, *chain.flags, "-print-libgcc-file-name"]
    path = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    objdump = chain.command[0].replace("gcc", "objdump")
    listing = subprocess.run([objdump, "-dr", path], capture_output=True, text=True, check=True).stdout
    frames: dict[str, int] = {}
    calls: dict[str, set[str]] = {}
    here = ""
    for line in listing.splitlines():
        if start := FUNCTION.match(line):
            here = start[1]
            frames.setdefault(here, 0)
            calls.setdefault(here, set())
        elif here:
            frames[here] += lowered_by(line)
            for pattern in (CALL, RELOCATION):
                if (found := pattern.search(line)) and found[1] != here:
                    calls[here].add(found[1])
    return chain, frames, calls


@pytest.mark.emulator
@pytest.mark.parametrize("board", CORES)
def test_helpers_stay_below_what_is_stated(board: str) -> None:
    chain, frames, calls = library(board)

    @cache
    def depth(name: str) -> int:
        return frames.get(name, 0) + max((depth(callee) for callee in calls.get(name, ())), default=0)

    known = [name for name in HELPERS if name in frames]
    assert "__muldi3" in known or "__aeabi_lmul" in known
    depths = {name: depth(name) for name in known}
    assert {name: size for name, size in depths.items() if size > chain.helper_stack} == {}
    if "__divsf3" in depths:
        assert max(depths.values()) > 0
