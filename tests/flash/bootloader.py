"""A stand-in for the bootloader in an STM32's ROM (AN3155), in memory or on a pty; what is flashed boots in QEMU."""

from __future__ import annotations

import os
import select
import threading
import tty
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import reduce
from operator import xor
from pathlib import Path

from nnbuild.board.board import Board
from nnbuild.device.emulator import EmulatorTransport
from nnbuild.device.errors import TransportClosed
from nnbuild.device.transport import Transport

ACK, NACK, SYNC = 0x79, 0x1F, 0x7F
GET, GET_VERSION, GET_ID, READ, GO, WRITE, ERASE, EXTENDED_ERASE = 0x00, 0x01, 0x02, 0x11, 0x21, 0x31, 0x43, 0x44
WORD = 4


class Rom:
    """The bootloader itself: bytes go in, answers come out. Its flash can only be written where it is erased."""

    def __init__(
        self, board: Board, *, extended: bool = True, protected: bool = False, chip: int | None = None
    ) -> None:
        assert board.flash is not None
        flash = board.memory("flash")
        self.origin = flash.origin
        self.flash = bytearray(b"\x5a" * flash.length)
        self.pages = board.flash.pages
        self.chip = board.flash.chip if chip is None else chip
        self.protected = protected
        self.erase = EXTENDED_ERASE if extended else ERASE
        self.started: int | None = None
        self.erased_pages: list[int] = []
        self.written: list[int] = []
        self._answers = bytearray()
        self._machine = self._run()
        next(self._machine)

    def take(self, data: bytes) -> bytes:
        """What it answers to these bytes. After GO it is deaf."""
        for byte in data:
            if self.started is not None:
                break
            self._machine.send(byte)
        answers, self._answers = bytes(self._answers), bytearray()
        return answers

    def _say(self, *data: int) -> None:
        self._answers += bytes(data)

    def _run(self) -> Generator[None, int, None]:
        while (yield) != SYNC:
            pass
        self._say(ACK)
        while True:
            command = yield
            complement = yield
            done = command ^ complement == 0xFF and (yield from self._command(command))
            if not done:
                self._say(NACK)

    def _command(self, command: int) -> Generator[None, int, bool]:
        known = {
            GET: self._get,
            GET_VERSION: self._get_version,
            GET_ID: self._get_id,
            READ: self._read,
            GO: self._go,
            WRITE: self._write,
            self.erase: self._extended_erase if self.erase == EXTENDED_ERASE else self._old_erase,
        }
        if command not in known or (self.protected and command not in (GET, GET_VERSION, GET_ID)):
            return False
        self._say(ACK)
        return (yield from known[command]())

    def _get(self) -> Generator[None, int, bool]:
        commands = (GET, GET_VERSION, GET_ID, READ, GO, WRITE, self.erase)
        self._say(len(commands), 0x31, *commands, ACK)
        return True
        yield

    def _get_version(self) -> Generator[None, int, bool]:
        self._say(0x31, 0, 0, ACK)
        return True
        yield

    def _get_id(self) -> Generator[None, int, bool]:
        self._say(1, *self.chip.to_bytes(2, "big"), ACK)
        return True
        yield

    def _bytes(self, count: int) -> Generator[None, int, bytes]:
        taken = bytearray()
        while len(taken) < count:
            taken.append((yield))
        return bytes(taken)

    def _address(self) -> Generator[None, int, int | None]:
        """The offset into flash; None after a wrong checksum, or for a place outside."""
        body = yield from self._bytes(5)
        offset = int.from_bytes(body[:4], "big") - self.origin
        return offset if reduce(xor, body) == 0 and 0 <= offset < len(self.flash) else None

    def _read(self) -> Generator[None, int, bool]:
        offset = yield from self._address()
        if offset is None:
            return False
        self._say(ACK)
        size, check = yield from self._bytes(2)
        if size ^ check != 0xFF or offset + size >= len(self.flash):
            return False
        self._say(ACK, *self.flash[offset : offset + size + 1])
        return True

    def _write(self) -> Generator[None, int, bool]:
        offset = yield from self._address()
        if offset is None or offset % WORD:
            return False
        self._say(ACK)
        size = yield
        data = yield from self._bytes(size + 2)
        if reduce(xor, data) != size or (size + 1) % WORD or offset + size >= len(self.flash):
            return False
        for at, byte in enumerate(data[:-1], offset):
            self.flash[at] &= byte
        self.written.append(offset)
        self._say(ACK)
        return True

    def _extended_erase(self) -> Generator[None, int, bool]:
        head = yield from self._bytes(2)
        count = int.from_bytes(head, "big")
        body = yield from self._bytes(1 if count >= 0xFFF0 else 2 * (count + 1) + 1)
        if reduce(xor, head + body) != 0:
            return False
        pages = [int.from_bytes(body[at : at + 2], "big") for at in range(0, len(body) - 1, 2)]
        return self._erase(None if count == 0xFFFF else pages)

    def _old_erase(self) -> Generator[None, int, bool]:
        count = yield
        body = yield from self._bytes(1 if count == 0xFF else count + 2)
        if count == 0xFF:
            return body == b"\x00" and self._erase(None)
        return reduce(xor, body) == count and self._erase(list(body[:-1]))

    def _erase(self, pages: list[int] | None) -> bool:
        if pages is None:
            self.flash[:] = b"\xff" * len(self.flash)
        elif any(page >= len(self.pages) for page in pages):
            return False
        for page in pages or ():
            start = sum(self.pages[:page])
            self.flash[start : start + self.pages[page]] = b"\xff" * self.pages[page]
        self.erased_pages += pages or []
        self._say(ACK)
        return True

    def _go(self) -> Generator[None, int, bool]:
        offset = yield from self._address()
        if offset is None:
            return False
        self._say(ACK)
        self.started = self.origin + offset
        return True


