"""Which bytes of its tensors a kernel touches for a range of work items."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from nnbuild.kernels.contract import Demand
from nnbuild.kernels.loops.window import Axis, window_of
from nnbuild.kernels.parts.row_stream import lowest, needed, row_axis
from nnbuild.model.graph import Tensor
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Span:
    """`size` bytes of a tensor, starting at `begin`."""

    begin: int
    size: int


@dataclass(frozen=True)
class ByteRanges:
    """The span of each tensor that a step reads or writes, in order; no writes where they are scattered."""

    reads: tuple[Span, ...]
    writes: tuple[Span, ...]


def all_bytes(site: Site) -> ByteRanges:
    return ByteRanges(tuple(Span(0, t.nbytes) for t in site.reads), tuple(Span(0, t.nbytes) for t in site.writes))


def byte_ranges(site: Site, demand: Demand, begin: int, end: int) -> ByteRanges | None:
    """For work items `begin` to `end`; None where the kernel does not say."""
    if site.op.outer:
        return _outer_ranges(site, begin, end)
    if demand.bands:
        tops, ends = zip(*demand.bands[begin:end], strict=True)
        return ByteRanges(_read_ranges(site, _row_axis(site), range(min(tops), max(ends))), ())
    each = _elements_per_item(site, demand)
    if not each:
        return None
    out, axis = site.writes[0], _row_axis(site)
    size = prod(out.shape)
    first, last = begin * each, min(end * each, size)
    row = size // axis.places
    rows = range(first // row, -(-last // row))
    width = out.nbytes // size
    return ByteRanges(_read_ranges(site, axis, rows), (Span(first * width, (last - first) * width),))


def _read_ranges(site: Site, axis: Axis, rows: range) -> tuple[Span, ...]:
    others = (_same_rows(tensor, axis.places, rows) for tensor in site.reads[1:])
    return (_rows_under_windows(axis, site.reads[0], rows), *others)


def _outer_ranges(site: Site, begin: int, end: int) -> ByteRanges:
    """Each work item is an index of the outer axes."""
    count = prod(site.op.outer)

    def part(tensor: Tensor) -> Span:
        return Span(tensor.nbytes // count * begin, tensor.nbytes // count * (end - begin))

    return ByteRanges(tuple(map(part, site.reads)), tuple(map(part, site.writes)))


def _elements_per_item(site: Site, demand: Demand) -> int:
    """Output elements per work item; 0 where unknown, or where the chained operations change the shape."""
    if len(site.writes) != 1 or site.writes[0].shape != site.outputs[0].shape or not site.reads:
        return 0
    size = prod(site.writes[0].shape)
    return demand.each or (size // demand.extent if demand.rows and size % demand.extent == 0 else 0)


def _row_axis(site: Site) -> Axis:
    return window_of(site).rows if isinstance(site.attributes, Dense) else row_axis(site)


def _rows_under_windows(axis: Axis, tensor: Tensor, rows: range) -> Span:
    """The rows of the first input under the windows of these output rows."""
    if tensor.nbytes % axis.size:
        return Span(0, tensor.nbytes)
    row = tensor.nbytes // axis.size
    begin, end = lowest(axis, rows.start), needed(axis, rows.stop - 1)
    return Span(min(begin, end) * row, max(0, end - begin) * row)


def _same_rows(tensor: Tensor, places: int, rows: range) -> Span:
    """The same rows of another input; all of it where its rows differ."""
    if not tensor.shape or tensor.nbytes % places or (tensor.shape[0] != places and prod(tensor.shape[:-1]) != places):
        return Span(0, tensor.nbytes)
    row = tensor.nbytes // places
    return Span(rows.start * row, len(rows) * row)
