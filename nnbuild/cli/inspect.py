"""nnbuild inspect: shows a model's contents."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from nnbuild.cli.arguments import add_model, import_options_of, print_json
from nnbuild.frontend import load
from nnbuild.model.graph import Array, Graph, Op
from nnbuild.model.verify import constant_shapes

WEIGHTS = ("kernel", "recurrent")
"""Roles of multiplied constants, which make up most of a model."""


@dataclass(frozen=True)
class Row:
    """One operation of the model as in the file, with the number of its weights (without biases), of zeros among
    them, and of distinct values."""

    name: str
    op: str
    shape: tuple[int, ...]
    parameters: int
    macs: int
    bytes: int
    weights: int = 0
    zeros: int = 0
    distinct: int = 0

    @property
    def sparsity(self) -> str:
        return f"{self.zeros / self.weights:.0%}" if self.weights else ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    # No C is printed, so any name will do.
    graph = load(arguments.model, arguments.model.stem, import_options_of(arguments))
    table = rows(graph)
    if arguments.json:
        print_json(as_json(graph, table))
    else:
        print(as_text(graph, table))
    return 0


def rows(graph: Graph) -> list[Row]:
    """Where the framework counts parameters, its counts appear at the first operation of each layer."""
    found = [_row(graph, op) for op in graph.ops]
    if not graph.parameters:
        return found
    first = {op.layer: index for index, op in reversed(list(enumerate(graph.ops)))}
    counts = {first[layer]: count for layer, count in graph.parameters.items() if layer in first}
    return [replace(row, parameters=counts.get(index, 0)) for index, row in enumerate(found)]


def _row(graph: Graph, op: Op) -> Row:
    def inner(name: str) -> tuple[int, ...]:
        return graph.tensors[name].shape[len(op.outer) :]

    inputs, outputs = [inner(name) for name in op.inputs], [inner(name) for name in op.outputs]
    macs = op.attributes.macs(inputs, outputs, constant_shapes(graph, op)) * prod(op.outer)
    tensors = [graph.tensors[name] for name in op.outputs]
    parameters = sum(graph.constants[name].data.size for name in op.constants.values())
    size = sum(tensor.nbytes for tensor in tensors)
    values = _values(graph, op)
    zeros = int(np.count_nonzero(values == 0))
    found = values.size, zeros, len(np.unique(values))
    return Row(op.layer or op.name, op.kind, tensors[0].shape, parameters, macs, size, *found)


def _values(graph: Graph, op: Op) -> Array:
    """All weights of an operation, minus their zero point."""
    found = [graph.constants[name] for role, name in op.constants.items() if role in WEIGHTS]
    parts = [
        (each.data.astype(np.float64) - (each.quant.zero_point if each.quant else 0)).reshape(-1) for each in found
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def totals(graph: Graph, table: list[Row]) -> dict[str, int]:
    """Counts as the framework does; otherwise counts shared weights once."""
    used = {name for op in graph.ops for name in op.constants.values()}
    return {
        "parameters": sum(graph.parameters.values()) or sum(graph.constants[name].data.size for name in used),
        "macs": sum(row.macs for row in table),
        "largest_activation": max((row.bytes for row in table), default=0),
    }


def as_json(graph: Graph, table: list[Row]) -> dict[str, Any]:
    def described(names: tuple[str, ...]) -> list[dict[str, Any]]:
        tensors = [graph.tensors[name] for name in names]
        return [{"name": t.name, "shape": list(t.shape), "type": t.dtype} for t in tensors]

    return {
        "name": graph.name,
        "inputs": described(graph.inputs),
        "outputs": described(graph.outputs),
        "states": len(graph.states),
        "layers": [{**row.__dict__, "shape": list(row.shape)} for row in table],
        "total": totals(graph, table),
        "notes": list(graph.notes),
    }


def as_text(graph: Graph, table: list[Row]) -> str:
    head = ("layer", "operation", "output", "parameters", "MACs", "bytes", "zeros", "distinct")
    cells = [
        (
            *(r.name, r.op, "x".join(map(str, r.shape)) or "1", f"{r.parameters:,}", f"{r.macs:,}", f"{r.bytes:,}"),
            *(r.sparsity, f"{r.distinct:,}" if r.weights else ""),
        )
        for r in table
    ]
    total = totals(graph, table)
    zeros = sum(r.zeros for r in table) / max(1, sum(r.weights for r in table))
    cells.append(("total", "", "", f"{total['parameters']:,}", f"{total['macs']:,}", "", f"{zeros:.0%}", ""))
    widths = [max(len(line[i]) for line in [head, *cells]) for i in range(len(head))]

    def line(parts: tuple[str, ...]) -> str:
        left = [part.ljust(width) for part, width in zip(parts[:3], widths[:3], strict=True)]
        right = [part.rjust(width) for part, width in zip(parts[3:], widths[3:], strict=True)]
        return "  ".join(left + right).rstrip()

    def tensors(word: str, names: tuple[str, ...]) -> list[str]:
        return [f"{word} {name}: {graph.tensors[name].dtype} {list(graph.tensors[name].shape)}" for name in names]

    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    return "\n".join(
        [
            *tensors("input", graph.inputs),
            *tensors("output", graph.outputs),
            rule,
            line(head),
            rule,
            *map(line, cells[:-1]),
            rule,
            line(cells[-1]),
            f"largest activation: {total['largest_activation']:,} bytes"
            + (f"; {len(graph.states)} states carried between runs" if graph.states else ""),
            *(f"note: {note}" for note in graph.notes),
        ]
    )
