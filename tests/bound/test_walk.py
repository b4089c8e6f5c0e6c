"""The rules of the proof, each on a function of a few instructions."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnbuild.base.errors import UsageError
from nnbuild.bound import Bound, Unbounded, prove
from nnbuild.bound.cycles import CORES
from nnbuild.bound.image import read_image
from tests.bound.assembled import STACK, assembled


def bound(folder: Path, text: str, core: str = "cortex-m4") -> Bound:
    return prove(read_image(assembled(folder, text, core)), "f", STACK, CORES["cortex-m4"], 1_000_000)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(Unbounded) as caught:
        bound(folder, text)
    assert caught.value.exit_code == 1
    return str(caught.value)


UNKNOWN = "ldr r0, =memory\nldr r0, [r0]\n"
"""r0 holds what depends on inputs: 2 instructions."""

BOUNDED = {
    "straight line": ("movs r0, #1\nbx lr", 2),
    "a counted loop": ("movs r0, #10\n1: subs r0, #1\nbne 1b\nbx lr", 1 + 20 + 1),
    "a loop to a known end, upwards": ("movs r0, #0\n1: adds r0, #3\ncmp r0, #30\nblo 1b\nbx lr", 1 + 30 + 1),
    "nested loops": ("movs r0, #3\n1: movs r1, #4\n2: subs r1, #1\nbne 2b\nsubs r0, #1\nbne 1b\nbx lr", 1 + 3 * 11 + 1),
    "the longer side of a diamond": (UNKNOWN + "cmp r0, #5\nbne 1f\nnop\nnop\nnop\n1: bx lr", 2 + 2 + 3 + 1),
    "both sides of cbz": (UNKNOWN + "cbz r0, 1f\nnop\nb 2f\n1: nop\nnop\nnop\n2: bx lr", 2 + 1 + 3 + 1),
    "a diamond in a loop does not hide the counter": (
        "movs r2, #7\n1: ldr r0, =memory\nldr r0, [r0]\ncmp r0, #1\nbeq 2f\nnop\n2: subs r2, #1\nbne 1b\nbx lr",
        1 + 7 * 7 + 1,
    ),
    "two ways back to one head": (
        UNKNOWN
        + "movs r2, #7\n1: cmp r0, #1\nbeq 2f\nnop\nsubs r2, #1\nbne 1b\nb 3f\n2: subs r2, #1\nbne 1b\n3: bx lr",
        2 + 1 + 7 * 5 + 1 + 1,
    ),
    "an early way out of a counted loop": (
        "movs r2, #9\n1: ldr r0, =memory\nldr r0, [r0]\ncbz r0, 2f\nsubs r2, #1\nbne 1b\n2: bx lr",
        1 + 9 * 5 + 1,
    ),
    "skipped instructions count": (UNKNOWN + "cmp r0, #0\nitt eq\nmoveq r1, #1\naddeq r1, r1\nbx lr", 2 + 5),
    "an answer that a register keeps": (
        UNKNOWN + "cmp r0, #5\nite lt\nmovlt r3, #1\nmovge r3, #0\nbge 1f\nnop\nnop\n1: nop\ncbz r3, 2f\nbx lr\n"
        "2: nop\nnop\nnop\nbx lr",
        2 + 5 + max(2 + 1 + 1 + 1, 1 + 1 + 3 + 1),
    ),
    "an answer that is gone before it is asked for": (
        UNKNOWN + "cmp r0, #5\nite lt\nmovlt r3, #1\nmovge r3, #0\ncmp r0, #9\nbge 1f\nnop\nnop\n1: nop\ncbz r3, 2f\n"
        "bx lr\n2: nop\nnop\nnop\nbx lr",
        2 + 6 + 2 + 1 + 1 + 3 + 1,
    ),
    "answers in a loop": (
        "movs r2, #7\n1: ldr r0, =memory\nldr r0, [r0]\ncmp r0, #5\nite lt\nmovlt r3, #1\nmovge r3, #0\nbge 2f\nnop\n"
        "2: cbnz r3, 3f\nnop\n3: subs r2, #1\nbne 1b\nbx lr",
        1 + 7 * 11 + 1,
    ),
    "a conditional return": (UNKNOWN + "cmp r0, #0\nit eq\nbxeq lr\nnop\nbx lr", 2 + 3 + 2),
    "calls, and what they keep": (
        "push {r4, lr}\nmovs r4, #3\n1: bl 2f\nsubs r4, #1\nbne 1b\npop {r4, pc}\n"
        "2: push {r4, lr}\nmovs r4, #0\npop {r4, pc}",
        2 + 3 * 6 + 1,
    ),
    "far jumps that are written as calls": (
        "push {r4, lr}\nmovs r4, #120\n1: bl 3f\n2: subs r4, #1\nbne 1b\npop {r4, pc}\n3: bl 2b\n.size f, . - f",
        2 + 120 * 4 + 1,
    ),
    "a spilled counter": (
        "sub sp, #8\nmovs r0, #5\nstr r0, [sp, #4]\n1: ldr r0, [sp, #4]\nsubs r0, #1\nstr r0, [sp, #4]\nbne 1b\n"
        "add sp, #8\nbx lr",
        3 + 5 * 4 + 2,
    ),
    "a counter kept in a floating-point register": (
        "movs r0, #5\nvmov s7, r0\n1: vmov r0, s7\nsubs r0, #1\nvmov s7, r0\nbne 1b\nbx lr",
        2 + 5 * 4 + 1,
    ),
    "a table branch by a known number": ("movs r0, #1\ntbb [pc, r0]\n.byte 2, 1\n1: nop\nbx lr\nbx lr", 4),
    "a count from a table of constants": (
        "ldr r0, =t\nldrb r0, [r0, #2]\n1: subs r0, #1\nbne 1b\nbx lr\nt: .byte 1, 2, 6, 4",
        2 + 6 * 2 + 1,
    ),
    "a value that both sides agree on": (
        UNKNOWN + "cbz r0, 1f\nmovs r1, #4\nb 2f\n1: movs r1, #4\n2: subs r1, #1\nbne 2b\nbx lr",
        2 + 3 + 4 * 2 + 1,
    ),
    "a jump through a known pointer": ("ldr r3, =1f\nbx r3\n.ltorg\n.thumb_func\n1: bx lr", 3),
    "a helper that returns behind a table": (
        "push {r4, lr}\nmovs r0, #1\nbl 9f\n.byte 1, 3\n1: nop\nnop\n2: pop {r4, pc}\n"
        "9: mov r1, lr\nlsrs r1, #1\nlsls r1, #1\nldrb r1, [r1, r0]\nlsls r1, #1\nadd lr, r1\nbx lr",
        3 + 7 + 1,
    ),
    "a copy from an unknown place, which tells the end by it": (
        UNKNOWN + "add r2, r0, #12\n1: ldmia r0!, {r1}\ncmp r0, r2\nbne 1b\nbx lr",
        2 + 1 + 3 * 3 + 1,
    ),
    "the same by moved registers, downwards": (
        UNKNOWN
        + "mov r2, r0\nadd r0, #12\n1: mov r3, r0\nsubs r3, #4\nldr r1, [r3]\ncmp r2, r3\nmov r0, r3\nbne 1b\nbx lr",
        2 + 2 + 3 * 6 + 1,
    ),
    "a routine within a function": (
        "push {lr}\nbl 2f\nldr r2, =1000\n1: subs r2, #1\nbne 1b\npop {pc}\n2: nop\nbx lr\n.size f, . - f",
        1 + 1 + 2 + 1 + 2000 + 1,
    ),
    "a jump by the stack": (
        "ldr r0, =1f\npush {r0}\npop {pc}\n.ltorg\n.thumb_func\n1: ldr r2, =1000\n3: subs r2, #1\nbne 3b\nbx lr\n"
        ".size f, . - f",
        3 + 1 + 2000 + 1,
    ),
    "a routine within a function that is called": (
        "push {r4, lr}\nbl g\nmovs r4, #100\n1: subs r4, #1\nbne 1b\npop {r4, pc}\n.size f, . - f\n"
        ".thumb_func\n.type g, %function\ng: push {lr}\nbl 2f\nnop\npop {pc}\n2: nop\nbx lr\n.size g, . - g",
        1 + 1 + (1 + 1 + 2 + 1 + 1) + 1 + 200 + 1,
    ),
    "irregular loops are followed too": (
        UNKNOWN + "movs r2, #4\ncmp r0, #0\nbeq 2f\n1: subs r2, #1\nbeq 3f\n2: nop\nb 1b\n3: bx lr",
        2 + 3 + 2 + 3 * 4 + 2 + 1 - 0,
    ),
}

REFUSED = {
    "input-dependent loop": UNKNOWN + "1: lsrs r0, #1\nbne 1b\nbx lr",
    "unknown target": UNKNOWN + "bx r0",
    "unknown store": UNKNOWN + "str r1, [r0]\nbx lr",
    "wild store": "movs r0, #16\nstr r0, [r0]\nbx lr",
    "recursion": "push {r4, lr}\nbl f\npop {r4, pc}",
    "no end": "1: b 1b",
    "unknown instruction": "cpsid i\nbx lr",
}


@pytest.mark.parametrize("name", BOUNDED)
def test_bounds(name: str, tmp_path: Path) -> None:
    text, instructions = BOUNDED[name]
    assert bound(tmp_path, text).instructions == instructions


@pytest.mark.parametrize("kind", REFUSED)
def test_refusals_name_kind_and_place(kind: str, tmp_path: Path) -> None:
    message = refusal(tmp_path, REFUSED[kind])
    assert f"[{kind}] f" in message
    assert "nnbuild docs bound" in message


MORE_REFUSED = {
    "a table branch by an unknown number": ("unknown target", UNKNOWN + "tbb [pc, r0]\n.byte 1, 1\n1: bx lr"),
    "a counter that only one side changes": (
        "input-dependent loop",
        "movs r2, #9\n1: ldr r0, =memory\nldr r0, [r0]\ncbz r0, 2f\nsubs r2, #1\n2: cmp r2, #0\nbne 1b\nbx lr",
    ),
    "a counter that is loaded from a variable": (
        "input-dependent loop",
        "ldr r1, =memory\nldrb r0, [r1]\n1: subs r0, #1\nbne 1b\nbx lr",
    ),
    "a saved return address that was overwritten": (
        "unknown target",
        UNKNOWN + "push {r4, lr}\nstr r0, [sp, #4]\npop {r4, pc}",
    ),
    "an overwritten byte of a spilled counter": (
        "input-dependent loop",
        UNKNOWN
        + "sub sp, #8\nmovs r1, #5\nstr r1, [sp]\nstrb r0, [sp]\nldr r1, [sp]\n"
        + "1: subs r1, #1\nbne 1b\nadd sp, #8\nbx lr",
    ),
    "a store that happens perhaps": (
        "input-dependent loop",
        UNKNOWN + "sub sp, #8\nmovs r1, #5\nstr r1, [sp]\ncmp r0, #0\nit eq\nstreq r0, [sp]\nldr r1, [sp]\n"
        "1: subs r1, #1\nbne 1b\nadd sp, #8\nbx lr",
    ),
    "an end elsewhere than at the caller": (
        "unknown target",
        "ldr r0, =1f\nbx r0\n.ltorg\n.thumb_func\n1: ldr r0, =0x8001\nmov lr, r0\nbx lr",
    ),
    "an end at an unknown place that is read anew": (
        "input-dependent loop",
        "1: ldr r0, =memory\nldr r0, [r0]\nmov r1, r0\nldr r0, =memory\nldr r0, [r0]\ncmp r0, r1\nbne 1b\nbx lr",
    ),
    "places that are further apart when only one side says so": (
        "input-dependent loop",
        UNKNOWN + "mov r1, r0\nldr r2, =memory\nldrb r2, [r2]\ncbz r2, 2f\nadds r1, #4\n2: adds r1, #4\n"
        "1: adds r0, #4\ncmp r0, r1\nbne 1b\nbx lr",
    ),
    "a place that a condition perhaps moves": (
        "input-dependent loop",
        UNKNOWN + "add r1, r0, #8\nldr r2, =memory\nldrb r2, [r2]\ncmp r2, #1\nit eq\naddeq r1, r1, #4\n"
        "1: adds r0, #4\ncmp r0, r1\nbne 1b\nbx lr",
    ),
    "places of two rounds": (
        "input-dependent loop",
        "movs r3, #2\n3: ldr r0, =memory\nldr r0, [r0]\nmov r4, r1\nadd r1, r0, #8\nsubs r3, #1\nbne 3b\n"
        "1: adds r0, #4\ncmp r0, r4\nbne 1b\nbx lr",
    ),
    "a saturated number": ("input-dependent loop", UNKNOWN + "ssat r1, #8, r0\n1: subs r1, #1\nbne 1b\nbx lr"),
    "the comparison of floats": (
        "input-dependent loop",
        "1: vcmp.f32 s0, s1\nvmrs apsr_nzcv, fpscr\nbne 1b\nbx lr",
    ),
    "a loop that counts as far as it likes": (
        "input-dependent loop",
        "movs r2, #0\n1: adds r2, #1\nldr r0, =memory\nldr r0, [r0]\ncmp r0, #0\nbne 1b\nbx lr",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MORE_REFUSED)
def test_what_depends_on_inputs_is_not_guessed(name: str, tmp_path: Path) -> None:
    kind, text = MORE_REFUSED[name]
    assert f"[{kind}] f" in refusal(tmp_path, text)


def test_loops_are_told_by_their_heads(tmp_path: Path) -> None:
    found = bound(tmp_path, "movs r0, #3\n1: movs r1, #4\n2: subs r1, #1\nbne 2b\nsubs r0, #1\nbne 1b\nbx lr")
    assert [loop.rounds for loop in found.loops] == [3, 4]
    assert found.irregular == ()


def test_irregular_loops_have_no_facts(tmp_path: Path) -> None:
    text, _ = BOUNDED["irregular loops are followed too"]
    found = bound(tmp_path, text)
    assert found.loops == ()
    assert len(found.irregular) == 1


def test_a_helper_called_often_is_told_by_a_summary(tmp_path: Path) -> None:
    """It keeps its caller's registers; what it gives back is unknown."""
    diamonds = "".join(f"cmp r0, #{n}\nbeq 1f\nadds r0, #1\n1:\n" for n in range(9))
    text = (
        "push {r4, r5, lr}\nldr r4, =4000\n1: ldr r0, =memory\nldr r0, [r0]\nbl 9f\nsubs r4, #1\nbne 1b\n"
        f"pop {{r4, r5, pc}}\n.ltorg\n9: push {{r4, r5, lr}}\nmovs r4, #0\n{diamonds}pop {{r4, r5, pc}}"
    )
    found = bound(tmp_path, text)
    assert found.instructions == 2 + 4000 * (5 + 2 + 27 + 1) + 1
    assert [part.calls for part in found.parts] == [1, 4000]


def test_cycles_are_at_least_instructions(tmp_path: Path) -> None:
    found = bound(tmp_path, "movs r0, #10\n1: subs r0, #1\nbne 1b\nbx lr")
    assert found.cycles == 1 + 10 * 1 + 9 * 4 + 1 + 4
    assert found.core == "Cortex-M4"


def test_the_entry_must_be_a_function(tmp_path: Path) -> None:
    image = read_image(assembled(tmp_path, "bx lr"))
    with pytest.raises(UsageError, match=r"is not a function of p\.elf"):
        prove(image, "g", STACK)


def test_only_linked_programs_can_be_read(tmp_path: Path) -> None:
    assembled(tmp_path, "bx lr")
    (tmp_path / "p.s").write_text("")
    with pytest.raises(UsageError, match="ELF"):
        read_image(tmp_path / "p.s")
