"""The arithmetic of devices: its rounding, and that the processor's kernels compute in it bit for bit."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from nnbuild.device.gates import Gates
from nnbuild.jobs.job import check_job, place, samples_for
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.model.graph import Graph
from nnbuild.numeric.arithmetic import EXACT, TFLITE, Arithmetic, mean, requant, scaling, shifted
from nnbuild.numeric.rounding import requantize, rounding_mean
from tests.offload.made_up import made_up
from tests.offload.nets import Net, given


def rounded(value: Fraction, rounding: str) -> int:
    down = value.numerator // value.denominator
    rest = value - down
    half = Fraction(1, 2)
    if rounding == "floor" or rest < half:
        return down
    if rest > half or rounding == "half_up":
        return down + 1
    return down + (down % 2 if rounding == "half_even" else int(value >= 0))


@pytest.mark.parametrize("rounding", ["floor", "half_up", "half_away", "half_even"])
def test_shifts_and_means_round_as_they_say(rounding: str) -> None:
    values = np.arange(-70, 71)
    for amount in (0, 1, 3, 5):
        found = shifted(values, amount, rounding)  # type: ignore[arg-type]
        assert found.tolist() == [rounded(Fraction(int(v), 1 << amount), rounding) for v in values]
    for count in (1, 2, 3, 4, 9, 10):
        found = mean(values, count, rounding)  # type: ignore[arg-type]
        assert found.tolist() == [rounded(Fraction(int(v), count), rounding) for v in values]


def test_the_usual_arithmetic_is_that_of_tflite() -> None:
    chance = np.random.default_rng(1)
    sums = chance.integers(-(2**24), 2**24, 4000)
    for real in (1.7e-5, 0.004, 0.3, 0.99, 1.6):
        scale = scaling(real, TFLITE)
        assert np.array_equal(requant(sums, TFLITE, *scale), requantize(sums, *scale))
    assert np.array_equal(mean(sums, 9, "half_away"), rounding_mean(sums, 9))
    assert EXACT != TFLITE


def test_scales_keep_to_the_device() -> None:
    powers = Arithmetic(scale="pow2", shifts=(-10, 3))
    assert scaling(0.25, powers) == (1, -2)
    assert scaling(64.0, powers) == (1, 3)
    assert scaling(2.0**-11, powers) == (0, 0)
    short = Arithmetic(scale="int16x15")
    multiplier, shift = scaling(0.3, short)
    assert abs(multiplier * 2.0 ** (shift - 15) - 0.3) < 2.0**-16


def everything() -> Graph:
    """Every operation that a device may have, and one whose windows have gaps, which none has."""
    net = Net((9, 7, 4), 6)
    x = net.conv("conv", net.conv("gaps", "x", 5, 3, dilation=(1, 2)), 6, 3)
    x = net.sum("sum", net.depthwise("depthwise", x, 3), x)
    x = net.pool("average", net.pool("most", x, 2, 1), 3, 2, "average")
    return net.graph(net.dense("dense", x, 5))


FORMS = {
    "short multipliers, one rounding": ('"int16x15"', '"half_up", "none"', '"half_up"', "true"),
    "long multipliers, even halves": ('"int32x31"', '"half_even", "half_even"', '"half_even"', "true"),
    "floors, no zero points": ('"int32x31"', '"floor", "floor"', '"floor"', "false"),
    "powers of two, halves away": ('"pow2"', '"half_away", "none"', '"half_away"', "false"),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_processor_computes_in_it(
    form: tuple[str, str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale, rounding, average, zeros = form
    changes = {
        'scale = "pow2"': f"scale = {scale}",
        'rounding = ["floor", "none"]': f"rounding = [{rounding}]",
        'mean = "floor"': f"mean = {average}",
        "zero_in = false": f"zero_in = {zeros}",
        "zero_out = false": f"zero_out = {zeros}",
    }
    device = made_up(tmp_path / "mine", **changes)
    model, samples = given(everything(), tmp_path, monkeypatch)
    chosen = Options(model, quantize="int8", calibrate=samples, device=str(device), place=(("*", "cpu"),))
    compiled = compile_model(chosen)
    assert "as_device" in {step.kernel_name for step in compiled.plan.steps}
    with place(None) as where:
        report = check_job(compiled, samples_for(compiled, samples), where, Gates(agreement=0, golden_agreement=0))
    assert report.passed, [miss.detail for miss in report.misses]
