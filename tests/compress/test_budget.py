"""What was built is held to its budget of bytes: while weights are looked for, code is only estimated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from nnbuild.backends.registry import backend_of
from nnbuild.base.errors import CheckFailed
from nnbuild.board.board import Board
from nnbuild.board.tables import find
from nnbuild.emit.weights import weights_bytes
from nnbuild.jobs import pipeline
from nnbuild.jobs.compression import Priced
from nnbuild.jobs.job import Place, build_program
from nnbuild.jobs.measured_code import measured_code
from nnbuild.jobs.memory import hold_flash, memory_of
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.plan.target import Target

MNIST = Path(__file__).resolve().parents[2] / "examples/mnist/mnist.h5"

pytestmark = pytest.mark.slow


def test_a_program_is_held_to_its_bytes(tmp_path: Path) -> None:
    compiled = compile_model(Options(MNIST, quantize="int8"))
    program = build_program(compiled, Place(tmp_path))
    memory = memory_of(compiled, program)
    code, size = memory["flash_code"], memory["flash_code"] + memory["flash_weights"]
    for flash in (None, size, size + 1):
        hold_flash(replace(compiled, options=replace(compiled.options, flash=flash)), program)
    with pytest.raises(CheckFailed) as caught:
        hold_flash(replace(compiled, options=replace(compiled.options, flash=size - 3)), program)
    assert str(caught.value) == (
        f"--flash {size - 3:,}: the program takes {size:,}, 3 more: its code, {code:,} of them, was estimated. "
        f"Give --flash {size - 6} to leave room for this, or allow more."
    )
    elsewhere = tmp_path / "elsewhere" / backend_of(compiled.board).program(compiled.plan.prefix)
    hold_flash(replace(compiled, options=replace(compiled.options, flash="1")), elsewhere)


@pytest.mark.turns(3)
@pytest.mark.parametrize(
    ("wanted", "compact"),
    [
        (Options(MNIST, "microbit", "int8", optimize="size"), True),
        (Options(MNIST, "microbit", "int8"), False),
        (Options(MNIST, "stm32", "int8", flash=40_000), False),
        (Options(MNIST, "stm32", "int8", flash=11_000), True),
    ],
)
def test_code_is_compiled_for_few_bytes_where_these_count(wanted: Options, compact: bool) -> None:
    """Without need it would only be slower."""
    compiled = compile_model(wanted)
    assert compiled.plan.encoding.compact is compact
    assert (b"minsize" in compiled.artifact.files["mnist_kernels.c"]) is compact
    code = measured_code(compiled.board, "mnist", compiled.artifact.files)
    if wanted.flash is not None:
        assert code is not None and weights_bytes(compiled.plan) + code <= wanted.flash


@pytest.mark.turns(4)
def test_a_budget_goes_by_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its estimate may be wrong: what is found keeps the budget all the same, and needs no second try."""
    compiled, seen = compile_model(Options(MNIST, "stm32", "int8")), list[str]()

    def measured(board: Board, prefix: str, files: Mapping[str, bytes]) -> int:
        seen.append(prefix)
        return 1_000

    monkeypatch.setattr(pipeline, "measured_code", measured)
    whole = Priced(Target(), lambda graph: compiled.plan, measured=lambda plan: plan.code + 600).whole(compiled.graph)
    assert whole.bytes == weights_bytes(compiled.plan) + compiled.plan.code + 600
    compile_model(Options(MNIST, "stm32", "int8", flash=weights_bytes(compiled.plan) + 1_000))
    assert "mnist" in seen  # with so little code it fits as it is


def test_code_that_cannot_be_compiled_is_estimated() -> None:
    compiled = compile_model(Options(MNIST, "stm32", "int8"))
    code = measured_code(compiled.board, "mnist", compiled.artifact.files)
    assert code == pytest.approx(compiled.plan.code, rel=0.15)
    assert measured_code(find("linux-kmod"), "mnist", {}) is None
    assert measured_code(replace(compiled.board, toolchains=()), "mnist", compiled.artifact.files) is None


def test_what_fits_is_left_as_it_is() -> None:
    """No weights are looked for, and no note says that any changed."""
    compiled, plain = (compile_model(Options(MNIST, "stm32", "int8", flash=each)) for each in (40_000, None))
    assert compiled.artifact.files["mnist_weights.c"] == plain.artifact.files["mnist_weights.c"]
    assert not any("weights changed" in note for note in compiled.graph.notes)
