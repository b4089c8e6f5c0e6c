"""Lanes for sums of single 16-bit inputs in 32 bits, for the dot-product loops of any core."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import reason_of
from nnbuild.kernels.dsp.scaling import Scaling, chosen
from nnbuild.kernels.lanes.byte_lanes import ByteLanes
from nnbuild.kernels.lanes.layer_sums import layer_of
from nnbuild.numeric.requant_product import Form
from nnbuild.numeric.rounding import INT32
from nnbuild.ops.convolution import Convolution
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site


@lru_cache(maxsize=256)
def _scaling_of(site: Site[Convolution]) -> Scaling | str:
    """One high product for every channel, or the vendored function."""
    layer = layer_of(site)
    count = len(layer.low)
    return chosen(layer, [Form(below=None)], np.full(count, 30), np.full(count, INT32[1]), 16)


def refused(site: Site[Convolution]) -> str | None:
    if site.dtypes != {"int16"}:
        return "it computes int16 only"
    kernel = site.constants["kernel"]
    if kernel.data.dtype != "int8" or quant_of(kernel).zero_point != 0:
        return "its weights have more than 8 bits or a zero point"
    if quant_of(site.inputs[0]).zero_point != 0:
        return "its 16-bit inputs have a zero point"
    return reason_of(_scaling_of(site))


class WordLanes(ByteLanes):
    """int16 with 32-bit sums, one channel a lane."""

    input_type = "int16_t"
    output_type = "int16_t"

    def __init__(self, site: Site[Convolution]) -> None:
        scaling = _scaling_of(site)
        assert isinstance(scaling, Scaling)
        super().__init__(site, scaling)

    def write(self, w: Writer, pointer: str, value: str) -> None:
        w(w.use(c99.STORE, c99.at(pointer), f"(int16_t){value}"))
