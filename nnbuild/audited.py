"""The audit of a model's own objects: no forbidden symbol, and a stack that is bounded."""

from __future__ import annotations

from pathlib import Path

from nnbuild.audit.findings import AuditReport
from nnbuild.audit.policy import load_policy
from nnbuild.audit.report import render_text
from nnbuild.audit.run import audit_files
from nnbuild.audit.stack import StackReport, render_stack, stack_bound
from nnbuild.board import Board
from nnbuild.emit.vendored import sources
from nnbuild.errors import CheckFailed


def model_objects(prefix: str, folder: Path) -> list[Path]:
    return [folder / f"{prefix}{part}.o" for part in ("", "_kernels", "_weights")]


def stack_tables(prefix: str, folder: Path) -> list[Path]:
    """What the compiler wrote about frames and calls; without any, the objects themselves say it."""
    tables = [path for part in ("", "_kernels") if (path := folder / f"{prefix}{part}.ci").is_file()]
    return tables or model_objects(prefix, folder)[:2]


def audit_model(board: Board, prefix: str, folder: Path) -> AuditReport:
    """Refuses objects that break the board's policy."""
    report = audit_files(model_objects(prefix, folder), load_policy(board.audit_policy), supplied=sources())
    if not report.clean:
        raise CheckFailed("audit", f"the model's objects break the policy.\n{render_text(report)}", "Mend these first.")
    return report


def model_stack(board: Board, prefix: str, folder: Path) -> StackReport:
    """The deepest stack of a run, by static analysis; refuses one that has no bound or is over the budget."""
    report = stack_bound(stack_tables(prefix, folder), f"{prefix}_run", board.stack_budget)
    if not report.clean:
        raise CheckFailed("stack", f"a run is not within its bound.\n{render_stack(report)}", "Mend this first.")
    return report
