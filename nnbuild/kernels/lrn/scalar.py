"""Local response normalization in portable C."""

from __future__ import annotations

from math import prod

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names, only_float
from nnbuild.kernels.window_loops import product
from nnbuild.ops.lrn import LRN
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_float


def demand(site: Site[LRN]) -> Demand:
    return Demand(extent=prod(site.shape()[:-1]))


def emit(w: Writer, site: Site[LRN], names: Names) -> None:
    attributes = site.attributes
    places, channels, radius = prod(site.shape()[:-1]), site.shape()[-1], attributes.radius
    with w.loop("place", "end", start="begin", trips=places):
        w(f"const float *from = {names.inputs[0]} + {product('place', channels)};")
        w(f"float *to = {names.outputs[0]} + {product('place', channels)};")
        with w.loop("c", channels):
            w(f"const int32_t first = c > {radius} ? c - {radius} : 0;")
            w(f"const int32_t last = c + {radius} < {channels - 1} ? c + {radius} : {channels - 1};")
            w(w.use(c99.LOAD_MUTABLE, "squares", "0.0f"))
            with w.loop("i", "last + 1", start="first", trips=min(2 * radius + 1, channels)):
                c99.multiply_add(w, "squares", "from[i]", "from[i]")
            base = f"{float_literal(attributes.bias)} + {c99.product(w, float_literal(attributes.alpha), 'squares')}"
            w(w.use(c99.STORE, "to[c]", f"from[c] / {_power(w, base, attributes.beta)}"))


def _power(w: Writer, base: str, exponent: float) -> str:
    """The exponents in use are cheaper, and more exact, without a general power."""
    if exponent == 1.0:
        return f"({base})"
    if exponent == 0.5:
        return w.helper("sqrtf", base)
    if exponent == 0.75:
        w(f"const float root = {w.helper('sqrtf', base)};")
        return c99.product(w, "root", w.helper("sqrtf", "root"))
    return w.helper("powf", base, float_literal(exponent))
