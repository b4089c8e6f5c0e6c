"""Routines compiled for a core of another kind, and called by a program without a system in QEMU's user mode.

Records go in by its input: which routine, its arguments, and what it must have written.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nnbuild.model.graph import Array

ARGUMENTS, ALIGNED = 8, 64
HEAD = """\
#include <stddef.h>
#include <stdint.h>
"""
PROGRAM = """\
typedef int (*routine)(long, long, long, long, long, long, long, long);
static unsigned char room[{size}] __attribute__((aligned(64)));

void *memcpy(void *to, const void *from, size_t size)
{{
    unsigned char *t = to;
    const unsigned char *f = from;

    while (size--)
        *t++ = *f++;
    return to;
}}

void *memset(void *to, int value, size_t size)
{{
    unsigned char *t = to;

    while (size--)
        *t++ = (unsigned char)value;
    return to;
}}

void _start(void)
{{
    static const routine routines[] = {{ {names} }};
    unsigned char *at = room;
    long got, wrong = 0;

    while ((got = asked({read}, 0, (long)at, (long)(room + sizeof room - at))) > 0)
        at += got;
    const unsigned char *end = at;
    for (at = room; at < end;) {{
        const int32_t *head = (const int32_t *)(void *)at, *told = head + 4;
        long given[{arguments}] = {{ 0 }};

        at += {aligned} * 2;
        for (int i = 0; i < {arguments}; ++i, told += 2) {{
            given[i] = told[0] < 0 ? (long)told[1] : (long)at;
            at += told[0] < 0 ? 0 : told[0];
        }}
        const long *g = given;
        const int value = routines[head[0]](g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7]);
        const unsigned char *made = (const unsigned char *)given[head[1]];
        for (int32_t i = 0; i < head[2]; ++i)
            wrong += made[i] != at[i];
        wrong += told[0] && value != told[1];
        at += (head[2] + {aligned} - 1) / {aligned} * {aligned};
    }}
    asked({exit}, wrong != 0, 0, 0);
}}
"""
SVC = """\
static long asked(long number, long a, long b, long c)
{{
    register long n __asm__("{n}") = number, r __asm__("{r}") = a, s __asm__("{s}") = b, t __asm__("{t}") = c;

    __asm__ volatile("{call}" : "+r"(r) : "r"(n), "r"(s), "r"(t) : "memory");
    return r;
}}
"""
ARM = {"n": "r7", "r": "r0", "s": "r1", "t": "r2", "call": "svc 0"}
RISCV = {"n": "a7", "r": "a0", "s": "a1", "t": "a2", "call": "ecall"}
AARCH64 = {"n": "x8", "r": "x0", "s": "x1", "t": "x2", "call": "svc 0"}


@dataclass(frozen=True)
class Core:
    name: str
    compiler: str
    emulator: str
    call: dict[str, str]
    read: int = 63
    exit: int = 93


_CORES = (
    *(
        Core(
            f"cortex-{name}",
            f"arm-none-eabi-gcc -mcpu=cortex-{name} -mthumb -mfloat-abi=soft -ffixed-r7",
            "qemu-arm -cpu max",
            ARM,
            3,
            1,
        )
        for name in ("m0", "m4", "m33")
    ),
    Core("rv32", "riscv64-unknown-elf-gcc -march=rv32imac -misa-spec=2.2 -mabi=ilp32", "qemu-riscv32", RISCV),
    Core("aarch64", "aarch64-linux-gnu-gcc", "qemu-aarch64", AARCH64),
)
CORES = {core.name: core for core in _CORES}
"""User mode knows no Cortex-M; a large core executes what compilers make for them."""


def compiled(text: str, names: Sequence[str], core: Core, folder: Path, size: int) -> Path:
    """The program for these routines; records may be so many bytes together."""
    listed = ", ".join(f"(routine)(void (*)(void)){name}" for name in names)
    told = {"size": size, "names": listed, "read": core.read, "exit": core.exit}
    told |= {"arguments": ARGUMENTS, "aligned": ALIGNED}
    (folder / "routines.c").write_text(HEAD + SVC.format(**core.call) + text + PROGRAM.format(**told))
    flags = ["-O2", "-w", "-ffreestanding", "-fno-tree-loop-distribute-patterns", "-nostdlib", "-static"]
    command = [*core.compiler.split(), *flags, "routines.c", "-lgcc", "-o", core.name]
    subprocess.run(command, cwd=folder, check=True)
    return folder / core.name


def record(
    routine: int, arguments: Sequence[Array | int], written: int, wanted: bytes, value: int | None = None
) -> bytes:
    """`wanted` is what the argument `written` must begin with then, `value` what must be returned."""
    head, body = struct.pack("<iiii", routine, written, len(wanted), 0), b""
    for argument in (*arguments, *[0] * (ARGUMENTS - len(arguments))):
        if isinstance(argument, int):
            head += struct.pack("<ii", -1, argument)
        else:
            data = _filled(np.ascontiguousarray(argument).tobytes())
            head, body = head + struct.pack("<ii", len(data), 0), body + data
    head += struct.pack("<ii", value is not None, value or 0)
    return head + bytes(2 * ALIGNED - len(head)) + body + _filled(wanted)


def _filled(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNED)


def right(program: Path, core: Core, records: bytes) -> bool:
    """Whether all routines wrote what they must; an emulator that did not come to the end says nothing of that."""
    ended = subprocess.run([*core.emulator.split(), str(program)], input=records, check=False).returncode
    if ended not in (0, 1):
        raise RuntimeError(f"{core.emulator}: ended with {ended} (below zero: by that signal)")
    return ended == 0
