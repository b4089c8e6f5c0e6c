"""An emulated board to be ill-treated: reset and stopped from outside, its line on a pty, its cable pulled."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nnbuild.board.board import Board
from nnbuild.device.emulator import EmulatorTransport
from nnbuild.device.errors import TransportClosed
from nnbuild.device.transport import Transport


class Device:
    """A board in QEMU, and QEMU's own line of commands."""

    def __init__(self, board: Board, program: Path, folder: Path) -> None:
        assert board.emulator is not None
        commands = folder / f"{time.monotonic_ns()}.qmp"
        words = [*board.emulator.command, "-qmp", f"unix:{commands},server=on,wait=off"]
        self.line = EmulatorTransport(f"emulated {board.name}", words, program)
        self._commands = socket.socket(socket.AF_UNIX)
        self._commands.settimeout(10.0)
        self._commands.connect(str(commands))
        self._said = self._commands.makefile("rb")
        self._said.readline()  # its greeting
        self._lock = threading.Lock()
        self._command("qmp_capabilities")

    def _command(self, name: str) -> None:
        with self._lock:
            self._commands.sendall(json.dumps({"execute": name}).encode() + b"\n")
            while "return" not in (answer := json.loads(self._said.readline())):
                assert "error" not in answer, answer

    def reset(self) -> None:
        self._command("system_reset")

    def freeze(self) -> None:
        """The device is there and says nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def unplug(self) -> None:
        """Our end of the line goes, the device lives on."""
        assert self.line._line is not None
        self.line._line.close()

    @property
    def _process(self) -> Any:
        return self.line._process

    def close(self) -> None:
        self.thaw()
        self._said.close()
        self._commands.close()
        self.line.close()


@contextmanager
def device(board: Board, program: Path, folder: Path) -> Iterator[Device]:
    found = Device(board, program, folder)
    try:
        yield found
    finally:
        found.close()


@contextmanager
def on_pty(line: Transport) -> Iterator[str]:
    """The path of a pty at whose other end the line goes on. When the line ends, so does the pty."""
    master, slave = os.openpty()
    tty.setraw(slave)
    ended = threading.Event()
    carriers = [
        threading.Thread(target=_carry, args=(way, line, os.dup(master), ended)) for way in (_to_device, _to_host)
    ]
    os.close(master)
    for carrier in carriers:
        carrier.start()
    try:
        yield os.ttyname(slave)
    finally:
        ended.set()
        for carrier in carriers:
            carrier.join()
        os.close(slave)


def _carry(way: Callable[[Transport, int], None], line: Transport, master: int, ended: threading.Event) -> None:
    with suppress(TransportClosed, OSError):
        while not ended.is_set():
            way(line, master)
    ended.set()
    os.close(master)


def _to_device(line: Transport, master: int) -> None:
    if select.select([master], [], [], 0.05)[0]:
        line.write(os.read(master, 4096))


def _to_host(line: Transport, master: int) -> None:
    if data := line.read(0.05):
        os.write(master, data)
