"""Integer sums that become floats: times a factor, plus a summand, clamped, each step rounded once on every set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Instruction, Writer
from nnbuild.isa.c99 import SINGLE
from nnbuild.isa.vectors import Vectors
from nnbuild.model.graph import Array
from nnbuild.ops.base import NO_CLAMP, Clamp

OF_BITS = Instruction(
    "float_of_bits",
    "float {name}(int32_t bits)",
    "union {\n    int32_t whole;\n    float real;\n} both;\n\nboth.whole = bits;\nreturn both.real;",
    1,
)
"""The float with these bits, as constants of a stream of integers are stored."""


MARKS = {".": "p", "-": "m", "+": ""}
"""The signs of a number within a name."""


@dataclass(frozen=True, eq=False)
class FloatResults:
    """constants: of every channel, by name: a "factor" and a "summand", each only where it changes anything."""

    constants: Mapping[str, Array] = field(default_factory=dict)
    clamp: Clamp = NO_CLAMP

    def marks(self) -> list[str]:
        """The parts of a routine's name that identify it."""
        bounds = {"from": self.clamp.low, "to": self.clamp.high}
        texts = [f"{name}_{float_literal(bound)}" for name, bound in bounds.items() if bound is not None]
        return [*self.constants, *(re.sub(r"\W", lambda found: MARKS[found[0]], text) for text in texts)]

    def declare(self, w: Writer, name: str, total: str, constants: Mapping[str, str]) -> None:
        """Declares the result `name` of one sum, from the names of its channel's constants."""
        self._declare(w, SINGLE, name, f"(float){total}", constants)

    def declare_vector(self, w: Writer, v: Vectors, name: str, sums: str, constants: Mapping[str, str]) -> None:
        """The same for a vector of sums."""
        self._declare(w, v, name, v.use(w, "of_sums", sums), constants)

    def _declare(self, w: Writer, v: Vectors, name: str, value: str, constants: Mapping[str, str]) -> None:
        w.bill(0, floats=1)
        v.declare(w, name, value)
        for operation, constant in (("mul", "factor"), ("add", "summand")):
            if constant in self.constants:
                w(f"{name} = {v.use(w, operation, name, constants[constant])};")
        v.bound(w, self.clamp, name)


def of_bits(w: Writer, names: Mapping[str, str]) -> dict[str, str]:
    """Constants whose bits are read as integers."""
    return {name: w.call(OF_BITS, bits) for name, bits in names.items()}
