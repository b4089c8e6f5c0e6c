"""Makes one dilated convolution of a convolution of the blocks of an image, as Keras 2 and TensorFlow compute it: every
d-th row and column are an image of their own, and their results are put together again.

What lies where is known by the numbers of the elements, whatever moves brought them there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from nnbuild.model.graph import Array, Graph, Op, Shape
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Pair
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.pad import Pad
from nnbuild.ops.slice import Slice
from nnbuild.ops.windows import NO_PADDING
from nnbuild.passes.additions import Additions
from nnbuild.passes.readers import Readers
from nnbuild.passes.rows import is_move, moved, numbers, origins


def join_blocks(graph: Graph) -> Graph:
    readers, new, ops = Readers(graph), Additions(graph), list[Op]()
    found = [whole for whole in (_whole(readers, op) for op in graph.ops) if whole is not None]
    last = {whole.after[-1].name: whole for whole in found}
    gone = {op.name for whole in found for op in (*whole.steps, *whole.after)}
    for op in graph.ops:
        ops += _joined(readers, new, last[op.name]) if op.name in last else () if op.name in gone else (op,)
    return new.finish(ops)


@dataclass(frozen=True)
class _Whole:
    """Convolutions of blocks, and activations. `before` these come the moves that take the blocks from the image, and
    `after` them those that make the results one again. Of the image only so much is `taken`."""

    steps: tuple[Op, ...]
    dilation: Pair
    image: str
    taken: Shape
    before: tuple[Op, ...]
    after: tuple[Op, ...]
    made: Shape


def _whole(readers: Readers, op: Op) -> _Whole | None:
    if len(op.outer) != 1 or op.outer[0] == 1 or _kernel(readers, op) is None:
        return None
    image, before = list(origins(readers.makers, op.inputs[0]).items())[-1]
    blocks = _places(moved(before, numbers(readers.shape(image))), readers.shape(op.inputs[0]))
    size = _image(readers.shape(image))
    if blocks is None or size is None:
        return None
    rows, columns = np.divmod(blocks, size[1])
    dilation = _step(rows, 1), _step(columns, 2)
    if not _is_even(rows, dilation[0], 1) or not _is_even(columns, dilation[1], 2):
        return None
    steps = _steps(readers, op)
    end = _end(readers, steps[-1].outputs[0], rows, columns)
    if end is None:
        return None
    after, made = end
    kernels = [_kernel(readers, step) or (1, 1) for step in steps]
    taken = tuple(made[i] + dilation[i] * sum(kernel[i] - 1 for kernel in kernels) for i in (0, 1))
    fits = taken[0] <= size[0] and taken[1] <= size[1]
    return _Whole(steps, dilation, image, (*taken, size[2]), before, after, made) if fits else None


def _kernel(readers: Readers, op: Op) -> Pair | None:
    """The size of the kernel, if this is a convolution that nothing is added to."""
    convolution = op.attributes
    if not isinstance(convolution, Conv2D | DepthwiseConv2D) or convolution.padding != NO_PADDING:
        return None
    if convolution.strides != (1, 1) or convolution.dilation != (1, 1):
        return None
    height, width = readers.graph.constants[op.constants["kernel"]].data.shape[:2]
    return height, width


def _steps(readers: Readers, op: Op) -> tuple[Op, ...]:
    """The convolution, and activations and convolutions that follow."""
    steps = [op]
    while len(readers.of(name := steps[-1].outputs[0])) == 1 and name not in readers.pinned:
        (after,) = readers.of(name)
        same = after.outer == op.outer and _kernel(readers, after) is not None
        if not same and (type(after.attributes) is not Activation or after.outer):
            break
        steps.append(after)
    return tuple(steps)


def _image(shape: Shape) -> Shape | None:
    """Height, width and channels of what is one image, or one row."""
    shape = (1,) * (3 - len(shape)) + shape
    return shape[-3:] if prod(shape[:-3]) == 1 else None


def _places(elements: Array, shape: Shape) -> Array | None:
    """The numbers of pixels, if all channels of one lie together."""
    pixels = elements.reshape(shape)[..., 0] // shape[-1]
    together = pixels[..., None] * shape[-1] + np.arange(shape[-1])
    return pixels if np.array_equal(together.reshape(-1), elements.reshape(-1)) else None


def _step(places: Array, axis: int) -> int:
    return int(np.diff(places, axis=axis).flat[0]) if places.shape[axis] > 1 else 1


def _is_even(places: Array, step: int, axis: int) -> bool:
    """Whether these places of rows or columns grow by such steps along the axis, and along the other not at all."""
    along = np.arange(places.shape[axis]).reshape((-1, 1) if axis == 1 else (1, -1))
    return step > 0 and bool((places == places[:, :1, :1] + step * along).all())


def _end(readers: Readers, name: str, rows: Array, columns: Array) -> tuple[tuple[Op, ...], Shape] | None:
    """The moves after which the results lie where these rows and columns say, and the size of their image."""
    blocks = readers.shape(name)
    rows, columns = (at[:, : blocks[1], : blocks[2]].reshape(-1) for at in (rows, columns))
    elements, after, found = numbers(blocks), tuple[Op, ...](), None
    while len(readers.of(name)) == 1 and name not in readers.pinned:
        (move,) = readers.of(name)
        if not is_move(move) and (type(move.attributes) is not Slice or move.outer):
            break
        after, elements, name = (*after, move), moved((move,), elements), move.outputs[0]
        size = _image(readers.shape(name))
        pixels = _places(elements, size) if size is not None else None
        if size is None or pixels is None:
            continue
        at = np.indices(size[:2])
        if np.array_equal(rows[pixels], at[0]) and np.array_equal(columns[pixels], at[1]):
            found = after, size
    return found


def _joined(readers: Readers, new: Additions, found: _Whole) -> Sequence[Op]:
    first, last, chain = found.before[0], found.after[-1], list[Op]()
    name = new.seen(chain, first, _taken(readers, new, found, chain), found.taken)
    for step in found.steps:
        attributes = step.attributes
        if isinstance(attributes, Conv2D | DepthwiseConv2D):
            attributes = replace(attributes, dilation=found.dilation)
        chain.append(new.instead(step, attributes, name))
        name = chain[-1].outputs[0]
    new.seen(chain, last, name, readers.shape(last.outputs[0]))
    chain[-1] = replace(chain[-1], outputs=last.outputs)
    return chain


def _taken(readers: Readers, new: Additions, found: _Whole, chain: list[Op]) -> str:
    """The image without the last rows and columns that no result needs: they filled the blocks up."""
    first, shape = found.before[0], readers.shape(found.image)
    counts = (*(1,) * (len(shape) - 3), *found.taken)[-len(shape) :]
    if counts == shape:
        return found.image
    pad, less = readers.makers.get(found.image), [n - count for n, count in zip(shape, counts, strict=True)]
    if pad is not None and isinstance(pad.attributes, Pad) and not pad.outer and not pad.constants:
        amounts = tuple((low, high - n) for (low, high), n in zip(pad.attributes.amounts, less, strict=True))
        if min(high for _, high in amounts) >= 0:
            chain.append(new.op(pad, replace(pad.attributes, amounts=amounts), *pad.inputs))
            return chain[-1].outputs[0]
    chain.append(new.op(first, Slice((0,) * len(shape), (1,) * len(shape), counts), found.image))
    return chain[-1].outputs[0]
