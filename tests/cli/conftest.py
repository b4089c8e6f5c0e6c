"""A command line that runs in this process, and small models made without Keras."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild import cli
from tests.frontend.keras_files import (
    called,
    dense,
    functional,
    h5_bytes,
    input_layer,
    layer,
    put,
    random_arrays,
    sequential,
    small,
)


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


Nnbuild = Callable[..., Said]


@pytest.fixture
def nnbuild(capsys: pytest.CaptureFixture[str]) -> Nnbuild:
    def run(*arguments: object) -> Said:
        capsys.readouterr()
        try:
            status = cli.main([str(word) for word in arguments])
        except SystemExit as left:
            status = int(left.code or 0)
        said = capsys.readouterr()
        return Said(status, said.out, said.err)

    return run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """x[4] -> Dense -> [3]"""
    config, weights = small()
    return put(tmp_path / "small.h5", h5_bytes(config, weights))


@pytest.fixture
def forked(tmp_path: Path) -> Path:
    """Two inputs, left[2] and right[3], and two outputs: their concatenation, and a Dense(2) of it."""
    config = functional(
        [
            called(input_layer("left", [2])),
            called(input_layer("right", [3])),
            called(layer("Concatenate", "both", axis=-1), "left", "right"),
            called(dense("head", 2), "both"),
        ],
        ["left", "right"],
        ["both", "head"],
    )
    # A call with several inputs lists them side by side.
    config["config"]["layers"][2]["inbound_nodes"] = [[["left", 0, 0, {}], ["right", 0, 0, {}]]]
    return put(tmp_path / "forked.h5", h5_bytes(config, {"head": random_arrays((5, 2), (2,))}))


@pytest.fixture
def recurrent(tmp_path: Path) -> Path:
    """A stateful LSTM(3) that takes one step of two numbers a run."""
    options = {"units": 3, "stateful": True, "return_sequences": False, "use_bias": True}
    lstm = layer("LSTM", "lstm", activation="tanh", recurrent_activation="sigmoid", **options)
    start = layer("InputLayer", "x", batch_input_shape=[1, 1, 2])
    arrays = random_arrays((2, 12), (3, 12), (12,))
    return put(tmp_path / "recurrent.h5", h5_bytes(sequential(start, lstm), {"lstm": arrays}))


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)
