"""Two operands, element by element, with broadcasting, in integers."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.kernels.binary.scalar import demand as demand
from nnbuild.kernels.binary.scalar import operand_walks
from nnbuild.kernels.contract import Names, only_integer
from nnbuild.kernels.integers import centred, declare, finish, requantized
from nnbuild.kernels.strided import nest
from nnbuild.numeric.elementwise import AddScales
from nnbuild.ops.binary import Binary, Formats, formats, operands
from nnbuild.ops.integer import bounds
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_integer


def emit(w: Writer, site: Site[Binary], names: Names) -> None:
    attributes, out = site.attributes, site.outputs[0]
    left, right = operands(names.inputs, names.packed)
    form = formats(site)
    limits = bounds(attributes.clamp, out)

    def element(at: list[str]) -> None:
        centred(w, "a", f"{left}[{at[1]}]", form.zeros[0])
        centred(w, "b", f"{right}[{at[2]}]", form.zeros[1])
        finish(w, f"{names.outputs[0]}[{at[0]}]", _value(w, attributes.function, form), out, limits)

    nest(w, site.output_shape(), operand_walks(site), element)


def _value(w: Writer, function: str, form: Formats) -> str:
    """The result for a and b before the zero point."""
    match function:
        case "multiply":
            w.bill(1)
            return requantized(w, "a * b", form.product_scale())
        case "divide":
            scale = form.division_scale()
            return w.helper("divide", "a", "b", str(scale.multiplier), str(scale.right))
        case "add" | "subtract":
            return _sum(w, "+" if function == "add" else "-", form.sum_scales())
        case "squared_difference":
            return _square(w, form)
    scales = form.choice_scales()
    declare(w, "left", requantized(w, "a", scales[0]))
    declare(w, "right", requantized(w, "b", scales[1]))
    w.bill(3)
    return f"(left {'>' if function == 'maximum' else '<'} right ? left : right)"


def _sum(w: Writer, sign: str, scales: AddScales) -> str:
    """Both operands on one scale with spare bits below, as TFLite adds."""
    _align(w, scales)
    return requantized(w, f"left {sign} right", scales.output)


def _square(w: Writer, form: Formats) -> str:
    """16-bit operands square to 46 bits."""
    scales, wide = form.square_scales(), form.wide_square_scale()
    _align(w, scales)
    declare(w, "apart", "left - right")
    if wide is not None:
        return w.helper("scale_wide", "(int64_t)apart * apart", str(wide.multiplier), str(wide.right))
    return requantized(w, "apart * apart", scales.output)


def _align(w: Writer, scales: AddScales) -> None:
    for name, operand, scale in (("left", "a", scales.first), ("right", "b", scales.second)):
        declare(w, name, requantized(w, f"{operand} * {1 << scales.left_shift}", scale))
