"""What keeps a module from being loaded, or from being built."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nnbuild.backends.kmod.build import KernelChoice, headers_for
from nnbuild.base.errors import ToolMissing
from nnbuild.board.tables import find
from tests.kmod.workshop import FLOAT, POLICY, ROOT, Workshop, with_extra

LOAD = """\
insmod /nn_f.ko 2>&1
echo "insmod gave $?"
verdict passed
"""


def wrong_golden(folder: Path) -> None:
    """The self-test wants something else than the model gives."""
    path = folder / "f_golden.c"
    text = path.read_text()
    path.write_text(re.sub(r"(outputs\[\][^{]*\{\n)( *\d+, \d+, \d+, )\d+", r"\g<1>\g<2>66", text))


@pytest.mark.turns(4)
@pytest.mark.kernel
def test_a_wrong_result_keeps_it_out(workshop: Workshop) -> None:
    built = workshop.build(replace(FLOAT, edit=wrong_golden))
    outcome = workshop.run(built, {}, LOAD)
    assert outcome.passed, outcome.log[-3000:]
    assert "self-test: result 0 is not the one wanted" in outcome.log
    assert "can't insert '/nn_f.ko': I/O error" in outcome.log or "Input/output error" in outcome.log
    assert "not loaded, 0 allocations left" in outcome.log


@pytest.mark.kernel
def test_the_self_test_can_be_left_out(workshop: Workshop) -> None:
    built = workshop.build(replace(FLOAT, edit=wrong_golden))
    outcome = workshop.run(built, {}, LOAD.replace("nn_f.ko", "nn_f.ko selftest=0"))
    assert outcome.passed and "insmod gave 0" in outcome.log


AVX2 = with_extra(with_extra(FLOAT, "-DNN_ISA_AVX2_FMA"), "-mavx2 -mfma", "NN_MODEL_EXTRA")


@pytest.mark.turns(4)
@pytest.mark.kernel
@pytest.mark.parametrize(("processor", "code"), [("Nehalem", "No such device"), ("max,-avx2", "No such device")])
def test_a_processor_without_the_instructions(workshop: Workshop, processor: str, code: str) -> None:
    outcome = workshop.run(workshop.build(AVX2), {}, LOAD, processor=processor)
    assert outcome.passed, outcome.log[-3000:]
    assert f"can't insert '/nn_f.ko': {code}" in outcome.log
    assert "this processor lacks what the module was built for" in outcome.log


@pytest.mark.turns(2)
@pytest.mark.kernel
def test_a_processor_with_them(workshop: Workshop) -> None:
    outcome = workshop.run(workshop.build(AVX2), {}, LOAD)
    assert outcome.passed and "insmod gave 0" in outcome.log


@pytest.mark.full
@pytest.mark.kernel
def test_without_the_look_at_the_processor_it_dies(workshop: Workshop) -> None:
    """AVX2 code that does not ask: what the question is good for."""
    careless = with_extra(FLOAT, "-mavx2 -mfma -O3", "NN_MODEL_EXTRA")
    outcome = workshop.run(workshop.build(careless), {}, LOAD, processor="Nehalem")
    assert not outcome.passed and "invalid opcode" in outcome.log


@pytest.mark.turns(4)
@pytest.mark.kernel
@pytest.mark.parametrize("parameters", ["pool=17", "pool=x", "selftest=maybe"])
def test_bad_parameters(workshop: Workshop, parameters: str) -> None:
    outcome = workshop.run(workshop.build(FLOAT), {}, LOAD.replace("nn_f.ko", f"nn_f.ko {parameters}"))
    assert outcome.passed
    assert re.search(r"insmod gave [1-9]", outcome.log)


def test_missing_headers_name_their_package(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing) as caught:
        headers_for(find("linux-kmod"), KernelChoice(kdir=Path("/lib/modules/6.1.0-99-amd64/build")))
    assert str(caught.value) == (
        "KDIR /lib/modules/6.1.0-99-amd64/build: there are no kernel headers. "
        "Install them: apt install linux-headers-6.1.0-99-amd64, or give others with --kdir, or kdir= for scons."
    )
    (tmp_path / "Makefile").touch()
    with pytest.raises(ToolMissing, match="these headers are not complete"):
        headers_for(find("linux-kmod"), KernelChoice(kdir=tmp_path))


@pytest.mark.slow
def test_an_unknown_kernel(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nnbuild", "check", str(POLICY / "policy.h5"), "--board", "linux-kmod"]
    done = subprocess.run([*command, "--kernel", "6.1-clod"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert "kernel '6.1-clod': there is no such kernel. Did you mean 6.1-cloud?" in done.stderr
