"""Computes a whole graph in numpy: the reference for generated C."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from nnbuild.model.graph import Array, Graph, Op, State, Tensor
from nnbuild.numeric.edge import quantize
from nnbuild.ops.integer import scale_and_limits
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.site import Site, site_of

Values = dict[str, Array]
Compute = Callable[[Site, list[Array], str], tuple[Array, ...]]
"""Computes one operation from its inputs, with floats of the given type."""


def compute(site: Site, inputs: list[Array], dtype: str) -> tuple[Array, ...]:
    """One operation; the axes of `op.outer` are treated as additional samples."""
    op: Op = site.op
    joined = merged(op, inputs)
    if in_floats(site):
        outputs = op.attributes.reference(joined, floats(site, dtype))
    else:
        found = op.attributes.integer(site, joined)
        outputs = tuple(
            y.astype(dtype) if out.dtype == "float32" else y for y, out in zip(found, site.outputs, strict=True)
        )
    return parted(op, inputs[0].shape[0], outputs)


def in_floats(site: Site) -> bool:
    """Whether an operation computes in floating point. Conversions do not count: they round once, the same
    everywhere."""
    return site.dtypes == {"float32"}


def run(
    graph: Graph,
    inputs: Mapping[str, Array],
    dtype: str = "float32",
    *,
    reset_each: bool = False,
    carried: Mapping[str, Array] | None = None,
    how: Compute = compute,
) -> Values:
    """Every tensor of the graph for a batch of samples; floats are computed in `dtype`, integers as integers.

    A graph with states computes its samples in order, keeping the states unless `reset_each`; `carried` are the initial
    states, `how` computes one operation.
    """
    values = {name: as_input(graph.tensors[name], inputs[name], dtype) for name in graph.inputs}
    count = len(next(iter(values.values()))) if values else 1
    sites = [site_of(graph, op) for op in graph.ops]
    if not graph.states:
        return _run_batch(sites, values, dtype, how)
    initial = {state.before: initial_value(graph, state, dtype)[None] for state in graph.states}
    banks = {state.before: [initial[state.before]] * state.banks for state in graph.states}
    for name, value in (carried or {}).items():
        banks[name] = [value] * len(banks[name])
    rows = []
    for index in range(count):
        sample = {name: value[index : index + 1] for name, value in values.items()}
        turn = 0 if reset_each else index
        held = {name: each[turn % len(each)] for name, each in banks.items()}
        row = _run_batch(sites, sample | held, dtype, how)
        for state in () if reset_each else graph.states:
            banks[state.before][turn % state.banks] = row[state.after]
        rows.append(row)
    return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]} if rows else {}


def as_input(tensor: Tensor, values: Array, dtype: str) -> Array:
    """Values for an input: floats are quantized for a quantized input, integers are used directly."""
    if tensor.quant is None:
        return np.asarray(values, dtype)
    if np.asarray(values).dtype.kind == "f":
        return np.asarray(quantize(values, *scale_and_limits(tensor)), tensor.dtype)
    return np.asarray(values, tensor.dtype)


def initial_value(graph: Graph, state: State, dtype: str = "float32") -> Array:
    """The initial value of a state; by default the number that means zero."""
    tensor = graph.tensors[state.before]
    kind = tensor.dtype if tensor.quant is not None else dtype
    if state.initial is not None:
        return graph.constants[state.initial].data.astype(kind)
    return np.full(tensor.shape, tensor.quant.zero_point if tensor.quant is not None else 0, kind)


def _run_batch(sites: list[Site], values: Mapping[str, Array], dtype: str, how: Compute) -> Values:
    result = dict(values)
    for site in sites:
        outputs = how(site, [result[name] for name in site.op.inputs], dtype)
        result.update(zip(site.op.outputs, outputs, strict=True))
    return result


def traced(site: Site[Recurrent], inputs: list[Array]) -> tuple[Array, ...]:
    """The states of a recurrent float operation after each of its time steps."""
    return site.attributes.trace(merged(site.op, inputs), floats(site, "float32"))


def merged(op: Op, inputs: list[Array]) -> list[Array]:
    """Merges the axes of `op.outer` with that of the samples."""
    return [x.reshape(x.shape[0] * prod(op.outer), *x.shape[1 + len(op.outer) :]) for x in inputs]


def parted(op: Op, count: int, outputs: Sequence[Array]) -> tuple[Array, ...]:
    """Splits the axes of `op.outer` off again."""
    return tuple(y.reshape(count, *op.outer, *y.shape[1:]) for y in outputs)


def floats(site: Site, dtype: str) -> dict[str, Array]:
    return {role: constant.data.astype(dtype) for role, constant in site.constants.items()}
