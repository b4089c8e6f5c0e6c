"""Layer normalization in integers: the steps of `numeric.layer_norm`."""

from __future__ import annotations

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.c99 import added
from nnbuild.kernels.contract import Demand, Names, only_integer
from nnbuild.kernels.integers import declare, finish, zero
from nnbuild.kernels.layer_norm.scalar import demand as scalar_demand
from nnbuild.kernels.layer_norm.scalar import sizes
from nnbuild.kernels.window_loops import product
from nnbuild.numeric.layer_norm import LARGEST, POINT, SUMMAND_SHIFT, UNIT, LayerNormScales
from nnbuild.numeric.rounding import limits
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()


def accepts(site: Site[LayerNorm]) -> str | None:
    refused = only_integer(site)
    if refused:
        return refused
    size = sizes(site)[1]
    return None if size <= LARGEST else f"a 64-bit sum of squares holds {LARGEST} values, not {size}"


def demand(site: Site[LayerNorm]) -> Demand:
    return scalar_demand(site)


def emit(w: Writer, site: Site[LayerNorm], names: Names) -> None:
    attributes, x, out = site.attributes, site.inputs[0], site.outputs[0]
    scales = attributes.scales(site)
    rows, size = sizes(site)
    with w.loop("row", "end", start="begin", trips=rows):
        w(f"const {C_TYPES[x.dtype]} *from = {names.inputs[0]} + {product('row', size)};")
        w(f"{C_TYPES[out.dtype]} *to = {names.outputs[0]} + {product('row', size)};")
        _mean(w, size, zero(x), scales)
        centred = f"from[i] * {1 << scales.fraction} - mean"
        _root(w, size, centred, scales)
        with w.loop("i", size):
            declare(w, "centred", centred)
            w.bill(6)
            declare(w, "normal", "(centred * root + ((int64_t)1 << (right - 1))) >> right", "const int64_t")
            total = f"normal * {names.packed['scale']}[i]" if "scale" in names.packed else f"normal * {UNIT}"
            if "shift" in names.packed:
                total += f" + (int64_t){names.packed['shift']}[i] * {1 << SUMMAND_SHIFT}"
            wide = scales.output
            scaled = w.helper("scale_wide", total, str(wide.multiplier), str(wide.right))
            finish(w, "to[i]", scaled, out, limits(out.dtype))


def _mean(w: Writer, size: int, zero_point: int, scales: LayerNormScales) -> None:
    """The mean with more bits; it holds the zero point too, so that raw values may be taken from it."""
    declare(w, "sum", str(-size * zero_point), "int64_t")
    with w.loop("i", size):
        w(w.use(c99.ADD, "sum", "from[i]"))
    w(f"sum *= {1 << scales.fraction};")
    w.bill(60)
    mean = f"(int32_t)((sum > 0 ? sum + {size // 2} : sum - {size // 2}) / {size})"
    declare(w, "mean", added(mean, zero_point << scales.fraction))


def _root(w: Writer, size: int, centred: str, scales: LayerNormScales) -> None:
    """One over the deviation: `root` / 2^`right`, such that a product with it has 16 bits after the point."""
    declare(w, "variance", "0", "int64_t")
    with w.loop("i", size):
        declare(w, "centred", centred, "const int64_t")
        w(w.use(c99.MULTIPLY_ADD, "variance", "centred", "centred"))
    w(f"variance = variance / {size} + INT64_C({scales.epsilon});")
    w("int32_t right;")
    declare(w, "pairs", "0", "int32_t")
    w.bill(100)
    with w.block("while (variance > INT32_MAX)"):
        w("variance >>= 2;")
        w("++pairs;")
    declare(w, "root", w.helper("inverse_square_root", "(int32_t)variance", "&right"), "const int64_t")
    w(f"right += {31 - POINT} + pairs;")
