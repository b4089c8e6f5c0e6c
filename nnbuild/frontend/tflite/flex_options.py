"""Options of custom operators, which are flexbuffers: maps from names to numbers."""

from __future__ import annotations

import struct
from typing import Any

from nnbuild.frontend.tflite.call import Call

DAMAGES = (IndexError, KeyError, TypeError, ValueError, AttributeError, OverflowError, struct.error)


def flex_options(call: Call) -> dict[str, int | float]:
    """Those that are numbers or booleans; booleans are 0 and 1."""
    try:
        found = _map(call)
        keys = [key.AsKey for key in found.Keys]
        values = {str(key): found[key] for key in keys}
        whole = {key: int(v.AsInt) for key, v in values.items() if v.IsInt or v.IsBool}
        return whole | {key: float(v.AsFloat) for key, v in values.items() if v.IsFloat}
    except DAMAGES as error:
        raise call.error("its options are not a flexbuffer of numbers.") from error


def flex_whole_numbers(call: Call, name: str) -> tuple[int, ...]:
    """An option that is a list."""
    try:
        return tuple(int(number) for number in _map(call)[name].Value)
    except DAMAGES as error:
        raise call.error(f"its option {name!r} is not a list of whole numbers.") from error


def _map(call: Call) -> Any:
    from flatbuffers import flexbuffers  # type: ignore[import-untyped]  # comes with the schema

    return flexbuffers.GetRoot(call.operator.custom).AsMap
