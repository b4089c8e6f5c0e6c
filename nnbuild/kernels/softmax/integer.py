"""Softmax in integers. What exp gives for each difference of two 8-bit numbers is known at build time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names, only_integer
from nnbuild.kernels.integers import declare, store
from nnbuild.kernels.softmax.scalar import overlaps, sizes
from nnbuild.kernels.window_loops import product
from nnbuild.model.graph import Array
from nnbuild.numeric.fixed_point import exp_of_negative
from nnbuild.numeric.rounding import INT16, high_multiply
from nnbuild.numeric.softmax import (
    DIFF_INTEGER_BITS,
    SUM_INTEGER_BITS,
    exp_table16,
    reciprocal_table16,
    softmax8_constants,
    softmax16_multiplier,
)
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site
from nnbuild.ops.softmax import Softmax

needs: frozenset[str] = frozenset()
LARGEST = {"int8": 1 << 13, "int16": 1 << 16}
"""How many values' powers a 32-bit sum holds, one too many."""


def accepts(site: Site[Softmax]) -> str | None:
    refused = only_integer(site)
    if refused:
        return refused
    size, most = sizes(site)[1], LARGEST[site.inputs[0].dtype]
    return None if size < most else f"a 32-bit sum holds the powers of fewer than {most} values, not of {size}"


def powers8(scale: float) -> Array:
    """exp of each difference that counts, from 0 down."""
    constants = softmax8_constants(scale)
    differences = np.arange(0, max(constants.diff_min, -255) - 1, -1)
    scaled = high_multiply(differences << constants.scale.shift, constants.scale.multiplier)
    return exp_of_negative(scaled, DIFF_INTEGER_BITS).astype(np.int32)


def demand(site: Site[Softmax]) -> Demand:
    if site.inputs[0].dtype == "int8":
        packed: dict[str, Array] = {"powers": powers8(quant_of(site.inputs[0]).scale)}
    else:
        packed = {"powers": exp_table16().astype(np.int16), "inverses": reciprocal_table16().astype(np.int16)}
    return Demand(extent=sizes(site)[0], packed=packed, overlaps=overlaps(site))


def emit(w: Writer, site: Site[Softmax], names: Names) -> None:
    before, size, after = sizes(site)
    kind, place = C_TYPES[site.inputs[0].dtype], product("i", after)
    with w.loop("row", "end", start="begin", trips=before), w.loop("column", after):
        start = f"{product('row', size * after)} + column"
        w(f"const {kind} *from = {names.inputs[0]} + {start};")
        w(f"{kind} *to = {names.outputs[0]} + {start};")
        declare(w, "largest", "from[0]", "int32_t")
        with w.loop("i", size, start=1):
            w(w.use(c99.LARGER, "largest", f"from[{place}]"))
        if kind == "int8_t":
            _shares8(w, site, names.packed["powers"], size, place)
        else:
            _shares16(w, site, names, size, place)


def _shares8(w: Writer, site: Site[Softmax], powers: str, size: int, place: str) -> None:
    counted = len(powers8(quant_of(site.inputs[0]).scale))
    condition = f"below < {counted}" if counted < 256 else ""
    declare(w, "sum", "0", "uint32_t")
    with w.loop("i", size):
        declare(w, "below", f"largest - from[{place}]")
        with _only_if(w, condition):
            declare(w, "power", f"{powers}[below]")
            rounded = f"(power >> {SUM_INTEGER_BITS}) + ((power >> {SUM_INTEGER_BITS - 1}) & 1)"
            w(w.use(c99.ADD, "sum", f"(uint32_t)({rounded})"))
    declare(w, "headroom", w.helper("leading_zeros", "sum"))
    declare(w, "inverse", w.helper("reciprocal", "sum", "headroom"))
    with w.loop("i", size):
        declare(w, "below", f"largest - from[{place}]")
        declare(w, "value", "-128", "int32_t")
        with _only_if(w, condition):
            share = w.helper("high_multiply", "inverse", f"{powers}[below]")
            w(w.use(c99.ADD, "value", w.helper("rounding_shift", share, f"{SUM_INTEGER_BITS + 23} - headroom")))
        w(w.use(c99.AT_MOST, "value", "127"))
        store(w, f"to[{place}]", "value", site.outputs[0])


@contextmanager
def _only_if(w: Writer, condition: str) -> Iterator[None]:
    if condition:
        with w.block(f"if ({condition})"):
            yield
    else:
        yield


def _shares16(w: Writer, site: Site[Softmax], names: Names, size: int, place: str) -> None:
    scale = softmax16_multiplier(quant_of(site.inputs[0]).scale)
    declare(w, "sum", "0", "int32_t")
    with w.loop("i", size):
        difference = w.helper("requantize", f"from[{place}] - largest", str(scale.multiplier), str(scale.shift))
        declare(w, "x", difference, "int32_t")
        c99.bound(w, (INT16[0] - INT16[1], 0), "x")  # a large scale's shift may leave 32 bits and change the sign
        declare(w, "power", w.helper("interpolate16", names.packed["powers"], f"x + {INT16[1]}"))
        store(w, f"to[{place}]", "power", site.outputs[0])
        w(w.use(c99.ADD, "sum", "power"))
    declare(w, "headroom", w.helper("leading_zeros", "(uint32_t)sum"))
    declare(w, "mantissa", "(uint32_t)sum << (headroom - 1)", "const uint32_t")
    declare(w, "x", f"(int32_t)((mantissa + 8192) >> 14) - {(1 << 15) + (1 << 16)}", "int32_t")
    w(w.use(c99.AT_MOST, "x", str(INT16[1])))
    declare(w, "inverse", w.helper("interpolate16", names.packed["inverses"], "x"))
    with w.loop("i", size):
        declare(w, "value", f"(to[{place}] * inverse + (1 << (30 - headroom))) >> (31 - headroom)", "int32_t")
        c99.bound(w, (0, INT16[1]), "value")
        store(w, f"to[{place}]", "value", site.outputs[0])
