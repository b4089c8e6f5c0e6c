"""Layer normalization in portable C: mean, then variance, then the result."""

from __future__ import annotations

from math import prod

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names, only_float
from nnbuild.kernels.overlaps import IN_PLACE
from nnbuild.kernels.window_loops import product
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_float


def sizes(site: Site[LayerNorm]) -> tuple[int, int]:
    """(how many vectors are normalized, how long each is)."""
    attributes = site.attributes
    shape = site.shape()
    return prod(shape[: -attributes.count]), prod(shape[-attributes.count :])


def demand(site: Site[LayerNorm]) -> Demand:
    packed = {role: constant.data.reshape(-1) for role, constant in site.constants.items()}
    return Demand(extent=sizes(site)[0], packed=packed, overlaps=IN_PLACE)


def emit(w: Writer, site: Site[LayerNorm], names: Names) -> None:
    attributes = site.attributes
    rows, size = sizes(site)
    with w.loop("row", "end", start="begin", trips=rows):
        w(f"const float *from = {names.inputs[0]} + {product('row', size)};")
        w(f"float *to = {names.outputs[0]} + {product('row', size)};")
        w(w.use(c99.LOAD_MUTABLE, "sum", "0.0f"))
        with w.loop("i", size):
            w(w.use(c99.ADD, "sum", "from[i]"))
        w(w.use(c99.LOAD, "mean", f"sum / {size}.0f"))
        w(w.use(c99.LOAD_MUTABLE, "squares", "0.0f"))
        with w.loop("i", size):
            c99.multiply_add(w, "squares", "from[i] - mean", "from[i] - mean")
        root = w.helper("sqrtf", f"squares / {size}.0f + {float_literal(attributes.epsilon)}")
        w(w.use(c99.LOAD, "scale", f"1.0f / {root}"))
        with w.loop("i", size):
            value = c99.product(w, "from[i] - mean", "scale")
            if "scale" in names.packed:
                value = c99.product(w, value, f"{names.packed['scale']}[i]")
            if "shift" in names.packed:
                value += f" + {names.packed['shift']}[i]"
            w.bill(4)
            w(w.use(c99.STORE, "to[i]", value))
