"""Builds a kernel module with the kernel's own build, and checks it against the kernel's policy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nnbuild.audit.findings import AuditReport
from nnbuild.audit.policy import load_policy
from nnbuild.audit.report import render_text
from nnbuild.audit.run import audit_files
from nnbuild.backends.kmod.build import KernelChoice, build
from nnbuild.backends.object_audit import model_stack
from nnbuild.base.errors import CheckFailed
from nnbuild.base.files import removed_on_failure
from nnbuild.board.board import Board

FPU_FLAG = "-DNN_FPU"


def make_module(
    board: Board, prefix: str, folder: Path, choice: KernelChoice, extra: Mapping[str, str] | None = None
) -> Path:
    """Builds the .ko of a generated folder; raises CheckFailed if it breaks the kernel's rules."""
    module = build(board, folder, choice, extra)
    with removed_on_failure(module):
        audit_module(board, prefix, folder)
        model_stack(board, prefix, folder)
    return module


def audit_module(board: Board, prefix: str, folder: Path) -> AuditReport:
    """Audits every object separately, since only the model's own may contain floating point, and not even these if it
    has no floats."""
    floats = FPU_FLAG in (folder / "Kbuild").read_text("utf-8")
    model = [f"{prefix}_kernels.o", f"{prefix}_weights.o", f"{prefix}_bridge.o"]
    policy = load_policy(board.audit_policy).with_overrides(may_use_fp=model if floats else [], model_objects=model)
    report = audit_files(module_objects(folder), policy)
    if not report.clean:
        raise CheckFailed("audit", f"the module breaks the policy.\n{render_text(report)}", "Mend these first.")
    return report


def module_objects(folder: Path) -> list[Path]:
    """The compiled objects, without those linked from them."""
    return [
        path
        for path in sorted(folder.glob("*.o"))
        if path.with_suffix(".c").is_file() or path.with_suffix(".S").is_file()
    ]
