"""The form of a model's weights, which a build knows before it compiles."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nnbuild.jobs import pipeline
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import weights_form
from tests.scons.conftest import write_model


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    found: list[Path] = []
    load = pipeline.load

    def counted(path: Path, *rest: object) -> object:
        found.append(path)
        return load(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(pipeline, "load", counted)
    return found


def test_a_file_is_read_once_until_it_changes(tmp_path: Path, reads: list[Path]) -> None:
    model = tmp_path / "small.h5"
    assert weights_form(Options(model=model, board="linux")) == "array", "it does not exist yet"
    assert reads == []
    write_model(model)
    for _ in range(3):
        assert weights_form(Options(model=model, board="linux")) == "array"
    assert len(reads) == 1
    assert weights_form(Options(model=model, board="linux", quantize="int8")) == "array"
    assert len(reads) == 2, "its weights take other bytes"
    os.utime(model, ns=(0, 0))
    weights_form(Options(model=model, board="linux"))
    assert len(reads) == 3


def test_many_weights_are_binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "small.h5"
    write_model(model)
    monkeypatch.setattr(pipeline, "LARGEST_ARRAYS", 10)
    assert weights_form(Options(model=model, board="linux")) == "binary"
    assert weights_form(Options(model=model, board="linux", weights="array")) == "array"


def test_a_broken_file_is_for_the_compilation_to_report(tmp_path: Path) -> None:
    model = tmp_path / "small.h5"
    model.write_bytes(b"\x89HDF\r\n\x1a\nno more")
    assert weights_form(Options(model=model, board="linux")) == "array"
    assert weights_form(Options(model=tmp_path, board="linux")) == "array"
