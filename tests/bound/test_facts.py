"""Flow facts say what the proof found, in files that readers of their formats take."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnbuild.bound import prove, read_image
from nnbuild.bound.facts import ait, otawa
from tests.bound.assembled import STACK, assembled
from tests.bound.facts_files import Facts, read_ais, read_f4

TEXT = (
    "movs r2, #0\n1: movs r1, #7\n2: subs r1, #1\nbne 2b\ntbb [pc, r2]\n.byte 1, 3\n3: nop\nb 5f\n4: nop\nnop\n"
    "5: adds r2, #1\ncmp r2, #2\nbne 1b\nbx lr"
)
IRREGULAR = "ldr r0, =memory\nldr r0, [r0]\nmovs r2, #4\ncbz r0, 2f\n1: subs r2, #1\nbeq 3f\n2: nop\nb 1b\n3: bx lr"


def both(folder: Path, text: str) -> tuple[str, str]:
    image = read_image(assembled(folder, text))
    bound = prove(image, "f", STACK)
    return otawa("p.elf", bound, image.name_of), ait("p.elf", bound, image.name_of)


def test_loops_and_jumps(tmp_path: Path) -> None:
    f4, ais = both(tmp_path, TEXT)
    wanted = Facts({0x8002: 2, 0x8004: 7}, {0x8008: [0x800E, 0x8012]})
    assert read_f4(f4) == wanted
    assert read_ais(ais) == wanted
    assert "// f+0x2\n" in f4


def test_loops_with_several_entries_are_left_out_aloud(tmp_path: Path) -> None:
    f4, ais = both(tmp_path, IRREGULAR)
    assert read_f4(f4) == read_ais(ais) == Facts()
    assert "has several entries" in f4
    assert "has several entries" in ais


@pytest.mark.parametrize("text", ["loop 0x8000 max ;", "loop max 5;", "loop 0x8000 max 5", "nothing;"])
def test_the_readers_refuse_what_is_no_fact(text: str) -> None:
    for read in (read_f4, read_ais):
        with pytest.raises((ValueError, AssertionError)):
            read(text)
