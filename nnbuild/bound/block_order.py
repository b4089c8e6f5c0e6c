"""The order in which paths through a function are followed, so that diverged paths merge again.

Loops are nested, and blocks have an order within each: of several states, the one furthest behind continues first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Graph = Mapping[int, Sequence[int]]


@dataclass
class Order:
    """`place` numbers the blocks; `heads` lists the heads of the loops around each, outermost first; a head's own
    loop comes last."""

    place: dict[int, int] = field(default_factory=dict)
    heads: dict[int, tuple[int, ...]] = field(default_factory=dict)
    irregular: set[int] = field(default_factory=set)
    """Heads of loops that have other entries, too."""


def order(graph: Graph, entry: int) -> Order:
    found = Order()
    _arrange(graph, [entry, *(node for node in graph if node != entry)], (), found)
    for node, targets in graph.items():
        for target in targets:
            inside = found.heads[target]
            around = found.heads[node]
            entered = [head for head in inside if head not in around]
            found.irregular.update(head for head in entered if head != target)
    return found


def _arrange(graph: Graph, nodes: Sequence[int], around: tuple[int, ...], found: Order) -> None:
    """Numbers the nodes, a part of the graph without its edges to the rest, entries first."""
    for component in components(graph, nodes):
        head = component[0]
        if len(component) == 1 and head not in graph[head]:
            found.place[head] = len(found.place)
            found.heads[head] = around
            continue
        found.place[head] = len(found.place)
        found.heads[head] = (*around, head)
        rest = component[1:]
        # Successors of the head come first, so that inner loops get the heads by which they are entered.
        first = [node for node in graph[head] if node in set(rest)]
        _arrange(graph, [*dict.fromkeys(first), *(node for node in rest if node not in first)], (*around, head), found)


def components(graph: Graph, nodes: Sequence[int]) -> list[list[int]]:
    """The strongly connected components in topological order (Tarjan), each starting with the node found first."""
    among = set(nodes)
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for start in nodes:
        if start in index:
            continue
        work = [(start, iter(graph[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, targets = work[-1]
            target = next((each for each in targets if each in among and (each not in index or each in on_stack)), None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    part = stack[at:]
                    del stack[at:]
                    on_stack.difference_update(part)
                    found.append(part)
            elif target not in index:
                index[target] = low[target] = len(index)
                stack.append(target)
                on_stack.add(target)
                work.append((target, iter(graph[target])))
            else:
                low[node] = min(low[node], index[target])
    # A start found late may lead to earlier ones: each round of starts goes before them.
    return found[::-1]
