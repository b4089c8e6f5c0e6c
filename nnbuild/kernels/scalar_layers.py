"""Layers of sums in portable C: the lanes for them."""

from __future__ import annotations

from nnbuild.base.literals import C_TYPES
from nnbuild.isa.c99 import SINGLE, IntegerLanes
from nnbuild.isa.vector_lanes import VectorLanes, vector_lanes
from nnbuild.kernels.sums import general_of
from nnbuild.model.graph import Array
from nnbuild.ops.base import Clamp
from nnbuild.ops.integer import bounds as integer_bounds
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site


def bias_of(site: Site) -> dict[str, Array]:
    """The bias of every channel, if there is one."""
    return {"bias": site.constant("bias")} if "bias" in site.constants else {}


def lanes_of(site: Site, bounds: Clamp) -> VectorLanes | IntegerLanes:
    if site.dtypes == {"float32"}:
        return vector_lanes(SINGLE, bias_of(site), bounds).holding(4, pixels=2)
    x, out, kernel, scaling = site.inputs[0], site.outputs[0], site.constants["kernel"], general_of(site)
    return IntegerLanes(
        channels=bias_of(site) | dict(scaling.constants),
        input_type=C_TYPES[x.dtype],
        weight_type=C_TYPES[kernel.data.dtype.name],
        output_type=C_TYPES[out.dtype],
        input_zero=quant_of(x).zero_point,
        weight_zero=quant_of(kernel).zero_point,
        output_zero=quant_of(out).zero_point,
        bounds=integer_bounds(bounds, out),
        scaling=scaling,
    )


def any_format(site: Site) -> str | None:
    """Why a scalar kernel of sums cannot serve: it needs one number format throughout."""
    return None if len(site.dtypes) == 1 else f"its formats are mixed: {', '.join(sorted(site.dtypes))}"
