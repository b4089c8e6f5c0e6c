"""Steps in cores' own memories: planned within them, the same bits, and nothing else touched where that is checked."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.errors import UsageError
from nnbuild.board.cores import core_table, with_local
from nnbuild.device.errors import DeviceFault
from nnbuild.device.gates import Gates
from nnbuild.emit.artifact import Artifact
from nnbuild.isa.registry import find_isas
from nnbuild.jobs.job import check_job, place, profile_job, samples_for
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import Compiled, compile_model
from nnbuild.ops.base import Clamp
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.dense import Dense
from nnbuild.plan.byte_ranges import all_bytes, byte_ranges
from nnbuild.plan.cores import Cores, OwnMemory
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.split import divisible
from nnbuild.plan.target import Target
from tests.kernels.cases import cases
from tests.kernels.test_winograd import extreme
from tests.plan.test_row_fusion import integers, network
from tests.support.graphs import single
from tests.support.on_cores import program
from tests.support.quantized import quantized

pytestmark = pytest.mark.slow

MNIST = Path(__file__).parents[2] / "examples" / "mnist"
SETS = {"c99": "native", "rv32im": "rv32"}
SOME = ("conv2d-0", "depthwise-0-1", "pool", "dense", "binary", "activation-tanh", "softmax", "concatenate")


def local_plan(name: str, cores: int, size: int, isa: str = "c99") -> Plan:
    target = Target(isa=find_isas(isa, SETS[isa])[0], cores=Cores(cores, 0, local=OwnMemory(size)))
    return make_plan(quantized(dict(cases())[name](), "int8", seed=3), "net", target)


def names(beginning: str) -> list[str]:
    return [name for name, _ in cases() if name.startswith(beginning)]


@pytest.mark.turns(3)
@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("beginning", SOME)
def test_copies_of_what_is_read_are_enough(isa: str, beginning: str, tmp_path: Path) -> None:
    name = names(beginning)[0]
    graph = quantized(dict(cases())[name](), "int8", seed=3, same_scale=beginning == "pool")
    built = program(graph, Target(isa=find_isas(isa, SETS[isa])[0]), tmp_path)
    assert built is not None
    assert subprocess.run([built], timeout=60).returncode == 0


def test_a_dense_layer_of_many_rows_reads_and_writes_them_all(tmp_path: Path) -> None:
    weights = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    built = program(single(Dense(), [(3, 2, 5)], {"kernel": weights}), Target(), tmp_path)
    assert built is not None and subprocess.run([built], timeout=60).returncode == 0


def test_slices_of_constants_are_enough(tmp_path: Path) -> None:
    """Of Winograd's weights for some output channels, where those for all do not fit."""
    graph, isa = extreme((8, 9, 64, 64), Clamp(0.0, None), 1), find_isas("rv32im", "rv32")[0]
    for cores in (1, 5):
        step = make_plan(graph, "net", Target(isa=isa, cores=Cores(cores, 0, local=OwnMemory(65536)))).steps[0]
        assert step.tiling is not None and step.tiling.sliced and not step.tiling.writes
        assert step.tiling.constants < sum(data.nbytes for data in step.demand.packed.values())
        assert all(tile.ranges.reads[0].begin % (9 * 64) == 0 for tiles in step.tiling.parts for tile in tiles)
    built = program(graph, Target(isa=isa), tmp_path)
    assert built is not None and subprocess.run([built], timeout=60).returncode == 0


@pytest.mark.turns(2)
@pytest.mark.parametrize("isa", SETS)
def test_functions_within_a_kernel_find_their_constants(isa: str, tmp_path: Path) -> None:
    """Of parts that are computed row by row, and of the phases of a transposed convolution."""
    chance = np.random.default_rng(5)
    taps = chance.normal(size=(3, 3, 16, 8)).astype(np.float32)
    spread = quantized(single(Conv2DTranspose((9, 9), (2, 2)), [(4, 4, 8)], {"kernel": taps}), "int8", seed=3)
    for number, (graph, optimize) in enumerate([(integers(network(3), "int16"), "ram"), (spread, "speed")]):
        target = Target(isa=find_isas(isa, SETS[isa])[0], optimize=optimize)
        kernels = {step.kernel_name for step in make_plan(graph, "net", target).steps}
        assert any(name.startswith("stream") or name.endswith("_phases") for name in kernels), kernels
        folder = tmp_path / str(number)
        folder.mkdir()
        built = program(graph, target, folder)
        assert built is not None and subprocess.run([built], timeout=60).returncode == 0


