"""Where states lie, and their initial values."""

from __future__ import annotations

from nnbuild.model.graph import Array, Graph
from nnbuild.ops.interpret import initial_value
from nnbuild.plan.ring_slack import ring_slack


def initial_patterns(graph: Graph) -> dict[str, Array]:
    """State -> the pattern whose repetition initializes it; for states that do not start as one repeated number."""
    found = {state.before: _shortest_period(initial_value(graph, state)) for state in graph.states}
    return {name: values for name, values in found.items() if values.size > 1}


def _shortest_period(values: Array) -> Array:
    """The shortest prefix whose repetition gives the whole array."""
    flat = values.reshape(-1)
    sizes = (size for size in range(1, flat.size + 1) if flat.size % size == 0)
    return next(flat[:size] for size in sizes if (flat.reshape(-1, size) == flat[:size]).all())


def state_places(graph: Graph, alignment: int) -> tuple[dict[str, tuple[int, int]], int]:
    """State -> (offset, distance between its copies for alternating runs); and the total bytes."""
    places, end, spare = {}, 0, ring_slack(graph)
    for state in graph.states:
        more = spare.get(state.before)
        size = graph.tensors[state.before].nbytes + (more.size if more is not None else 0)
        size = -(-size // alignment) * alignment
        places[state.before] = end, more.pitch if more is not None else size if state.banks > 1 else 0
        end += size * state.banks
    return places, end
