"""Boots a Debian kernel in QEMU with nnbuild's own file system, to try a module."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from elftools.elf.elffile import ELFFile

from nnbuild.backends.kmod.cpio import archive
from nnbuild.backends.kmod.packages import unpacked
from nnbuild.backends.kmod.versions import Kernels, Machine
from nnbuild.base.errors import CheckFailed, ToolMissing, UsageError
from nnbuild.board.board import Board
from nnbuild.device.emulator import ending_with_us
from nnbuild.device.transport import reap

VERMAGIC = re.compile(rb"(?:^|\0)vermagic=(\S+) ")
TROUBLE = re.compile(r"Oops|panic|BUG:|WARNING|Call Trace|rcu: INFO|soft lockup|general protection")
ASKED = re.compile(r"ommand line: ")
"""The kernel logs its command line, which mentions panics."""
VERDICT = "nnbuild: verdict: "
MEMORY = "512"
START = f"""\
#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /lib/firmware
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t debugfs debugfs /sys/kernel/debug
verdict() {{
    dmesg | grep -E '{TROUBLE.pattern}|nn_' | sed 's/^/log: /'
    echo "{VERDICT}$*"
    poweroff -f
}}
"""
"""The start of every guest's init. It prints all relevant log lines: the console omits those below the level of
errors."""


@dataclass(frozen=True)
class Guest:
    """What to boot: a kernel release, the processor and the number of CPUs, and additional kernel parameters."""

    release: str
    processor: str | None = None
    processors: int = 1
    icount: str | None = None
    parameters: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How a guest ended: QEMU's exit code and the console's output."""

    code: int
    log: str

    @property
    def verdict(self) -> str | None:
        found = [line.partition(VERDICT)[2].strip() for line in self.log.splitlines() if VERDICT in line]
        return found[-1] if found else None

    @property
    def trouble(self) -> list[str]:
        lines = [line.strip() for line in self.log.splitlines() if TROUBLE.search(line)]
        return [line for line in lines if not ASKED.search(line)]

    @property
    def passed(self) -> bool:
        """Requires the exit code, the verdict and a clean log: QEMU also exits with 0 after a panic, and a panic can
        follow a verdict."""
        return self.code == 0 and self.verdict == "passed" and not self.trouble

    def require_passed(self, where: str) -> None:
        if self.passed:
            return
        lines = self.trouble or self.log.strip().splitlines()
        cause = f"the kernel failed (verdict {self.verdict or 'none'}, code {self.code}):\n"
        raise CheckFailed(where, cause + "\n".join(lines[-25:]) + "\n", "Fix this before trusting the module.")


def release_of(module: Path) -> str:
    """The kernel release that a module was built for."""
    try:
        with module.open("rb") as file:
            section = ELFFile(file).get_section_by_name(".modinfo")
            found = VERMAGIC.search(section.data()) if section is not None else None
    except Exception:
        found = None
    if found is None:
        raise UsageError(str(module), "it is not a kernel module.", "Give a .ko that was built for a kernel.")
    return found[1].decode()


def image_of(release: str, kernels: Kernels) -> Path:
    """The kernel image, from Debian's package for exactly this release."""
    folder = unpacked(f"linux-image-{release}", kernels.debian)
    images = sorted((folder / "boot").glob("vmlinuz-*"))
    if not images:
        raise ToolMissing(f"linux-image-{release}", "the package holds no kernel.", f"Remove {folder} and start again.")
    return images[0]


def initramfs(script: str, files: Mapping[str, bytes], kernels: Kernels) -> bytes:
    """Busybox, the files, and an init that runs the script."""
    busybox = (unpacked(kernels.machine.busybox, kernels.debian) / "bin" / "busybox").read_bytes()
    return archive({"/bin/busybox": busybox, "/init": (START + script).encode(), **files})


def command_line(
    machine: Machine, guest: Guest, image: Path, initrd: Path, console: Path, lines: Sequence[int] = ()
) -> list[str]:
    """`lines` are the ports on this machine to which the guest's other serial lines connect. `no_timer_check` is needed
    since a kernel on a loaded machine may find its timer late and give up.
    """
    always = "panic=-1 oops=panic no_timer_check rdinit=/init quiet"
    words = f"console={machine.console} {always} {guest.parameters}".strip()
    return [
        *machine.command,
        *("-cpu", guest.processor or machine.processor, "-smp", str(guest.processors), "-m", MEMORY),
        *("-nodefaults", "-no-reboot", "-display", "none", "-monitor", "none"),
        *(("-icount", guest.icount) if guest.icount is not None else ()),
        *("-serial", f"file:{console}"),
        *(word.format(port=port, n=n) for n, port in enumerate(lines) for word in machine.serial),
        *("-kernel", str(image), "-initrd", str(initrd), "-append", words),
    ]


class Boot:
    """A running guest. The caller must wait for it or end it."""

    def __init__(self, board: Board, kernels: Kernels, guest: Guest, script: str, lines: Sequence[int] = ()) -> None:
        machine = kernels.machine
        if shutil.which(machine.command[0]) is None:
            raise ToolMissing(f"board {board.name!r}", f"{machine.command[0]} is not installed.", machine.install)
        image = image_of(guest.release, kernels)
        self._work = tempfile.TemporaryDirectory(prefix="nnbuild-guest-")
        folder = Path(self._work.name)
        self._console = folder / "console"
        initrd = folder / "initrd"
        initrd.write_bytes(initramfs(script, guest.files, kernels))
        command = command_line(machine, guest, image, initrd, self._console, lines)
        with (folder / "words").open("wb") as words:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=words, stderr=subprocess.STDOUT, **ending_with_us()
            )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def log(self) -> str:
        """The output of QEMU and of the console."""
        parts = [
            path.read_text("utf-8", "replace")
            for path in (self._console.with_name("words"), self._console)
            if path.is_file()
        ]
        return "".join(parts).replace("\r", "")

    def wait(self, patience: float) -> Outcome:
        """Waits until it has switched itself off; ends it after `patience` seconds."""
        try:
            code = self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return Outcome(-signal.SIGKILL, f"{self.log()}\nit did not end within {patience:g} s")
        return Outcome(code, self.log())

    def close(self) -> None:
        if self.running:
            self._process.kill()
        reap(self._process)
        self._work.cleanup()


def run_script(board: Board, kernels: Kernels, guest: Guest, script: str, patience: float = 120.0) -> Outcome:
    """Boots, runs a script that ends with a call of `verdict`, and switches off."""
    boot = Boot(board, kernels, guest, script)
    try:
        return boot.wait(patience)
    finally:
        boot.close()
