"""A factor and a summand a channel, in integers: rounded as a convolution by a single weight."""

from __future__ import annotations

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.affine.scalar import axis_walks
from nnbuild.kernels.contract import Demand, Names, only_integer
from nnbuild.kernels.integers import centred, declare, finish, zero
from nnbuild.kernels.overlaps import IN_PLACE
from nnbuild.kernels.strided import extent, nest
from nnbuild.ops.affine import Affine
from nnbuild.ops.integer import bounds, requantization
from nnbuild.ops.site import Site

needs: frozenset[str] = frozenset()
accepts = only_integer


def demand(site: Site[Affine]) -> Demand:
    scale = requantization(site, site.constant("scale").size, "scale")
    packed = {
        "scale": site.constant("scale"),
        "shift": site.constant("shift"),
        "multiplier": scale.stored_multiplier().astype(np.int32),
        "places": scale.shift.astype(np.int8),
    }
    return Demand(extent=extent(site.shape(), axis_walks(site)), packed=packed, overlaps=IN_PLACE)


def emit(w: Writer, site: Site[Affine], names: Names) -> None:
    attributes, x, out = site.attributes, site.inputs[0], site.outputs[0]
    kind, helper = ("int32_t", "requantize") if x.dtype == "int8" else ("int64_t", "requantize64")

    def element(at: list[str]) -> None:
        of = {role: f"{name}[{at[1]}]" for role, name in names.packed.items()}
        centred(w, "x", f"{names.inputs[0]}[{at[0]}]", zero(x))
        w.bill(c99.MULTIPLY_ADD.cycles)
        declare(w, "sum", f"x * {of['scale']} + {of['shift']}", f"const {kind}")
        scaled = w.helper(helper, "sum", of["multiplier"], of["places"])
        finish(w, f"{names.outputs[0]}[{at[0]}]", scaled, out, bounds(attributes.clamp, out))

    nest(w, site.shape(), axis_walks(site), element)
