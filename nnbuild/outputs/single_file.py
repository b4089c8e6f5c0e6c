"""One .c with the whole model, and its header: for builds where additional files are a burden."""

from __future__ import annotations

import re
from pathlib import Path

from nnbuild.board.board import Board
from nnbuild.emit.artifact import Artifact
from nnbuild.plan.plan import Plan

ISA = None
WEIGHTS = "array"
EXAMPLE = None


def files(board: Board, plan: Plan, artifact: Artifact) -> dict[str, bytes]:
    p = plan.prefix
    order = (f"{p}.h", f"{p}_private.h", f"{p}_weights.c", f"{p}_kernels.c", f"{p}.c")
    own = re.compile(rf'^#include "{p}(?:_private)?\.h"\n', re.MULTILINE)
    parts = [own.sub("", artifact.files[name].decode()).strip() + "\n" for name in order]
    return {f"{p}.h": artifact.files[f"{p}.h"], f"{p}.c": "\n".join(parts).encode()}


def finish(board: Board, plan: Plan, folder: Path) -> list[str]:
    """Removes files of the other layout, which would define everything twice in a build of *.c."""
    for name in ("private.h", "kernels.c", "weights.c", "weights.S", "weights.bin"):
        (folder / f"{plan.prefix}_{name}").unlink(missing_ok=True)
    return []
