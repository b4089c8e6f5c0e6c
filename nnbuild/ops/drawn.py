"""Random inputs of a model, for lack of real ones: numbers valid for each input."""

from __future__ import annotations

import numpy as np

from nnbuild.model.graph import Array, Graph, Tensor
from nnbuild.numeric.rounding import limits
from nnbuild.ops.gather import Gather
from nnbuild.ops.site import site_of

COUNTS = 100
"""The upper bound of random whole numbers that are not indices."""


def drawn(graph: Graph, name: str, chance: np.random.Generator, count: int) -> Array:
    """Normal numbers, integers from the whole range of a quantized input, or indices valid in every table."""
    tensor = graph.tensors[name]
    shape = (count, *tensor.shape)
    if tensor.quant is None:
        return chance.normal(size=shape).astype(np.float32)
    low, high = integer_range(graph, tensor)
    return chance.integers(low, high + 1, shape).astype(tensor.dtype)


def integer_range(graph: Graph, tensor: Tensor) -> tuple[int, int]:
    """The range of integers that an input may hold."""
    if tensor.is_whole and tensor.dtype != "uint8":
        return 0, 1 if tensor.dtype == "int8" else _rows(graph) - 1
    return limits(tensor.dtype)


def _rows(graph: Graph) -> int:
    """The rows of the smallest table."""
    sites = [site_of(graph, op).of(Gather) for op in graph.ops if isinstance(op.attributes, Gather)]
    tables = [s.constant("table").shape if "table" in s.constants else s.shape() for s in sites]
    return min((table[site.attributes.axis] for table, site in zip(tables, sites, strict=True)), default=COUNTS)
