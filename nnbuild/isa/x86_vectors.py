"""How C spells the integer vectors of x86: the same operations on 128, 256 and 512 bits."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.writer import Writer


@dataclass(frozen=True)
class Vectors:
    """Vectors of `bits` bits. Prices are those of a core that does two to four of these a cycle."""

    bits: int

    @property
    def kind(self) -> str:
        return f"__m{self.bits}i"

    @property
    def lanes(self) -> int:
        """32-bit numbers in one vector."""
        return self.bits // 32

    @property
    def bytes(self) -> int:
        return self.bits // 8

    def name(self, operation: str) -> str:
        """The intrinsic of an operation such as add_epi32."""
        return f"_mm{'' if self.bits == 128 else self.bits}_{operation}"

    def spelt(self, operation: str, *operands: str) -> str:
        """Its call, unpriced: for the bodies of functions, which have a price as a whole."""
        return f"{self.name(operation)}({', '.join(operands)})"

    def use(self, w: Writer, operation: str, *operands: str, cycles: float = 0.5) -> str:
        w.bill(cycles)
        return self.spelt(operation, *operands)

    def address(self, pointer: str, const: str = "const ") -> str:
        """A pointer as the loads want it; they ask for no alignment."""
        return f"({const}{self.kind} *)({const}void *)({pointer})"

    def load(self, pointer: str) -> str:
        return self.spelt(f"loadu_si{self.bits}", self.address(pointer))

    def store(self, pointer: str, value: str) -> str:
        return self.spelt(f"storeu_si{self.bits}", self.address(pointer, ""), value)


SSE = Vectors(128)
AVX2 = Vectors(256)
AVX512 = Vectors(512)
