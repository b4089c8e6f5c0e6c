"""The network as a picture: one operation per row, data flowing down in lanes, like branches in a version history.

A node is in the lane of its data. Data that is needed again further down, as in a residual block, stays in a separate
lane until then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nnbuild.report.facts import Node
from nnbuild.report.number_format import BOLD, clipped, percent
from nnbuild.report.palette import paint_of
from nnbuild.report.picture import Box, Curve, Label, Line, Picture, Shape

WIDTH, ROW = 360.0, 46.0
MOST_LANES_WIDTH = 120.0
FEWEST_ROWS, MOST_ROWS, COLUMNS = 4, 16, 3
SHORT = {"depthwise_conv2d": "depthwise", "conv2d_transpose": "transposed conv2d"}


@dataclass(frozen=True)
class Edge:
    """Data from one row to another, through a lane."""

    source: int
    target: int
    lane: int


@dataclass(frozen=True)
class Lanes:
    """The lane of every node, and the path of every edge."""

    nodes: tuple[int, ...]
    edges: tuple[Edge, ...]

    @property
    def count(self) -> int:
        return 1 + max([*self.nodes, *(edge.lane for edge in self.edges)], default=0)


def lanes_of(nodes: Sequence[Node]) -> Lanes:
    """The first reader of a node's data continues its lane; for other readers the data takes another lane."""
    readers: list[list[int]] = [[] for _ in nodes]
    for index, node in enumerate(nodes):
        for source in node.sources:
            readers[source].append(index)
    busy: dict[int, int] = {}  # lane -> the row up to which it is in use
    places: list[int] = []
    waits: dict[int, int] = {}
    edges: list[Edge] = []
    for row, node in enumerate(nodes):
        direct = [places[source] for source in node.sources if readers[source][0] == row]
        ending = [waits[s] for s in node.sources if s in waits and readers[s][-1] == row]
        for source in node.sources:
            edges.append(Edge(source, row, places[source] if readers[source][0] == row else waits[source]))
        for lane in (*direct, *ending):
            busy.pop(lane, None)
        lane = min(direct) if direct else min(ending) if ending else _free(busy, row)
        places.append(lane)
        if readers[row]:
            busy[lane] = readers[row][0]
        if len(readers[row]) > 1:
            waits[row] = _free(busy, row)
            busy[waits[row]] = readers[row][-1]
    return Lanes(tuple(places), tuple(edges))


def _free(busy: dict[int, int], row: int) -> int:
    lane = 0
    while busy.get(lane, -1) > row:
        lane += 1
    return lane


def strips(nodes: Sequence[Node], name: str) -> tuple[Picture, ...]:
    """The picture in parts, placed side by side where there is room, otherwise one below the other."""
    lanes = lanes_of(nodes)
    bands = -(-len(nodes) // (COLUMNS * MOST_ROWS))
    rows = max(FEWEST_ROWS, -(-len(nodes) // (COLUMNS * bands)))
    starts = range(0, len(nodes), rows)
    return tuple(_strip(nodes, lanes, start, min(start + rows, len(nodes)), name) for start in starts)


def whole(nodes: Sequence[Node], name: str) -> Picture:
    return _strip(nodes, lanes_of(nodes), 0, len(nodes), name)


def _strip(nodes: Sequence[Node], lanes: Lanes, start: int, end: int, name: str) -> Picture:
    spacing = min(18.0, MOST_LANES_WIDTH / lanes.count)
    most = max((node.share for node in nodes), default=0.0) or 1.0
    mixed = len({node.format for node in nodes}) > 1
    shapes: list[Shape] = []
    for edge in lanes.edges:
        if edge.source < end and edge.target >= start:
            shapes += _edge(lanes, edge, start, end, spacing)
    for row in range(start, end):
        shapes += _node(nodes[row], row, row - start, lanes, spacing, most, mixed)
    part = "" if end - start == len(nodes) else f", rows {start} to {end - 1}"
    described = "; ".join(_in_words(nodes, row) for row in range(start, end))
    return Picture(WIDTH, ROW * (end - start), f"The network {name}{part}", described, tuple(shapes))


def _in_words(nodes: Sequence[Node], row: int) -> str:
    node = nodes[row]
    source = f" of {' and '.join(nodes[s].name for s in node.sources)}" if node.sources else ""
    return f"{row}: {node.name}, {node.kind}{source}, {node.shape} {node.format}"


def _x(lane: int, spacing: float) -> float:
    return 12 + lane * spacing


def _edge(lanes: Lanes, edge: Edge, start: int, end: int, spacing: float) -> list[Shape]:
    """From its node into its lane, down, and into the reading node; clipped at the strip's borders."""
    x1, x, x2 = (_x(lane, spacing) for lane in (lanes.nodes[edge.source], edge.lane, lanes.nodes[edge.target]))
    top, bottom = (ROW * (row - start) + ROW / 2 for row in (edge.source, edge.target))
    shapes: list[Shape] = []
    leave = top if x1 == x else top + ROW
    arrive = bottom if x2 == x else max(leave, bottom - ROW)
    if leave == arrive and x1 != x and x2 != x:  # too short for a separate lane
        return [Curve(x1, top, x2, bottom, "edge", 2)]
    if x1 != x and leave > 0:
        shapes.append(Curve(x1, top, x, leave, "edge", 2))
    upper, lower = max(leave, 0.0), min(arrive, ROW * (end - start))
    if upper < lower:
        shapes.append(Line(((x, upper), (x, lower)), "edge", 2))
    if x2 != x and arrive < ROW * (end - start):
        shapes.append(Curve(x, arrive, x2, bottom, "edge", 2))
    return shapes


def _node(node: Node, row: int, at: int, lanes: Lanes, spacing: float, most: float, mixed: bool) -> list[Shape]:
    """`most` is the share of the costliest node, whose bar is full. Formats are shown if there are several."""
    x, y = _x(lanes.nodes[row], spacing), ROW * at + ROW / 2
    left = _x(lanes.count - 1, spacing) + 18
    right = WIDTH - 52
    paint = paint_of(node.kind)
    kind = " ".join(filter(None, (SHORT.get(node.kind, node.kind), node.detail)))
    made = f"{node.shape} {node.format}" if mixed else node.shape
    end = " → output" if node.is_output else ""
    size = 7.0 if node.kind != "input" else 6.0
    shapes: list[Shape] = [
        Box(
            x - size,
            y - size,
            2 * size,
            2 * size,
            paint,
            f"{node.name}: {kind}, {node.shape} {node.format}",
            4,
            "paper",
        ),
        Label(
            left,
            y - 3,
            clipped(f"{node.name}{end}", (right - 4 if node.share else WIDTH) - left, BOLD * 13),
            "ink",
            13,
            bold=True,
        ),
        Label(left, y + 12, clipped(f"{kind} → {made}", right - left + (0 if node.share else 48), 11), "soft", 11),
    ]
    if node.share:
        part = node.share / most
        shapes += [
            Label(WIDTH - 2, y - 3, percent(node.share), "ink", 12, "end"),
            Box(WIDTH - 46, y + 4, 44, 6, "bar-back", radius=3),
            Box(WIDTH - 46, y + 4, max(1.5, 44 * part), 6, paint, radius=min(3.0, 22 * part + 0.7)),
        ]
    return shapes
