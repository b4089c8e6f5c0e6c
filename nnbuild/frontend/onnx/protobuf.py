"""Protobuf's wire format: the fields of a message, with every length checked."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nnbuild.model.graph import Array

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_DEPTH = 24
"""Maximum nesting of messages; each nested graph takes four levels."""


class Damaged(Exception):
    """The bytes are not a valid message; the text gives the reason."""


class Message:
    """The fields of one message, by number, in order."""

    def __init__(self, data: memoryview, depth: int = 0) -> None:
        if depth > MAX_DEPTH:
            raise Damaged("its records are nested too deeply")
        self._depth = depth
        self._found: dict[int, list[tuple[int, int | memoryview]]] = {}
        for number, kind, value in _fields(data):
            self._found.setdefault(number, []).append((kind, value))

    def __contains__(self, number: int) -> bool:
        return number in self._found

    def blobs(self, number: int) -> list[memoryview]:
        return [_bytes(value) for _, value in self._found.get(number, ())]

    def blob(self, number: int) -> memoryview | None:
        """The last occurrence counts, as protobuf requires."""
        found = self.blobs(number)
        return found[-1] if found else None

    def text(self, number: int) -> str:
        return _text(self.blob(number))

    def texts(self, number: int) -> list[str]:
        return [_text(value) for value in self.blobs(number)]

    def messages(self, number: int) -> list[Message]:
        return [Message(value, self._depth + 1) for value in self.blobs(number)]

    def message(self, number: int) -> Message | None:
        found = self.blob(number)
        return None if found is None else Message(found, self._depth + 1)

    def integer(self, number: int, default: int = 0) -> int:
        found = self._found.get(number)
        return default if not found else signed(_number(found[-1][1]))

    def integers(self, number: int) -> list[int]:
        """Repeated numbers, packed or separate."""
        return [int(v) for v in self.varints(number).astype(np.int64)]

    def varints(self, number: int) -> Array:
        parts = [
            np.array([value], np.uint64) if isinstance(value, int) else unpacked(value)
            for _, value in self._found.get(number, ())
        ]
        return np.concatenate(parts) if parts else np.zeros((0,), np.uint64)

    def fixed(self, number: int, kind: str) -> Array:
        """Repeated floats or doubles, packed or separate."""
        size = np.dtype(kind).itemsize
        parts = []
        for _, value in self._found.get(number, ()):
            data = value.to_bytes(size, "little") if isinstance(value, int) and value < 1 << 8 * size else value
            if isinstance(data, int) or len(data) % size:
                raise Damaged("a list of numbers is truncated")
            parts.append(np.frombuffer(data, np.dtype(kind).newbyteorder("<")))
        return np.concatenate(parts) if parts else np.zeros((0,), kind)

    def count(self, number: int) -> int:
        return len(self._found.get(number, ()))


def _fields(data: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    place, end = 0, len(data)
    while place < end:
        key, place = _varint(data, place, end)
        number, kind = key >> 3, key & 7
        if not 0 < number < 1 << 29:
            raise Damaged(f"a field has the invalid number {number}")
        if kind == VARINT:
            value, place = _varint(data, place, end)
            yield number, kind, value
            continue
        size = {FIXED64: 8, FIXED32: 4}.get(kind)
        if kind == BYTES:
            size, place = _varint(data, place, end)
        if size is None:
            raise Damaged(f"a field is of the unknown kind {kind}")
        if size > end - place:
            raise Damaged("a field exceeds its record")
        piece = data[place : place + size]
        place += size
        yield number, kind, piece if kind == BYTES else int.from_bytes(piece, "little")


def _varint(data: memoryview, place: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while place < end and shift < 70:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, place
        shift += 7
    raise Damaged("a number is not terminated")


def unpacked(data: memoryview) -> Array:
    """All numbers of a packed list at once."""
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw < 0x80)
    if len(raw) and (not len(ends) or ends[-1] != len(raw) - 1):
        raise Damaged("a list of numbers is truncated")
    begins = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    lengths = ends - begins + 1
    if len(lengths) and lengths.max() > 10:
        raise Damaged("a number is not terminated")
    values = np.zeros(len(ends), np.uint64)
    for step in range(int(lengths.max()) if len(lengths) else 0):
        more = lengths > step
        values[more] |= (raw[begins[more] + step].astype(np.uint64) & np.uint64(0x7F)) << np.uint64(7 * step)
    return values


def signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _number(value: int | memoryview) -> int:
    if not isinstance(value, int):
        raise Damaged("a number is stored as bytes")
    return value


def _bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise Damaged("bytes are stored as a number")
    return value


def _text(value: memoryview | None) -> str:
    return b"".join([value or b""])[:MAX_LETTERS].decode("utf-8", "replace")


MAX_LETTERS = 4096
"""Maximum length of a name; longer ones are truncated."""
