"""The picture of the network: every edge finds its way, and no two are drawn over one another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nnbuild.report import network
from nnbuild.report.facts import Node
from nnbuild.report.network import Lanes, lanes_of, strips
from nnbuild.report.picture import Box, Label
from tests.report import samples


def graph(*sources: tuple[int, ...]) -> tuple[Node, ...]:
    return tuple(Node(f"n{i}", "conv2d", "", "4", "int8", each, False, 0.1) for i, each in enumerate(sources))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Node, ...]:
    count = draw(st.integers(1, 24))
    sources = [()] + [
        tuple(draw(st.lists(st.integers(0, index - 1), max_size=3, unique=True))) for index in range(1, count)
    ]
    return graph(*sources)


def test_a_chain_needs_one_lane() -> None:
    assert lanes_of(graph((), (0,), (1,), (2,))).nodes == (0, 0, 0, 0)


def test_a_residual_waits_beside_its_branch() -> None:
    lanes = lanes_of(samples.residual_nodes())
    assert lanes.nodes == (0, 0, 0, 0)
    assert [(e.source, e.target, e.lane) for e in lanes.edges] == [(0, 1, 0), (1, 2, 0), (1, 3, 1), (2, 3, 0)]


def test_branches_have_lanes_of_their_own() -> None:
    lanes = lanes_of(graph((), (0,), (0,), (0,), (1, 2, 3)))
    assert len(set(lanes.nodes[1:4])) == 3
    assert lanes.nodes[4] == 0


@given(graphs())
def test_every_edge_is_there_and_none_is_drawn_over_another(nodes: tuple[Node, ...]) -> None:
    lanes = lanes_of(nodes)
    wanted = [(source, index) for index, node in enumerate(nodes) for source in node.sources]
    assert [(edge.source, edge.target) for edge in lanes.edges] == wanted
    assert clashes(lanes) == []


def clashes(lanes: Lanes) -> list[tuple[int, int]]:
    """Rows at which data of two different nodes runs down one lane, or through a node that does not read it."""
    found = []
    for edge in lanes.edges:
        between = range(edge.source + 1, edge.target)
        found += [(edge.lane, row) for row in between if lanes.nodes[row] == edge.lane]
        for other in lanes.edges:
            if other.lane == edge.lane and other.source != edge.source:
                found += [(edge.lane, row) for row in between if other.source < row < other.target]
    return found


def test_the_strips_show_every_node_once() -> None:
    facts = samples.large(130)
    pieces = strips(facts.nodes, "net")
    titles = [s.title for piece in pieces for s in piece.shapes if isinstance(s, Box) and s.title]
    assert [title.split(":")[0] for title in titles] == [node.name for node in facts.nodes]
    assert all(len(piece.shapes) and piece.height <= network.ROW * network.MOST_ROWS for piece in pieces)


def test_strips_are_even() -> None:
    heights = [piece.height for piece in strips(samples.large(66).nodes, "net")]
    assert max(heights) - min(heights) <= network.ROW * 6


def test_formats_are_told_where_there_are_several() -> None:
    def texts(nodes: tuple[Node, ...]) -> str:
        return " ".join(s.text for piece in strips(nodes, "net") for s in piece.shapes if isinstance(s, Label))

    nodes = samples.residual_nodes()
    assert "int8" not in texts(nodes)
    assert "int16" in texts((*nodes[:3], Node("sum", "add", "", "8", "int16", (1, 2), True, 0.1)))


def test_what_is_seen_is_also_said() -> None:
    (piece,) = strips(samples.residual_nodes(), "net")
    assert piece.title == "The network net"
    assert piece.description.endswith("3: sum, add of a and b, 8x8x4 int8")
