"""C literals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

C_TYPES = {
    "float32": "float",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
}
PER_LINE = {"float": 6, "int8_t": 18, "uint8_t": 22, "int16_t": 14, "uint16_t": 14, "int32_t": 8, "int64_t": 4}
PACKED = 1 << 48
"""Threshold: an int64 beyond it holds several packed numbers, which are printed in hexadecimal."""


def float_literal(value: float) -> str:
    """A float constant that reads back as exactly this float32."""
    single = float(np.float32(value))
    if not np.isfinite(single):
        raise ValueError(f"{value} is not a finite number")
    text = np.format_float_positional(np.float32(single), unique=True, trim="0")
    if len(text) > 16:
        text = np.format_float_scientific(np.float32(single), unique=True, trim="0")
    return text + "f"


def is_packed(data: npt.NDArray[Any]) -> bool:
    """Whether the elements are words that hold several numbers each."""
    return data.dtype.name == "int64" and bool((np.abs(data >> 1) >= PACKED >> 1).any())


def array_lines(data: npt.NDArray[Any]) -> Iterator[str]:
    """The elements of a one-dimensional array as lines of an initializer."""
    kind = C_TYPES[data.dtype.name]
    packed = is_packed(data)
    width = 3 if packed else PER_LINE.get(kind, 10)
    for at in range(0, len(data), width):
        part = data[at : at + width].tolist()
        if kind == "float":
            yield ", ".join([_float_item(value) for value in part]) + ","
        elif packed:
            yield ", ".join([f"(int64_t)0x{value % (1 << 64):016x}u" for value in part]) + ","
        elif kind == "int64_t":
            yield ", ".join([f"INT64_C({value})" for value in part]) + ","
        else:
            yield ", ".join([str(value) for value in part]) + ","


def _float_item(value: float) -> str:
    """Nine significant digits identify every float32."""
    text = f"{value:.9g}"
    return text + "f" if "." in text or "e" in text else text + ".0f"
