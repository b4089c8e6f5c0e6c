"""Connections to a device: a process's pipes, a TCP socket, a serial port. POSIX-only ones are in character_device.py.

Every transport is a context manager that closes its connection and reaps the processes it started.
"""

from __future__ import annotations

import contextlib
import select
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Self

from nnbuild.device.errors import DeviceMissing, TransportClosed
from nnbuild.device.ports import port_of
from nnbuild.device.posix_terminal import PORT_ERRORS, TERMINAL_ERRORS, without_lost_parity

CHUNK = 65536
_LAST_MOMENT = 1.0  # seconds for a thread to notice that its program has ended
WRITE_PATIENCE = 10.0  # seconds without accepted bytes before the connection counts as dead


class Transport(ABC):
    """A byte stream. `name` is its name in errors; `byte_rate` is its speed where known, otherwise 0."""

    name: str = "device"
    byte_rate: float = 0.0

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Sends all of `data`, or raises TransportClosed."""

    @abstractmethod
    def read(self, timeout: float) -> bytes:
        """Returns received bytes, waiting up to `timeout` seconds for the first; b"" on timeout."""

    @abstractmethod
    def close(self) -> None:
        """Closes the connection; may be called twice."""

    def now(self) -> float:
        """The clock for timeouts on this connection."""
        return time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def closed(self, cause: str) -> TransportClosed:
        return TransportClosed(self.name, cause, "Check that the device is connected and running, then try again.")


class ProcessTransport(Transport):
    """A program that speaks the link on its standard input and output: the host build, or an emulator. Two threads
    receive and send, because not every system can wait for a pipe with a timeout."""

    def __init__(self, command: Sequence[str | Path], name: str | None = None) -> None:
        self.name = name or Path(command[0]).name
        try:
            self._process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
        except OSError as error:
            raise DeviceMissing(
                self.name, f"It cannot be started ({error.strerror}).", "Build it first, or choose another board."
            ) from None
        self._arrived: SimpleQueue[bytes] = SimpleQueue()
        self._leaving: SimpleQueue[bytes | None] = SimpleQueue()
        self._sent: SimpleQueue[OSError | None] = SimpleQueue()
        self._open = True
        self._threads = [Thread(target=each, daemon=True) for each in (self._receive, self._send)]
        for thread in self._threads:
            thread.start()

    def _receive(self) -> None:
        """Queues received data; an empty item at the end."""
        assert self._process.stdout is not None
        data = b"first"
        while data:
            data = self._process.stdout.read(CHUNK)
            self._arrived.put(data)

    def _send(self) -> None:
        """Sends queued data until None, and reports the success of each item."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError), self._process.stdin as pipe:
            while (data := self._leaving.get()) is not None:
                try:
                    left = memoryview(data)
                    while left:
                        left = left[pipe.write(left) :]
                    self._sent.put(None)
                except OSError as error:
                    self._sent.put(error)

    def write(self, data: bytes) -> None:
        if not self._open:
            raise self.closed("The connection is closed.")
        self._leaving.put(data)
        try:
            problem = self._sent.get(timeout=WRITE_PATIENCE)
        except Empty:
            raise self.closed("The device accepts no more bytes.") from None
        if problem is not None:
            raise self.closed(self._why_ended())

    def read(self, timeout: float) -> bytes:
        if not self._open:
            raise self.closed("The connection is closed.")
        try:
            data = self._arrived.get(timeout=max(0.0, timeout))
        except Empty:
            return b""
        if not data:
            self._arrived.put(data)  # later readers must see the end, too
            raise self.closed(self._why_ended())
        return data

    def _why_ended(self) -> str:
        try:
            code = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return "The program closed its output."
        return f"The program ended with signal {-code}." if code < 0 else f"The program ended with code {code}."

    def close(self) -> None:
        if not self._open:
            return
        self._open = False
        self._leaving.put(None)
        reap(self._process)
        for thread in self._threads:
            thread.join(_LAST_MOMENT)
        if self._process.stdout is not None and not self._threads[0].is_alive():
            self._process.stdout.close()


def reap(process: subprocess.Popen[Any], patience: float = 1.0) -> None:
    """Ends a child process: closes its input, terminates it, then kills it; always waits for it."""
    for end in (None, process.terminate, process.kill):
        if end is not None:
            end()
        try:
            process.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue
    process.wait()


