"""Operators whose every output is an input's element or a constant, at a position known at compile time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np

from nnbuild.frontend.assembly import SMALLER
from nnbuild.frontend.tflite.call import BATCH_ONE, Call
from nnbuild.frontend.tflite.records import CONVERT_AGAIN
from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Pair
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.gather import Gather
from nnbuild.ops.pad import Pad
from nnbuild.ops.pick import Pick
from nnbuild.ops.select import Select
from nnbuild.ops.slice import Slice
from nnbuild.ops.transpose import Transpose
from nnbuild.ops.whole import Whole

MOST_PLACES = 2**16
"""Each position is printed as a number."""
MOST_LAYERS = 64
"""Maximum values added up in one element."""
NOTHING = -1


def alone(call: Call) -> None:
    call.expect(call.batch == 1, "it moves elements between the samples of a batch.", BATCH_ONE)


def given(call: Call, index: int) -> str:
    """An input of the output's format, flattened."""
    (name,) = call.data_inputs(index)
    call.same_quant(name)
    return call.seen(name, (prod(call.shape(name)),))


def picked(call: Call, name: str, places: Array, shape: Shape) -> str:
    """These elements of a flattened tensor."""
    call.expect(places.size <= MOST_PLACES, f"it places {places.size} elements, more than {MOST_PLACES}.", SMALLER)
    made = call.add(Pick((tuple(int(i) for i in places.reshape(-1)),)), [name])
    return call.seen(made, shape)


def filled(call: Call, name: str, places: Array, shape: Shape, value: float = 0.0) -> str:
    """Like `picked`, with a constant wherever the position is `NOTHING`."""
    count = call.shape(name)[0]
    if (places == NOTHING).any():
        name = call.add(Pad(((0, 1),), value), [name])
    return picked(call, name, np.where(places == NOTHING, count, places), shape)


def blocks(kind: str, call: Call) -> None:
    """SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: the blocks of an image are stored one after the other."""
    alone(call)
    whole, sizes, around = call.whole(0), call.integers(1), call.integers(2)
    call.expect(len(around) % 2 == 0, f"it has {len(around)} amounts, which are not pairs.")
    pairs = tuple(zip(around[::2], around[1::2], strict=True))
    fits = 0 < len(sizes) == len(pairs) < len(whole) and min(sizes) > 0 and min(around) >= 0
    call.expect(fits and max((*around, *sizes)) < 2**15, f"its blocks {list(sizes)} do not match {list(whole)}.")
    (name,) = call.data_inputs(0)
    call.same_quant(name)
    (_to_batch if kind == "SPACE_TO_BATCH_ND" else _to_space)(call, call.seen(name, whole), sizes, pairs)


