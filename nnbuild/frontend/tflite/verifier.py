"""Verifies that a `.tflite` file's offsets and lengths stay inside it.

The generated readers trust every offset. This module walks the tables that are read later, once, and refuses a file in
which one of them lies outside.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

MAX_ROWS = 100_000
"""Maximum tables in one vector; no real model comes near this."""


class Damaged(ValueError):
    """An offset or length leads outside the file; says which part of it."""


@dataclass(frozen=True)
class Scalar:
    width: int


@dataclass(frozen=True)
class Vector:
    """A vector of plain numbers, or a string."""

    width: int


@dataclass(frozen=True)
class One:
    """Another table."""

    fields: Fields


@dataclass(frozen=True)
class Many:
    """A vector of tables."""

    fields: Fields


@dataclass(frozen=True)
class Union:
    """Another table, of the kind given by the field `slot`; tables of plain numbers are not listed."""

    slot: int
    kinds: Mapping[int, Fields]


Field = Scalar | Vector | One | Many | Union
Fields = Mapping[int, tuple[str, Field]]
"""A table's fields by their number in the schema, with a name for errors. Unused fields are omitted."""

ANY: Fields = {}
"""A table of plain numbers only, such as the options of nearly all operators."""
OPTIONS: Mapping[int, Fields] = {
    17: {0: ("new shape", Vector(4))},
    30: {0: ("squeezed axes", Vector(4))},
    111: {0: ("container", Vector(1)), 1: ("shared name", Vector(1))},
    115: {0: ("boundaries", Vector(4))},
}
"""Options of operators that contain more than numbers."""
OPTIONS_2: Mapping[int, Fields] = {
    7: {slot: ("axes", Vector(8)) for slot in (1, 2, 3)},
    10: {slot: ("padding", Vector(8)) for slot in range(3)},
    13: {slot: ("window", Vector(8)) for slot in range(5)},
    16: {slot: ("axes", Vector(8)) for slot in (0, 1, 2, 4)},
    21: {0: ("name", Vector(1)), 1: ("decomposition_subgraph_index", Scalar(4)), 2: ("attributes", Vector(1))},
}

BLOCKS: Fields = {0: ("scales", Scalar(4)), 2: ("block_size", Scalar(4)), 3: ("block_shape", Vector(4))}
QUANTIZATION: Fields = {
    2: ("scale", Vector(4)),
    3: ("zero_point", Vector(8)),
    4: ("details_type", Scalar(1)),
    5: ("details", Union(4, {2: BLOCKS})),
    6: ("quantized_dimension", Scalar(4)),
}
NUMBERS: Mapping[int, Fields] = {kind: {0: ("values", Vector(width))} for kind, width in ((1, 4), (2, 2), (3, 1))}
LEVEL: Fields = {
    0: ("format", Scalar(1)),
    1: ("dense_size", Scalar(4)),
    2: ("array_segments_type", Scalar(1)),
    3: ("array_segments", Union(2, NUMBERS)),
    4: ("array_indices_type", Scalar(1)),
    5: ("array_indices", Union(4, NUMBERS)),
}
SPARSITY: Fields = {
    0: ("traversal_order", Vector(4)),
    1: ("block_map", Vector(4)),
    2: ("dim_metadata", Many(LEVEL)),
}
TENSOR: Fields = {
    0: ("shape", Vector(4)),
    1: ("type", Scalar(1)),
    2: ("buffer", Scalar(4)),
    3: ("name", Vector(1)),
    4: ("quantization", One(QUANTIZATION)),
    5: ("is_variable", Scalar(1)),
    6: ("sparsity", One(SPARSITY)),
    7: ("shape_signature", Vector(4)),
}
OPERATOR: Fields = {
    0: ("opcode_index", Scalar(4)),
    1: ("inputs", Vector(4)),
    2: ("outputs", Vector(4)),
    3: ("builtin_options_type", Scalar(1)),
    4: ("builtin_options", Union(3, OPTIONS)),
    5: ("custom_options", Vector(1)),
    8: ("intermediates", Vector(4)),
    11: ("builtin_options_2_type", Scalar(1)),
    12: ("builtin_options_2", Union(11, OPTIONS_2)),
}
SUBGRAPH: Fields = {
    0: ("tensors", Many(TENSOR)),
    1: ("inputs", Vector(4)),
    2: ("outputs", Vector(4)),
    3: ("operators", Many(OPERATOR)),
}
OPERATOR_CODE: Fields = {
    0: ("deprecated_builtin_code", Scalar(1)),
    1: ("custom_code", Vector(1)),
    3: ("builtin_code", Scalar(4)),
}
BUFFER: Fields = {0: ("data", Vector(1)), 1: ("offset", Scalar(8)), 2: ("size", Scalar(8))}
MODEL: Fields = {
    0: ("version", Scalar(4)),
    1: ("operator_codes", Many(OPERATOR_CODE)),
    2: ("subgraphs", Many(SUBGRAPH)),
    4: ("buffers", Many(BUFFER)),
}


