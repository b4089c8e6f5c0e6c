"""Audits a model's own objects: no forbidden symbol, and a bounded stack."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nnbuild.audit.findings import AuditReport
from nnbuild.audit.policy import load_policy
from nnbuild.audit.report import render_text
from nnbuild.audit.run import audit_files
from nnbuild.audit.stack import StackReport, render_stack, stack_bound
from nnbuild.backends.backend import MEMORY_FUNCTIONS
from nnbuild.backends.recipe import toolchain_for
from nnbuild.backends.registry import backend_of
from nnbuild.base.errors import CheckFailed
from nnbuild.base.progress import phase
from nnbuild.base.vendored import sources
from nnbuild.board.board import Board

HELPERS = """
__addsf3 __subsf3 __mulsf3 __divsf3 __negsf2 __eqsf2 __nesf2 __ltsf2 __lesf2 __gtsf2 __gesf2 __unordsf2 __fixsfsi
__fixunssfsi __floatsisf __floatunsisf __floatdisf __floatundisf __fixsfdi
__aeabi_fadd __aeabi_fsub __aeabi_frsub __aeabi_fmul __aeabi_fdiv __aeabi_fcmpeq __aeabi_fcmplt __aeabi_fcmple
__aeabi_fcmpgt __aeabi_fcmpge __aeabi_fcmpun __aeabi_cfcmpeq __aeabi_cfcmple __aeabi_cfrcmple __aeabi_f2iz
__aeabi_f2uiz __aeabi_f2lz __aeabi_i2f __aeabi_ui2f __aeabi_l2f __aeabi_ul2f
__muldi3 __ashldi3 __lshrdi3 __ashrdi3 __clzsi2 __clzdi2 __ctzsi2 __popcountsi2 __divsi3 __udivsi3 __modsi3 __umodsi3
__aeabi_lmul __aeabi_llsl __aeabi_llsr __aeabi_lasr __aeabi_lcmp __aeabi_ulcmp __aeabi_idiv __aeabi_uidiv
__aeabi_idivmod __aeabi_uidivmod __gnu_thumb1_case_uqi __gnu_thumb1_case_sqi __gnu_thumb1_case_uhi
__gnu_thumb1_case_shi __gnu_thumb1_case_si
__aeabi_memcpy __aeabi_memcpy4 __aeabi_memcpy8 __aeabi_memset __aeabi_memset4 __aeabi_memset8 __aeabi_memclr
__aeabi_memclr4 __aeabi_memclr8 __aeabi_memmove __aeabi_memmove4 __aeabi_memmove8
""".split()
"""Functions that compilers call where the processor lacks an instruction. Their libraries carry no frame sizes, so each
toolchain's table gives one number for all of them."""
HELPERS += [
    f"_{does}{kind}_{first}{end}"
    for does, ends in (("save", ("",)), ("rest", ("", "_x")))
    for kind in ("gpr", "fpr")
    for first in range(14, 32)
    for end in ends
]
"""Those that save and restore registers for functions of few bytes on PowerPC."""


DRIVER = [
    f"nn_driver_{name}"
    for name in ("open", "close", "write", "read", "submit", "commit", "poll", "relax", "reset", "counters")
]
"""The objects of a device's driver. Its table gives their stack: they may call functions that cannot be analysed."""


OPTIONAL = ("_features", "_listen", "_device")
"""Suffixes of further objects of models that listen or use a device."""


def model_objects(prefix: str, folder: Path) -> list[Path]:
    more = [path for part in OPTIONAL if (path := folder / f"{prefix}{part}.o").is_file()]
    return [*(folder / f"{prefix}{part}.o" for part in ("", "_kernels", "_weights")), *more]


def stack_stems(board: Board, prefix: str, there: Iterable[str]) -> list[str]:
    """The compiled files with functions that a run may reach."""
    own = {name.format(prefix=prefix) for name in backend_of(board).stack.objects}
    reached = {*own, *MEMORY_FUNCTIONS, *(f"nn_{name}" for name in MEMORY_FUNCTIONS)}
    return [stem for stem in there if stem in reached]


def stack_tables(board: Board, prefix: str, folder: Path) -> list[Path]:
    """The compiler's tables of frames and calls, and the objects: these show the red zone, which compilers do not
    count, and everything where there are no tables."""
    tables = any((folder / f"{prefix}{part}.ci").is_file() for part in ("", "_kernels"))
    endings = (".ci", ".o") if tables else (".o",)
    there = {ending: {path.stem: path for path in sorted(folder.glob(f"*{ending}"))} for ending in endings}
    return [paths[stem] for paths in there.values() for stem in stack_stems(board, prefix, paths)]


def helper_frames(board: Board) -> dict[str, int]:
    """With a C library the memory functions are the library's, which carries no frame sizes either."""
    size, stack = toolchain_for(board).helper_stack, backend_of(board).stack
    frames = dict.fromkeys([*HELPERS, *stack.library], size) if size else {}
    frames |= dict.fromkeys(DRIVER, board.driver_stack) if board.driver_stack is not None else {}
    return frames | dict.fromkeys(stack.never_return, 0)


def audit_model(board: Board, prefix: str, folder: Path) -> AuditReport:
    """Audits the model's objects; raises CheckFailed if they break the board's policy."""
    own = backend_of(board).own_build
    if own is not None:
        return own.audit(board, prefix, folder)
    with phase("auditing the objects"):
        report = audit_files(model_objects(prefix, folder), load_policy(board.audit_policy), supplied=sources())
    if not report.clean:
        raise CheckFailed("audit", f"the model's objects break the policy.\n{render_text(report)}", "Mend these first.")
    return report


def stack_entry(board: Board, prefix: str) -> str:
    """The entry point of a run."""
    return backend_of(board).stack.entry.format(prefix=prefix)


def model_stack(board: Board, prefix: str, folder: Path) -> StackReport:
    """The deepest stack of a run, by static analysis; raises CheckFailed if it is unbounded or over budget."""
    tables, frames = stack_tables(board, prefix, folder), helper_frames(board)
    report = stack_bound(tables, stack_entry(board, prefix), board.stack_budget, frames=frames)
    if not report.clean:
        raise CheckFailed("stack", f"a run is not within its bound.\n{render_stack(report)}", "Mend this first.")
    return report
