"""Lines to a device: a process's pipes, a pty or character device, a TCP socket, a serial port.

Every transport is a context manager that closes what it opened and reaps what it started.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import termios
import time
import tty
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nnbuild.device.problems import DeviceMissing, TransportClosed

_CHUNK = 65536
_WRITE_PATIENCE = 10.0  # seconds a device may refuse to take bytes before the line counts as dead


class Transport(ABC):
    """A line of bytes. `name` is how errors call it; `byte_rate` is its speed where that is known, else 0."""

    name: str = "device"
    byte_rate: float = 0.0

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Sends all of `data`, or raises TransportClosed."""

    @abstractmethod
    def read(self, timeout: float) -> bytes:
        """What has arrived, waiting up to `timeout` seconds for a first byte; b"" when nothing came."""

    @abstractmethod
    def close(self) -> None:
        """Ends the line; may be called twice."""

    def now(self) -> float:
        """The clock that timeouts on this line are measured with."""
        return time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def closed(self, cause: str) -> TransportClosed:
        return TransportClosed(self.name, cause, "See that the device is connected and running, then start again.")


class DescriptorTransport(Transport):
    """A line over file descriptors, which may be one and the same; owns them."""

    def __init__(self, name: str, reads: int, writes: int) -> None:
        self.name = name
        self._reads = reads
        self._writes = writes
        os.set_blocking(reads, False)
        os.set_blocking(writes, False)

    def write(self, data: bytes) -> None:
        deadline = self.now() + _WRITE_PATIENCE
        left = memoryview(data)
        while left:
            if self._writes < 0:
                raise self.closed("The line is closed.")
            try:
                left = left[os.write(self._writes, left) :]
                continue
            except BlockingIOError:
                pass
            except BrokenPipeError:
                raise self.closed(self._why_ended()) from None
            except OSError as error:
                raise self.closed(f"The line ended while sending ({error.strerror}).") from None
            if self.now() > deadline:
                raise self.closed("The device takes no more bytes.")
            select.select([], [self._writes], [], 0.1)

    def read(self, timeout: float) -> bytes:
        if self._reads < 0:
            raise self.closed("The line is closed.")
        ready, _, _ = select.select([self._reads], [], [], max(0.0, timeout))
        if not ready:
            return b""
        try:
            data = os.read(self._reads, _CHUNK)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise self.closed(f"The line ended while receiving ({error.strerror}).") from None
        if not data:
            raise self.closed(self._why_ended())
        return data

    def _why_ended(self) -> str:
        return "The line ended."

    def close(self) -> None:
        for descriptor in {self._reads, self._writes} - {-1}:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._reads = self._writes = -1


class ProcessTransport(DescriptorTransport):
    """A program that speaks the link on its standard input and output: the host build, an emulator."""

    def __init__(self, command: Sequence[str | Path], name: str | None = None) -> None:
        program = name or Path(command[0]).name
        try:
            self._process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
        except OSError as error:
            raise DeviceMissing(
                program, f"It cannot be started ({error.strerror}).", "Build it first, or name another board."
            ) from None
        assert self._process.stdin is not None and self._process.stdout is not None
        # Taken over from Popen, so that exactly one owner closes them.
        reads, writes = os.dup(self._process.stdout.fileno()), os.dup(self._process.stdin.fileno())
        self._process.stdin.close()
        self._process.stdout.close()
        super().__init__(program, reads, writes)

    def _why_ended(self) -> str:
        try:
            code = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return "The program closed its output."
        return f"The program ended with signal {-code}." if code < 0 else f"The program ended with code {code}."

    def close(self) -> None:
        super().close()
        reap(self._process)


def reap(process: subprocess.Popen[Any], patience: float = 1.0) -> None:
    """Ends a process we started: its input is closed, then it is asked, then it is killed; always waited for."""
    for end in (None, process.terminate, process.kill):
        if end is not None:
            end()
        try:
            process.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue
    process.wait()


class PtyTransport(DescriptorTransport):
    """A pty, or a character device that speaks the link, opened by its path."""

    def __init__(self, path: str | Path) -> None:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            raise cannot_open(str(path), error) from None
        with contextlib.suppress(termios.error):  # a character device that is no terminal needs no raw mode
            tty.setraw(descriptor)
        super().__init__(str(path), descriptor, descriptor)


