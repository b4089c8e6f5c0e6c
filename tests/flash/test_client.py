"""Our client against a bootloader in memory: what it does to the flash, and what it says when things go wrong."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from nnbuild.base.errors import NnbuildError
from nnbuild.board.tables import find
from nnbuild.device.an3155 import BootloaderError, ReadProtected
from nnbuild.device.bootloader import HalfFlashed, NotStarted, Part, flash_serial, pages_under
from nnbuild.device.errors import DeviceMissing
from tests.flash.bootloader import ACK, NACK, Rom, RomLine

BOARD = find("stm32f405")
DATA = random.Random(1).randbytes(20_001)
PAGES_OF_DATA = [0, 1]


def part(pages: bool = True) -> Part:
    assert BOARD.flash is not None
    return Part(BOARD.name, 0x08000000, BOARD.flash.chip, BOARD.flash.pages if pages else ())


def flash(line: RomLine, pages: bool = True) -> None:
    flash_serial(line, part(pages), DATA, lambda what: lambda done, total: None)


class Spoilt:
    """Changes the answer of this number, counted from one."""

    def __init__(self, number: int, change: Callable[[bytes], bytes]) -> None:
        self._left, self._change = number, change

    def __call__(self, answer: bytes) -> bytes:
        if not answer:
            return answer
        self._left -= 1
        return self._change(answer) if self._left == 0 else answer


@pytest.mark.parametrize("extended", [True, False])
@pytest.mark.parametrize("pages", [True, False])
def test_flash_holds_it_and_starts(extended: bool, pages: bool) -> None:
    rom = Rom(BOARD, extended=extended)
    flash(RomLine(rom), pages)
    assert rom.flash[: len(DATA)] == DATA
    assert rom.started == 0x08000000
    assert rom.erased_pages == (PAGES_OF_DATA if pages else [])
    untouched = 0x5A if pages else 0xFF
    assert set(rom.flash[2 * 16_384 :]) == {untouched}


def test_the_first_block_is_written_last() -> None:
    rom = Rom(BOARD)
    flash(RomLine(rom))
    assert rom.written[-1] == 0
    assert rom.written[:-1] == sorted(rom.written[:-1])


def test_a_bootloader_that_is_awake() -> None:
    rom = Rom(BOARD)
    rom.take(b"\x7f")
    flash(RomLine(rom))
    assert rom.started is not None


def test_pages() -> None:
    sizes = (16, 16, 64)
    assert list(pages_under(sizes, 1)) == [0]
    assert list(pages_under(sizes, 16)) == [0]
    assert list(pages_under(sizes, 17)) == [0, 1]
    assert list(pages_under(sizes, 96)) == [0, 1, 2]


def test_silence() -> None:
    with pytest.raises(DeviceMissing) as raised:
        flash(RomLine(Rom(BOARD), lambda answer: b""))
    assert str(raised.value) == (
        "simulated part: No bootloader answers. "
        "Hold BOOT0 high, press reset (NRST), and try again; check that RX and TX are crossed."
    )
    assert raised.value.exit_code == 3


def test_a_program_answers_instead() -> None:
    line = RomLine(Rom(BOARD), lambda answer: b"hello" if answer else b"")
    with pytest.raises(BootloaderError, match=r"Something answers, but not the bootloader: .* Hold BOOT0 high"):
        flash(line)


def test_an_answer_that_is_none() -> None:
    with pytest.raises(BootloaderError) as raised:
        flash(RomLine(Rom(BOARD), Spoilt(2, lambda answer: b"\x55" + answer)))
    assert str(raised.value) == (
        "simulated part: The bootloader answered 0x55 to the command 'get': neither ACK nor NACK. The line is noisy: "
        "check the cable, or use a lower rate, then reset the part and try again."
    )


def test_another_part() -> None:
    rom = Rom(BOARD, chip=0x421)
    with pytest.raises(BootloaderError) as raised:
        flash(RomLine(rom))
    assert str(raised.value) == (
        "simulated part: This is a different part: its chip id is 0x421, and a stm32f405 has 0x413. "
        "Name the board that is connected, or connect the right one."
    )
    assert set(rom.flash) == {0x5A}


def test_read_protection() -> None:
    rom = Rom(BOARD, protected=True)
    with pytest.raises(ReadProtected, match="Read protection is active, which also prevents flashing"):
        flash(RomLine(rom))
    assert set(rom.flash) == {0x5A}


def test_one_refused_block_is_sent_again() -> None:
    refused = []

    class Hard(Rom):
        def _command(self, command: int):  # type: ignore[no-untyped-def]
            if command == 0x31 and len(self.written) == 3 and len(refused) < 2:
                refused.append(command)
                return False
            return (yield from super()._command(command))

    rom = Hard(BOARD)
    flash(RomLine(rom))
    assert len(refused) == 2
    assert rom.flash[: len(DATA)] == DATA


def test_a_block_refused_for_good() -> None:
    class Hard(Rom):
        def _command(self, command: int):  # type: ignore[no-untyped-def]
            if command == 0x31 and len(self.written) == 3:
                return False
            return (yield from super()._command(command))

    with pytest.raises(HalfFlashed) as raised:
        flash(RomLine(Hard(BOARD)))
    assert str(raised.value) == (
        "simulated part: The bootloader refused the command 'write memory'. "
        "The part is erased or partly written and has no working program. "
        "Start the bootloader (BOOT0 high, reset) or connect the probe again, and flash again."
    )
    assert raised.value.exit_code == 3


def test_flash_that_does_not_hold_it() -> None:
    class Worn(Rom):
        def _erase(self, pages: list[int] | None) -> bool:
            done = super()._erase(pages)
            self.flash[300] = 0
            return done

    rom = Worn(BOARD)
    with pytest.raises(HalfFlashed, match="at 0x0800012c it reads 0x00 instead of 0x"):
        flash(RomLine(rom))
    assert rom.started is None


def test_stopped_by_the_user() -> None:
    def stop(answer: bytes) -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(HalfFlashed, match=r"It was stopped\. The part is erased or partly written"):
        flash(RomLine(Rom(BOARD), Spoilt(40, stop)))
    with pytest.raises(KeyboardInterrupt):
        flash(RomLine(Rom(BOARD), Spoilt(2, stop)))


CHANGES: list[Callable[[bytes], bytes]] = [
    lambda answer: b"",
    lambda answer: bytes([NACK]),
    lambda answer: bytes([ACK]),
    lambda answer: b"\x55" + answer,
    lambda answer: answer[:-1],
    lambda answer: answer + b"\x00",
    lambda answer: bytes([answer[0] ^ 0x10]) + answer[1:],
]


def outcome(rom: Rom, line: RomLine) -> str:
    """Every end is either right or said; a half-flashed part is always called so, and no other is."""
    whole = bytes([0x5A]) * len(DATA)
    try:
        flash(line)
    except HalfFlashed:
        assert rom.started is None
        return "half"
    except NotStarted:
        assert rom.flash[: len(DATA)] == DATA
        return "not started"
    except NnbuildError:
        assert rom.flash[: len(DATA)] == whole
        return "before"
    assert rom.started is not None
    assert rom.flash[: len(DATA)] == DATA
    return "done"


@pytest.mark.turns(2)
@pytest.mark.parametrize("every", [37, pytest.param(7, marks=pytest.mark.slow)])
def test_any_answer_spoilt(every: int) -> None:
    """Each of the first and the last, and some of the many alike between them."""
    seen = set()
    answers = 0

    def count(answer: bytes) -> bytes:
        nonlocal answers
        answers += bool(answer)
        return answer

    flash(RomLine(Rom(BOARD), count))
    for number in [*range(1, 60), *range(60, answers - 20, every), *range(answers - 20, answers + 1)]:
        for change in CHANGES:
            rom = Rom(BOARD)
            seen.add(outcome(rom, RomLine(rom, Spoilt(number, change))))
    assert seen == {"done", "half", "before", "not started"}


@pytest.mark.slow
def test_cut_anywhere() -> None:
    """The ends come in the order of the steps, however many bytes get through."""
    sent = 0

    class Counted(Rom):
        def take(self, data: bytes) -> bytes:
            nonlocal sent
            sent += len(data)
            return super().take(data)

    flash(RomLine(Counted(BOARD)))
    ends = []
    for most in [*range(1, 80), *range(80, sent - 20, 97), *range(sent - 20, sent + 2)]:
        rom = Rom(BOARD)
        end = outcome(rom, RomLine(rom, most=most))
        if end not in ends[-1:]:
            ends.append(end)
    assert ends == ["before", "half", "not started", "done"]
