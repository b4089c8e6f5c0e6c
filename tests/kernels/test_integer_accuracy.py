"""The integer definitions against the float ones: the error of each operation in steps of its output.

Both get the same numbers and constants, so only the operation's own arithmetic counts.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.cases import cases
from tests.kernels.test_integer import MOVES
from tests.support.calibrated import calibrated, spread_out, steps_apart

JUDGED = (
    *("activation", "prelu", "affine", "binary", "concatenate", "softmax", "reduce", "layer_norm", "lrn"),
    "resize_bilinear-(6, 8)-centres",  # other factors drift like TFLite's
)
CASES = {name: maker for name, maker in cases() if name.startswith(JUDGED)}
STEPS = {"int8": 0.8, "int16": 1.5}
STEEP = {
    # name, 16 bits: errors of linear interpolation over steps of 128 inputs, for functions that bend sharply
    "activation-softsign": 12,
    "activation-tanh": 3,
    "activation-erf": 3,
    "activation-exponential": 12,
    "activation-square": 3,
    "activation-sqrt-positive": 4,
    "activation-log-positive": 40,
    "activation-rsqrt-positive": 800,
    "activation-sin": 4,
    "activation-cos": 4,
    # TFLite's own 16-bit softmax treats exp below -10 as 0 and divides by a table
    "softmax-of-1": 60,
    "softmax": 30,
}
"""The bounds where a table of 513 entries or TFLite's rule is approximate."""


def bound(name: str, dtype: str) -> float:
    special = [steps for start, steps in STEEP.items() if name.startswith(start)]
    return special[0] if special and dtype == "int16" else STEPS[dtype]


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("name", CASES)
def test_integers_are_close_to_floats(name: str, dtype: str) -> None:
    graph = CASES[name]()
    inputs = spread_out(graph, name.endswith("positive"))
    integer = calibrated(graph, dtype, inputs, name.startswith(MOVES))
    apart = steps_apart(integer, graph, inputs)
    assert np.max(apart) <= bound(name, dtype)
    assert np.mean(apart) <= max(0.45, bound(name, dtype) / 4)
