"""Every operation passes the audit of a microcontroller: it calls no function that the board's policy forbids."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nnbuild.audit.policy import load_policy
from nnbuild.audit.report import render_text
from nnbuild.audit.run import audit_files
from nnbuild.backends.recipe import toolchain_for
from nnbuild.board.board import Board
from nnbuild.board.tables import find
from nnbuild.emit.emit import emit
from nnbuild.jobs.options import Options, target_of
from nnbuild.model.graph import Graph
from nnbuild.ops.log_softmax import LogSoftmax
from nnbuild.ops.product import Product
from nnbuild.ops.unit_length import UnitLength
from nnbuild.plan.plan import make_plan
from tests.boards.conftest import needs_tools
from tests.kernels.cases import Maker, cases
from tests.kernels.test_variants import graph_of
from tests.support.graphs import single

pytestmark = pytest.mark.slow


def graphs(form: str) -> list[Graph]:
    """One of each operation and function: the last of its cases."""
    kinds: dict[str, tuple[str, Maker]] = {}
    for name, maker in cases():
        kinds[name.removesuffix("-positive").rpartition("-")[0] or name] = (name, maker)
    if form != "int16":  # which it does not have
        kinds["unit_length"] = ("unit_length", lambda: single(UnitLength(), [(4, 7)]))
        kinds["log_softmax"] = ("log_softmax", lambda: single(LogSoftmax(), [(4, 7)]))
    kinds["product"] = ("product", lambda: single(Product(), [(4, 7)]))
    made = (graph_of(name, maker, form) for name, maker in kinds.values())
    return [graph for graph in made if graph is not None]


def audited(board: Board, models: list[Graph], form: str, folder: Path) -> str:
    """Compiles all kernels as one object. Returns the report if it breaks the policy."""
    target = target_of(Options(Path("net.keras"), board.name, form), board)
    plans = [make_plan(graph, f"m{index}", target) for index, graph in enumerate(models)]
    for plan in plans:
        emit(plan).write(folder)
    names = [f"{plan.prefix}{part}.c" for plan in plans for part in ("", "_kernels", "_weights")]
    (folder / "all.c").write_text("".join(f'#include "{name}"\n' for name in names))
    chain = toolchain_for(board)
    command = [*chain.command, *chain.flags, "-std=c99", "-O2", "-ffreestanding", "-c", "all.c"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    report = audit_files([folder / "all.o"], load_policy(board.audit_policy))
    return "" if report.clean else render_text(report)


@pytest.mark.turns(6)
@pytest.mark.parametrize(
    ("name", "form"),
    [
        *(("microbit", form) for form in ("float", "int8", "int16")),
        ("mps2-an386", "int8"),
        *(pytest.param("mps2-an386", form, marks=pytest.mark.full) for form in ("float", "int16")),
    ],
)
def test_no_operation_calls_what_a_board_forbids(name: str, form: str, tmp_path: Path) -> None:
    board = find(name)
    needs_tools(board)
    assert audited(board, graphs(form), form, tmp_path) == ""
