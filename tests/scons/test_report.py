"""scons report: the page beside the program, made again only when something it shows has changed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.scons.conftest import scons, write_model

pytestmark = pytest.mark.slow


@pytest.mark.turns(4)
def test_the_page_is_made_once(checkout: Path) -> None:
    arguments = ("-Q", "model=small.h5", "report")
    said = scons(checkout, *arguments)
    assert said.status == 0, said.err
    built = checkout / "build" / "linux" / "small"
    assert "<h1>small</h1>" in (built / "report.html").read_text()
    facts = json.loads((built / "report.json").read_text())
    assert facts["format"] == "nnbuild-report"
    assert facts["origin"]["command"].startswith("nnbuild report small.h5")
    assert scons(checkout, *arguments).did("nnbuild report") == []
    (checkout / "labels.txt").write_text("a\nb\nc\n")
    assert scons(checkout, *arguments).did("nnbuild report") == ["nnbuild report small.h5"]
    (checkout / "labels.txt").write_text("a\nb\nd\n")
    assert scons(checkout, *arguments).did("nnbuild report") == ["nnbuild report small.h5"]
    write_model(checkout / "small.h5", 2.0)
    assert scons(checkout, *arguments).did("nnbuild report") == ["nnbuild report small.h5"]


@pytest.mark.turns(3)
def test_a_failed_check_fails_the_build_and_leaves_the_page(checkout: Path) -> None:
    wrong = np.full((2, 3), 9, np.float32)
    np.savez(checkout / "golden.npz", x=np.ones((2, 4), np.float32), y=wrong)
    said = scons(checkout, "-Q", "model=small.h5", "inputs=golden.npz", "report")
    assert said.status == 2
    page = (checkout / "build" / "linux" / "small" / "report.html").read_text()
    assert "FAIL" in page
