"""Lanes for a layer, with the constants of every channel in the form in which a set scales sums."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.isa.float_results import FloatResults
from nnbuild.isa.integer_lanes import IntegerVectors
from nnbuild.isa.integer_ops import READY
from nnbuild.isa.vectors import Vectors
from nnbuild.model.graph import Array
from nnbuild.numeric.requant import General
from nnbuild.numeric.requant_line import HIGH, Lines
from nnbuild.numeric.requant_product import Products
from nnbuild.numeric.requant_twice import Twice
from nnbuild.numeric.rounding import Ints, int32s, wrap

L = TypeVar("L", bound=IntegerVectors)


def integer_vectors(
    v: Vectors,
    dtype: str,
    zero: int,
    bounds: tuple[int, int],
    weights: Array,
    bias: Array,
    lines: Lines | Twice | Products | General | FloatResults,
) -> IntegerVectors:
    """Lanes for a layer with weights [taps, channels]."""
    of_bytes = dtype == "int8" and weights.dtype == np.int8 and weights.min(initial=0) >= v.least_weight
    depth = v.depth if of_bytes or v.depth == 1 else 2
    lifted = zero + v.lift if depth != 2 else 0
    constants = _constants(lines, v) if isinstance(lines, Lines | Products) else lines.constants
    start = bias.astype(np.int64) - lifted * weights.astype(np.int64).sum(axis=0)
    return IntegerVectors(
        v=v,
        dtype=dtype,
        zero=zero,
        bounds=bounds,
        channels={"bias": int32s(start), **constants},
        doubled=isinstance(lines, Lines) and lines.shifted,
        rounded=lines if isinstance(lines, Twice) else None,
        long=isinstance(lines, Products),
        single=lines if isinstance(lines, General) else None,
        lanes=v.lanes,
        depth=depth,
        input_type="int16_t" if dtype == "int16" else READY[depth],
        output_type=f"{dtype}_t",
        weight_type=C_TYPES[weights.dtype.name],
    )


def as_kind(kind: type[L], lanes: IntegerVectors, **more: Any) -> L:
    """The same lanes as a kind of their own, with what it has besides."""
    given = {field.name: getattr(lanes, field.name) for field in fields(lanes)} | more
    return kind(**given)


def _constants(lines: Lines | Products, v: Vectors) -> dict[str, Array]:
    """The constants in vectors' form: shifts start at the upper half of a product."""
    powers = v.powers
    if isinstance(lines, Products):
        shift = _power(31 - lines.of("shift")) if powers else lines.of("shift")
        return {name: int32s(lines.of(name)) for name in ("multiplier", "lower", "offset")} | {"shift": int32s(shift)}
    shift, left, away = lines.of("shift") - HIGH, lines.of("left"), lines.of("away")
    addend = lines.of("addend")
    parts = {"low": wrap(addend, 32), "high": addend >> HIGH} if v.apart else {"addend": addend}
    found = {"multiplier": lines.of("multiplier"), **parts}
    found["shift"] = _power(31 - shift) if powers else shift
    if lines.shifted and (left != 1).any():
        found["left"] = _power(left) if powers else left
    if lines.shifted and (away != -1).any():
        found["away"] = away
    return {name: values if name == "addend" else values.astype(np.int32) for name, values in found.items()}


def _power(of: Ints) -> Ints:
    return wrap(np.int64(1) << of, 32)
