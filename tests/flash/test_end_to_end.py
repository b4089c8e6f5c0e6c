"""Flash and check over one serial port, as a user does it, with a stand-in for the part."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from nnbuild.board.tables import find
from tests.boards.conftest import MNIST, ROOT
from tests.cli.conftest import Nnbuild, nnbuild  # noqa: F401 - a fixture
from tests.flash.bootloader import Rom, on_pty
from tests.frontend.keras_files import dense, h5_bytes, input_layer, layer, put, random_arrays, sequential
from tests.scons.conftest import scons

pytestmark = pytest.mark.emulator
MODEL = MNIST / "mnist.h5"
INT8 = ("--board", "stm32", "--quantize", "int8", "--calibrate", MNIST / "calibration.npz")


@pytest.fixture(autouse=True)
def needs_tools() -> None:
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """The example's first samples."""
    with np.load(MNIST / "samples.npz") as all_samples:
        np.savez(tmp_path / "few.npz", **{name: all_samples[name][:10] for name in all_samples.files})
    return tmp_path / "few.npz"


def test_flash_then_check(nnbuild: Nnbuild, tmp_path: Path, samples: Path) -> None:  # noqa: F811
    """What answers the check is the program that came in through the bootloader."""
    board = find("stm32")
    rom = Rom(board)
    with on_pty(board, rom, tmp_path) as port:
        said = nnbuild("flash", MODEL, *INT8, "--port", port)
        assert said.status == 0, said.err
        assert "to stm32f405 with serial, verified and started" in said.out
        assert rom.started == 0x08000000
        said = nnbuild("check", MODEL, *INT8, "--inputs", samples, "--port", port)
        assert said.status == 0, said.out + said.err
        assert "PASS: 10 samples" in said.out
        said = nnbuild("check", MODEL, "--board", "stm32", "--port", port)
        assert said.status == 2, said.out
        assert "Flash the new firmware first, for example: scons flash check" in said.err


def test_every_layer_on_a_device(nnbuild: Nnbuild, tmp_path: Path) -> None:  # noqa: F811
    """A program with fused layers is another one, also to the check."""
    config = sequential(
        input_layer("x", [4]),
        dense("first", 5),
        layer("Activation", "bent", activation="relu"),
    )
    model = put(tmp_path / "small.h5", h5_bytes(config, {"first": random_arrays((4, 5), (5,))}))
    board = find("stm32")
    with on_pty(board, Rom(board), tmp_path) as port:
        where = (model, "--board", "stm32", "--port", port)
        said = nnbuild("flash", *where, "--layers")
        assert said.status == 0, said.err
        said = nnbuild("check", *where, "--layers")
        assert said.status == 0, said.out + said.err
        layers = said.out[said.out.index("layers of sample 0") :].split("\n\n")[0]
        assert "first" in layers and "bent" in layers, "which are one step otherwise"
        said = nnbuild("check", *where)
        assert said.status == 2, said.out


@pytest.mark.turns(4)
def test_scons_flashes_before_it_checks(tmp_path: Path, samples: Path) -> None:
    board = find("stm32")
    rom = Rom(board)
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for part in ("SConstruct", "site_scons", "nnbuild", "boards", "firmware", "examples"):
        (checkout / part).symlink_to(ROOT / part)
    with on_pty(board, rom, tmp_path) as port:
        said = scons(
            checkout, "-Q", "board=stm32", "quantize=int8", f"inputs={samples}", f"port={port}", "check", "flash"
        )
    assert said.status == 0, said.out + said.err
    steps = [step.split()[1] for step in said.did("nnbuild ") if step.split()[1] in ("flash", "check")]
    assert steps == ["flash", "check"]
    assert "PASS: 10 samples" in said.out
