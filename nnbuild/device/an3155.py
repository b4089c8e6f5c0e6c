"""A client of the bootloader in the ROM of every STM32, over its serial port (AN3155).

A command is a byte and its complement; each part of it is followed by a checksum and answered by one byte, ACK or NACK.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import xor

from nnbuild.base.errors import NnbuildError
from nnbuild.device.errors import DeviceMissing
from nnbuild.device.transport import Transport

SYNC, ACK, NACK = 0x7F, 0x79, 0x1F
GET, GET_ID, READ, GO, WRITE, ERASE, EXTENDED_ERASE = 0x00, 0x02, 0x11, 0x21, 0x31, 0x43, 0x44
BLOCK = 256
"""Maximum bytes that one command reads or writes."""
SYNC_TRIES = 4
SYNC_PATIENCE = 0.5
PATIENCE = 2.0
PAGE_ERASE_PATIENCE = 10.0
MASS_ERASE_PATIENCE = 60.0
WRITE_TRIES = 3

START_BOOTLOADER = "Hold BOOT0 high, press reset (NRST), and try again; check that RX and TX are crossed."


class BootloaderError(NnbuildError):
    """The bootloader refused a command, or gave an invalid answer."""

    exit_code = 3


class Refused(BootloaderError):
    """A NACK: the command changed nothing."""


class ReadProtected(BootloaderError):
    """The part's flash can be neither read nor written."""


class Bootloader:
    """One session with the bootloader; the caller owns the line."""

    def __init__(self, line: Transport) -> None:
        self._line = line
        self._arrived = bytearray()
        self.commands: frozenset[int] = frozenset()
        self.version = 0

    def connect(self) -> int:
        """Wakes the bootloader, which detects the baud rate from the first byte; returns the chip's id."""
        self._wake()
        answer = self._listing(GET, "get")
        self.version, self.commands = answer[0], frozenset(answer[1:])
        missing = {GET_ID, READ, GO, WRITE} - self.commands
        if missing or not self.commands & {ERASE, EXTENDED_ERASE}:
            raise self._error("This bootloader cannot flash: it lacks the commands.", "Use a debug probe: --tool.")
        return int.from_bytes(self._listing(GET_ID, "get id"), "big")

    def _wake(self) -> None:
        """A bootloader that is already awake waits for the second byte of a command and answers NACK, which is fine."""
        while self._line.read(0.0):
            pass
        heard = b""
        for _ in range(SYNC_TRIES):
            self._line.write(bytes([SYNC]))
            deadline = self._line.now() + SYNC_PATIENCE
            while (left := deadline - self._line.now()) > 0:
                data = self._line.read(left)
                if data and data[-1] in (ACK, NACK):
                    return
                heard += data
        if heard:
            raise self._error(
                "Something answers, but not the bootloader: the part runs a program, or the rate is wrong.",
                START_BOOTLOADER,
            )
        raise DeviceMissing(self._line.name, "No bootloader answers.", START_BOOTLOADER)

    def read(self, address: int, size: int) -> bytes:
        """Reads up to BLOCK bytes of memory."""
        try:
            self._command(READ, "read memory")
        except Refused:
            raise ReadProtected(
                self._line.name,
                "Read protection is active, which also prevents flashing.",
                "Remove the protection with ST's tools (st-flash or STM32CubeProgrammer); this erases the part.",
            ) from None
        self._part(address.to_bytes(4, "big"), f"the address {address:#010x}")
        self._line.write(bytes([size - 1, ~(size - 1) & 0xFF]))
        self._acknowledged("a size to read")
        return self._take(size, PATIENCE)

    def write(self, address: int, data: bytes) -> None:
        """Writes up to BLOCK bytes to erased flash. A refused block was not written, and is sent again."""
        for last in (*[False] * (WRITE_TRIES - 1), True):
            try:
                self._command(WRITE, "write memory")
                self._part(address.to_bytes(4, "big"), f"the address {address:#010x}")
                self._part(bytes([len(data) - 1]) + data, f"the data for {address:#010x}")
                return
            except Refused:
                if last:
                    raise

    def erase_pages(self, pages: Sequence[int]) -> None:
        """Erases pages, numbered as in the part's manual."""
        if EXTENDED_ERASE in self.commands:
            numbers = [len(pages) - 1, *pages]
            body = b"".join(number.to_bytes(2, "big") for number in numbers)
            self._command(EXTENDED_ERASE, "extended erase")
        else:
            body = bytes([len(pages) - 1, *pages])
            self._command(ERASE, "erase")
        self._part(body, f"to erase page {pages[0]}", PAGE_ERASE_PATIENCE * len(pages))

    def erase_all(self) -> None:
        if EXTENDED_ERASE in self.commands:
            self._command(EXTENDED_ERASE, "extended erase")
            self._part(b"\xff\xff", "to erase everything", MASS_ERASE_PATIENCE)
        else:
            self._command(ERASE, "erase")
            self._line.write(b"\xff\x00")
            self._acknowledged("to erase everything", MASS_ERASE_PATIENCE)

    def go(self, address: int) -> None:
        """Starts the program whose vector table is at this address, which ends the bootloader."""
        self._command(GO, "go")
        self._part(address.to_bytes(4, "big"), f"to start at {address:#010x}")

    def _listing(self, command: int, what: str) -> bytes:
        """The answer to a command without arguments: its size minus one, the bytes, and a final ACK."""
        self._command(command, what)
        size = self._take(1, PATIENCE)[0] + 1
        answer = self._take(size, PATIENCE)
        self._acknowledged(what)
        return answer

    def _command(self, command: int, what: str) -> None:
        self._line.write(bytes([command, ~command & 0xFF]))
        self._acknowledged(f"the command {what!r}")

    def _part(self, body: bytes, what: str, patience: float = PATIENCE) -> None:
        self._line.write(body + bytes([reduce(xor, body)]))
        self._acknowledged(what, patience)

    def _acknowledged(self, what: str, patience: float = PATIENCE) -> None:
        answer = self._take(1, patience)[0]
        if answer == NACK:
            raise Refused(self._line.name, f"The bootloader refused {what}.", "Reset the part and try again.")
        if answer != ACK:
            raise self._error(
                f"The bootloader answered {answer:#04x} to {what}: neither ACK nor NACK.",
                "The line is noisy: check the cable, or use a lower rate, then reset the part and try again.",
            )

    def _take(self, size: int, patience: float) -> bytes:
        """Reads exactly `size` bytes, waiting at most `patience` seconds for each."""
        while len(self._arrived) < size:
            data = self._line.read(patience)
            if not data:
                raise DeviceMissing(self._line.name, "The bootloader stopped answering.", START_BOOTLOADER)
            self._arrived += data
        taken = bytes(self._arrived[:size])
        del self._arrived[:size]
        return taken

    def _error(self, cause: str, next_step: str) -> BootloaderError:
        return BootloaderError(self._line.name, cause, next_step)