class SocketTransport(DescriptorTransport):
    """A connected TCP or Unix socket; takes it over."""

    def __init__(self, name: str, connection: socket.socket) -> None:
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        descriptor = connection.detach()
        super().__init__(name, descriptor, descriptor)


def connect(host: str, port: int, timeout: float = 5.0) -> SocketTransport:
    """A line to a device that listens on a TCP port."""
    name = f"{host}:{port}"
    try:
        return SocketTransport(name, socket.create_connection((host, port), timeout))
    except OSError as error:
        raise DeviceMissing(
            name, f"Nothing answers there ({error.strerror or error}).", "Start the device's server, or check the port."
        ) from None


class Listener:
    """Waits on a free TCP port for an emulator to connect: no port is raced for, no first byte is lost."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]

    def accept(self, name: str, timeout: float = 10.0) -> SocketTransport:
        self._socket.settimeout(timeout)
        try:
            connection, _ = self._socket.accept()
        except TimeoutError:
            raise DeviceMissing(
                name, f"It did not connect within {timeout:g} s.", "Start it by hand to see what it says."
            ) from None
        return SocketTransport(name, connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


class SerialTransport(Transport):
    """A serial port through pyserial, which is imported only here."""

    def __init__(self, path: str, baud: int = 115200, parity: str = "N") -> None:
        self.name = path
        self.byte_rate = baud / 10
        try:
            import serial
        except ImportError:
            raise DeviceMissing(
                path, "The package pyserial is not installed.", "Install it: pip install pyserial"
            ) from None
        try:
            self._port: Any = serial.serial_for_url(
                path, baudrate=baud, parity=parity, timeout=0, write_timeout=_WRITE_PATIENCE
            )
            _without_lost_parity(self._port)
            if "://" not in path:
                self._port.exclusive = True
        except (OSError, ValueError, termios.error) as error:  # SerialException is an OSError
            raise cannot_open(path, error) from None

    def write(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except (OSError, TypeError) as error:  # pyserial raises TypeError on a port that was closed
            raise self.closed(f"The line ended while sending ({error}).") from None

    def read(self, timeout: float) -> bytes:
        try:
            self._port.timeout = max(0.0, timeout)
            first: bytes = self._port.read(1)
            return first + self._port.read(self._port.in_waiting) if first else b""
        except (OSError, TypeError, termios.error) as error:
            raise self.closed(f"The line ended while receiving ({error}).") from None

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._port.close()


def _without_lost_parity(port: Any) -> None:
    """A pseudo terminal has no parity bit, and the next setting of anything would fail for asking it again."""
    descriptor = getattr(port, "fd", None)
    if port.parity != "N" and descriptor is not None and not termios.tcgetattr(descriptor)[2] & termios.PARENB:
        port.parity = "N"


def cannot_open(path: str, error: Exception) -> DeviceMissing:
    """Says why a port cannot be opened, and what to do about it."""
    text = str(error)
    number = error.args[0] if isinstance(error, termios.error) else getattr(error, "errno", None)
    if number == 13 or "Permission denied" in text:
        return DeviceMissing(
            path,
            "You may not open this port (permission denied).",
            "Join the group that owns it, usually: sudo usermod -aG dialout $USER, then log in again.",
        )
    if number in (21, 25) or "Inappropriate ioctl" in text:
        return DeviceMissing(path, "This is no serial port.", "'ls /dev/tty*' shows the ports.")
    if number == 2 or "No such file" in text:
        return DeviceMissing(path, "There is no such port.", "Plug the device in; 'ls /dev/tty*' shows the ports.")
    if number in (11, 16) or "busy" in text or "lock" in text:
        return DeviceMissing(path, "Another program is using this port.", "Close it, then start again.")
    if number == 22:
        cause = "It does not take the rate or the parity that are wanted."
        return DeviceMissing(path, cause, "Try another rate with --baud, or another adapter.")
    return DeviceMissing(path, f"The port cannot be opened ({text}).", "Check the port and its cable.")
