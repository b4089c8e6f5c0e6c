"""Mean, sum, maximum and minimum over neighbouring axes, in integers."""

from __future__ import annotations

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Names, only_integer
from nnbuild.kernels.integers import centred, declare, finish, requantized, zero
from nnbuild.kernels.reduce.scalar import ROWS, places
from nnbuild.kernels.reduce.scalar import demand as demand
from nnbuild.kernels.window_loops import product
from nnbuild.numeric.rounding import INT32, limits
from nnbuild.ops.base import around
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()


def accepts(site: Site[Reduce]) -> str | None:
    attributes, x = site.attributes, site.inputs[0]
    refused = only_integer(site)
    if refused or attributes.function not in ("mean", "sum"):
        return refused
    reach = max(abs(limit - zero(x)) for limit in limits(x.dtype))
    most = INT32[1] // reach
    fits = attributes.size(site) <= most
    return None if fits else f"a 32-bit sum holds {most} of these values, not {attributes.size(site)}"


def emit(w: Writer, site: Site[Reduce], names: Names) -> None:
    attributes, x, out = site.attributes, site.inputs[0], site.outputs[0]
    _, size, after = around(site.shape(), attributes.axis, attributes.count)
    with places(w, site):
        w(f"const {C_TYPES[x.dtype]} *from = {names.inputs[0]} + {product('row', size * after)} + column;")
        declare(w, "result", "from[0]", "int32_t")
        with w.loop("i", size, start=1):
            w(w.use(ROWS[attributes.function], "result", f"from[{product('i', after)}]"))
        centred(w, "x", "result", zero(x) * (size if attributes.function in ("mean", "sum") else 1))
        target = f"{names.outputs[0]}[{product('row', after)} + column]"
        finish(w, target, requantized(w, "x", attributes.multiplier(site)), out, limits(out.dtype))
