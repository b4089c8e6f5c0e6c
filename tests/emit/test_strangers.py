"""What nnbuild did not print it does not write over."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnbuild.cli import main
from nnbuild.outputs.packages import PACKAGES
from tests.frontend.keras_files import h5_bytes, put, small


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return put(tmp_path / "gesture.h5", h5_bytes(*small()))


@pytest.mark.parametrize("kind", PACKAGES)
@pytest.mark.parametrize("weights", ["array", "binary"])
def test_our_own_files_are_printed_anew(kind: str, weights: str, model: Path, tmp_path: Path) -> None:
    if PACKAGES[kind].WEIGHTS not in (None, weights):
        pytest.skip(f"{kind} cannot hold weights as {weights}")
    if kind == "library":
        pytest.skip("it is made of what a compiler makes")
    other = weights if PACKAGES[kind].WEIGHTS is not None else "array"
    for quantize, form in (("float", weights), ("int8", other), ("float", weights)):
        command = ["compile", str(model), "--output", kind, "--weights", form, "--quantize", quantize]
        assert main([*command, "-o", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize("name", ["gesture.c", "gesture.h", "gesture_kernels.c"])
def test_a_users_own_file_is_left(name: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = model.with_name(name)
    mine.write_text('#include "gesture.h"\nint main(void) { return 0; } /* with nnbuild */\n')
    before = mine.read_text()
    assert main(["compile", str(model), "-o", str(model.parent)]) == 2
    assert f"{name}: it exists already, and nnbuild did not print it." in capsys.readouterr().err
    assert mine.read_text() == before
    assert sorted(path.name for path in model.parent.iterdir()) == sorted([name, "gesture.h5"]), "nothing is half done"
