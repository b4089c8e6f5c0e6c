"""Which instructions count as floating point, where mnemonics alone would mislead."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nnbuild.audit import fpscan
from nnbuild.audit.archive import open_file
from nnbuild.audit.code import Code
from nnbuild.audit.source_locations import Locator

from .toolchains import Toolchain, by_name

X86 = """\
    .macro function name
    .globl \\name
    .type \\name, @function
\\name:
    .endm
    .text
    function string
    movsl
    cmpsl
    ret
    .size string, .-string
    function scalar
    movsd %xmm1, %xmm0
    cmpsd $0, %xmm1, %xmm0
    ret
    .size scalar, .-scalar
    function order
    mfence
    lfence
    movnti %eax, (%rdi)
    prefetcht0 (%rdi)
    fxsave (%rdi)
    xsave (%rdi)
    bswap %eax
    ret
    .size order, .-order
    function state
    emms
    ldmxcsr (%rdi)
    fninit
    vzeroupper
    kmovw %eax, %k1
    addsd %xmm0, %xmm0
    ret
    .size state, .-state
    function newer
    andn %rax, %rbx, %rcx
    .byte 0x62, 0xf5, 0x7c, 0x48, 0x58, 0xc1
    ret
    .size newer, .-newer
    function tiles
    .byte 0xc4, 0xe2, 0x7b, 0x5e, 0xc2
    ret
    .size tiles, .-tiles
    function general
    andn %rax, %rbx, %rcx
    shlx %rax, %rbx, %rcx
    ret
    .size general, .-general
    .section .note.GNU-stack,"",@progbits
"""


def uses(path: Path) -> dict[str, fpscan.FpUse]:
    (file,) = open_file(path).objects
    return {use.function: use for use in fpscan.scan(Code(Locator(file)))}


def assembled(command: tuple[str, ...], directory: Path, text: str) -> Path:
    (directory / "code.s").write_text(text)
    subprocess.run([*command, "-c", "code.s", "-o", "code.o"], cwd=directory, check=True)
    return directory / "code.o"


def test_x86(tmp_path: Path) -> None:
    chain = by_name("x86-64-gcc")
    if chain.missing:
        pytest.skip(chain.missing)
    found = uses(assembled(chain.command, tmp_path, X86))
    counts = {name: (use.count, use.doubles) for name, use in found.items()}
    assert counts == {"scalar": (2, 1), "state": (6, 2), "newer": (1, 0), "tiles": (1, 0)}
    assert found["state"].first_text == "emms"
    assert found["newer"].first_text == "an unknown vector instruction, bytes 62f57c4858c1"


ARM = """\
    .syntax unified
    .thumb
    .text
    .globl plain
    .type plain, %function
plain:
    smlad r0, r1, r2, r3
    mrc p15, 0, r0, c1, c0, 0
    ldr r0, =0xeef00e00
    bx lr
    .ltorg
    .size plain, .-plain
    .globl moves
    .type moves, %function
moves:
    vmov s0, r0
    vmrs apsr_nzcv, fpscr
    bx lr
    .size moves, .-moves
"""


def test_arm(tmp_path: Path) -> None:
    chain = by_name("arm-gcc")
    if chain.missing:
        pytest.skip(chain.missing)
    found = uses(assembled(chain.command, tmp_path, ARM))
    assert {name: (use.count, use.doubles) for name, use in found.items()} == {"moves": (2, 0)}


MVE = """\
    .syntax unified
    .thumb
    .text
    .globl lanes
    .type lanes, %function
lanes:
    vldrw.u32 q0, [r0]
    vldrb.u8 q1, [r1]
    vmladav.s8 r2, q0, q1
    vadd.i32 q0, q0, q1
    vctp.32 r3
    vstrw.32 q0, [r0]
    bx lr
    .size lanes, .-lanes
"""


def test_vectors_of_the_cortex_m55(tmp_path: Path) -> None:
    if by_name("arm-gcc").missing:
        pytest.skip(by_name("arm-gcc").missing)
    found = uses(assembled(("arm-none-eabi-gcc", "-mcpu=cortex-m55", "-mfloat-abi=hard"), tmp_path, MVE))
    assert {name: use.count for name, use in found.items()} == {"lanes": 6}


@pytest.mark.parametrize(("arch", "abi"), [("rv32imafc", "ilp32f"), ("rv64imafc", "lp64f")])
def test_compressed_loads_on_risc_v(arch: str, abi: str, tmp_path: Path) -> None:
    """On RV32 the encodings of c.flw and c.fsw are floating point; on RV64 the same bits load and store integers."""
    chain = Toolchain(arch, "riscv", ("riscv64-unknown-elf-gcc", f"-march={arch}", f"-mabi={abi}"), "")
    if chain.missing:
        pytest.skip(chain.missing)
    path = chain.compile(
        tmp_path,
        "code",
        "void copy(float *to, const float *from) { *to = *from; }\n"
        "void words(long *to, const long *from) { *to = *from; }\n"
        "float load(const float *from) { return from[1]; }\n",
    )
    found = uses(path)
    assert "words" not in found
    assert found["load"].count >= 1
