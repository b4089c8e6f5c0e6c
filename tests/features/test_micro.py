"""The microfrontend: against the binding of its origin, and its C against the reference, in every bit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from nnbuild.features.config import recipe_of
from nnbuild.features.frontend import Array
from nnbuild.features.micro_frontend import MicroFrontEnd
from nnbuild.features.micro_tables import Micro
from nnbuild.features.spectral_frontend import SpectralFrontEnd
from nnbuild.features.spectral_tables import Spectral
from nnbuild.features.wav import made_up
from nnbuild.numeric.signal import root
from tests.features.compiled import built, fed
from tests.support.shares import in_shares

USUAL = MicroFrontEnd(Micro())
OTHERS = {
    "steps_of_20": Micro(step_ms=20),
    "other_rate": Micro(rate=8000, window_ms=25, channels=20, high=3800.0),
    "without_gain": Micro(window_ms=64, channels=32, pcan=False),
    "without_log": Micro(channels=12, log=False),
    "gaps": Micro(window_ms=10, step_ms=15, channels=8),
    "odd_window": Micro(rate=11025, window_ms=25, step_ms=10, channels=16, high=5000.0),
    "whole_band": Micro(low=0.0, high=8000.0, channels=24),
}


def sound(seconds: float = 1.0, seed: int = 0) -> Array:
    quiet = np.random.default_rng(seed).integers(-2, 3, 8000)
    level = np.full(4000, -32768)
    return np.concatenate([*made_up(USUAL.framing, seconds, seed), quiet, level]).astype(np.int16)


@pytest.mark.oracle
@in_shares(10)
def test_equals_the_binding(share: int) -> None:
    """All shares compare more than a million values."""
    binding = pytest.importorskip("pymicro_features").MicroFrontend()
    samples = sound(4.5, share)
    raw, at, found = samples.astype("<i2").tobytes(), 0, []
    while at + 320 <= len(raw):
        answer = binding.process_samples(raw[at : at + 320])
        at += 2 * answer.samples_read
        if answer.features:
            found.append(answer.features)
    right = np.round(np.array(found) / 0.0390625).astype(np.int64)
    assert right.size > 100_000
    np.testing.assert_array_equal(USUAL.rows(samples), right)


@pytest.mark.parametrize("name", OTHERS)
def test_c_equals_the_reference(name: str, tmp_path: Path) -> None:
    front_end = MicroFrontEnd(OTHERS[name])
    library = built(front_end, tmp_path)
    for part, samples in enumerate(made_up(front_end.framing, 0.4)):
        found = fed(library, front_end, samples, np.random.default_rng(part))
        np.testing.assert_array_equal(found, front_end.rows(samples))


def test_c_of_the_usual_settings_in_any_parts(tmp_path: Path) -> None:
    library = built(USUAL, tmp_path)
    samples = sound()
    right = USUAL.rows(samples)
    np.testing.assert_array_equal(fed(library, USUAL, samples), right)
    np.testing.assert_array_equal(fed(library, USUAL, samples, np.random.default_rng(1)), right, "and after a reset")


@pytest.mark.parametrize("table", ["window", "factors4", "factors64", "split", "gains", "logarithms", "weights"])
def test_one_entry_of_a_table_shows(table: str, tmp_path: Path) -> None:
    def changed(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
        text = files["k_features.c"].decode()
        found = re.search(rf"k_{table}\[\d+\] = {{\n(.*?)}};", text, re.DOTALL)
        assert found is not None
        numbers = re.findall(r"-?\d+", found[1])
        numbers[len(numbers) // 2] = str(int(numbers[len(numbers) // 2]) ^ 0x400)
        new = text[: found.start(1)] + ", ".join(numbers) + text[found.end(1) :]
        return {**files, "k_features.c": new.encode()}

    library = built(USUAL, tmp_path, ("-O1",), changed)
    samples = np.concatenate(list(made_up(USUAL.framing, 1.0)))
    assert (fed(library, USUAL, samples) != USUAL.rows(samples)).any()


def test_roots_to_the_nearest() -> None:
    assert root(np.array([0, 1, 2, 3, 6, 7])).tolist() == [0, 1, 1, 2, 2, 3]
    assert root(np.array([0xFFFFFFFF])).tolist() == [0xFFFF], "as its origin has it"
    near = np.arange(2**26 - 300, 2**26) ** 2
    assert (root(near) == root(near + 1)).all()
    assert (root(near - 1) == root(near)).all()
    assert (root(near + np.arange(2**26 - 300, 2**26) + 1) == root(near) + 1).all()


def test_without_noise_it_is_near_a_log_mel_in_floats(tmp_path: Path) -> None:
    path = tmp_path / "f.toml"
    path.write_text('[features]\nkind = "micro"\npreset = "log_mel"\nwindow_ms = 32\nstep_ms = 20\n')
    recipe = recipe_of(path)
    assert recipe.scale == 1 / 64
    floats = Spectral(window=512, step=320, low=125, high=7500, logarithm="ln", least=1e-30, gain=1.0)
    for level, usual in ((1.0, 0.06), (0.03, 0.09)):
        samples = np.round(next(made_up(USUAL.framing, 2.0)) * level).astype(np.int16)
        apart = np.abs(recipe.front_end.rows(samples) / 64 - 0.5 * SpectralFrontEnd(floats).rows(samples))
        assert apart.mean() < usual
        assert apart.max() < 1.0
