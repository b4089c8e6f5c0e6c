"""Gives tensors that a device concatenates one scale, since it copies them unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nnbuild.model.graph import Graph, Op
from nnbuild.ops.concatenate import Concatenate
from nnbuild.quantize.calibrate import Range, Ranges
from nnbuild.quantize.formats import fixed_format

MAX_COARSENING = 4.0
"""Factor of resolution that a tensor with other readers may lose."""


def share_ranges(graph: Graph, ranges: Ranges, forms: Mapping[str, str], moves: frozenset[str]) -> Ranges:
    """The ranges, with one range for all 8-bit tensors that are concatenated. `moves`: operations whose results have
    their inputs' scale. Groups that would lose much accuracy, or have a fixed scale, are left alone."""
    found = dict(ranges)
    for names in _groups(graph, forms, moves):
        whole = _union([ranges[name] for name in names if name in ranges])
        if all(_may_share(graph, name, ranges, whole, forms, moves) for name in names):
            found |= {name: ranges[name].union(whole) for name in names}
    return found


def _groups(graph: Graph, forms: Mapping[str, str], moves: frozenset[str]) -> Iterator[set[str]]:
    """Groups of tensors that share one scale because of a concatenation."""
    group = {name: {name} for name in graph.tensors}
    joins: set[str] = set()
    for op in graph.ops:
        if forms[op.name] != "int8" or not (_joins(op) or op.name in moves):
            continue
        whole = set().union(*(group[name] for name in (*op.inputs, op.outputs[0])))
        group |= dict.fromkeys(whole, whole)
        joins |= {op.outputs[0]} if _joins(op) else set()
    seen: set[str] = set()
    for name in sorted(joins):
        if name not in seen:
            yield group[name]
        seen |= group[name]


def _joins(op: Op) -> bool:
    return isinstance(op.attributes, Concatenate)


def _union(ranges: list[Range]) -> Range:
    return Range(min(0.0, *(each.low for each in ranges)), max(0.0, *(each.high for each in ranges)))


def _may_share(
    graph: Graph, name: str, ranges: Ranges, whole: Range, forms: Mapping[str, str], moves: frozenset[str]
) -> bool:
    maker = next((op for op in graph.ops if name in op.outputs), None)
    if name not in ranges or graph.tensors[name].is_whole:
        return False
    if maker is not None and (fixed_format(maker.attributes, "int8") or "table" in maker.constants):
        return False
    if maker is not None and forms[maker.name] != "int8":
        return False
    others = [op for op in graph.ops if name in op.inputs and not _joins(op) and op.name not in moves]
    if not others or (maker is not None and _joins(maker)):
        return True
    own = ranges[name]
    return whole.high - whole.low <= MAX_COARSENING * (max(0.0, own.high) - min(0.0, own.low))
