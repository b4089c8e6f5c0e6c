"""Options of custom operators, which are flexbuffers: maps from names to numbers."""

from __future__ import annotations

import struct

from nnbuild.frontend.tflite.call import Call


def flex_options(call: Call) -> dict[str, int | float]:
    """Those that are numbers or booleans; booleans are 0 and 1."""
    from flatbuffers import flexbuffers  # type: ignore[import-untyped]  # comes with the schema

    try:
        found = flexbuffers.GetRoot(call.operator.custom).AsMap
        keys = [key.AsKey for key in found.Keys]
        values = {str(key): found[key] for key in keys}
        whole = {key: int(v.AsInt) for key, v in values.items() if v.IsInt or v.IsBool}
        return whole | {key: float(v.AsFloat) for key, v in values.items() if v.IsFloat}
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, OverflowError, struct.error) as error:
        raise call.error("its options are not a flexbuffer of numbers.") from error