def check(data: bytes) -> None:
    """Raises Damaged unless every table, vector and string that will be read lies inside the file."""
    _Walk(data).table(_at("I", data, 0, "the root"), MODEL, "the model")


def _at(kind: str, data: bytes, position: int, what: str) -> int:
    try:
        value: int = struct.unpack_from(f"<{kind}", data, position)[0]
    except struct.error:
        raise Damaged(f"{what} lies outside the file") from None
    return value


class _Walk:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def table(self, position: int, fields: Fields, what: str) -> None:
        """A table starts with the distance back to its list of field offsets."""
        self._inside(position, 4, what)
        listing = position - _at("i", self.data, position, what)
        self._inside(listing, 4, what)
        listed, size = _at("H", self.data, listing, what), _at("H", self.data, listing + 2, what)
        if listed % 2:
            raise Damaged(f"{what} has a list of fields of odd length")
        self._inside(listing, max(listed, 4), what)
        self._inside(position, max(size, 4), what)
        for slot in range((listed - 4) // 2):
            offset = _at("H", self.data, listing + 4 + 2 * slot, what)
            name, field = fields.get(slot, ("a field", Scalar(1)))
            if isinstance(field, Union):
                field = One(field.kinds.get(self._number(position, listing, listed, field.slot), ANY))
            if offset:
                self._field(position, offset, size, field, f"{what}'s {name}")

    def _number(self, position: int, listing: int, listed: int, slot: int) -> int:
        """A one-byte field, checked before; 0 if absent."""
        offset = _at("H", self.data, listing + 4 + 2 * slot, "a field") if slot < (listed - 4) // 2 else 0
        return _at("B", self.data, position + offset, "a field") if offset else 0

    def _field(self, position: int, offset: int, size: int, field: Field, what: str) -> None:
        width = field.width if isinstance(field, Scalar) else 4
        if offset + width > size:
            raise Damaged(f"{what} lies outside its table")
        if isinstance(field, Scalar):
            return
        target = position + offset + _at("I", self.data, position + offset, what)
        match field:
            case One(fields):
                self.table(target, fields, what)
            case Vector(width):
                self._vector(target, width, what)
            case Many(fields):
                count = self._vector(target, 4, what)
                if count > MAX_ROWS:
                    raise Damaged(f"{what} are {count}")
                for row in range(count):
                    place = target + 4 + 4 * row
                    self.table(place + _at("I", self.data, place, what), fields, f"{what} ({row})")

    def _vector(self, position: int, width: int, what: str) -> int:
        self._inside(position, 4, what)
        count = _at("I", self.data, position, what)
        self._inside(position + 4, count * width, what)
        return count

    def _inside(self, position: int, size: int, what: str) -> None:
        if position < 0 or position + size > len(self.data):
            raise Damaged(f"{what} lies outside the file")
