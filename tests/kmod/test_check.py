"""The whole way: built, booted, loaded, compared over the link, unloaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.backends.kmod.guest import Guest, Outcome, release_of
from nnbuild.backends.kmod.line import KernelTransport
from nnbuild.base.errors import CheckFailed
from nnbuild.cli import main
from tests.kmod.workshop import MNIST, POLICY, ROOT, SHARED, Recipe, Workshop, require_kernel

pytestmark = pytest.mark.kernel

KERNELS = ["6.1-cloud", "6.1", "6.1-rt", "6.12-cloud"]


def check(model: Path, *words: str, inputs: Path | None = None, board: str = "linux-kmod") -> dict[str, Any]:
    """The report of `nnbuild check`, which must pass."""
    command = [sys.executable, "-m", "nnbuild", "check", str(model), "--board", board, *words, "--json", "-"]
    if inputs is not None:
        command += ["--inputs", str(inputs)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def policy(quantize: str, *words: str, board: str = "linux-kmod") -> dict[str, Any]:
    chosen = ["--quantize", quantize, *words]
    if quantize != "float":
        chosen += ["--calibrate", str(POLICY / "calibration.npz")]
    return check(POLICY / "policy.h5", *chosen, inputs=POLICY / "samples.npz", board=board)


@pytest.mark.turns(4)
@pytest.mark.parametrize("quantize", ["float", *(pytest.param(f, marks=pytest.mark.full) for f in ("int8", "int16"))])
def test_two_hundred_carried_steps(workshop: Workshop, quantize: str) -> None:
    report = policy(quantize)
    assert report["verdict"] == "pass" and report["samples"] == 200


@pytest.mark.full
def test_weights_of_few_bits(workshop: Workshop) -> None:
    """What unpacks them is kept apart by an attribute, whose plain name is a macro of the kernel's."""
    words = ["--quantize", "int8", "--weights-bits", "3", "--optimize", "size"]
    words += ["--calibrate", str(MNIST / "calibration.npz")]
    report = check(MNIST / "mnist.h5", *words, inputs=MNIST / "samples.npz")
    assert report["verdict"] == "pass" and any("prefix" in layer["kernel"] for layer in report["layers"])


@pytest.mark.full
@pytest.mark.parametrize("kernel", KERNELS[1:])
@pytest.mark.parametrize("quantize", ["float", "int8"])
def test_other_kernels(workshop: Workshop, kernel: str, quantize: str) -> None:
    require_kernel(Recipe("f", kernel=kernel))
    assert policy(quantize, "--kernel", kernel)["verdict"] == "pass"


@pytest.mark.full
@pytest.mark.parametrize("processor", ["Nehalem", "max"])
def test_other_processors(workshop: Workshop, processor: str) -> None:
    recipe = Recipe("f", kernel="6.1")
    require_kernel(recipe)
    built = workshop.build(recipe)
    with KernelTransport(built.compiled.board, built.module, Guest(release_of(built.module), processor)) as transport:
        from nnbuild.device.link import Link

        link = Link(transport)
        link.hello()
        link.write(0, np.zeros(4, "<f4").tobytes())
        link.run()


@pytest.mark.turns(4)
@pytest.mark.parametrize("quantize", [pytest.param("float", marks=pytest.mark.full), "int8"])
def test_arm64(workshop: Workshop, quantize: str) -> None:
    require_kernel(Recipe("f", board="linux-kmod-arm64"))
    assert policy(quantize, board="linux-kmod-arm64")["verdict"] == "pass"


@pytest.mark.full
@pytest.mark.parametrize("quantize", ["float", "int8"])
def test_the_digits(workshop: Workshop, quantize: str) -> None:
    words = ["--calibrate", str(MNIST / "calibration.npz")] if quantize != "float" else []
    assert check(MNIST / "mnist.h5", "--quantize", quantize, *words, inputs=MNIST / "samples.npz")["verdict"] == "pass"


@pytest.mark.full
@pytest.mark.parametrize("quantize", ["float", "int8"])
@pytest.mark.parametrize("name", ["kws_ref_model.h5", "pretrainedResnet.h5"])
def test_larger_models(workshop: Workshop, name: str, quantize: str) -> None:
    if not (SHARED / name).is_file():
        pytest.skip(f"{name} is not here")
    assert check(SHARED / name, "--quantize", quantize)["verdict"] == "pass"


def test_scons_builds_and_checks(workshop: Workshop, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "SCons", "-C", str(ROOT), "board=linux-kmod", f"model={POLICY / 'policy.h5'}"]
    done = subprocess.run([*command, "check", "audit"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "PASS: 200 samples" in done.stdout
    assert "The audit found no violation." in done.stdout
    again = subprocess.run([*command, "program"], capture_output=True, text=True)
    assert "`program' is up to date." in again.stdout


@pytest.mark.turns(3)
@pytest.mark.parametrize(
    ("name", "folder", "told"),
    [
        ("vfs", "k", "module 'k': its function 'vfs_create' has the name of one of the kernel's own. Give the model"),
        (
            "mutex",
            "k",
            "module 'k': its function 'mutex_destroy' has the name of one of the kernel's own. Give the model",
        ),
        (
            "mine",
            "a blank",
            "a blank: the kernel's build takes no folder with a blank or a colon in its path. Give the",
        ),
    ],
)
def test_what_the_kernels_build_cannot_take(
    workshop: Workshop, name: str, folder: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["build", str(POLICY / "policy.h5"), "--board", "linux-kmod", "--name", name, "-o", str(tmp_path / folder)]
    assert main(words) == 2
    assert told in capsys.readouterr().err


@pytest.mark.turns(4)
def test_a_warning_in_the_log_fails_the_check(workshop: Workshop) -> None:
    """A verdict alone is not enough."""

    def warns(folder: Path) -> None:
        path = folder / "nn_kmod_main.c"
        path.write_text(path.read_text().replace("WARN_ON(nn_held() != 0)", "WARN_ON(true)"))

    built = workshop.build(Recipe("f", edit=warns))
    with (
        pytest.raises(CheckFailed, match=r"WARNING: CPU: 0 .*nn_exit"),
        KernelTransport(built.compiled.board, built.module),
    ):
        pass


@pytest.mark.turns(4)
def test_a_module_that_does_not_load_says_why(workshop: Workshop) -> None:
    def wrong(folder: Path) -> None:
        path = folder / "nn_kmod_main.c"
        path.write_text(path.read_text().replace("int error = nn_processor_serves();", "int error = -ENODEV;"))

    built = workshop.build(Recipe("f", edit=wrong))
    with pytest.raises(CheckFailed, match="lacks what the module was built for"):
        KernelTransport(built.compiled.board, built.module)


def test_an_outcome_needs_all_three() -> None:
    good = "nnbuild: verdict: passed\n"
    assert Outcome(0, good).passed
    assert not Outcome(1, good).passed
    assert not Outcome(0, "").passed
    assert not Outcome(0, "nnbuild: verdict: rmmod failed with 1\n").passed
    for line in ("Oops: 0000", "Kernel panic - not syncing", "BUG: unable to", "WARNING: CPU: 0"):
        assert not Outcome(0, f"{good}{line}\n").passed
    assert Outcome(0, f"Kernel command line: panic=-1\n{good}").passed
