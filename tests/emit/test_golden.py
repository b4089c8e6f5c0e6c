"""The printed C of three tiny networks, word for word: `pytest tests/emit --update-golden` writes it anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnbuild.emit.emit import emit
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.emit.nets import NETS

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


@pytest.mark.parametrize("name", NETS)
def test_golden(name: str, request: pytest.FixtureRequest) -> None:
    files = emit(make_plan(NETS[name](), name, Target())).files
    folder = GOLDEN / name
    if request.config.getoption("--update-golden"):
        folder.mkdir(parents=True, exist_ok=True)
        for stale in {path.name for path in folder.iterdir()} - files.keys():
            (folder / stale).unlink()
        for file, content in files.items():
            (folder / file).write_bytes(content)
    assert sorted(path.name for path in folder.iterdir()) == sorted(files)
    for file, content in files.items():
        assert content.decode() == (folder / file).read_text(), f"{file} has changed; see --update-golden"
