"""Loads of programs with floats: their addresses told by registers, and the numbers that come out."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from nnbuild.base.paths import EXAMPLE
from nnbuild.bound.image import read_image
from nnbuild.cli import main
from nnbuild.cycles import clock
from nnbuild.cycles.clock import Clock, Time
from nnbuild.cycles.part import kind_of
from tests.bound.assembled import MEMORY, assembled
from tests.cycles.test_rules import FLASH, SLOW

LOADS = """
    push {r4, r5, r6, r7, r8, lr}
    ldr r0, =memory
    adr r1, table
    movs r2, #3
1:  ldr r3, [r1, r2, lsl #2]
    ldr r4, [r1], #4
    ldr r5, [r1, #4]!
    ldrd r6, r7, [r1, #8]
    ldrb r6, [r1, #21]
    mov r8, r1
    ldm r8!, {r4, r5, r6}
    ldr r7, [r8, #-4]
    ldrh r7, [r0, #2]
    add r3, r1, r2
    ldrb r3, [r3, #1]
    cmp r2, #2
    it eq
    ldreq r6, [r1, #16]
    tbb [pc, r2]
2:  .byte (3f - 2b) / 2, (3f - 2b) / 2, (3f - 2b) / 2, (3f - 2b) / 2
3:  subs r1, r1, #8
    subs r2, r2, #1
    bpl 1b
    pop {r4, r5, r6, r7, r8, pc}
    .balign 16
table:
    .rept 24
    .word 0x01020304
    .endr
"""


def timed(folder: Path, text: str) -> tuple[Clock, Time]:
    kind = kind_of("cortex-m4", 1)
    assert kind is not None
    found = Clock(read_image(assembled(folder, text, sized=True)), kind.core, SLOW, FLASH, kind.emulated)
    return found, found.time("f")


def test_addresses_are_those_that_hooks_on_memory_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooked = timed(tmp_path, LOADS)[1]
    assert hooked.flash_data > 0
    monkeypatch.setattr(clock, "has_floats", lambda image: True)
    assert timed(tmp_path, LOADS)[1] == hooked


FLOATS = """
    ldr r0, =memory
    adr r1, table
    vpush {s16, s17}
    vldr s0, [r1]
    vldmia r1!, {s1-s4}
    vldr d8, [r1, #-8]
    vfma.f32 s0, s1, s2
    vadd.f32 s0, s0, s17
    vstr s0, [r0]
    vpop {s16, s17}
    bx lr
    .balign 16
table:
    .float 1.5, 2.0, 3.0, 4.0
"""


def test_floats_come_out_right(tmp_path: Path) -> None:
    found, time = timed(tmp_path, FLOATS)
    assert struct.unpack("<f", found.cpu.mem_read(MEMORY, 4)) == (1.5 + 1.5 * 2 + 4,)
    assert time.flash_data >= 5


@pytest.mark.turns(3)
@pytest.mark.slow
def test_a_float_model_on_a_core_with_an_fpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As many instructions as without a hook."""
    found = tmp_path / "cycles.json"
    assert main(["profile", str(EXAMPLE / "mnist.h5"), "--board", "stm32f405", "--cycles", "--json", str(found)]) == 0
    assert "modelled; -5 to +15 %" in capsys.readouterr().out
    facts = json.loads(found.read_text())
    assert 600_000 < facts["instructions"] < facts["cycles"] < 3_000_000
    assert facts["stalls"]["flash_data"] > 10_000
