"""Adjusts scales of dense layers so that an integer multiplier gives the correctly rounded product with the real scale.

TFLite rounds a float64 product. About one of 50,000 scales of 16 bits is so near a fraction that this product, itself
rounded, falls on either side of a half unpredictably, and no multiplier reproduces that. The next float32 scale serves
as well. With 8 bits there are too few halves for that to occur.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nnbuild.model.graph import Constant, Graph, Quant
from nnbuild.ops.dense import Dense, unscalable
from nnbuild.ops.site import site_of

MAX_STEPS = 16
"""Next larger scales that are tried."""


def with_exact_scales(graph: Graph) -> Graph:
    """The same graph with weight scales, changed by a ten-millionth, that dense layers can compute with."""
    for _ in range(MAX_STEPS):
        moved = {}
        for op in graph.ops:
            if isinstance(op.attributes, Dense) and graph.tensors[op.outputs[0]].dtype == "int16":
                kernel = op.constants["kernel"]
                channels = unscalable(site_of(graph, op))
                if channels:
                    moved[kernel] = _next(graph.constants[kernel], channels)
        if not moved:
            return graph
        graph = replace(graph, constants={**graph.constants, **moved})
    return graph


def _next(kernel: Constant, channels: list[int]) -> Constant:
    quant = kernel.quant
    assert quant is not None
    places = set(channels) if len(quant.scales) > 1 else {0}
    scales = [_above(scale) if i in places else scale for i, scale in enumerate(quant.scales)]
    return replace(kernel, quant=Quant(tuple(scales), quant.zero_point, quant.axis))


def _above(scale: float) -> float:
    return float(np.nextafter(np.float32(scale), np.float32(np.inf)))
