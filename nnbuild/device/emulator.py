"""An emulated board: a child process whose serial port connects back to this process."""

from __future__ import annotations

import ctypes
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from nnbuild.base.errors import ToolMissing
from nnbuild.device.errors import DeviceMissing, TransportClosed
from nnbuild.device.transport import Listener, SocketTransport, Transport, reap

CONNECTS_WITHIN = 20.0
BYTE_RATE = 2000.0
"""Minimum bytes per second that an emulated serial port accepts; much less than it sends."""
LAST_MOMENT = 0.5
"""Seconds to wait for an emulator to exit after its connection has ended."""
PR_SET_PDEATHSIG = 1
SAID = 500
"""Maximum characters of the emulator's output in an error."""


class EmulatorTransport(Transport):
    """Starts an emulator and connects to it; closing the transport ends the emulator, whatever happened."""

    def __init__(self, name: str, command: Sequence[str], image: Path) -> None:
        self.name = name
        self.byte_rate = BYTE_RATE
        self._line: SocketTransport | None = None
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the line
        with Listener() as listener:
            whole = [word.format(port=listener.port, image=image) for word in command]
            try:
                self._process = subprocess.Popen(
                    whole,
                    stdin=subprocess.DEVNULL,
                    stdout=self._words,
                    stderr=subprocess.STDOUT,
                    **ending_with_us(),
                )
            except OSError as error:
                self._words.close()
                raise DeviceMissing(
                    name, f"{command[0]} cannot be started ({error.strerror}).", "Run it by hand."
                ) from None
            try:
                self._line = self._accept(listener)
            except BaseException:
                self.close()
                raise

    def _accept(self, listener: Listener) -> SocketTransport:
        """Waits in short intervals, to notice an emulator that exits instead of connecting."""
        for _ in range(int(CONNECTS_WITHIN / 0.25)):
            try:
                return listener.accept(self.name, 0.25)
            except DeviceMissing:
                if self._process.poll() is not None:
                    break
        raise DeviceMissing(self.name, f"The emulator did not start. {self._last_words()}", "Run it by hand.")

    def _last_words(self) -> str:
        with suppress(subprocess.TimeoutExpired):  # its connection ends shortly before the process
            self._process.wait(LAST_MOMENT)
        code = self._process.poll()
        self._words.seek(0)
        said = self._words.read().decode(errors="replace").strip()[-SAID:]
        ended = f"It ended with code {code}" if code is not None else "It is running"
        return f"{ended}; its output: {said}" if said else f"{ended} without any output."

    def write(self, data: bytes) -> None:
        self._open().write(data)

    def read(self, timeout: float) -> bytes:
        try:
            return self._open().read(timeout)
        except TransportClosed as error:
            raise TransportClosed(error.where, f"{error.cause} {self._last_words()}", error.next_step) from None

    def _open(self) -> SocketTransport:
        if self._line is None:
            raise self.closed("The connection is closed.")
        return self._line

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._process.poll() is None:
            self._process.terminate()
        reap(self._process)
        self._words.close()


def ending_with_us() -> dict[str, Any]:
    """Options for starting a process that Linux kills when this process dies for any reason."""
    if sys.platform != "linux":
        return {}
    return {"preexec_fn": lambda: ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)}


def require(command: Sequence[str], what: str, install: str) -> None:
    """Fails early if the program is not installed."""
    if shutil.which(command[0]) is None:
        raise ToolMissing(what, f"the emulator {command[0]} is not installed.", f"{install}")
