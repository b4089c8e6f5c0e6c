"""What a board does when its program goes wrong: it says where, and starts anew."""

from __future__ import annotations

import pytest

from nnbuild.board.tables import find
from nnbuild.device.errors import DeviceFault, DeviceRestarted
from tests.boards.conftest import EMULATED

pytestmark = pytest.mark.emulator

ALONE = [name for name in EMULATED if find(name).cores.count == 1]
"""What several cores do when one of them fails is in tests/cores."""
BAD_ACCESS, OVERFLOW, UNDEFINED, DEEP, SAYS = (bytes([n, 0, 0, 0]) for n in (1, 2, 3, 4, 5))


@pytest.mark.turns(4)
@pytest.mark.parametrize("board", ALONE)
@pytest.mark.parametrize("wish", [BAD_ACCESS, OVERFLOW, UNDEFINED], ids=["access", "stack", "instruction"])
def test_a_fault_is_reported_and_survived(connect, board: str, wish: bytes) -> None:
    with connect(board) as link:
        link.write(0, wish)
        with pytest.raises(DeviceFault) as raised:
            link.run()
        text = str(raised.value)
        with pytest.raises(DeviceRestarted):
            link.stack()
        link.hello()
        link.write(0, bytes(4))
        assert link.run() < 1_000
    assert "pc 0x" in text or "mepc" in text
    if find(board).features or board == "rv32":  # Armv6-M and v7-M without FPU are looked at below
        expected = {BAD_ACCESS: "access", OVERFLOW: "", UNDEFINED: "instruction"}[wish]
        assert expected in text


@pytest.mark.turns(3)
@pytest.mark.parametrize("board", ALONE)
def test_the_pc_of_a_fault_lies_in_flash(connect, board: str) -> None:
    with connect(board) as link:
        link.write(0, UNDEFINED)
        with pytest.raises(DeviceFault) as raised:
            link.run()
    pc = int(str(raised.value).split("pc ")[1].split(".")[0].split(",")[0], 16)
    flash = find(board).memory("flash")
    assert flash.origin <= pc < flash.origin + flash.length


@pytest.mark.parametrize("board", ALONE)
def test_the_stack_remembers_the_deepest_use(connect, board: str) -> None:
    with connect(board) as link:
        link.run()
        before = link.stack()
        link.write(0, DEEP)
        link.run()
        after = link.stack()
    assert before.size == after.size
    assert before.used + 8 * 64 <= after.used < after.size


@pytest.mark.parametrize("board", ALONE)
def test_log_text_and_reset(connect, board: str) -> None:
    with connect(board) as link:
        link.write(0, SAYS)
        link.run()
        assert list(link.log) == ["five"]
        link.reset()
        link.run()


@pytest.mark.parametrize("board", ALONE)
def test_the_unit_is_instructions(connect, board: str) -> None:
    """An emulator's clock says nothing about a real one, so what is counted is not called cycles."""
    with connect(board) as link:
        assert link.greeting.unit == "instructions"
