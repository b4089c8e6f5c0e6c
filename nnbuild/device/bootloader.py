"""Writes an image to a part's flash over its serial port.

Any failure after the first erased page is reported together with its consequence: a part without a program. The first
block, which contains the vector table, is written last, so that an incomplete program never starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from nnbuild.base.errors import NnbuildError
from nnbuild.device.an3155 import BLOCK, Bootloader, BootloaderError
from nnbuild.device.transport import Transport

UNIT = 32
"""Writes are multiples of this: the largest flash word of any STM32."""
ERASED = b"\xff"
Progress = Callable[[int, int | None], None]


class HalfFlashed(NnbuildError):
    """Flashing started but did not finish: the part has no complete program."""

    exit_code = 3


class NotStarted(BootloaderError):
    """Only the last step failed: starting the program."""


@dataclass(frozen=True)
class Part:
    """The facts of a part that flashing needs. `pages` are the sizes of its flash pages in order; without them the
    whole flash is erased."""

    board: str
    origin: int
    chip: int
    pages: tuple[int, ...] = ()


def fill_up(data: bytes) -> bytes:
    return data + ERASED * (-len(data) % UNIT)


def flash_serial(line: Transport, part: Part, data: bytes, progress: Callable[[str], Progress]) -> None:
    """Erases, writes, verifies and starts. `data` belongs at the start of the part's flash."""
    loader = Bootloader(line)
    chip = loader.connect()
    if chip != part.chip:
        raise BootloaderError(
            line.name,
            f"This is a different part: its chip id is {chip:#05x}, and a {part.board} has {part.chip:#05x}.",
            "Name the board that is connected, or connect the right one.",
        )
    loader.read(part.origin, 1)  # a protected part fails here, before anything is erased
    with _said(line.name):
        _erase(loader, part, len(data), progress("page"))
        _write(loader, part.origin, fill_up(data), progress("written"))
        _verify(loader, line.name, part.origin, data, progress("verified"))
    try:
        loader.go(part.origin)
    except NnbuildError as error:
        raise NotStarted(
            error.where,
            f"{error.cause} The program was written and verified, but could not be started.",
            "Reset the part with BOOT0 low.",
        ) from error


@contextmanager
def _said(where: str) -> Iterator[None]:
    """Adds the consequence to any failure inside."""
    try:
        yield
    except NnbuildError as error:
        raise half_flashed(error.where, error.cause) from error
    except KeyboardInterrupt:
        raise half_flashed(where, "It was stopped.") from None


def half_flashed(where: str, cause: str) -> HalfFlashed:
    return HalfFlashed(
        where,
        f"{cause} The part is erased or partly written and has no working program.",
        "Start the bootloader (BOOT0 high, reset) or connect the probe again, and flash again.",
    )


def _erase(loader: Bootloader, part: Part, size: int, progress: Progress) -> None:
    if not part.pages:
        loader.erase_all()
        return
    pages = list(pages_under(part.pages, size))
    for page in pages:
        loader.erase_pages([page])
        progress(page + 1, len(pages))


def pages_under(sizes: Sequence[int], length: int) -> Iterator[int]:
    """Numbers of the pages that the first `length` bytes occupy."""
    at = 0
    for number, size in enumerate(sizes):
        if at >= length:
            return
        yield number
        at += size


def _write(loader: Bootloader, origin: int, data: bytes, progress: Progress) -> None:
    starts = list(range(0, len(data), BLOCK))
    for done, at in enumerate([*starts[1:], starts[0]], 1):
        block = data[at : at + BLOCK]
        if block.strip(ERASED):
            loader.write(origin + at, block)
        progress(min(done * BLOCK, len(data)), len(data))


def _verify(loader: Bootloader, where: str, origin: int, data: bytes, progress: Progress) -> None:
    for at in range(0, len(data), BLOCK):
        wanted = data[at : at + BLOCK]
        found = loader.read(origin + at, len(wanted))
        if found != wanted:
            first = next(i for i, (a, b) in enumerate(zip(found, wanted, strict=True)) if a != b)
            raise BootloaderError(
                where,
                f"The flash does not hold what was written: at {origin + at + first:#010x} it reads "
                f"{found[first]:#04x} instead of {wanted[first]:#04x}.",
                "Flash again.",
            )
        progress(at + len(wanted), len(data))
