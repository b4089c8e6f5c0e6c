"""The whole program of every firmware passes its board's policy, drivers included: `scons` audits it by default."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnbuild.audit.policy import load_policy
from nnbuild.audit.report import render_text
from nnbuild.audit.run import audit_files
from nnbuild.board.tables import find
from nnbuild.cli import main
from tests.boards.conftest import FIRMWARE_BOARDS, needs_tools
from tests.scons.conftest import write_model

pytestmark = pytest.mark.slow


@pytest.mark.turns(12)
@pytest.mark.parametrize("name", FIRMWARE_BOARDS)
def test_whole_programs_pass_their_policy(name: str, tmp_path: Path) -> None:
    board = find(name)
    needs_tools(board)
    model = tmp_path / "small.h5"
    write_model(model)
    assert main(["build", str(model), "--board", name, "--quantize", "int8", "-o", str(tmp_path / "out")]) == 0
    (program,) = (tmp_path / "out").rglob("program.elf")
    report = audit_files([program], load_policy(board.audit_policy))
    assert report.clean, render_text(report)
