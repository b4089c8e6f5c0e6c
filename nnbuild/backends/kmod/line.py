"""The connection to a module in a booted kernel: its character device, forwarded over a serial line of the guest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import TracebackType

from nnbuild.backends.kmod.guest import Boot, Guest, release_of
from nnbuild.backends.kmod.versions import kernels_of
from nnbuild.base.errors import NnbuildError
from nnbuild.board.board import Board
from nnbuild.device.emulator import BYTE_RATE
from nnbuild.device.errors import DeviceMissing
from nnbuild.device.transport import Listener, SocketTransport, Transport

BOOTS_WITHIN = 90.0
ENDS_WITHIN = 30.0
READY, END = b"ready\n", b"end\n"
SERVE = """\
for line in {lines}; do stty -F $line 115200 raw -echo; done
insmod /{module}.ko || verdict "insmod failed with $?"
while [ ! -c /dev/{module} ]; do usleep 10000; done
exec 3<>/dev/{module} 4<>{control}
cat <&3 >{link} 2>/dev/null &
out=$!
cat <{link} >&3 2>/dev/null &
in=$!
echo ready >&4
read word <&4
kill $out $in
wait $out $in 2>/dev/null
exec 3>&-
rmmod {module} || verdict "rmmod failed with $?"
verdict passed
"""
"""One open file for both directions, since every open file has its own instance."""


class KernelTransport(Transport):
    """Boots the kernel that a module was built for, loads the module, and connects to its device. On exit without an
    error it unloads the module, shuts the machine down, and requires a clean log."""

    def __init__(self, board: Board, module: Path, guest: Guest | None = None) -> None:
        kernels = kernels_of(board)
        release = release_of(module)
        wanted = guest or Guest(release)
        self.name = f"kernel {wanted.release} with {module.name}"
        self.byte_rate = BYTE_RATE
        self._line: SocketTransport | None = None
        self._control: SocketTransport | None = None
        link, control = kernels.machine.lines
        script = SERVE.format(lines=f"{link} {control}", link=link, control=control, module=module.stem)
        files = {**wanted.files, f"/{module.name}": module.read_bytes()}
        with Listener() as first, Listener() as second:
            ports = (first.port, second.port)
            self._boot = Boot(board, kernels, replace(wanted, files=files), script, ports)
            try:
                self._line = self._accept(first)
                self._control = self._accept(second)
                self._wait_until_ready(self._control)
            except BaseException:
                self.close()
                raise

    def _accept(self, listener: Listener) -> SocketTransport:
        for _ in range(80):
            try:
                return listener.accept(self.name, 0.25)
            except DeviceMissing:
                if not self._boot.running:
                    break
        raise DeviceMissing(
            self.name, f"The emulator did not start. {self._boot.log().strip()[-500:]}", "Run it by hand."
        )

    def _wait_until_ready(self, control: SocketTransport) -> None:
        deadline, heard = self.now() + BOOTS_WITHIN, b""
        while READY.strip() not in heard:
            try:
                heard += control.read(0.5)
            except NnbuildError:
                self._boot.wait(ENDS_WITHIN).require_passed(self.name)
                raise
            if self.now() > deadline:
                raise DeviceMissing(
                    self.name, f"It did not load the module. {self._boot.log()[-500:]}", "Run it by hand."
                )

    def write(self, data: bytes) -> None:
        self._open().write(data)

    def read(self, timeout: float) -> bytes:
        try:
            return self._open().read(timeout)
        except NnbuildError:
            self._boot.wait(ENDS_WITHIN).require_passed(self.name)
            raise

    def _open(self) -> SocketTransport:
        if self._line is None:
            raise self.closed("The connection is closed.")
        return self._line

    def finish(self) -> None:
        """Unloads the module and shuts down; the kernel's log must be clean."""
        if self._control is not None:
            self._control.write(END)
            self._boot.wait(ENDS_WITHIN).require_passed(self.name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self.close()

    def close(self) -> None:
        for line in (self._line, self._control):
            if line is not None:
                line.close()
        self._line = self._control = None
        self._boot.close()
