"""Detects, before any long work, that a model's weights or inputs alone exceed the board's memory."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from nnbuild.backends.firmware.layout import DoesNotFit
from nnbuild.board.board import Board
from nnbuild.model.graph import Array, Graph
from nnbuild.ops.gather import Gather
from nnbuild.plan.least_constants import content

FEWER = "Fewer bytes for weights may make it fit: give --calibrate with samples and --flash {0}."
LOOKED_AT, FEW, MOST = 4096, 64, 4
"""Number of a layer's weights to sample; the most distinct values that can be coded; and how far weights may exceed
the flash (as a factor) before compression is not worth suggesting."""


def refuse_too_large(graph: Graph, board: Board, form: str, widths: Mapping[str, int], fewer: bool = False) -> None:
    """`widths` gives the bytes per number in each form; integers keep their width in the file. With `fewer`,
    compression of weights was requested."""
    if board.firmware is None:
        return
    weights, flash = _weights(graph, widths[form]), board.memory("flash").length
    if weights > flash and not fewer and _least(graph, widths[form]) > flash:
        cause = f"{weights:,} bytes of weights in {form} exceed the {flash:,} bytes of flash"
        raise _error(board, cause, _advice(graph, flash, form, widths), weights - flash)
    inputs = sum(prod(t.shape) * _width(t.dtype, widths[form]) for t in map(graph.tensors.__getitem__, graph.inputs))
    room = sum(memory.length for memory in board.memories if memory.name != "flash")
    if inputs > room:
        cause = f"{inputs:,} bytes of inputs in {form} exceed the {room:,} bytes of RAM"
        raise _error(board, cause, "Use a smaller model or a larger board.", inputs - room)


def _weights(graph: Graph, width: int) -> int:
    return sum(data.size * _width(data.dtype.name, width) for data in _held(graph))


def _held(graph: Graph) -> list[Array]:
    """The constants that every program stores, equal ones once: look-up tables, and tensors of two axes or more. The
    size of others is unknown before folding."""
    tables = {op.constants.get("table") for op in graph.ops if isinstance(op.attributes, Gather)}
    held = (each.data for name, each in graph.constants.items() if each.data.ndim > 1 or name in tables)
    return list({content(data): data for data in held}.values())


def _least(graph: Graph, width: int) -> float:
    """A lower bound on the bytes that any kernel needs to store them: zeros may take none, and few distinct values
    few bits."""
    return sum(_stored(data, _width(data.dtype.name, width)) for data in _held(graph))


def _stored(data: Array, width: int) -> float:
    if width > 1:
        return data.size * width
    few = len(np.unique(data.reshape(-1)[:: max(1, data.size // LOOKED_AT)]))
    bits = float(np.log2(max(2, few))) if few <= FEW else 8.0
    return min(data.size * bits, np.count_nonzero(data) * 8.0) / 8


def _width(dtype: str, width: int) -> int:
    return width if dtype == "float32" else {"int8": 1, "uint8": 1, "int16": 2}.get(dtype, 4)


def _advice(graph: Graph, flash: int, form: str, widths: Mapping[str, int]) -> str:
    smaller = [name for name, width in widths.items() if width < widths[form] and _weights(graph, width) < flash]
    if smaller:
        return f"The weights alone would fit with {' or '.join(f'--quantize {name}' for name in smaller)}."
    if form == "int8" and _weights(graph, 1) < MOST * flash:
        return FEWER.format(flash)
    return "No other option makes it fit: use a smaller model or a larger board."


def _error(board: Board, cause: str, advice: str, over: int) -> DoesNotFit:
    return DoesNotFit(f"board {board.name!r}", f"the model does not fit: {cause}.", advice, over)
