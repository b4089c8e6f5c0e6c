"""Detects, before any long work, that a model's weights or inputs alone exceed the board's memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from nnbuild.backends.firmware.layout import DoesNotFit
from nnbuild.board.board import Board
from nnbuild.compress.float_weights import columns
from nnbuild.compress.weight_matrices import roles
from nnbuild.model.graph import Array, Graph, Op
from nnbuild.numeric.whole_multiples import whole_multiples
from nnbuild.ops.gather import Gather
from nnbuild.ops.site import site_of
from nnbuild.plan.least_constants import content
from nnbuild.quantize.compared_features import compared_features

FEWER = "Fewer bytes for weights may make it fit: give --calibrate with samples and --flash {0}."
LOOKED_AT, FEW, MOST = 4096, 64, 4
"""Number of a layer's weights to sample; the most distinct values that can be coded; and by which factor weights may
have to shrink for compression to be worth suggesting."""


@dataclass(frozen=True, eq=False)
class _Held:
    """A constant, and how it is stored: numbers that are compared stay floats, a table takes the format of its layer's
    results, and layers multiply bytes, whatever their inputs are."""

    data: Array
    stays_float: bool
    is_table: bool
    can_shrink: bool
    """Whether `--flash` may store it in fewer bytes."""
    columns: Array
    """Weights as [inputs, outputs], other constants as they are."""

    def width(self, form: str, widths: Mapping[str, int]) -> int:
        if self.is_table and form == "int16":
            return _width(self.data.dtype.name, widths["float"] if self.stays_float else 2)
        return _width(self.data.dtype.name, widths["float" if self.stays_float else form])


def refuse_too_large(graph: Graph, board: Board, form: str, widths: Mapping[str, int], fewer: bool = False) -> None:
    """`widths` gives the bytes per weight in each form; integers keep their width in the file. With `fewer`,
    compression of weights was requested."""
    if board.firmware is None:
        return
    held, flash = _held(graph), board.memory("flash").length
    weights = _weights(held, form, widths)
    if weights > flash and not fewer and _least(held, form, widths) > flash:
        cause = f"{weights:,} bytes of weights in {form} exceed the {flash:,} bytes of flash"
        raise _error(board, cause, _advice(held, flash, form, widths), weights - flash)
    inputs = sum(prod(t.shape) * _width(t.dtype, widths[form]) for t in map(graph.tensors.__getitem__, graph.inputs))
    room = sum(memory.length for memory in board.memories if memory.name != "flash")
    if inputs > room:
        cause = f"{inputs:,} bytes of inputs in {form} exceed the {room:,} bytes of RAM"
        raise _error(board, cause, "Use a smaller model or a larger board.", inputs - room)


def _weights(held: Iterable[_Held], form: str, widths: Mapping[str, int]) -> int:
    return sum(each.data.size * each.width(form, widths) for each in held)


def _held(graph: Graph) -> list[_Held]:
    """The constants that every program stores, equal ones once: look-up tables, and tensors of two axes or more. The
    size of others is unknown before folding."""
    compared, found = compared_features(graph, False), dict[object, _Held]()
    for op in graph.ops:
        for role, name in op.constants.items():
            data, is_table = graph.constants[name].data, isinstance(op.attributes, Gather) and role == "table"
            if data.ndim > 1 or is_table:
                found[content(data)] = _Held(
                    data, op.name in compared, is_table, role in roles(op), _columns(graph, op, role)
                )
    return list(found.values())


def _columns(graph: Graph, op: Op, role: str) -> Array:
    return columns(site_of(graph, op), role) if role in roles(op) else graph.constants[op.constants[role]].data


def _least(held: Iterable[_Held], form: str, widths: Mapping[str, int]) -> float:
    """A lower bound on the bytes that any kernel needs to store them: zeros may take none, few distinct values few
    bits, and beside 16 bits a layer may be kept at 8."""
    narrowest = "int8" if form == "int16" else form
    return sum(_stored(each, each.width(narrowest, widths)) for each in held)


def _stored(each: _Held, width: int) -> float:
    data = each.data
    if width > 1:
        narrow = each.can_shrink and width == 4 and whole_multiples(each.columns) is not None
        return data.size * (1 if narrow else width)
    few = len(np.unique(data.reshape(-1)[:: max(1, data.size // LOOKED_AT)]))
    bits = float(np.log2(max(2, few))) if few <= FEW else 8.0
    return min(data.size * bits, np.count_nonzero(data) * 8.0) / 8


def _width(dtype: str, width: int) -> int:
    return width if dtype == "float32" else {"int8": 1, "uint8": 1, "int16": 2}.get(dtype, 4)


def _advice(held: Sequence[_Held], flash: int, form: str, widths: Mapping[str, int]) -> str:
    now = _weights(held, form, widths)
    smaller = [name for name in widths if _weights(held, name, widths) < min(now, flash)]
    if smaller:
        options = [f"--quantize {name}" for name in smaller]
        in_bytes = sum(each.data.size * (1 if each.can_shrink else each.width(form, widths)) for each in held)
        options += ["--weights-bits 8"] if form == "float" and in_bytes < min(now, flash) else []
        return f"The weights alone would fit with {' or '.join(options)}."
    shrunk = sum(each.data.size for each in held if each.can_shrink)
    if form == "int8" and now - shrunk + shrunk / MOST < flash:
        return FEWER.format(flash)
    return "No other option makes it fit: use a smaller model or a larger board."


def _error(board: Board, cause: str, advice: str, over: int) -> DoesNotFit:
    return DoesNotFit(f"board {board.name!r}", f"the model does not fit: {cause}.", advice, over)
