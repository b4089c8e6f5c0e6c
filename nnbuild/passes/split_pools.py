"""Takes a maximum over large windows in two steps: along the rows, then along the columns of the results.

The maximum of maxima is that of all. Windows of 5 x 5 at every place, over which detectors pool their features several
times, take 10 comparisons in the place of 25.
"""

from __future__ import annotations

from dataclasses import replace

from nnbuild.base.names import unused
from nnbuild.model.graph import Graph, Op, Shape
from nnbuild.ops.base import NO_CLAMP
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.windows import NO_PADDING

LEAST_GAIN = 2
"""So many times fewer values must be read, since those between the steps are written, too."""


def split_pools(graph: Graph) -> Graph:
    tensors, ops = dict(graph.tensors), list[Op]()
    op_names = {op.name for op in graph.ops}
    for op in graph.ops:
        if not isinstance(op.attributes, Pool2D) or not _is_worth_it(graph, op, op.attributes):
            ops.append(op)
            continue
        name = unused(f"{op.name}/rows", {*tensors, *graph.constants, *op_names})
        x, y = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
        tensors[name] = replace(y, name=name, shape=(*x.shape[:-2], *y.shape[-2:]), layer=None, zeros=0.0)
        ops += _along_each_axis(op, op.attributes, name)
    return replace(graph, tensors=tensors, ops=tuple(ops))


def _is_worth_it(graph: Graph, op: Op, pool: Pool2D) -> bool:
    x, y = (_image(graph, op, name) for name in (op.inputs[0], op.outputs[0]))
    (high, wide), places = pool.window, y[0] * y[1]
    in_steps = x[0] * y[1] * wide + places * high
    return pool.function == "max" and LEAST_GAIN * in_steps <= places * high * wide


def _image(graph: Graph, op: Op, name: str) -> Shape:
    return graph.tensors[name].shape[len(op.outer) :]


def _along_each_axis(op: Op, pool: Pool2D, between: str) -> tuple[Op, Op]:
    (high, wide), (down, right), (rows, columns) = pool.window, pool.strides, pool.padding
    none = NO_PADDING[0]
    first = replace(pool, window=(1, wide), strides=(1, right), padding=(none, columns), clamp=NO_CLAMP)
    second = replace(pool, window=(high, 1), strides=(down, 1), padding=(rows, none))
    return (
        replace(op, name=between, attributes=first, outputs=(between,)),
        replace(op, attributes=second, inputs=(between,)),
    )
