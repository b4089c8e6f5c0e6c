"""The price against the model: what it chooses is the fastest, or nearly."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.models import path_of
from nnbuild.base.cost_model import LoopBody, OpCounts, Pace
from nnbuild.base.paths import EXAMPLE
from nnbuild.board.tables import find
from nnbuild.cycles.cost_model import pace_of
from nnbuild.jobs.alternatives import measure, save
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.plan import measured

BOARDS = ("mps2-an386", "stm32f405", "nucleo-l4r5zi")
CLOSE = 1.05
FAR = 1.5
"""Times the best price: a kernel that should take more is not run, since no price is that far off."""
SMALL = 5000
"""Cycles of layers that do not matter."""


def test_a_bill_in_cycles() -> None:
    bill = OpCounts(100, 20, 3, 64, (LoopBody(2000, 2000, 10), LoopBody(500, 500, 10)))
    assert bill.cycles(Pace(), 0) == 123
    slow = Pace(wait_cycles=5, read_bytes=16, cache_bytes=1024)
    assert bill.cycles(slow, 0) == pytest.approx(123 + 4 * 5.2 + 10 * 2000 / 16 * slow.fetch_stall)
    assert bill.cycles(slow, 640) == pytest.approx(123 + 40 * 5.2 + 10 * 2000 / 16 * slow.fetch_stall)
    twice = bill.times(2)
    assert twice.cycles(slow, 0) == pytest.approx(2 * bill.cycles(slow, 0))
    assert bill.plus(bill).cycles(slow, 0) == pytest.approx(twice.cycles(slow, 0))


def test_parts_have_paces() -> None:
    assert pace_of(find("stm32f405")) == Pace(word=1, branch=1, wait_cycles=5, read_bytes=16, cache_bytes=992)
    assert pace_of(find("nucleo-l4r5zi")) == Pace(word=1, branch=1, wait_cycles=5, read_bytes=8, cache_bytes=960)
    assert pace_of(find("linux")) is None


@pytest.mark.slow
def test_slow_flash_changes_the_choice() -> None:
    """By instructions, straight code with wide weights; by cycles, what is read from flash less often."""
    kernels = {}
    for price in ("instructions", "cycles"):
        plan = compile_model(Options(EXAMPLE / "mnist.h5", "nucleo-l4r5zi", "int8", price=price)).plan
        kernels[price] = [step.kernel_name for step in plan.steps]
    assert "patches_wide" in kernels["instructions"]
    assert not any("staged" in name for name in kernels["instructions"])
    assert any("staged" in name for name in kernels["cycles"])


def exceptions(path: Path, board: str) -> tuple[int, list[str]]:
    """How many layers there are, and those for which a kernel would be faster by more than is allowed."""
    _, found = measure(Options(path, board, "int8", name="m"), FAR)
    layers: dict[str, list[tuple[int, str, bool]]] = {}
    for each in found:
        if each.cost is not None:
            layers.setdefault(f"{each.layer} {each.op}", []).append((each.cost, each.kernel, each.taken))
    slow = []
    for layer, costs in layers.items():
        taken = next((cost for cost, _, is_taken in costs if is_taken), None)
        best, kernel, _ = min(costs)
        if taken is not None and taken > CLOSE * best and taken > SMALL:
            slow.append(f"{path.stem} {board} {layer}: {taken:,} cycles, {kernel} {best:,}")
    return len(layers), slow


@pytest.mark.full
def test_the_example_on_a_slow_flash() -> None:
    count, slow = exceptions(EXAMPLE / "mnist.h5", "stm32f405")
    print("\n".join(slow))
    assert len(slow) <= count / 10


@pytest.mark.full
@pytest.mark.parametrize("board", BOARDS)
def test_the_price_chooses_what_is_fastest(board: str) -> None:
    count = 0
    slow: list[str] = []
    for model in ("mnist", "kws", "resnet8", "autoencoder", "vww"):
        path = path_of(model)
        if path is not None:
            layers, found = exceptions(path, board)
            count, slow = count + layers, slow + found
    print("\n".join(slow))
    assert len(slow) <= 0.05 * count


@pytest.mark.slow
def test_what_a_device_measured_outranks_the_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    measured.table.cache_clear()
    options = Options(EXAMPLE / "mnist.h5", "stm32f405", "int8")
    before = compile_model(options)
    step = next(step for step in before.plan.steps if step.kind == "conv2d")
    path = save(before, {(step.layer, "patches_packed"): 1})
    assert path == str(tmp_path / "nnbuild" / "measured" / "stm32f405.json")
    measured.table.cache_clear()
    after = compile_model(options)
    assert next(each for each in after.plan.steps if each.layer == step.layer).kernel_name == "patches_packed"
    elsewhere = compile_model(Options(EXAMPLE / "mnist.h5", "mps2-an386", "int8"))
    assert not any(each.choice.price.measured for each in elsewhere.plan.steps)
    measured.table.cache_clear()
