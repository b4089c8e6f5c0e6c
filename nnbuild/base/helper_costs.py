"""What calls of the vendored functions cost: instructions on a Cortex-M4F, counted by `benchmarks/libm.py --costs`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Instructions where the shift is a number, which compilers make use of, and where it is a variable; operations on
    floats; and products of 64 bits, as parts of which count those by halves (firmware/numeric/armv6m) and what else
    takes more on a core that multiplies 32 bits only."""

    known: float
    variable: float = 0
    floats: float = 0
    wides: float = 0


COSTS: Mapping[str, Cost] = {
    "requantize": Cost(15, 36, wides=0.55),
    "requantize64": Cost(10, 34, wides=0.6),
    "rounding_shift": Cost(10, 31),
    "scale_long": Cost(6, 29, wides=2),
    "scale_wide": Cost(12, 43, wides=2),
    "scale_once": Cost(13, 60, wides=2),
    "scale_float": Cost(102),
    "hold": Cost(8),
    "divide": Cost(20, 48, wides=3),
    "divide_long": Cost(96, wides=3),
    "divide_short": Cost(6, wides=0.6),
    "leading_zeros": Cost(2),
    "reciprocal": Cost(70, wides=4),
    "inverse_square_root": Cost(161, wides=10),
    "log_of_sum": Cost(184, wides=9),
    "interpolate16": Cost(12, wides=0.2),
    "logistic16": Cost(25, 49, wides=0.15),
    "tanh16": Cost(23, 47, wides=0.3),
    "fine_sigmoid": Cost(35, wides=2.4),
    "fine_tanh": Cost(37, wides=2.4),
    "gate_logistic16": Cost(112, 164, wides=6),
    "gate_tanh16": Cost(115, 169, wides=6),
    "halves_away16": Cost(4, 9),
    "quantizef": Cost(28, floats=9),
    "quantize_bits": Cost(48, wides=1),
    "real_bits": Cost(38, wides=1),
    "floorf": Cost(17),
    "ceilf": Cost(17),
    "rintf": Cost(14, floats=3),
    "sqrtf": Cost(68),
    "expf": Cost(46, floats=20),
    "expm1f": Cost(64, floats=30),
    "logf": Cost(60, floats=27),
    "log1pf": Cost(77, floats=32),
    "tanhf": Cost(75, floats=33),
    "logisticf": Cost(71, floats=33),
    "sinf": Cost(99, floats=17),
    "cosf": Cost(100, floats=17),
    "erff": Cost(49, floats=16),
    "powf": Cost(174, floats=3),
}

NUMBER = re.compile(r"-?\d+\w*")


def helper_cost(name: str, operands: tuple[str, ...]) -> tuple[float, float, float]:
    """Instructions, operations on floats and products of 64 bits of a call with these operands."""
    cost = COSTS[name]
    known = not cost.variable or NUMBER.fullmatch(operands[-1])
    return (cost.known if known else cost.variable), cost.floats, cost.wides
