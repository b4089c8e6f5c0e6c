"""Operators on integers and booleans, and selection by them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import gcd, inf, prod

import numpy as np

from nnbuild.frontend.frames import MOST_PARTS, frames_of
from nnbuild.frontend.tflite.call import BATCH_ONE, Call
from nnbuild.frontend.tflite.records import CONVERT_AGAIN, finite
from nnbuild.frontend.tflite.static_indexing import few, indices, picked
from nnbuild.model.graph import WHOLE, Array, Quant, Shape
from nnbuild.numeric.rounding import limits
from nnbuild.ops.activation import Activation
from nnbuild.ops.arg import Arg
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.convert import Convert
from nnbuild.ops.gather import Gather
from nnbuild.ops.pick import Pick
from nnbuild.ops.select import Select
from nnbuild.ops.slice import Slice
from nnbuild.ops.top_k import TopK
from nnbuild.ops.whole import Whole


def whole_type(dtype: str) -> str:
    """Integers of all widths are computed in 32 bits, booleans in 8."""
    return {"int64": "int32", "bool": "int8"}.get(dtype, dtype)


def operand(call: Call, index: int) -> tuple[str | None, Array | None, Quant | None, str]:
    """One side of an operator: (a run-time tensor or a constant's values, its scale, its type)."""
    if not call.is_constant(index):
        name = call.value(index)
        tensor = call.tensor(name)
        return name, None, tensor.quant, tensor.dtype
    stored = call.stored(index)
    floats = stored.dtype in ("float32", "float16")
    values = finite(stored, bounds=True) if floats else stored.values()
    rank = len(call.output().shape)
    if values.ndim == rank and rank > 1:
        call.expect(call.batch == 1 or values.shape[0] == 1, f"its constant {stored.name!r} differs between samples.")
        values = values[0] if values.shape[0] == 1 else values
    if floats:
        return None, values, None, "float32"
    if stored.quantization is None:
        low, high = limits("int32")
        return None, np.clip(values, low, high).astype(whole_type(stored.dtype)), WHOLE, whole_type(stored.dtype)
    known = stored.quantization
    call.expect(len(known.scales) == 1, f"its constant {stored.name!r} has several scales.", CONVERT_AGAIN)
    return None, values, Quant(known.scales, known.zero_points[0]), stored.dtype


def two_sided(attributes: Attributes, call: Call) -> None:
    """Compare and Whole: two operands of one type, of which one may be a constant."""
    call.expect(len(call.operator.inputs) == 2, "it needs two operands.")
    names, constants, kinds = [], {}, set()
    for index, role in enumerate(("left", "right")):
        name, values, quant, dtype = operand(call, index)
        kinds.add(dtype)
        if name is not None:
            names.append(name)
        elif values is not None:
            constants[role] = call.constant(index, values, quant)
    if isinstance(attributes, Whole):
        kinds.add(call.like().dtype)
    call.expect(len(kinds) == 1, f"its tensors are of the types {' and '.join(sorted(kinds))}.", CONVERT_AGAIN)
    call.done(call.add(attributes, names, constants))


def compare(function: str, call: Call) -> None:
    two_sided(Compare(function), call)


def whole(function: str, call: Call) -> None:
    dtype = call.like().dtype
    only = "nnbuild supports it only on integers and booleans."
    call.expect(call.like().is_whole and dtype in ("int32", "int8"), only, CONVERT_AGAIN)
    two_sided(Whole(function), call)


def logical_not(call: Call) -> None:
    zero = call.assembly.constant(call.operator, f"{call.layer}/zero", np.zeros((1,), np.int8), WHOLE)
    call.done(call.add(Compare("equal"), [call.value(0)], {"right": zero}))


def select(call: Call) -> None:
    """SELECT's condition may have only the first axis, which is the batch, and then selects whole samples."""
    odd = call.operator.kind == "SELECT" and len(call.whole(0)) < len(call.output().shape)
    call.expect(not odd or not call.whole(0), "its condition chooses between samples.", BATCH_ONE)
    condition, constants, names, out = call.value(0), {}, [], call.like()
    for index, role in ((1, "chosen"), (2, "other")):
        name, values, quant, dtype = operand(call, index)
        call.expect((dtype, quant) == (out.dtype, out.quant), "its operands and its output have different formats.")
        if name is not None:
            names.append(name)
        elif values is not None:
            constants[role] = call.constant(index, values, quant)
    call.done(call.add(Select(), [condition, *names], constants))


def gather(call: Call) -> None:
    """Constant indices become a Pick, run-time ones a look-up; a constant table has no batch."""
    axis, shared = int(call.option("GatherOptions", "Axis", 0)), int(call.option("GatherOptions", "BatchDims", 0))
    table = call.whole(0)
    axis = call.axis(axis, len(table))
    if any(n > 1 for n in table[:shared]):
        _in_rows(call, axis, shared)
        return
    if call.is_constant(0):
        _embedding(call, axis)
        return
    (name,), indices = call.data_inputs(0), call.whole(1)[shared:]
    call.same_quant(name)
    if call.is_constant(1):
        _picked(call, axis, call.whole(1)[shared:])
        return
    call.expect(call.batch == 1, "it looks up samples of a batch.", BATCH_ONE)
    x = call.seen(name, table[shared:] or (1,))
    rows = call.seen(call.value(1), indices or (1,))
    made = call.add(Gather(axis - shared), [x, rows])
    call.reshaped(made, whole=(*table[:axis], *indices, *table[axis + 1 :]))


def _in_rows(call: Call, axis: int, shared: int) -> None:
    """Each row of the first axes has a table and indices of its own."""
    table, chosen = call.whole(0), call.whole(1)
    fits = shared <= axis and table[:shared] == chosen[:shared]
    call.expect(fits and not call.is_constant(0), f"its tables {table} do not fit its indices {chosen}.")
    call.expect(call.batch == 1, "it looks up samples of a batch.", BATCH_ONE)
    (name,), count, inner = call.data_inputs(0), prod(table[:shared]), chosen[shared:]
    call.same_quant(name)
    shape = (*table[:axis], *inner, *table[axis + 1 :])
    if call.is_constant(1):
        few(call, shape)
        tables = np.arange(prod(table)).reshape(count, *table[shared:])
        rows = call.stored(1).values().reshape(count, *inner)
        call.expect(bool(((rows >= 0) & (rows < table[axis])).all()), f"it looks beyond an axis of {table[axis]}.")
        places = np.stack([each.take(at, axis - shared) for each, at in zip(tables, rows, strict=True)])
        call.reshaped(picked(call, call.seen(name, (prod(table),)), places, shape), whole=shape)
        return
    call.expect(shared == axis, f"its axis {axis} lies behind its {shared} batch axes.", CONVERT_AGAIN)
    begins = (np.arange(count, dtype=np.int32) * table[axis]).reshape(count, 1)
    held = call.assembly.constant(call.operator, f"{call.layer}/begins", begins, WHOLE)
    at = call.seen(call.value(1), (count, prod(inner)))
    at = call.add(Whole("add"), [at], {"right": held}, like=call.tensor(at))
    tables_in_one = call.seen(name, (count * table[axis], *table[axis + 1 :]))
    made = call.add(Gather(), [tables_in_one, call.seen(at, (count * prod(inner),))])
    call.reshaped(made, whole=shape)


def embedding_lookup(call: Call) -> None:
    """Like GATHER with swapped inputs; a table with scales gives floats."""
    call.expect(call.is_constant(1), "its table is computed at run time.", CONVERT_AGAIN)
    _embedding(call, 0, 0, 1)


def _embedding(call: Call, axis: int, rows_at: int = 1, table_at: int = 0) -> None:
    call.expect(axis == 0, f"it indexes a constant along its axis {axis}.", CONVERT_AGAIN)
    stored, out = call.stored(table_at), call.like()
    values, quant = (call.weights(table_at), None) if call.is_float() else (stored.values(), out.quant)
    if quant is not None and not out.is_whole:
        known = stored.quantization
        same = known is not None and (known.scales, known.zero_points[:1]) == (quant.scales, (quant.zero_point,))
        call.expect(same and stored.dtype == out.dtype, "its table and its output have different scales.")
    alike = np.can_cast(values.dtype, np.dtype(out.dtype), "same_kind")
    call.expect(alike, f"its table and its output have different types: {values.dtype}, {out.dtype}.")
    table = call.constant(table_at, values.astype(out.dtype), quant)
    rows = call.value(rows_at)
    call.expect(call.tensor(rows).dtype == "int32", f"its indices are {call.tensor(rows).dtype}.", CONVERT_AGAIN)
    call.reshaped(call.add(Gather(), [rows], {"table": table}), whole=(*call.whole(rows_at), *values.shape[1:]))


def _picked(call: Call, axis: int, shape: Shape) -> None:
    indices = call.stored(1).values().reshape(shape)
    name, missing = call.view(0, axis == 0)
    sizes, table = call.shape(name), call.whole(0)
    frames = frames_of(indices)
    if frames is not None and frames[0] >= 0 and frames[1] // gcd(*frames[1:]) <= MOST_PARTS:
        made = _framed(call, name, axis - missing, frames, len(indices))
    else:
        places = tuple(int(p) for p in indices.reshape(-1))
        made = call.add(Pick(tuple(places if a == axis - missing else None for a in range(len(sizes)))), [name])
    call.reshaped(made, whole=(*table[:axis], *shape, *table[axis + 1 :]))


def _framed(call: Call, name: str, axis: int, frames: tuple[int, int, int], count: int) -> str:
    """[..., size, ...] as [..., count, length, ...]: each part of the frames is one slice."""
    (first, length, step), sizes = frames, call.shape(name)
    before, after, piece = sizes[:axis], sizes[axis + 1 :], gcd(length, step)
    rows = ((count - 1) * step + length) // piece
    ones, nothing = (1,) * len(sizes), (0,) * len(sizes)
    begins = (*nothing[:axis], first, *nothing[axis + 1 :])
    x = call.add(Slice(begins, ones, (*before, rows * piece, *after)), [name])
    x = call.seen(x, (*before, rows, piece, *after))
    strides = (*ones[:axis], step // piece, *ones[axis:])
    cuts = [
        call.add(Slice((*nothing[:axis], i, *nothing[axis:]), strides, (*before, count, piece, *after)), [x])
        for i in range(length // piece)
    ]
    return cuts[0] if len(cuts) == 1 else call.add(Concatenate(axis + 1), cuts)


def gather_nd(call: Call) -> None:
    """With constant indices: merges the indexed axes into one and picks from it."""
    (name,), table = call.data_inputs(0), call.whole(0)
    call.same_quant(name)
    call.expect(call.batch == 1, "it looks up samples of a batch.", BATCH_ONE)
    rows = indices(call, 1, table)
    flat, depth = rows.reshape(-1), call.whole(1)[-1]
    rest = (prod(table[depth:]),)
    seen = call.seen(name, (prod(table[:depth]), *rest))
    pick = Pick((tuple(int(i) for i in flat), None))
    call.reshaped(call.add(pick, [seen]), whole=(*rows.shape, *table[depth:]))


def arg(function: str, call: Call) -> None:
    axis = call.integer(1)
    whole_shape = call.whole(0)
    place = call.axis(axis, len(whole_shape))
    name, missing = call.view(0, place == 0, mixed=True)
    made = call.add(Arg(function, place - missing), [name])
    call.reshaped(made, whole=(*whole_shape[:place], *whole_shape[place + 1 :]))


def top_k(call: Call) -> None:
    """The values and their indices, either of which may be unused."""
    count = call.integer(1)
    (name,) = call.data_inputs(0)
    call.same_quant(name)
    whole_shape = call.whole(0) or (1,)
    call.expect(0 < count <= whole_shape[-1], f"it takes the largest {count} of {whole_shape[-1]}.")
    rows = call.seen(name, (prod(whole_shape[:-1]), whole_shape[-1])) if call.batch == 1 else name
    likes = [call.like(0), call.like(1)]
    call.expect(likes[1].dtype == "int32", f"its places are {likes[1].dtype}.", CONVERT_AGAIN)
    for index, made in enumerate(call.adds(TopK(count), [rows], likes)):
        call.reshaped(made, index, (*whole_shape[:-1], count))


def cast(call: Call) -> None:
    """Floats to integers by truncation; nonzero is true."""
    name = call.value(0)
    x, out = call.tensor(name), call.like()
    to_bool = call.output().dtype == "bool"
    plain = all(tensor.quant in (None, WHOLE, Quant((1.0,))) for tensor in (x, out))
    call.expect(plain, f"it casts {x.dtype} with a scale.", CONVERT_AGAIN)
    if to_bool and call.stored(0).dtype != "bool":
        kind = np.float32 if x.quant is None else np.dtype(x.dtype)
        zero = call.assembly.constant(call.operator, f"{call.layer}/zero", np.zeros((1,), kind), x.quant)
        call.done(call.add(Compare("not_equal"), [name], {"right": zero}))
        return
    if (x.dtype, x.quant) != (out.dtype, out.quant):
        if x.quant is None:
            name = _without_fraction(call, name)
        narrow = x.dtype == "int32" and out.dtype in ("int8", "int16")
        call.expect(narrow or out.dtype in ("float32", "int32"), f"it casts to {out.dtype}.", CONVERT_AGAIN)
        if narrow:
            name = _wrapped(call, name, 2 ** (7 if out.dtype == "int8" else 15))
        name = call.add(Convert(), [name])
    call.done(name)


def _wrapped(call: Call, name: str, half: int) -> str:
    """Wraps integers around to fewer bits."""
    for function, number in (("add", half), ("and", 2 * half - 1), ("subtract", half)):
        value = np.full((1,), number, np.int32)
        held = call.assembly.constant(call.operator, f"{call.layer}/{function}", value, WHOLE)
        name = call.add(Whole(function), [name], {"right": held}, like=call.tensor(name))
    return name


def _without_fraction(call: Call, name: str) -> str:
    """The floor of positive numbers, the ceiling of negative ones."""
    x = call.tensor(name)
    halves = []
    for bounds, function in (((0.0, inf), "floor"), ((-inf, 0.0), "ceil")):
        half = call.add(Activation("clamp", bounds), [name], like=x)
        halves.append(call.add(Activation(function), [half], like=x))
    return call.add(Binary("add"), halves, like=x)


COMPARISONS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
OPERATORS: dict[str, Callable[[Call], None]] = {
    **{kind: partial(compare, kind.lower()) for kind in COMPARISONS},
    "LOGICAL_AND": partial(whole, "and"),
    "LOGICAL_OR": partial(whole, "or"),
    "LOGICAL_NOT": logical_not,
    "SELECT": select,
    "SELECT_V2": select,
    "GATHER": gather,
    "EMBEDDING_LOOKUP": embedding_lookup,
    "GATHER_ND": gather_nd,
    "ARG_MAX": partial(arg, "max"),
    "ARG_MIN": partial(arg, "min"),
    "TOPK_V2": top_k,
    "CAST": cast,
}
