"""What kernels of an integer softmax share: its sizes, the powers of differences, and the inverse of their sum."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import only_integer
from nnbuild.kernels.parts.integer_steps import declare
from nnbuild.model.graph import Array
from nnbuild.numeric.fixed_point import exp_of_negative
from nnbuild.numeric.rounding import INT16, high_multiply
from nnbuild.numeric.softmax import DIFF_INTEGER_BITS, SUM_INTEGER_BITS, softmax8_constants
from nnbuild.ops.base import around
from nnbuild.ops.site import Site
from nnbuild.ops.softmax import Softmax

AT_ONCE = 10
"""Values per iteration; for two iterations compilers make branches that hide how far the loop has come."""
LARGEST = {"int8": 1 << 13, "int16": 1 << 16}
"""The number of exponentials from which a 32-bit sum may overflow."""


def sizes(site: Site[Softmax]) -> tuple[int, int, int]:
    return around(site.shape(), site.attributes.axis, site.attributes.count)


def accepts_integers(site: Site[Softmax]) -> str | None:
    if refused := only_integer(site):
        return refused
    return few_enough(sizes(site)[1], LARGEST[site.inputs[0].dtype])


def few_enough(size: int, most: int) -> str | None:
    return None if size < most else f"a 32-bit sum holds the powers of fewer than {most} values, not of {size}"


def powers8(scale: float) -> Array:
    """exp of each relevant difference, from 0 down."""
    constants = softmax8_constants(scale)
    differences = np.arange(0, max(constants.diff_min, -255) - 1, -1)
    scaled = high_multiply(differences << constants.scale.shift, constants.scale.multiplier)
    return exp_of_negative(scaled, DIFF_INTEGER_BITS).astype(np.int32)


def few_at_once(w: Writer, size: int, most: int = AT_ONCE) -> Iterator[str]:
    """The index of every value; several per iteration, as the loop itself costs much."""
    together = max(n for n in range(1, most + 1) if size % n == 0 and (size != 2 * n or most == 1))
    with w.loop("i", size, step=together):
        for n in w.each(range(together)):
            yield f"i + {n}" if size > together else str(n)


def if_counted(w: Writer, counted: int) -> AbstractContextManager[None]:
    """Around what follows for the differences `below` in a table of so many."""
    return w.block(f"if (below < {counted})") if counted < 256 else nullcontext()


def sum8(w: Writer, powers: str, counted: int, sizes: tuple[int, int], most: int = AT_ONCE) -> None:
    """Declares `sum`, of the powers of all values' differences to `largest`."""
    size, after = sizes
    declare(w, "sum", "0", "uint32_t")
    for at in few_at_once(w, size, most):
        declare(w, "below", f"largest - from[({at}) * {after}]")
        with if_counted(w, counted):
            declare(w, "power", f"{powers}[below]")
            w(w.use(c99.ADD, "sum", f"((uint32_t)power + {1 << (SUM_INTEGER_BITS - 1)}U) >> {SUM_INTEGER_BITS}"))


def inverse8(w: Writer) -> None:
    """The inverse of `sum`, and the rounding shift of the upper words of its products."""
    declare(w, "headroom", w.helper("leading_zeros", "sum"))
    declare(w, "inverse", f"(uint32_t){w.helper('reciprocal', 'sum', 'headroom')}", "const uint32_t")
    # An upper word has 30 bits: a larger shift leaves nothing.
    declare(w, "amount", f"headroom < {SUM_INTEGER_BITS - 8} ? 30 : {SUM_INTEGER_BITS + 22} - headroom")
    declare(w, "half", f"headroom < {SUM_INTEGER_BITS - 8} ? 0 : UINT32_C(1) << (amount - 1)", "const uint32_t")


def inverse16(w: Writer, table: str) -> None:
    """The same for words: their shares are products with it, rounded and shifted by 31 less the `headroom`."""
    declare(w, "headroom", w.helper("leading_zeros", "(uint32_t)sum"))
    declare(w, "mantissa", "(uint32_t)sum << (headroom - 1)", "const uint32_t")
    declare(w, "fraction", f"(int32_t)((mantissa + 8192) >> 14) - {(1 << 15) + (1 << 16)}", "int32_t")
    w(w.use(c99.AT_MOST, "fraction", str(INT16[1])))
    declare(w, "inverse", w.helper("interpolate16", table, "fraction"))
