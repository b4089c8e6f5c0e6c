"""HDF5 as a source of weights and texts, read with suspicion.

Only what Keras writes is followed: hard links, plain attributes, and uncompressed arrays within the file itself.
What is read is never larger than the file, so a small file cannot ask for much memory.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from math import prod
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import h5py
import numpy as np

from nnbuild.errors import ModelError
from nnbuild.frontend.weights import StoredArray
from nnbuild.graph import Array

T = TypeVar("T")

MAGIC = b"\x89HDF\r\n\x1a\n"
DAMAGED = "Copy it again from where it was trained, or save the model again."
PLAIN = "Save the model again with Keras, or repack it: h5repack -l CONTI -f NONE old.h5 new.h5."
MAX_TEXT = 16 * 2**20
"""Bytes of configuration read at most; the largest real models have a tenth of it."""


class H5File:
    """An open file. `where` names it in errors; `size` is how many bytes it really has."""

    def __init__(self, source: Path | bytes, where: str) -> None:
        self.where = where
        self.size = len(source) if isinstance(source, bytes) else source.stat().st_size
        self._unread = self.size
        opened = io.BytesIO(source) if isinstance(source, bytes) else source
        self.root: h5py.File = self.guarded(lambda: h5py.File(opened, "r"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(Exception):  # closing a damaged file may fail, and no longer matters
            self.root.close()

    def guarded(self, action: Callable[[], T]) -> T:
        """The one place where whatever h5py raises about a damaged file becomes an error for the user."""
        try:
            return action()
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(self.where, "it is damaged or incomplete.", DAMAGED) from error

    def group(self, parent: h5py.Group, path: str) -> h5py.Group | None:
        found = self._follow(parent, path)
        return found if isinstance(found, h5py.Group) else None

    def array(self, parent: h5py.Group, path: str, where: str) -> StoredArray | None:
        """The array at `path`, of which `where` names the layer; None where there is none."""
        found = self._follow(parent, path)
        if not isinstance(found, h5py.Dataset):
            return None
        dataset = found
        shape = self.guarded(lambda: dataset.shape)
        if shape is None:
            raise ModelError(where, f"its weight {path!r} is empty.", DAMAGED)
        return StoredArray(tuple(int(n) for n in shape), lambda: self.guarded(lambda: self._read(dataset, path, where)))

    def attribute(self, owner: h5py.Group, name: str) -> Any:
        """A text or a list of texts; None where there is no such attribute."""
        return self.guarded(lambda: self._attribute(owner, name))

    def names(self, owner: h5py.Group, name: str) -> list[str] | None:
        """A list of texts, which Keras splits into name0, name1 … when it is long."""
        whole = self.attribute(owner, name)
        if whole is not None:
            return self._texts(whole)
        parts: list[str] = []
        while (part := self.attribute(owner, f"{name}{len(parts)}")) is not None:
            parts.append(part)
        return [text for part in parts for text in self._texts(part)] if parts else None

    def text(self, owner: h5py.Group, name: str) -> str | None:
        value = self.attribute(owner, name)
        if value is None:
            return None
        (found,) = self._texts(value) if np.size(value) == 1 else (None,)
        if found is None:
            raise ModelError(self.where, f"its attribute {name!r} is not a text.", DAMAGED)
        return found

    def _texts(self, value: Any) -> list[str]:
        found = []
        for item in np.asarray(value, object).reshape(-1):
            text = item.decode("utf-8", "replace") if isinstance(item, bytes) else item
            if not isinstance(text, str):
                raise ModelError(self.where, "a list of names holds something else.", DAMAGED)
            found.append(text)
        return found

    def _attribute(self, owner: h5py.Group, name: str) -> Any:
        if name not in owner.attrs:
            return None
        identifier = owner.attrs.get_id(name)
        if identifier.shape and 0 in identifier.shape:
            return []  # numpy gave the empty list of names of a layer without weights the type of a number
        length = prod(identifier.shape) * identifier.dtype.itemsize
        if length > min(self.size, MAX_TEXT) or h5py.check_string_dtype(identifier.dtype) is None:
            raise ModelError(self.where, f"its attribute {name!r} is not a text of a sensible length.", DAMAGED)
        value = owner.attrs[name]
        if isinstance(value, (str, bytes)) and len(value) > MAX_TEXT:
            raise ModelError(self.where, f"its attribute {name!r} is too long.", DAMAGED)
        return value

    def _follow(self, parent: h5py.Group, path: str) -> Any:
        """Only hard links: soft ones can loop, external ones lead out of the file."""

        def walk() -> Any:
            here: Any = parent
            for step in path.split("/"):
                if step in ("", ".") or not isinstance(here, h5py.Group):
                    return None
                link = here.get(step, getlink=True)
                if link is None:
                    return None
                if not isinstance(link, h5py.HardLink):
                    raise ModelError(self.where, f"its member {path!r} is a link to another place.", PLAIN)
                here = here[step]
            return here

        return self.guarded(walk)

    def _read(self, dataset: h5py.Dataset, path: str, where: str) -> Array:
        dtype, shape = dataset.dtype, dataset.shape
        properties = dataset.id.get_create_plist()
        plain = properties.get_layout() in (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED)
        if not plain or properties.get_nfilters() or properties.get_external_count():
            raise ModelError(where, f"its weight {path!r} is compressed or lies elsewhere.", PLAIN)
        if dtype.kind != "f" or dtype.itemsize > 8:
            raise ModelError(where, f"its weight {path!r} holds {dtype}, not floating-point numbers.", DAMAGED)
        size = prod(shape) * dtype.itemsize
        if size > self._unread or size > dataset.id.get_storage_size():
            raise ModelError(where, f"its weight {path!r} is larger than what the file holds.", DAMAGED)
        self._unread -= size
        values = np.empty(shape, dtype)
        if size:
            dataset.read_direct(values)
        return np.asarray(values, np.float32, order="C")