@pytest.mark.parametrize("size", [1024, 4096, 65536])
def test_local_memory_is_never_above_its_size(size: int) -> None:
    for name in ("conv2d-0", "depthwise-0-1", "activation-tanh"):
        plan = local_plan(name, 3, size)
        assert plan.local_bytes <= size
        assert all((step.tiling is None) == bool(step.untiled) for step in plan.steps)


def test_smaller_memories_hold_smaller_tiles() -> None:
    all_bytes = local_plan("conv2d-0", 2, 65536).local_bytes
    plans = [local_plan("conv2d-0", 2, size) for size in (65536, all_bytes - 64)]
    counts = [sum(map(len, plan.steps[0].tiling.parts)) for plan in plans if plan.steps[0].tiling is not None]
    assert len(counts) == 2 and counts[1] > counts[0]


def test_what_is_too_large_stays_in_shared_memory_and_says_so() -> None:
    plan = local_plan("conv2d-0", 2, 64)
    assert "bytes, and a core's own memory has 64" in plan.steps[0].untiled and not plan.local_bytes


def test_what_parts_write_follows_each_other() -> None:
    plan = local_plan("conv2d-0", 4, 65536, "rv32im")
    step = plan.steps[0]
    demand = divisible(step.site, step.demand)
    found = [byte_ranges(step.site, demand, at, at + 1) for at in range(demand.extent)]
    spans = [each.writes[0] for each in found if each is not None]
    assert [span.begin for span in spans[1:]] == [span.begin + span.size for span in spans[:-1]]
    assert spans[-1].begin + spans[-1].size == all_bytes(step.site).writes[0].size


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"origin": 64}, "its [cores.local] has no length. Write origin and length as multiples of 64."),
        ({"origin": 0, "length": 63}, "its [cores.local] is not aligned to 64 bytes. Write origin and length as"),
        ({"size": 3}, "its [cores.local] has no size. Write origin, length, copy, use."),
        ({"use": "often"}, "its [cores.local] use = 'often' is not valid. Write one of off, on, checked."),
        ({"length": "64K"}, "its [cores.local] length = '64K' is not valid. Write a number from 0."),
    ],
)
def test_tables_that_cannot_be(table: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        core_table("mine", {"count": 2, "local": table})
    assert str(caught.value).startswith(f"board 'mine': {said}")


def test_a_board_without_memories_of_their_own() -> None:
    with pytest.raises(UsageError) as caught:
        with_local("mine", core_table("mine", {"count": 2}), "on")
    assert "--local on: the table of mine has no core-local memory." in str(caught.value)


def compiled(local: str, cores: int = 8) -> Compiled:
    if shutil.which("qemu-system-riscv32") is None:
        pytest.skip("qemu-system-riscv32 is not installed")
    data = MNIST / "calibration.npz"
    return compile_model(Options(MNIST / "mnist.h5", "rv32-smp", "int8", calibrate=data, threads=cores, local=local))


@pytest.mark.turns(3)
@pytest.mark.emulator
def test_copies_cost_little() -> None:
    costs = {}
    for local in ("off", "on"):
        made = compiled(local)
        with place(None) as where:
            profile = profile_job(made, where)
        costs[local] = profile.total
        assert any(profile.copying) == (local == "on")
    assert costs["on"] < 1.15 * costs["off"]


@pytest.mark.turns(3)
@pytest.mark.emulator
def test_nothing_else_is_touched() -> None:
    made = compiled("checked")
    assert not any(step.untiled for step in made.plan.steps)
    with place(None) as where:
        assert check_job(made, samples_for(made, None), where, Gates()).passed


FOREIGN = {
    "weights that were not copied": (r"nn_local_whole\(local, -\d+\)", "mnist_weights"),
    "another's memory": (r"nn_local_whole\(local, -", "nn_local_whole(local + 65536, -"),
    "shared activations": (r"\(const int8_t \*\)nn_local_whole\(local, [^)]*\)", "context->arena.i8"),
}


@pytest.mark.turns(3)
@pytest.mark.emulator
@pytest.mark.parametrize("what", FOREIGN)
def test_whoever_touches_anything_else_is_found_out(what: str) -> None:
    made = compiled("checked")
    text = made.artifact.files["mnist.c"].decode()
    changed = re.sub(FOREIGN[what][0], FOREIGN[what][1], text)
    assert changed != text
    made = replace(made, artifact=Artifact({**made.artifact.files, "mnist.c": changed.encode()}))
    with place(None) as where, pytest.raises(DeviceFault) as caught:
        check_job(made, samples_for(made, None), where, Gates())
    assert "fault" in str(caught.value)
