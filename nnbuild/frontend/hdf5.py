"""Reads weights and strings from untrusted HDF5 files.

Only the constructs that Keras writes are followed: hard links, plain attributes, and uncompressed arrays in the same
file. Reads never exceed the file's size, so a small file cannot claim much memory.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import numpy as np

from nnbuild.base.errors import ModelError
from nnbuild.frontend.hdf5_bytes import Malformed, Unsupported
from nnbuild.frontend.hdf5_format import OPAQUE, Hdf5, Values
from nnbuild.frontend.keras_weights import StoredArray
from nnbuild.model.graph import Array

T = TypeVar("T")

DAMAGED = "Copy the file again from its source, or save the model again."
PLAIN = "Save the model again with Keras, or repack it: h5repack -l CONTI -f NONE old.h5 new.h5."
MAX_TEXT = 16 * 2**20
"""Maximum bytes of configuration; the largest real models have a tenth of it."""


@dataclass(frozen=True)
class Group:
    address: int


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class H5File:
    """An open file. `where` names it in errors."""

    def __init__(self, source: Path | bytes, where: str) -> None:
        self.where = where
        self._mapped = _mapped(source) if isinstance(source, Path) else None
        self._view = memoryview(source if isinstance(source, bytes) else self._mapped or b"")
        self._unread = self._text_left = len(self._view)
        self._read_once: set[str] = set()
        """Arrays already counted: their total size is limited to the file's."""
        self._file = self._guarded(lambda: Hdf5(self._view))
        self.root = Group(self._file.root)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(BufferError):  # a traceback may still reference a part, which then lives a little longer
            self._view.release()
            if self._mapped is not None:
                self._mapped.close()

    def group(self, parent: Group, path: str) -> Group | None:
        address = self._guarded(lambda: self._follow(parent, path))
        if address is None or not self._guarded(lambda: self._file.is_group(address)):
            return None
        return Group(address)

    def array(self, parent: Group, path: str, where: str) -> StoredArray | None:
        """The array at `path` of the layer `where`; None if missing."""
        address = self._guarded(lambda: self._follow(parent, path))
        if address is None:
            return None
        values = self._guarded(lambda: self._file.array(address))
        if values is None:
            return None
        if values.shape is None:
            raise ModelError(where, f"its weight {path!r} is empty.", DAMAGED)
        whole = None
        if values.type.is_byte:
            whole = lambda: self._guarded(lambda: self._read(values, path, where, "int8"))  # noqa: E731
        if (values.type.kind, values.type.size) == (OPAQUE, 2) and self.texts(Group(address), "dtype") == ["bfloat16"]:
            return StoredArray(values.shape, lambda: self._guarded(lambda: self._upper_halves(values, path, where)))
        return StoredArray(values.shape, lambda: self._guarded(lambda: self._read(values, path, where)), whole)

    def texts(self, owner: Group, name: str) -> list[str] | None:
        """The strings of an attribute; None if missing."""
        return self._guarded(lambda: self._texts(owner, name))

    def names(self, owner: Group, name: str) -> list[str] | None:
        """A list of names, which Keras splits into name0, name1 … when it is long."""
        whole = self.texts(owner, name)
        if whole is not None:
            return whole
        parts: list[list[str]] = []
        while (part := self.texts(owner, f"{name}{len(parts)}")) is not None:
            parts.append(part)
        return [text for part in parts for text in part] if parts else None

    def text(self, owner: Group, name: str) -> str | None:
        found = self.texts(owner, name)
        if found is not None and len(found) != 1:
            raise ModelError(self.where, f"its attribute {name!r} is not a string.", DAMAGED)
        return found[0] if found is not None else None

    def _guarded(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except Malformed as error:
            raise ModelError(self.where, "it is damaged or incomplete.", DAMAGED) from error
        except Unsupported as error:
            cause = f"it uses an HDF5 feature that Keras does not use ({error})."
            raise ModelError(self.where, cause, "Save the model again with Keras.") from error

    def _follow(self, parent: Group, path: str) -> int | None:
        """Follows only hard links: soft ones can loop, external ones leave the file."""
        here = parent.address
        for step in path.split("/"):
            member = self._file.members(here).get(step) if self._file.is_group(here) else None
            if member is None:
                return None
            if member.address is None:
                raise ModelError(self.where, f"its member {path!r} is a link to another object.", PLAIN)
            here = member.address
        return here

    def _texts(self, owner: Group, name: str) -> list[str] | None:
        values = self._file.attribute(owner.address, name)
        if values is None:
            return None
        if values.shape is not None and 0 in values.shape:
            return []  # numpy gives an empty list of names a numeric type
        if not values.type.is_text:
            raise ModelError(self.where, f"its attribute {name!r} is not a string.", DAMAGED)
        found = []
        for text in self._file.strings(values):
            self._text_left -= len(text)
            if len(text) > MAX_TEXT or self._text_left < 0:
                raise ModelError(self.where, f"its attribute {name!r} is too long.", DAMAGED)
            found.append(self._file.text(text).rstrip("\0"))
        return found

    def _upper_halves(self, values: Values, path: str, where: str) -> Array:
        """bfloat16, which h5py has no type for: the upper halves of float32."""
        halves = self._read(values, path, where, "<u2")
        return np.asarray(halves.astype(np.uint32) << np.uint32(16), np.uint32).view(np.float32)

    def _read(self, values: Values, path: str, where: str, whole: str = "") -> Array:
        if not values.plain:
            raise ModelError(where, f"its weight {path!r} is compressed, chunked or in another file.", PLAIN)
        if not whole and values.type.kind == OPAQUE:
            cause = f"its weight {path!r} is of bytes without a type, as Keras writes bfloat16 to .h5 files."
            raise ModelError(where, cause, "Save the model as .keras, or in float32.")
        if not (whole or values.type.number):
            raise ModelError(where, f"its weight {path!r} does not hold floating-point numbers.", DAMAGED)
        size = prod(values.shape or ()) * values.type.size
        new = 0 if path in self._read_once else size
        if new > self._unread or size > values.size:
            raise ModelError(where, f"its weight {path!r} is larger than the data in the file.", DAMAGED)
        self._read_once.add(path)
        self._unread -= new
        data = np.frombuffer(self._file.bytes_at(values.at, size), whole or values.type.number)
        if whole:
            return data.reshape(values.shape or ())
        with np.errstate(over="ignore"):  # a double that is too large becomes infinite, and is refused later
            return np.array(data, np.float32).reshape(values.shape or ())
