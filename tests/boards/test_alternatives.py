"""Every kernel that could serve is measured, and what is kept afterwards decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnbuild.jobs.alternatives import measure, save
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.plan import measured
from tests.frontend.keras_files import h5_bytes, put, small

pytestmark = pytest.mark.emulator


@pytest.mark.turns(4)
def test_alternatives_are_measured_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(put(tmp_path / "small.h5", h5_bytes(*small())), "mps2-an386", "int8", price="instructions")
    unit, found = measure(options)
    compiled = compile_model(options)
    assert unit == "instructions"
    assert len(found) == sum(len(step.choice.offers) for step in compiled.plan.steps)
    assert all(each.cost for each in found)
    assert sum(each.taken for each in found) == len(compiled.plan.steps)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    measured.table.cache_clear()
    path = save(compiled, {(each.layer, each.kernel): each.cost for each in found})
    measured.table.cache_clear()
    assert Path(path).is_relative_to(tmp_path)
    kept = compile_model(options).plan.steps
    assert all(step.choice.price.measured for step in kept if not step.op.outer)
    measured.table.cache_clear()
