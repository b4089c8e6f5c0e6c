"""Runs that take turns: what one leaves in memory is what the next finds, and the longest of them counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnbuild.bound import Bound, Turns, Unbounded, prove, result_of
from nnbuild.bound.image import read_image
from tests.bound.assembled import MEMORY, STACK, assembled

BEGIN = "ldr r0, =memory\nmovs r1, #{first}\nstr r1, [r0]\nbx lr\n"
COUNT = "ldr r0, =memory\nldr r1, [r0]\nadds r1, #1\ncmp r1, #{turns}\nit eq\nmoveq r1, #0\nstr r1, [r0]\n"
"""7 instructions."""
ROUNDS = "lsls r2, r1, #1\nadds r2, #1\n1: subs r2, #1\nbne 1b\nbx lr\n"
"""As many rounds as twice the word, and one."""


def function(name: str, text: str) -> str:
    return f"\n.ltorg\n.global {name}\n.type {name}, %function\n{name}:\n{text}\n"


def taking_turns(folder: Path, text: str, first: int = 0) -> Bound:
    image = read_image(assembled(folder, text + function("g", BEGIN.format(first=first))))
    return prove(image, "f", STACK, turns=Turns("g", (MEMORY,)))


def test_the_longest_turn_counts(tmp_path: Path) -> None:
    found = taking_turns(tmp_path, COUNT.format(turns=4) + ROUNDS)
    assert (found.turns, found.instructions) == (4, 7 + 2 + 2 * 7 + 1)


def test_it_begins_where_the_program_does(tmp_path: Path) -> None:
    """From 5 on the word never comes back to 4, so it goes on until 256 runs have been."""
    with pytest.raises(Unbounded, match=r"\[unknown turn\] f: the state does not repeat within 256 runs"):
        taking_turns(tmp_path, COUNT.format(turns=4) + "bx lr", first=5)


def test_what_inputs_decide_is_no_turn(tmp_path: Path) -> None:
    text = "ldr r0, =memory\nldr r1, [r0, #4]\nstr r1, [r0]\nbx lr"
    with pytest.raises(Unbounded, match=r"\[unknown turn\] f: the next slot of the state depends on inputs"):
        taking_turns(tmp_path, text)


def test_without_turns_the_word_is_unknown(tmp_path: Path) -> None:
    image = read_image(assembled(tmp_path, COUNT.format(turns=4) + ROUNDS))
    with pytest.raises(Unbounded, match="input-dependent loop"):
        prove(image, "f", STACK)


def test_a_function_says_where_the_word_is(tmp_path: Path) -> None:
    image = read_image(assembled(tmp_path, "cmp r0, #6\nite eq\nldreq r0, =memory\nmovne r0, #0\nbx lr"))
    assert result_of(image, "f", (6,), STACK) == MEMORY
    assert result_of(image, "f", (5,), STACK) == 0
