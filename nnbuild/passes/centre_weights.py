"""Dense layers whose weights have a zero point become such without.

A weight less its zero point may need nine bits, but few do: what is beyond a byte is the weight of a copy of its input.
The sums are the same, and the fast kernels of bytes take them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nnbuild.base.names import unused
from nnbuild.model.graph import Array, Constant, Graph, Op, Tensor
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.dense import Dense
from nnbuild.ops.pick import Pick

MOST = 1.5
"""Of the inputs; with more, bytes are multiplied by weights of nine bits."""
WHOLE = 4
"""Inputs that kernels take at once."""


def centre_weights(graph: Graph) -> Graph:
    tensors, constants, ops = dict(graph.tensors), dict(graph.constants), list[Op]()
    for op in graph.ops:
        kernel = constants[op.constants["kernel"]] if isinstance(op.attributes, Dense) else None
        found = None if kernel is None else _centred(kernel, tensors[op.inputs[0]])
        if kernel is not None and kernel.quant is not None and found is not None:
            weights, places = found
            name = unused(f"{kernel.name}/centred", constants)
            constants[name] = Constant(name, weights, replace(kernel.quant, zero_point=0))
            repeated = [_add(op, tensors, ops, _picks(tensors[op.inputs[0]], some), op.inputs[0]) for some in places]
            x = op.inputs[0]
            if repeated:
                x = _add(op, tensors, ops, Concatenate(len(tensors[x].shape) - 1), x, *repeated)
            op = replace(op, inputs=(x, *op.inputs[1:]), constants={**op.constants, "kernel": name})
        ops.append(op)
    return replace(graph, tensors=tensors, constants=constants, ops=tuple(ops))


def _centred(kernel: Constant, x: Tensor) -> tuple[Array, list[tuple[int, ...]]] | None:
    """The weights, and the inputs that are needed again; None for those that stay as they are."""
    data, zero = kernel.data, 0 if kernel.quant is None else kernel.quant.zero_point
    nine_bits = data.dtype == np.int16 and x.dtype == "int8"
    if not nine_bits and (data.dtype != np.int8 or zero == 0):
        return None
    wanted = data.astype(np.int16) - zero
    weights, places = _in_bytes(wanted)
    if len(weights) <= MOST * len(wanted) or x.dtype != "int8":
        return weights, places
    return None if nine_bits else (wanted, [])


def _in_bytes(wanted: Array) -> tuple[Array, list[tuple[int, ...]]]:
    """Weights in bytes, and the inputs that are needed again, once for each time that a weight of theirs is beyond; a
    few more, with weights of 0, make them whole."""
    parts, places = [np.clip(wanted, -128, 127)], list[tuple[int, ...]]()
    rest = wanted - parts[0]
    while rest.any():
        some = np.flatnonzero(rest.any(axis=1))
        part, more = np.clip(rest[some], -128, 127), -len(some) % WHOLE
        rest[some] -= part
        places.append(tuple(int(place) for place in (*some, *some[:1].repeat(more))))
        parts.append(np.pad(part, ((0, more), (0, 0))))
    return np.concatenate(parts).astype(np.int8), places


def _picks(x: Tensor, places: tuple[int, ...]) -> Pick:
    return Pick((*[None] * (len(x.shape) - 1), places))


def _add(like: Op, tensors: dict[str, Tensor], ops: list[Op], attributes: Pick | Concatenate, *inputs: str) -> str:
    """An operation of the same layer, in the format of its inputs."""
    name = unused(f"{like.outputs[0]}/input", tensors)
    (shape,) = attributes.shapes([tensors[given].shape for given in inputs], {})
    tensors[name] = replace(tensors[inputs[0]], name=name, shape=shape, layer=None)
    ops.append(Op(name, attributes, inputs, (name,), layer=like.layer))
    return name