class PolledTransport(Transport):
    """A connection with a descriptor that the system can wait for."""

    @abstractmethod
    def descriptor(self) -> int:
        """The descriptor; below 0 when closed."""

    @abstractmethod
    def give(self, data: memoryview) -> int:
        """Sends what it can without waiting; returns the number of bytes sent."""

    @abstractmethod
    def take(self) -> bytes:
        """Returns available bytes; empty at the end."""

    def write(self, data: bytes) -> None:
        deadline = self.now() + WRITE_PATIENCE
        left = memoryview(data)
        while left:
            descriptor = self._opened()
            try:
                left = left[self.give(left) :]
                continue
            except BlockingIOError:
                pass
            except OSError as error:
                raise self.closed(f"The connection ended while sending ({error.strerror}).") from None
            if self.now() > deadline:
                raise self.closed("The device accepts no more bytes.")
            select.select([], [descriptor], [], 0.1)

    def read(self, timeout: float) -> bytes:
        ready, _, _ = select.select([self._opened()], [], [], max(0.0, timeout))
        if not ready:
            return b""
        try:
            data = self.take()
        except BlockingIOError:
            return b""
        except OSError as error:
            raise self.closed(f"The connection ended while receiving ({error.strerror}).") from None
        if not data:
            raise self.closed("The line ended.")
        return data

    def _opened(self) -> int:
        descriptor = self.descriptor()
        if descriptor < 0:
            raise self.closed("The connection is closed.")
        return descriptor


class SocketTransport(PolledTransport):
    """Takes over a connected TCP or Unix socket."""

    def __init__(self, name: str, connection: socket.socket) -> None:
        self.name = name
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
        self._socket = connection

    def descriptor(self) -> int:
        return self._socket.fileno()

    def give(self, data: memoryview) -> int:
        return self._socket.send(data)

    def take(self) -> bytes:
        return self._socket.recv(CHUNK)

    def close(self) -> None:
        self._socket.close()


def connect(host: str, port: int, timeout: float = 5.0) -> SocketTransport:
    """Connects to a device that listens on a TCP port."""
    name = f"{host}:{port}"
    try:
        return SocketTransport(name, socket.create_connection((host, port), timeout))
    except OSError as error:
        raise DeviceMissing(
            name, f"Nothing answers there ({error.strerror or error}).", "Start the device's server, or check the port."
        ) from None


class Listener:
    """Listens on a free TCP port for an emulator, without races for the port and without losing the first byte."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]

    def accept(self, name: str, timeout: float = 10.0) -> SocketTransport:
        self._socket.settimeout(timeout)
        try:
            connection, _ = self._socket.accept()
        except TimeoutError:
            raise DeviceMissing(
                name, f"It did not connect within {timeout:g} s.", "Run it by hand to see its messages."
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
        path = port_of(path)
        self.byte_rate = baud / 10
        try:
            import serial
        except ImportError:
            raise DeviceMissing(
                path, "The package pyserial is not installed.", "Install it: pip install pyserial"
            ) from None
        try:
            self._port: Any = serial.serial_for_url(
                path, baudrate=baud, parity=parity, timeout=0, write_timeout=WRITE_PATIENCE
            )
            without_lost_parity(self._port)
            if "://" not in path:
                self._port.exclusive = True
        except PORT_ERRORS as error:
            raise cannot_open(path, error) from None

    def write(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except PORT_ERRORS as error:
            raise self.closed(f"The connection ended while sending ({error}).") from None

    def read(self, timeout: float) -> bytes:
        try:
            self._port.timeout = max(0.0, timeout)
            first: bytes = self._port.read(1)
            return first + self._port.read(self._port.in_waiting) if first else b""
        except PORT_ERRORS as error:
            raise self.closed(f"The connection ended while receiving ({error}).") from None

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._port.close()


def cannot_open(path: str, error: Exception) -> DeviceMissing:
    """Explains why a port cannot be opened, with the next step."""
    text = str(error)
    number = error.args[0] if isinstance(error, TERMINAL_ERRORS) else getattr(error, "errno", None)
    if number == 13 or "Permission denied" in text:
        return DeviceMissing(
            path,
            "Permission to open this port was denied.",
            "Join the group that owns it, usually: sudo usermod -aG dialout $USER, then log in again.",
        )
    if number in (21, 25) or "Inappropriate ioctl" in text:
        return DeviceMissing(path, "This is not a serial port.", "'ls /dev/tty*' shows the ports.")
    if number == 2 or "No such file" in text:
        return DeviceMissing(path, "There is no such port.", "Plug the device in; 'ls /dev/tty*' shows the ports.")
    if number in (11, 16) or "busy" in text or "lock" in text:
        return DeviceMissing(path, "Another program is using this port.", "Close it, then try again.")
    if number == 22:
        cause = "It does not support the requested rate or parity."
        return DeviceMissing(path, cause, "Try another rate with --baud, or another adapter.")
    return DeviceMissing(path, f"The port cannot be opened ({text}).", "Check the port and its cable.")
