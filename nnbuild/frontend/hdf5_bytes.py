"""The bytes of an HDF5 file, every access to which is checked."""

from __future__ import annotations

import struct

NOWHERE = 2**64 - 1


class Malformed(Exception):
    """The bytes contradict the format, or each other."""


class Unsupported(Exception):
    """Apparently valid HDF5, but with a feature that Keras does not use."""


class Bytes:
    def __init__(self, data: memoryview) -> None:
        self.data = data
        # Every structure is read once and takes at least eight bytes, so more steps than that mean a loop.
        self._steps = len(data) // 8 + 1000
        self._unread = len(data)

    def bytes_at(self, at: int, size: int) -> memoryview:
        if at < 0 or size < 0 or at + size > len(self.data):
            raise Malformed("an offset lies outside the file")
        return self.data[at : at + size]

    def numbers(self, form: str, at: int) -> tuple[int, ...]:
        form = f"<{form}"
        found: tuple[int, ...] = struct.unpack(form, self.bytes_at(at, struct.calcsize(form)))
        return found

    def integer(self, at: int, size: int) -> int:
        return int.from_bytes(self.bytes_at(at, size), "little")

    def step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise Malformed("its references form a cycle")

    def take(self, size: int) -> None:
        """Counts the bytes of an object of a heap. Each has one name, so together they are no larger than the file."""
        self._unread -= size
        if self._unread < 0:
            raise Malformed("its heaps list an object several times")

    def begins(self, at: int, signature: bytes) -> bool:
        return bytes(self.bytes_at(at, len(signature))) == signature

    def expect(self, at: int, signature: bytes) -> None:
        if not self.begins(at, signature):
            raise Malformed(f"missing signature {signature!r} at the expected place")
