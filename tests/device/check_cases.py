"""A sound check of a small int8 classifier and of a float model, for tests to spoil one thing at a time."""

from __future__ import annotations

import numpy as np

from nnbuild.device.gates import Evidence, Output, Stack
from nnbuild.device.layers import LayerCost, LayerDifference
from nnbuild.device.metrics import Statistics

RNG = np.random.default_rng(7)
FLOAT_Y = RNG.random((50, 4)).astype(np.float32)
RAW = np.clip(np.round(FLOAT_Y * 256) - 128, -128, 127).astype(np.int8)
Y = ((RAW.astype(np.float32) + 128) / 256).astype(np.float32)
LABELS = np.argmax(FLOAT_Y, axis=1)

LAYERS = (
    LayerCost("conv", "Conv2D", "smlad", 40_000, 75_000),
    LayerCost("flatten", "Reshape", "none", 0, 0),
    LayerCost("dense", "Dense", "smlad", 10_000, 25_000),
)


def integer_output(**changes: object) -> Output:
    facts = {"name": "probs", "raw": RAW, "y": Y, "reference": RAW, "float_y": FLOAT_Y, "golden_y": FLOAT_Y}
    return Output(**{**facts, "classifier": True, **changes})  # type: ignore[arg-type]


def float_output(**changes: object) -> Output:
    near = (FLOAT_Y * np.float32(1 + 1e-6)).astype(np.float32)
    facts = {"name": "value", "raw": near, "y": near, "reference": FLOAT_Y, "float_y": FLOAT_Y, "golden_y": FLOAT_Y}
    facts["tolerance"] = np.full(len(near), 1e-5)
    return Output(**{**facts, **changes})  # type: ignore[arg-type]


def layer(agrees: bool, name: str = "dense") -> LayerDifference:
    detail = "3 of 4 integers differ, the first at index [1]: 17 instead of 16"
    return LayerDifference(name, "Dense", agrees, 0.0 if agrees else 1.0, detail, Statistics(-3, 5, 0.25, 1.5))


def evidence(*outputs: Output, **changes: object) -> Evidence:
    facts: dict[str, object] = {
        "model": "mnist",
        "model_hash": "0123456789abcdef",
        "board": "stm32f405",
        "quantize": "int8",
        "unit": "cycles",
        "hertz": 168_000_000,
        "outputs": outputs or (integer_output(),),
        "ticks": (100_000, 100_200, 99_800),
        "init_ticks": 321,
        "stack": Stack(1200, 4096, 1100),
        "layers": LAYERS,
        "memory": {"arena": 4000, "state": 0},
    }
    return Evidence(**{**facts, **changes})  # type: ignore[arg-type]
