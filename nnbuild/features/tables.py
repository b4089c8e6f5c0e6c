"""Collects a front end's constants while its functions are printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from nnbuild.base.literals import C_TYPES, array_lines
from nnbuild.base.writer import Writer


@dataclass
class Tables:
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)

    def add(self, w: Writer, name: str, values: npt.NDArray[Any]) -> str:
        """Adds a table and returns its C name."""
        whole = f"{w.prefix}_{name}"
        assert whole not in self.arrays, f"two tables are called {whole}"
        self.arrays[whole] = np.ascontiguousarray(values)
        return whole

    @property
    def bytes(self) -> int:
        return sum(values.nbytes for values in self.arrays.values())

    def lines(self) -> Iterator[str]:
        for name, values in self.arrays.items():
            yield f"static const {C_TYPES[values.dtype.name]} {name}[{values.size}] = {{"
            yield from ("    " + line for line in array_lines(values))
            yield "};\n"
