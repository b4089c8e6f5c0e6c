"""Builds a generated module with the kernel's own build."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nnbuild.backends.backend import Choice, Chosen
from nnbuild.backends.kmod import headers
from nnbuild.backends.kmod.versions import Kernels, kernels_of
from nnbuild.base.errors import NnbuildError, ToolMissing, UsageError
from nnbuild.board.board import Board

TAKEN = re.compile(
    r"(?:ERROR: modpost: .*'(\w+)' exported twice|error: (?:conflicting types for|redefinition of) .(\w+))"
)
PROBLEM = re.compile(r"error:|Error |ERROR|warning:|undefined!|No such file")


@dataclass(frozen=True)
class KernelChoice:
    """The kernel to build for: one of the board's by name, or a folder of headers."""

    version: str | None = None
    kdir: Path | None = None


CHOICES = (
    Choice(
        "kernel",
        "NAME",
        "of a kernel module: which of the board's kernels to build for and to boot (default: its first)",
    ),
    Choice("kdir", "DIR", "the headers of another kernel, to build a module for", is_path=True, refuse=headers.refuse),
)


def kernel_of(chosen: Chosen) -> KernelChoice:
    kdir = chosen.get("kdir")
    return KernelChoice(chosen.get("kernel"), Path(kdir) if kdir is not None else None)


def headers_for(board: Board, choice: KernelChoice) -> Path:
    if choice.kdir is not None:
        return headers.given(choice.kdir)
    kernels = kernels_of(board)
    return headers.folder_of(kernels, kernels.find(choice.version))


def build(board: Board, folder: Path, choice: KernelChoice, extra: Mapping[str, str] | None = None) -> Path:
    """Builds the .ko of a generated folder; `extra` are variables for make."""
    if shutil.which("make") is None:
        raise ToolMissing(f"board {board.name!r}", "make is not installed.", "apt install make gcc")
    kernels = kernels_of(board)
    where = headers_for(board, choice)
    for each in (folder.absolute(), where):
        if any(character.isspace() or character == ":" for character in str(each)):
            cause = "the kernel's build takes no folder with a blank or a colon in its path."
            raise UsageError(str(each), cause, "Give the folder another name, or build elsewhere.")
    command = ["make", "-C", str(folder), f"KDIR={where}", *_words(kernels, extra or {})]
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", env={**os.environ, "LC_ALL": "C"}
    )
    if done.returncode != 0:
        taken = TAKEN.search(done.stdout + done.stderr)
        if taken is not None:
            cause = f"its function {taken[1] or taken[2]!r} has the name of one of the kernel's own."
            raise UsageError(
                f"module {folder.name!r}", cause, "Give the model another name with --name, or name= for scons."
            )
        lines = [line for line in (done.stdout + done.stderr).splitlines() if PROBLEM.search(line)]
        said = "\n".join(lines[:12]) or done.stderr.strip()[-500:]
        raise NnbuildError(folder.name, f"the kernel's build refused it:\n{said}\n", f"It was: {' '.join(command)}")
    modules = sorted(folder.glob("*.ko"))
    assert len(modules) == 1, f"one module comes of a folder, not {modules}"
    return modules[0]


def _words(kernels: Kernels, extra: Mapping[str, str]) -> list[str]:
    words = [f"ARCH={kernels.arch}", f"CROSS_COMPILE={kernels.cross}"] if kernels.cross else []
    if kernels.cross and shutil.which(f"{kernels.cross}gcc") is None:
        package = f"gcc-{kernels.cross.rstrip('-')}"
        raise ToolMissing("the kernel's build", f"{kernels.cross}gcc is not installed.", f"apt install {package}")
    return [*words, *(f"{name}={value}" for name, value in extra.items())]
