"""The example on a made-up device, which only its folder knows: every output equal to the reference, whatever fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnbuild.board.tables import find
from tests.boards.conftest import needs_tools
from tests.offload.made_up import made_up
from tests.support.running import EXAMPLE, NNBUILD, start, well

pytestmark = pytest.mark.slow

MODEL = (EXAMPLE / "mnist.h5", "--quantize", "int8", "--calibrate", EXAMPLE / "calibration.npz")
SAMPLES = ("--inputs", EXAMPLE / "samples.npz")
RIGHT = "passed  output 'digit': 0 of 2000 integers differ from the reference"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The device, and a program with it."""
    folder = tmp_path_factory.mktemp("made_up")
    device = made_up(folder / "mine")
    well(*NNBUILD, "build", *MODEL, "--device", device, "--isa", "native", "-o", folder / "built")
    return device, folder / "built" / "program"


def check(built: tuple[Path, Path], *words: object, fault: str = "") -> str:
    device, program = built
    own = ("--device", device, "--program", program, *SAMPLES, *words)
    return well(*NNBUILD, "check", *MODEL, *own, env={"NN_MADE_UP": fault})


def test_every_output_is_the_reference_s(built: tuple[Path, Path]) -> None:
    said = check(built)
    assert RIGHT in said
    assert "mine computes 8 of 10 steps, 100 % of the MACs" in said
    assert "block3_pointwise  conv2d            device" in said


FAULTS = {
    "hang": "h9",
    "wrong tag": "t9",
    "too many done": "n9",
    "a bit of a descriptor": "f9",
    "not there": "a0",
    "cannot be reset": "b0",
}


@pytest.mark.turns(2)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_what_fails_is_computed_by_the_processor(built: tuple[Path, Path], fault: str) -> None:
    assert RIGHT in check(built, fault=fault)


def test_layers_name_the_first_wrong_task(tmp_path: Path) -> None:
    device = made_up(tmp_path / "mine")
    driver = (device / "driver.c").read_text()
    right = "weights[(i * kw + j) * channels + c]"
    assert right in driver
    (device / "driver.c").write_text(driver.replace(right, "weights[(j * kh + i) * channels + c]"))
    done = start(*NNBUILD, "check", *MODEL, *SAMPLES, "--device", device, "--layers")
    assert done.status == 1
    assert "is 'block1_depthwise' (depthwise_conv2d)" in done.text


@pytest.mark.turns(4)
@pytest.mark.emulator
@pytest.mark.parametrize("board", ["mps2-an386", "rv32", "linux-arm64"])
def test_other_boards_have_the_driver_too(board: str, tmp_path: Path) -> None:
    needs_tools(find(board))
    said = well(*NNBUILD, "check", *MODEL, *SAMPLES, "--device", made_up(tmp_path / "mine"), "--board", board)
    assert RIGHT in said
    assert "mine computes 8 of 10 steps" in said


@pytest.mark.turns(3)
def test_a_layer_is_placed_by_hand(tmp_path: Path) -> None:
    device = made_up(tmp_path / "mine")
    own = ("--device", device, "--dry-run")
    said = well(*NNBUILD, "compile", *MODEL, *own, "--place", "logits=cpu", "--place", "stem_conv=cpu")
    assert "mine computes 6 of 10 steps" in said
    cases = {
        "digit=device": "the device cannot take it: the device has no softmax",
        "nothing=cpu": "the model has no such layer",
        "digit=gpu": "is not LAYER=cpu or LAYER=device",
    }
    for place, cause in cases.items():
        done = start(*NNBUILD, "compile", *MODEL, *own, "--place", place)
        assert (done.status, cause in done.text) == (2, True), done.text
    done = start(*NNBUILD, "compile", *MODEL, "--dry-run", "--place", "digit=cpu")
    assert "--place: it needs a device" in done.text
