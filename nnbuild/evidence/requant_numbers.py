"""The numbers by which a program scales a layer's sums, in the form that its kernel uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nnbuild.model.graph import Array
from nnbuild.numeric.requant import General, Layer
from nnbuild.numeric.requant_line import Lines
from nnbuild.numeric.requant_line import Numbers as Line
from nnbuild.numeric.requant_product import Column, Products
from nnbuild.numeric.rounding import INT32, Ints, ints


@dataclass(frozen=True)
class Numbers:
    """form: line, product or general; `rounded` as the high words of products are; columns: of every channel."""

    form: str
    rounded: bool
    rule: str
    columns: Mapping[str, Ints]


def numbers_of(collected: Sequence[tuple[Layer, Any]], packed: Mapping[str, Array], channels: int) -> Numbers | None:
    """Of all numbers that a kernel looked for, the last ones that its constants hold."""
    words = {int(value) for data in packed.values() for value in _words(data)}
    for layer, found in reversed(collected):
        numbers = _as_columns(layer, found)
        multipliers = {int(value) for value in numbers.columns["multiplier"]}
        if len(numbers.columns["multiplier"]) == channels and all(_in(value, words) for value in multipliers):
            return numbers
    return None


def _in(value: int, words: set[int]) -> bool:
    return value in words or ((value + (1 << 31)) & 0xFFFFFFFF) - (1 << 31) in words


def _words(data: Array) -> Array:
    data = np.ascontiguousarray(data)
    if data.dtype.itemsize < 4 or data.dtype.kind != "i":
        return np.zeros(0, np.int64)
    halves = data.view("<i4").astype(np.int64)
    return np.unique(np.concatenate([halves, data.astype(np.int64)]))


def _as_columns(layer: Layer, found: Any) -> Numbers:
    if isinstance(found, Lines):
        return Numbers("line", False, layer.rule, {role: found.of(role) for role in Line._fields})
    if isinstance(found, Products):
        return Numbers("product", found.form.rounded, layer.rule, {role: found.of(role) for role in Column._fields})
    assert isinstance(found, General), "there are three forms"
    columns = {role: ints(values) for role, values in found.constants.items()}
    columns["centre"] = np.clip((layer.low + layer.high) // 2, *INT32)
    return Numbers("general", False, layer.rule, columns)
