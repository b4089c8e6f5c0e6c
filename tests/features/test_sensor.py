"""Features of sensors: the C against the reference in every bit, the reference against double precision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.features.sensor import Sensor
from nnbuild.features.sensor_frontend import SensorFrontEnd
from nnbuild.features.wav import made_up
from tests.features.compiled import built, fed

CASES = {
    "usual": Sensor(),
    "all": Sensor(rate=3200, window=500, step=200, axes=2, gain=0.001, bands=5, peaks=4),
    "one_axis_with_gaps": Sensor(window=64, step=100, axes=1, values=("rms",), bands=3, logarithm=False),
    "statistics": Sensor(window=30, step=10, axes=6, values=("std", "mean"), bands=0),
    "peaks": Sensor(window=128, step=64, values=(), bands=0, peaks=3),
}


@pytest.mark.parametrize("name", CASES)
def test_c_equals_the_reference(name: str, tmp_path: Path) -> None:
    front_end = SensorFrontEnd(CASES[name])
    library = built(front_end, tmp_path)
    for part, samples in enumerate(made_up(front_end.framing, 20.0 if front_end.framing.rate < 1000 else 1.0)):
        found = fed(library, front_end, samples, np.random.default_rng(part))
        right = front_end.rows(samples)
        assert len(right) > 10
        np.testing.assert_array_equal(found.view(np.uint32), right.view(np.uint32))


def test_values_are_what_they_are_called() -> None:
    s = Sensor(rate=1024, window=1024, step=512, axes=1, gain=0.01, bands=4, logarithm=False, peaks=2)
    time = np.arange(4096) / 1024
    x = 300 + 1000 * np.sin(2 * np.pi * 100 * time) + 400 * np.sin(2 * np.pi * 300 * time)
    samples = np.round(x).astype(np.int16)
    for row, at in zip(SensorFrontEnd(s).rows(samples), range(0, 4096, 512), strict=False):
        part = samples[at : at + 1024] * 0.01
        np.testing.assert_allclose(row[:3], [part.mean(), part.std(), np.sqrt((part**2).mean())], rtol=1e-6)
        np.testing.assert_allclose(row[-4:], [100, 5.0, 300, 2.0], rtol=2e-3), "frequency and half the height"
        assert row[3] > 30
        assert row[4] < 1 < row[5]
