"""The arrays of a pack: one file of numbers that JSON refers to by short names."""

from __future__ import annotations

import io
from dataclasses import dataclass, field

import numpy as np

from nnbuild.model.graph import Array


@dataclass(eq=False)
class Store:
    arrays: dict[str, Array] = field(default_factory=dict)

    def put(self, kind: str, data: Array) -> str:
        """Returns its name: the kind and a number."""
        name = f"{kind}{sum(each.rstrip('0123456789') == kind for each in self.arrays)}"
        self.arrays[name] = np.ascontiguousarray(data)
        return name

    def content(self) -> bytes:
        """Uncompressed: compressors differ between machines."""
        out = io.BytesIO()
        np.savez(out, **self.arrays)  # type: ignore[arg-type]  # numpy's stub takes the names for its own options
        return out.getvalue()
