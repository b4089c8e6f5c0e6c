"""Networks on devices: every output is the reference's, however large the device's memory is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nnbuild.device.gates import CheckReport, Gates
from nnbuild.jobs.job import check_job, place, samples_for
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import Compiled, compile_model
from nnbuild.model.graph import Graph
from tests.offload.made_up import made_up
from tests.offload.nets import NETS, Net, given, inception_block, joined, lenet, odd

pytestmark = pytest.mark.slow

PICKY = Gates(agreement=0, golden_agreement=0)
simulated = pytest.mark.skipif(shutil.which("verilator") is None, reason="verilator is not installed")


def checked(
    graph: Graph, device: object, folder: Path, patch: pytest.MonkeyPatch, **options: object
) -> tuple[Compiled, CheckReport]:
    model, samples = given(graph, folder, patch)
    everything = {"quantize": "int8", "calibrate": samples, "isa": "c99", "place": (("*", "device"),), **options}
    compiled = compile_model(Options(model, device=str(device), **everything))  # type: ignore[arg-type]
    with place(None) as where:
        report = check_job(compiled, samples_for(compiled, samples), where, PICKY)
    assert report.passed, [miss.detail for miss in report.misses]
    assert report.beside is not None
    assert (report.beside.rescued, report.beside.faults, report.beside.late) == (0, 0, 0)
    return compiled, report


@pytest.mark.turns(2)
@pytest.mark.parametrize("make", NETS.values(), ids=NETS)
def test_a_made_up_device(make: Callable[[], Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked(make(), made_up(tmp_path / "mine"), tmp_path, monkeypatch)


@pytest.mark.parametrize("optimize", ["speed", "size"])
def test_several_instruction_sets_beside_a_device(
    optimize: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What computes a layer if the device fails exists for each set, too."""
    mine = made_up(tmp_path / "mine")
    compiled, _ = checked(lenet(), mine, tmp_path, monkeypatch, isa="sse2,avx2_fma", optimize=optimize)
    versions = {step.on_device: len(step.versions) for step in compiled.plan.steps}
    assert versions[True] == 2 and set(versions.values()) == {2}
    device = compiled.artifact.files[f"{compiled.plan.prefix}_device.c"]
    assert b"_sse2(" in device and b"_avx2_fma(" in device


@pytest.mark.turns(6)
@pytest.mark.slow
@simulated
@pytest.mark.parametrize("make", NETS.values(), ids=NETS)
def test_the_simulated_device(make: Callable[[], Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a tenth of what the device's own counters say."""
    _, report = checked(make(), "systolic", tmp_path, monkeypatch)
    assert report.beside is not None
    assert abs(report.beside.off) <= 10


@pytest.mark.full
@pytest.mark.emulator
@simulated
@pytest.mark.parametrize("make", NETS.values(), ids=NETS)
def test_the_simulated_device_beside_a_cortex_m4(
    make: Callable[[], Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same networks in firmware; the cycles in which the device was busy are those of the plan."""
    _, report = checked(make(), "systolic", tmp_path, monkeypatch, board="stm32f405", isa=None)
    assert report.beside is not None
    assert abs(report.beside.off) <= 10


def test_tiles_and_streamed_constants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory of few bytes: tensors are cut to rows, constants come before every layer."""
    small = made_up(tmp_path / "small", **{"size = 0x18000": "size = 0x1800"})
    compiled, _ = checked(odd(), small, tmp_path, monkeypatch)
    program = compiled.plan.device
    assert program is not None
    checked(joined(), small, tmp_path, monkeypatch)
    small = made_up(tmp_path / "smaller", **{"size = 0x18000": "size = 0x500"})
    compiled, _ = checked(odd(), small, tmp_path, monkeypatch)
    program = compiled.plan.device
    assert program is not None
    assert not program.resident
    assert max(len(cut.tiles) for region in program.regions for cut in region.arranged.cuts) > 1


@pytest.mark.parametrize("name", ["systolic", "mine"])
def test_what_is_joined_is_written_in_its_place(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The branches of an Inception block, of odd numbers of channels, need no copy; and all stays on the device."""
    device = "systolic" if name == "systolic" else str(made_up(tmp_path / "mine"))
    model, samples = given(inception_block(), tmp_path, monkeypatch)
    options = Options(model, quantize="int8", calibrate=samples, isa="c99", device=device, place=(("*", "device"),))
    compiled = compile_model(options)
    program = compiled.plan.device
    assert program is not None
    number = next(i for i, step in enumerate(compiled.plan.steps) if step.layer == "joined")
    assert compiled.plan.steps[number].on_device
    assert program.of_step(number) == ()
    assert "joined" not in program.refused


def test_what_is_slower_on_the_device_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device whose clock is slow computes nothing, and the plan is the processor's own."""
    slow = made_up(tmp_path / "slow", **{"clock = 1.0": "clock = 1000.0"})
    model, samples = given(lenet(), tmp_path, monkeypatch)
    alone = compile_model(Options(model, quantize="int8", calibrate=samples, isa="c99"))
    compiled = compile_model(Options(model, quantize="int8", calibrate=samples, isa="c99", device=str(slow)))
    assert not any(step.on_device for step in compiled.plan.steps)
    assert len(compiled.plan.steps) == len(alone.plan.steps)
    assert any("computes nothing" in note for note in compiled.graph.notes)


def test_the_processor_computes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A branch of the processor's between steps of the device is no reason to wait; its result goes to the device."""
    net = Net((12, 12, 6), 7)
    left = net.conv("left", "x", 8, 3)
    right = net.conv("right", "x", 8, 1)
    graph = net.graph(net.conv("after", net.sum("both", left, right), 4, 3))
    places = (("*", "device"), ("right", "cpu"))
    compiled, _ = checked(graph, made_up(tmp_path / "mine"), tmp_path, monkeypatch, place=places)
    program = compiled.plan.device
    assert program is not None
    (region,) = (each.region for each in program.regions)
    assert [compiled.plan.steps[step].layer for step in region.beside] == ["right"]
    assert [compiled.plan.steps[step].layer for step in region.steps] == ["left", "both", "after"]
