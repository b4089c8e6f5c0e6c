"""A transport over a character device that speaks the link, or over a pseudo terminal: POSIX systems only."""

from __future__ import annotations

import contextlib
import os
import termios
import tty
from pathlib import Path

from nnbuild.device.transport import CHUNK, PolledTransport, cannot_open


class CharacterTransport(PolledTransport):
    def __init__(self, path: str | Path) -> None:
        self.name = str(path)
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            raise cannot_open(str(path), error) from None
        with contextlib.suppress(termios.error):  # only a terminal needs raw mode
            tty.setraw(self._descriptor)

    def descriptor(self) -> int:
        return self._descriptor

    def give(self, data: memoryview) -> int:
        return os.write(self._descriptor, data)

    def take(self) -> bytes:
        return os.read(self._descriptor, CHUNK)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
