"""The audit of a model's own objects: no forbidden symbol, and a stack that is bounded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nnbuild.audit.findings import AuditReport
from nnbuild.audit.policy import load_policy
from nnbuild.audit.report import render_text
from nnbuild.audit.run import audit_files
from nnbuild.audit.stack import StackReport, render_stack, stack_bound
from nnbuild.board import Board
from nnbuild.emit.vendored import sources
from nnbuild.errors import CheckFailed
from nnbuild.outputs.recipe import toolchain_for

MEMORY_FUNCTIONS = ("memcpy", "memmove", "memset", "memcmp")
"""What a compiler may call unasked; a firmware brings them along."""


def model_objects(prefix: str, folder: Path) -> list[Path]:
    return [folder / f"{prefix}{part}.o" for part in ("", "_kernels", "_weights")]


def stack_stems(prefix: str, there: Iterable[str]) -> list[str]:
    """Of the files that were compiled, those with functions that a run may reach."""
    reached = {prefix, f"{prefix}_kernels", *MEMORY_FUNCTIONS, *(f"nn_{name}" for name in MEMORY_FUNCTIONS)}
    return [stem for stem in there if stem in reached]


def stack_tables(prefix: str, folder: Path) -> list[Path]:
    """What the compiler wrote about frames and calls, and the objects: they tell of the red zone, which no compiler
    counts, and without the compiler's tables of all the rest."""
    endings = (".ci", ".o") if (folder / f"{prefix}.ci").is_file() else (".o",)
    there = {ending: {path.stem: path for path in sorted(folder.glob(f"*{ending}"))} for ending in endings}
    return [paths[stem] for paths in there.values() for stem in stack_stems(prefix, paths)]


def helper_frames(board: Board) -> dict[str, int]:
    """Where there is a C library the memory functions are its own, and say nothing about frames either."""
    size = toolchain_for(board).helper_stack
    names = [*HELPERS, *MEMORY_FUNCTIONS] if board.output == "host" else HELPERS
    return dict.fromkeys(names, size) if size else {}


def audit_model(board: Board, prefix: str, folder: Path) -> AuditReport:
    """Refuses objects that break the board's policy."""
    report = audit_files(model_objects(prefix, folder), load_policy(board.audit_policy), supplied=sources())
    if not report.clean:
        raise CheckFailed("audit", f"the model's objects break the policy.\n{render_text(report)}", "Mend these first.")
    return report


def model_stack(board: Board, prefix: str, folder: Path) -> StackReport:
    """The deepest stack of a run, by static analysis; refuses one that has no bound or is over the budget."""
    frames = helper_frames(board)
    report = stack_bound(stack_tables(prefix, folder), f"{prefix}_run", board.stack_budget, frames=frames)
    if not report.clean:
        raise CheckFailed("stack", f"a run is not within its bound.\n{render_stack(report)}", "Mend this first.")
    return report
