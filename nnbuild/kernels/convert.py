"""Conversion between number formats: the only integer kernel that may read or write floats."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, on_each
from nnbuild.kernels.lanes.float_edges import FloatEdges, scalar_real
from nnbuild.kernels.lanes.rounded_arithmetic import rounded_kernels
from nnbuild.kernels.lanes.rounded_functions import convert_rule
from nnbuild.kernels.loops.strided import Loops, alike
from nnbuild.kernels.parts import byte_tables
from nnbuild.kernels.parts.integer_steps import centred, finish, requantized, scaled_once, store, zero
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.model.graph import Tensor
from nnbuild.numeric.edge import EXPONENTS, scale_parts
from nnbuild.numeric.elementwise import rescale_multiplier
from nnbuild.numeric.rounding import INT8, Ints, ints, limits
from nnbuild.ops.convert import Convert
from nnbuild.ops.integer import quant_of, ratio_once, scale_and_limits
from nnbuild.ops.site import Site

FORMATS = {"float32", "int8", "int16", "int32", "uint8"}


def _accepts(site: Site[Convert]) -> str | None:
    strange = site.dtypes - FORMATS
    return f"it does not convert {', '.join(sorted(strange))}" if strange else None


def _demand(site: Site[Convert]) -> Demand:
    return Demand(extent=prod(site.shape()), overlaps=IN_PLACE if _in_place(site) else ())


def _in_place(site: Site[Convert]) -> bool:
    """An output must not be larger than its input, and C allows only bytes to alias other types."""
    x, out = (np.dtype(tensor.dtype) for tensor in (site.inputs[0], site.outputs[0]))
    return x == out or (out.itemsize == 1 and x.itemsize > 1)


def _emit(w: Writer, site: Site[Convert], names: Names) -> None:
    x, out = site.inputs[0], site.outputs[0]
    source, target = f"{names.inputs[0]}[i]", f"{names.outputs[0]}[i]"
    with w.loop("i", "end", start="begin", trips=prod(site.shape())):
        if x.quant is None and out.quant is None:
            w(w.use(c99.STORE, target, source))
        elif x.quant is None:
            store(w, target, _quantized(w, source, out), out)
        elif out.quant is None:
            scalar_real(w, x, source, target)
        elif out.dtype == "int32":
            scale = map(str, site.attributes.into_cell(site))
            store(w, target, w.helper("scale_wide", f"{source} - {zero(x)}", *scale), out)
        else:
            centred(w, "x", source, zero(x))
            if x.quant.scale == out.quant.scale:
                value = "x"
            elif site.attributes.once:
                value = scaled_once(w, "x", ratio_once(x, out))
            else:
                value = requantized(w, "x", rescale_multiplier(x.quant.scale, out.quant.scale))
            finish(w, target, value, out, limits(out.dtype))


def _quantized(w: Writer, source: str, out: Tensor) -> str:
    scale, *rest = scale_and_limits(out)
    return w.helper("quantizef", source, float_literal(scale), *map(str, rest))


def _accepts_bits(site: Site[Convert]) -> str | None:
    x, out = site.inputs[0], site.outputs[0]
    real, whole = (x, out) if x.dtype == "float32" else (out, x)
    if real.dtype != "float32" or whole.dtype not in ("int8", "int16"):
        return "it converts between floats and 8 or 16 bits only"
    usual = scale_parts(quant_of(whole).scale).exponent in EXPONENTS
    return None if usual else "its scale is tiny or huge"


def _emit_bits(w: Writer, site: Site[Convert], names: Names) -> None:
    """Floats by their bits, on processors that compute floats by integers."""
    x, out = site.inputs[0], site.outputs[0]
    source, target = f"{names.inputs[0]}[i]", f"{names.outputs[0]}[i]"
    with w.loop("i", "end", start="begin", trips=prod(site.shape())):
        if x.quant is None:
            scale, *limits = scale_and_limits(out)
            mantissa, inverse, exponent = scale_parts(scale)
            constants = f"{mantissa}U", f"{inverse}U", *map(str, (exponent, *limits))
            store(w, target, w.helper("quantize_bits", source, *constants), out)
        else:
            mantissa, _, exponent = scale_parts(x.quant.scale)
            real = w.helper("real_bits", f"{source} - {zero(x)}", f"{mantissa}U", str(exponent))
            w(w.use(c99.STORE, target, real))


def _entries(site: Site[Convert]) -> Ints:
    """What bytes in another scale become."""
    (results,) = site.attributes.integer(site, [np.arange(INT8[0], INT8[1] + 1, dtype=np.int8)])
    return ints(results)


def _walks(site: Site[Convert]) -> Loops:
    return alike(site, 2)


def _demand_vectors(site: Site[Convert], lanes: int) -> Demand:
    return replace(_demand(site), extent=_walks(site).vectors(lanes))


VARIANTS = (
    Kernel("scalar", PORTABLE, _accepts, _demand, _emit),
    Kernel("bits", PORTABLE, _accepts_bits, _demand, _emit_bits),
    *rounded_kernels(_walks, _demand_vectors, convert_rule, lambda inputs, _: inputs, mixes=True),
    byte_tables.portable(_entries),
    byte_tables.in_vectors(_entries),
    on_each("float", FloatEdges),
)
