"""Loops whose cycles the manuals state, on each core that has rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnbuild.board.board import FlashSpeed
from nnbuild.bound.image import read_image
from nnbuild.cycles.clock import Clock, Time
from nnbuild.cycles.part import kind_of
from tests.bound.assembled import assembled

FLASH = ((0x8000, 0x8000 + (64 << 10)),)
SLOW = FlashSpeed(wait=5, read=16, line=16, code_lines=64, data_lines=8, prefetch=True)


def time(folder: Path, text: str, core: str = "cortex-m4", flash: FlashSpeed | None = None) -> Time:
    kind = kind_of(core, 1)
    assert kind is not None
    assembler = "cortex-m0" if core == "cortex-m0plus" else core
    image = read_image(assembled(folder, text, assembler))
    return Clock(image, kind.core, flash or FlashSpeed(), FLASH, kind.emulated).time("f")


def looped(body: str, head: str = "") -> str:
    """Ten rounds of a body that begins at a word, without the BX at the end."""
    start = f"ldr r0, =memory\nmovs r1, #10\n{head}\n.balign 4\n1:\n"
    return f"{start}{body}\nsubs r1, r1, #1\nbne 1b\nbx lr\n"


def of_body(folder: Path, body: str, core: str, rounds: int = 10, **options: FlashSpeed) -> float:
    """Cycles of one round beyond those of an empty one."""
    with_body = time(folder, looped(body), core, **options).cycles
    without = time(folder, looped("nop"), core, **options).cycles
    return (with_body - without) / rounds + 1


M4 = {
    "add r2, r2, r3": 1,
    "mul r2, r3, r4": 1,
    "mla r2, r3, r4, r2": 1,
    "smull r2, r3, r4, r5": 1,
    "smlad r2, r3, r4, r2": 1,
    "ldr r2, [r0]\nadds r6, r6, #1": 3,
    "ldr r2, [r0]\nldr r3, [r0, #4]\nldr r4, [r0, #8]\nadds r6, r6, #1": 5,
    "ldr r2, [r0]\nstr r3, [r0, #4]\nadds r6, r6, #1": 3,
    "str r2, [r0]\nadds r6, r6, #1": 2,
    "str r2, [r0]\nldr r3, [r0, #4]\nadds r6, r6, #1": 5,
    "ldrd r2, r3, [r0]": 3,
    "strd r2, r3, [r0]": 3,
    "ldm r0, {r2, r3, r4, r5}": 5,
    "push {r2, r3}\npop {r2, r3}": 7,
    "ldr r2, [r0]\nnop": 2,
    "add r2, r0, #4\nldr r3, [r2]": 4,
    "cmp r1, #99\nbeq 9f\n9:": 2,
    "b 8f\nnop\n8:": 2,
    "cmp r1, #0\nit eq\naddeq r2, #1": 2,
    "vadd.f32 s0, s1, s2": 1,
    "vadd.f32 s0, s1, s2\nvadd.f32 s3, s0, s2": 3,
    "vfma.f32 s0, s1, s2": 3,
    "vdiv.f32 s0, s1, s2": 14,
}
M0 = {
    "adds r2, r2, r3": 1,
    "muls r2, r3, r2": 1,
    "ldr r2, [r0]": 2,
    "ldr r2, [r0]\nldr r3, [r0, #4]": 4,
    "str r2, [r0]": 2,
    "ldm r0!, {r2, r3, r4}\nsubs r0, #12": 5,
    "push {r2, r3}\npop {r2, r3}": 6,
    "b 8f\nnop\n8:": 3,
}


@pytest.mark.parametrize("body", M4)
def test_cortex_m4(tmp_path: Path, body: str) -> None:
    assert of_body(tmp_path, body, "cortex-m4") == M4[body]


@pytest.mark.parametrize("body", M0)
def test_cortex_m0(tmp_path: Path, body: str) -> None:
    assert of_body(tmp_path, body, "cortex-m0") == M0[body]


def test_cortex_m3_multiplies_in_more_than_one(tmp_path: Path) -> None:
    assert of_body(tmp_path, "mla r2, r3, r4, r2", "cortex-m3") == 2
    assert of_body(tmp_path, "umull r2, r3, r4, r5", "cortex-m3") == 4


def test_cortex_m0plus_branches_faster(tmp_path: Path) -> None:
    assert of_body(tmp_path, "b 8f\nnop\n8:", "cortex-m0plus") == 2


def test_a_multiplier_that_takes_its_time() -> None:
    slow, fast = kind_of("cortex-m0", 32), kind_of("cortex-m0", 1)
    assert slow is not None
    assert fast is not None
    assert slow.core != fast.core


M33 = {
    "adds r2, r2, #1\nadds r3, r3, #1": 2,
    "ldr r2, [r0]\nadds r3, r3, #1": 2,
    "ldr r2, [r0]\nadds r2, r2, #1": 3,
    "mla r2, r3, r4, r2\nmla r2, r5, r4, r2": 2,
    "mla r2, r3, r4, r2\nadd r5, r2, #1": 3,
    "ldrd r2, r3, [r0]\nadds r4, r4, #1": 3,
}


@pytest.mark.parametrize("body", M33)
def test_cortex_m33(tmp_path: Path, body: str) -> None:
    assert round(of_body(tmp_path, body, "cortex-m33")) == M33[body]


def test_cortex_m7_starts_two_at_once(tmp_path: Path) -> None:
    assert of_body(tmp_path, "adds r2, r2, #1\nadds r3, r3, #1\nadds r4, r4, #1\nadds r5, r5, #1", "cortex-m7") <= 3


def test_code_that_fits_the_cache_is_waited_for_once(tmp_path: Path) -> None:
    small = looped("add.w r2, r2, #1\n" * 40)
    plain, slow = time(tmp_path, small), time(tmp_path, small, flash=SLOW)
    assert 0 < slow.flash_code < 100
    assert slow.cycles == plain.cycles + slow.flash_code + slow.flash_data


def test_code_that_does_not_fit_is_waited_for_each_time(tmp_path: Path) -> None:
    """2,400 bytes: the next line is read ahead, but six cycles a line are two more than four instructions take."""
    large = time(tmp_path, looped("add.w r2, r2, #1\n" * 600), flash=SLOW)
    assert 10 * 150 * 1.5 < large.flash_code < 10 * 150 * 2.5


def test_every_line_of_data_is_waited_for_once(tmp_path: Path) -> None:
    """Sixteen words in four lines, which stay in the cache for the other rounds."""
    loads = "\n".join(f"ldr r2, [r3, #{4 * i}]\nadds r6, r6, #1" for i in range(16))
    table = ".balign 16\ntable:\n.rept 16\n.word 1\n.endr\n"
    found = time(tmp_path, looped(loads, "adr r3, table") + table, flash=SLOW)
    assert 4 * 5 <= found.flash_data <= 8 * 6


def test_loads_of_two_memories_do_not_overlap(tmp_path: Path) -> None:
    table = "\n.balign 16\ntable:\n.word 1\n"
    head = "adr r3, table\n"
    apart = time(tmp_path, looped("ldr r2, [r0]\nldr r4, [r3]\nadds r6, r6, #1", head) + table)
    together = time(tmp_path, looped("ldr r2, [r0]\nldr r4, [r0]\nadds r6, r6, #1", head) + table)
    assert apart.cycles == together.cycles + 10


def test_loads_overlap_across_pages_of_the_emulator(tmp_path: Path) -> None:
    """It ends its blocks of code where 4,096 bytes end, which no part does."""
    loads = "\n".join(f"ldr.w r{2 + i}, [r0, #{4 * i}]" for i in range(4))
    across, within = (looped(loads, f"b.w 7f\n.ltorg\n.balign 4096\n.space {far}\n7:") for far in (4088, 2048))
    assert time(tmp_path, across).cycles == time(tmp_path, within).cycles


def test_causes_add_up(tmp_path: Path) -> None:
    found = time(tmp_path, looped("ldr r2, [r0]\nadds r6, r6, #1"))
    assert found.cycles == found.instructions + found.loads + found.branches + found.others
    assert found.branches == 9 + 2  # each round but the last, and the way back
