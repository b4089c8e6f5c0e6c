"""Examples, by the command's own options: the bytes of their weights, and what machine sounds still hear."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.compression import figure, output, stored_weights
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EXAMPLE = EXAMPLES / "machine-sounds"
WEIGHTS = 264_192


@pytest.mark.full
@pytest.mark.slow
def test_a_tenth_of_an_autoencoder_hears_as_well() -> None:
    """On faults that neither the training nor the calibration has heard."""
    calibration = EXAMPLE / "calibration.npz"
    made = compile_model(
        Options(EXAMPLE / "machine.h5", board="stm32", quantize="int8", calibrate=calibration, prune="0.9")
    )
    assert sum(each.count for each in made.compression.weights) == WEIGHTS
    assert stored_weights(made.plan) <= 40 * 1024
    with np.load(EXAMPLE / "samples.npz") as data:
        x, labels = data["x"].astype(np.float32), data["labels"]
    before, after = (figure(x, y, labels, y) for y in (output(made.folded, x), output(made.graph, x)))
    assert before > 0.99
    assert after > before - 0.01


@pytest.mark.turns(4)
@pytest.mark.slow
def test_narrow_weights_take_fewer_bytes_in_every_layer_of_the_digits() -> None:
    """Also where a kernel that keeps them wide would be faster: whoever gives up accuracy for bytes wants them."""
    example = EXAMPLES / "mnist"
    plain = Options(
        example / "mnist.h5",
        board="stm32",
        quantize="int8",
        calibrate=example / "calibration.npz",
        optimize="size",
    )
    narrow = compile_model(replace(plain, weights_bits="3"))
    count = sum(each.count for each in narrow.compression.weights)
    assert stored_weights(narrow.plan) <= 0.37 * count
    fast, small = ([step.kernel_name for step in plan.steps] for plan in (compile_model(plain).plan, narrow.plan))
    assert any(name.startswith("planar") for name in fast)
    assert not any(name.startswith("planar") for name in small)
