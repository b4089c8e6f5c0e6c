"""The example of machine sounds, by the command's own options: a tenth of the weights, nearly all of what it hears."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.compression import figure, output, stored_weights
from nnbuild.jobs.pipeline import Options, compile_model

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "machine-sounds"
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