class RomLine(Transport):
    """A line to a ROM in memory, on a clock of its own: nobody waits. `spoil` may change what comes back."""

    name = "simulated part"

    def __init__(self, rom: Rom, spoil: Callable[[bytes], bytes] = bytes, most: int | None = None) -> None:
        self._rom, self._spoil = rom, spoil
        self._left = most
        self._clock = 0.0
        self._arrived = bytearray()

    def now(self) -> float:
        return self._clock

    def write(self, data: bytes) -> None:
        """After `most` bytes the cable is cut."""
        if self._left is not None:
            data, self._left = data[: self._left], max(0, self._left - len(data))
        self._arrived += self._spoil(self._rom.take(data))
        if self._left == 0:
            raise self.closed("The connection ended while sending.")

    def read(self, timeout: float) -> bytes:
        self._clock += 0.0 if self._arrived else timeout
        data, self._arrived = bytes(self._arrived), bytearray()
        return data

    def close(self) -> None:
        self._arrived.clear()


@contextmanager
def on_pty(board: Board, rom: Rom, folder: Path) -> Iterator[str]:
    """The path of a pty behind which the part is; GO boots its flash in QEMU, on the same pty."""
    master, slave = os.openpty()
    tty.setraw(slave)
    stop, stopped = os.pipe()
    server = threading.Thread(target=_serve, args=(board, rom, folder, master, stop))
    server.start()
    try:
        yield os.ttyname(slave)
    finally:
        os.close(stopped)
        server.join()
        for descriptor in (slave, master, stop):
            os.close(descriptor)


def _serve(board: Board, rom: Rom, folder: Path, master: int, stop: int) -> None:
    while rom.started is None:
        ready, _, _ = select.select([master, stop], [], [])
        if stop in ready:
            return
        os.write(master, rom.take(os.read(master, 4096)))
    assert board.emulator is not None
    image = folder / "flash.bin"
    image.write_bytes(rom.flash)
    ended = threading.Event()
    with EmulatorTransport(f"emulated {board.name}", board.emulator.command, image) as line:
        answers = threading.Thread(target=_answers, args=(line, master, ended))
        answers.start()
        while stop not in (ready := select.select([master, stop], [], [])[0]):
            if master in ready:
                line.write(os.read(master, 4096))
        ended.set()
        answers.join()


def _answers(line: Transport, master: int, ended: threading.Event) -> None:
    with suppress(TransportClosed):
        while not ended.is_set():
            if data := line.read(0.1):
                os.write(master, data)
