"""The kernels that a board's table supports."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nnbuild.base.errors import UsageError
from nnbuild.board.board import Board


@dataclass(frozen=True)
class Version:
    """A Debian kernel: a pattern of its release, and the packages that depend on its newest build."""

    name: str
    release: str
    image: str
    headers: str


@dataclass(frozen=True)
class Machine:
    """The machine that boots it. `lines` are the guest's names of two serial lines besides the console, `serial` QEMU's
    options before each of them."""

    command: tuple[str, ...]
    processor: str
    install: str
    console: str
    lines: tuple[str, str]
    serial: tuple[str, ...]
    busybox: str


@dataclass(frozen=True)
class Kernels:
    """`debian` is the architecture in Debian's terms, `arch` in those of the kernel's build."""

    default: str
    debian: str
    arch: str
    cross: str
    versions: tuple[Version, ...]
    machine: Machine

    def find(self, name: str | None) -> Version:
        wanted = name or self.default
        for version in self.versions:
            if version.name == wanted:
                return version
        names = [version.name for version in self.versions]
        near = difflib.get_close_matches(wanted, names, 1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise UsageError(f"kernel {wanted!r}", "there is no such kernel.", f"{hint}There are: {', '.join(names)}")


def kernels_of(board: Board) -> Kernels:
    table: Mapping[str, Any] = board.table["kernel"]
    machine = table["machine"]
    return Kernels(
        default=table["default"],
        debian=table["debian"],
        arch=table["arch"],
        cross=table.get("cross", ""),
        versions=tuple(
            Version(name, entry["release"], entry["image"], entry["headers"])
            for name, entry in table["version"].items()
        ),
        machine=Machine(
            command=tuple(machine["command"]),
            processor=machine["processor"],
            install=machine["install"],
            console=machine["console"],
            lines=(machine["lines"][0], machine["lines"][1]),
            serial=tuple(machine["serial"]),
            busybox=machine["busybox"],
        ),
    )
