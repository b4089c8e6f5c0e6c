"""How integer kernels spell the steps they share."""

from __future__ import annotations

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.c99 import added
from nnbuild.model.graph import Tensor
from nnbuild.numeric.multiplier import Multiplier
from nnbuild.ops.integer import quant_of

UNIT = Multiplier(1 << 30, 1)


def bits(tensor: Tensor) -> int:
    return 8 if tensor.dtype == "int8" else 16


def zero(tensor: Tensor) -> int:
    return quant_of(tensor).zero_point


def declare(w: Writer, name: str, value: str, kind: str = "const int32_t") -> None:
    w(w.use(c99.LOAD_AS, kind, name, value))


def centred(w: Writer, name: str, element: str, zero_point: int) -> None:
    """Declares an element less its zero point."""
    declare(w, name, added(element, -zero_point))


def requantized(w: Writer, value: str, scale: Multiplier) -> str:
    """A 32-bit value by a multiplier of at least 0; a factor of one is left out."""
    if scale == UNIT:
        return value
    return w.helper("requantize", value, str(scale.multiplier), str(scale.shift))


def finish(w: Writer, target: str, value: str, out: Tensor, bounds: tuple[int, int]) -> None:
    """Adds the zero point, puts the value within bounds and stores it."""
    declare(w, "value", added(value, zero(out)), "int32_t")
    c99.bound(w, bounds, "value")
    store(w, target, "value", out)


def store(w: Writer, target: str, value: str, out: Tensor) -> None:
    w(w.use(c99.STORE, target, f"({C_TYPES[out.dtype]}){value}"))