def _to_batch(call: Call, name: str, sizes: Sequence[int], around: Sequence[Pair]) -> None:
    count, rest = len(sizes), call.shape(name)[1 + len(sizes) :]
    name = call.add(Pad(((0, 0), *around, *((0, 0),) * len(rest))), [name])
    batch, *spans = call.shape(name)[: 1 + count]
    call.expect(all(n % s == 0 for n, s in zip(spans, sizes, strict=True)), f"its blocks do not divide {spans}.")
    each = [n // s for n, s in zip(spans, sizes, strict=True)]
    split = [n for pair in zip(each, sizes, strict=True) for n in pair]
    order = (
        *range(2, 2 + 2 * count, 2),
        0,
        *range(1, 1 + 2 * count, 2),
        *range(1 + 2 * count, 1 + 2 * count + len(rest)),
    )
    name = call.add(Transpose(order), [call.seen(name, (batch, *split, *rest))])
    made = (batch * prod(sizes), *each, *rest)
    call.reshaped(call.seen(name, made), whole=made)


def _to_space(call: Call, name: str, sizes: Sequence[int], cut: Sequence[Pair]) -> None:
    count, (batch, *spans) = len(sizes), call.shape(name)[: 1 + len(sizes)]
    rest = call.shape(name)[1 + count :]
    call.expect(batch % prod(sizes) == 0, f"its blocks of {prod(sizes)} do not divide {batch}.")
    batch //= prod(sizes)
    mixed = [axis for i in range(count) for axis in (count + 1 + i, i)]
    order = (count, *mixed, *range(2 * count + 1, 2 * count + 1 + len(rest)))
    name = call.add(Transpose(order), [call.seen(name, (*sizes, batch, *spans, *rest))])
    full = tuple(n * s for n, s in zip(spans, sizes, strict=True))
    name = call.seen(name, (batch, *full, *rest))
    counts = tuple(n - sum(pair) for n, pair in zip(full, cut, strict=True))
    call.expect(min(counts) > 0, "its output is empty.")
    begins = (0, *(pair[0] for pair in cut), *(0,) * len(rest))
    made = (batch, *counts, *rest)
    call.reshaped(call.add(Slice(begins, (1,) * len(made), made), [name]), whole=made)


def dilate(call: Call) -> None:
    """Inserts constants between the elements of each axis."""
    alone(call)
    whole, steps = call.whole(0), call.integers(1)
    call.expect(
        len(steps) == len(whole) and min(steps, default=0) > 0, f"its steps {list(steps)} do not match its input."
    )
    shape = tuple((n - 1) * s + 1 for n, s in zip(whole, steps, strict=True))
    places = spaced(call, whole, shape, steps, (0,) * len(whole))
    call.reshaped(filled(call, given(call, 0), places, shape, number(call, 2)), whole=shape)


def spaced(call: Call, whole: Shape, shape: Shape, steps: Sequence[int], begins: Sequence[int]) -> Array:
    """For each element of an output of this shape, the input element there, if any; begins may be negative."""
    call.expect(0 < prod(shape) <= MOST_PLACES, f"its output {list(shape)} is too large.", SMALLER)
    places, stride = np.zeros(shape, np.int64), prod(whole)
    inside = np.ones(shape, bool)
    for axis, (size, n, step, begin) in enumerate(zip(shape, whole, steps, begins, strict=True)):
        stride //= n
        along = [1] * len(shape)
        along[axis] = size
        at, rest = np.divmod(np.arange(size) - begin, step)
        inside &= ((rest == 0) & (at >= 0) & (at < n)).reshape(along)
        places += (at * stride).reshape(along)
    return np.where(inside, places, NOTHING)


def number(call: Call, index: int) -> float:
    """A single constant's real value."""
    stored, values = call.stored(index), call.weights(index, bounds=True)
    call.expect(
        values.size == 1 and stored.dtype == call.output().dtype, f"its {stored.name!r} is not a usable number."
    )
    value, out = values.reshape(-1)[0], call.like().quant
    return float(value) if out is None else (int(value) - out.zero_point) * out.scale


def few(call: Call, shape: Shape) -> None:
    call.expect(0 < prod(shape) <= MOST_PLACES, f"it places {prod(shape)} elements, more than {MOST_PLACES}.", SMALLER)


def raw_zero(call: Call) -> float:
    """The real value of the integer 0: some operators write it instead of the zero point."""
    quant = call.like().quant
    return 0.0 if quant is None else -quant.zero_point * quant.scale


def indices(call: Call, index: int, table: Shape) -> Array:
    """Constant index rows as positions of blocks: [rows]; and the shape of a block."""
    stored = call.stored(index)
    call.expect(call.is_constant(index), f"its indices {stored.name!r} are computed at run time.", CONVERT_AGAIN)
    call.expect(stored.dtype in ("int32", "int64"), f"its indices are {stored.dtype}.")
    rows = stored.values().astype(np.int64)
    depth = rows.shape[-1] if rows.ndim else 0
    inside = 0 < depth <= len(table) and bool(((rows >= 0) & (rows < np.asarray(table[:depth]))).all())
    call.expect(inside, f"its indices lie outside {list(table)}.")
    return np.asarray(np.ravel_multi_index(tuple(np.moveaxis(rows, -1, 0)), table[:depth]))


def scatter_nd(call: Call) -> None:
    """Updates of the same element are added up."""
    alone(call)
    shape, depth = call.integers(2), (call.whole(0) or (0,))[-1]
    call.expect(
        bool(shape) and 0 < prod(shape) <= MOST_PLACES and min(shape) > 0,
        f"its output {list(shape)} is empty or too large.",
    )
    rows, row = indices(call, 0, shape).reshape(-1), prod(shape[depth:])
    call.expect(rows.size * row == prod(call.whole(1)), "its indices and its updates do not match.")
    name, layers = given(call, 1), _layers(rows, prod(shape[:depth]))
    call.expect(len(layers) <= MOST_LAYERS, f"it adds {len(layers)} updates to one element.", CONVERT_AGAIN)
    exact = call.is_float() or call.like().dtype == "int32"
    call.expect(len(layers) == 1 or exact, "several quantized updates write to one element.", CONVERT_AGAIN)
    parts = [filled(call, name, _spread(layer, row), shape, raw_zero(call)) for layer in layers]
    total = parts[0]
    for part in parts[1:]:
        total = call.add(Binary("add") if call.is_float() else Whole("add"), [total, part])
    call.reshaped(total, whole=shape)


def _layers(rows: Array, count: int) -> list[Array]:
    """The update of each block: as many lists as the most updates of one block."""
    seen, layers = np.zeros(count, np.int64), [np.full(count, NOTHING)]
    for update, row in enumerate(rows):
        while seen[row] >= len(layers):
            layers.append(np.full(count, NOTHING))
        layers[seen[row]][row] = update
        seen[row] += 1
    return layers


def _spread(blocks: Array, size: int) -> Array:
    return np.where(blocks[:, None] == NOTHING, NOTHING, blocks[:, None] * size + np.arange(size))


def sparse_to_dense(call: Call) -> None:
    alone(call)
    shape = call.integers(1)
    call.expect(
        bool(shape) and 0 < prod(shape) <= MOST_PLACES and min(shape) > 0,
        f"its output {list(shape)} is empty or too large.",
    )
    stored = call.stored(0)
    rows = stored.values() if call.is_constant(0) else np.zeros(0)
    call.expect(rows.ndim == 2 or len(shape) == 1, "its indices have another number of axes.")
    places = indices(call, 0, shape).reshape(-1) if rows.ndim == 2 else _flat(call, rows, shape)
    values = prod(call.whole(2))
    call.expect(values in (1, places.size), f"it has {values} values for {places.size} places.")
    found = np.full(prod(shape), NOTHING)
    found[places] = np.arange(places.size) if values > 1 else 0
    call.reshaped(filled(call, given(call, 2), found, shape, number(call, 3)), whole=shape)


def _flat(call: Call, rows: Array, shape: Shape) -> Array:
    call.expect(bool(((rows >= 0) & (rows < shape[0])).all()), f"its indices lie outside {list(shape)}.")
    return rows.reshape(-1).astype(np.int64)


def matrix_diag(call: Call) -> None:
    """Each row becomes the diagonal of a matrix."""
    alone(call)
    *before, size = call.whole(0) or (1,)
    shape = (*before, size, size)
    call.expect(prod(shape) <= MOST_PLACES, f"its output {list(shape)} is too large.", SMALLER)
    places = np.where(np.eye(size, dtype=bool), np.arange(size)[:, None], NOTHING)
    lifted = np.arange(prod(before))[:, None, None] * size
    places = np.where(places == NOTHING, NOTHING, places + lifted)
    call.reshaped(filled(call, given(call, 0), places, shape, raw_zero(call)), whole=shape)


def matrix_set_diag(call: Call) -> None:
    *before, rows, columns = call.whole(0) if len(call.whole(0)) > 1 else (0, 0)
    size = min(rows, columns)
    alone(call)
    call.expect(prod(call.whole(1)) == prod(before) * size > 0, "its diagonal does not match its input.")
    few(call, call.whole(0))
    names = [given(call, 0), given(call, 1)]
    count = prod(call.whole(0))
    places = np.arange(count).reshape(-1, rows, columns)
    at = np.arange(size)
    places[:, at, at] = count + np.arange(prod(before) * size).reshape(-1, size)
    call.done(picked(call, call.add(Concatenate(0), names), places, call.whole(0)))


def dynamic_update_slice(call: Call) -> None:
    """Replaces a part of the input; its position is clamped to lie inside."""
    alone(call)
    whole, part, begins = call.whole(0), call.whole(1), call.integers(2)
    fits = len(begins) == len(whole) == len(part) and all(m <= n for n, m in zip(whole, part, strict=True))
    call.expect(fits, f"{list(part)} from {list(begins)} on is not part of {list(whole)}.")
    few(call, whole)
    begins = tuple(min(max(b, 0), n - m) for b, n, m in zip(begins, whole, part, strict=True))
    joined = call.add(Concatenate(0), [given(call, 0), given(call, 1)])
    count, places = prod(whole), np.arange(prod(whole)).reshape(whole)
    at = tuple(slice(b, b + m) for b, m in zip(begins, part, strict=True))
    places[at] = count + np.arange(prod(part)).reshape(part)
    call.done(picked(call, joined, places, whole))


def reverse_sequence(call: Call) -> None:
    """Reverses the first elements of an axis; another input gives their count."""
    kind, whole = "ReverseSequenceOptions", call.whole(0)
    alone(call)
    along = call.axis(int(call.option(kind, "SeqDim", 0)), len(whole))
    batch = call.axis(int(call.option(kind, "BatchDim", 0)), len(whole))
    call.expect(along != batch and prod(call.whole(1)) == whole[batch] <= 256, "its lengths do not match its input.")
    (name,) = call.data_inputs(0)
    call.same_quant(name)
    name, length = call.seen(name, whole), whole[along]
    if call.is_constant(1):
        call.done(_known_lengths(call, name, batch, along))
        return
    lengths, like = call.value(1), call.tensor(call.value(1))
    call.expect(like.dtype == "int32", f"its lengths are {like.dtype}.")
    lengths = call.seen(lengths, (whole[batch],))
    places = call.assembly.constant(
        call.operator, f"{call.layer}/places", np.arange(length, dtype=np.int32), like.quant
    )
    backwards = call.assembly.constant(
        call.operator, f"{call.layer}/back", np.arange(1, length + 1, dtype=np.int32), like.quant
    )
    rows = []
    for i in range(whole[batch]):
        one = call.add(Slice((i,), (1,), (1,)), [lengths], like=like)
        back = call.add(Whole("subtract"), [one], {"right": backwards}, like=like)
        inside = call.add(Compare("greater"), [one], {"right": places}, like=call.truth)
        at = call.add(Select(), [inside, back], {"other": places}, like=like)
        row = name if whole[batch] == 1 else call.add(Slice(*_one_of(whole, batch, i)), [name])
        rows.append(call.add(Gather(along), [row, at]))
    call.done(rows[0] if len(rows) == 1 else call.add(Concatenate(batch), rows))


def _one_of(whole: Shape, axis: int, index: int) -> tuple[Shape, Shape, Shape]:
    begins = tuple(index if i == axis else 0 for i in range(len(whole)))
    return begins, (1,) * len(whole), tuple(1 if i == axis else n for i, n in enumerate(whole))


def _turned(call: Call, name: str, along: int, count: int) -> str:
    """`count` elements of an axis reversed, followed by the others."""
    whole, parts = call.whole(0), []
    for begin, step, size in ((count - 1, -1, count), (count, 1, whole[along] - count)):
        if size:
            begins = [begin if i == along else 0 for i in range(len(whole))]
            steps = [step if i == along and size > 1 else 1 for i in range(len(whole))]
            counts = tuple(size if i == along else n for i, n in enumerate(whole))
            parts.append(call.add(Slice(tuple(begins), tuple(steps), counts), [name]))
    return parts[0] if len(parts) == 1 else call.add(Concatenate(along), parts)


def _known_lengths(call: Call, name: str, batch: int, along: int) -> str:
    whole, lengths = call.whole(0), call.stored(1).values().reshape(-1)
    fit = lengths.dtype.kind == "i" and len(lengths) == whole[batch]
    fit = fit and bool(((lengths >= 0) & (lengths <= whole[along])).all())
    call.expect(fit, f"its {len(lengths)} lengths do not match its batch.")
    if len(lengths) == 1:
        return _turned(call, name, along, int(lengths[0]))
    few(call, whole)
    each = np.stack([np.r_[np.arange(n)[::-1], np.arange(n, whole[along])] for n in lengths])
    shape = [1] * len(whole)
    shape[batch], shape[along] = whole[batch], whole[along]
    at = np.broadcast_to((each if batch < along else each.T).reshape(shape), whole)
    places = np.take_along_axis(np.arange(prod(whole)).reshape(whole), at, along)
    return picked(call, call.seen(name, (prod(whole),)), places, whole)


OPERATORS: dict[str, Callable[[Call], None]] = {
    "SPACE_TO_BATCH_ND": partial(blocks, "SPACE_TO_BATCH_ND"),
    "BATCH_TO_SPACE_ND": partial(blocks, "BATCH_TO_SPACE_ND"),
    "DILATE": dilate,
    "SCATTER_ND": scatter_nd,
    "SPARSE_TO_DENSE": sparse_to_dense,
    "MATRIX_DIAG": matrix_diag,
    "MATRIX_SET_DIAG": matrix_set_diag,
    "DYNAMIC_UPDATE_SLICE": dynamic_update_slice,
    "REVERSE_SEQUENCE": reverse_sequence,
}
