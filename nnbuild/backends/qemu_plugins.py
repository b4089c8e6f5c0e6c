"""Compiles the plugins with which QEMU counts instructions, on first use, and caches them."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from nnbuild.base.errors import NnbuildError, ToolMissing
from nnbuild.base.paths import FIRMWARE, cache
from nnbuild.board.board import Board

COUNTED = FIRMWARE / "platform" / "counted"
COMPILERS = ("cc", "gcc", "clang")
"""Compilers for this PC, in order of preference."""


def plugin(board: Board, name: str) -> Path:
    source = COUNTED / f"{name}.c"
    kept = cache() / "plugins" / f"{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}.so"
    if not kept.is_file():
        _compile(source, kept, board)
    return kept


def _compile(source: Path, target: Path, board: Board) -> None:
    compiler = next((name for name in COMPILERS if shutil.which(name)), None)
    if compiler is None:
        cause = "counting instructions needs a compiler for this PC, and none is installed."
        raise ToolMissing(f"board {board.name!r}", cause, "apt install gcc libc6-dev")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        command = [compiler, "-shared", "-fPIC", "-O2", "-fvisibility=hidden", "-o", str(made), str(source)]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
        if done.returncode != 0:
            raise NnbuildError(source.name, f"the compiler rejected it:\n{done.stderr.strip()}\n", " ".join(command))
        made.replace(target)
