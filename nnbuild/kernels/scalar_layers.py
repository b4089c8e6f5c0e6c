"""Layers of sums in portable C: the lanes for them, and how their sums are scaled."""

from __future__ import annotations

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.isa.c99 import FloatLanes, IntegerLanes, Scaling
from nnbuild.model.graph import Array
from nnbuild.ops.base import Clamp
from nnbuild.ops.dense import Dense
from nnbuild.ops.integer import bounds as integer_bounds
from nnbuild.ops.integer import quant_of, requantization
from nnbuild.ops.site import Site


def bias_of(site: Site) -> dict[str, Array]:
    """The bias of every channel, if there is one."""
    return {"bias": site.constant("bias")} if "bias" in site.constants else {}


def scaling_of(site: Site) -> Scaling:
    """The rule by which this operation's sums are scaled."""
    attributes = site.attributes
    if isinstance(attributes, Dense) and site.constant("kernel").dtype == np.int8:
        scales = attributes.scales(site)
        once: dict[str, Array] = {
            "multiplier": np.array([scale.multiplier for scale in scales], np.int64),
            "shift": np.array([scale.shift for scale in scales], np.int8),
            "away": np.array([scale.away for scale in scales], np.int8),
        }
        return Scaling("scale_once", once)
    scale = requantization(site, site.output_shape()[-1])
    constants: dict[str, Array] = {
        "multiplier": scale.stored_multiplier().astype(np.int32),
        "shift": scale.shift.astype(np.int8),
    }
    return Scaling("requantize64" if scale.wide else "requantize", constants)


def lanes_of(site: Site, bounds: Clamp) -> FloatLanes | IntegerLanes:
    if site.dtypes == {"float32"}:
        return FloatLanes(bias_of(site), bounds)
    x, out, kernel, scaling = site.inputs[0], site.outputs[0], site.constants["kernel"], scaling_of(site)
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
