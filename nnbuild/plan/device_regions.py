"""Regions: runs of steps in which the device computes without the processor waiting for it.

A region's tasks read the processor's memory or each other's results; at its end everything read outside is back in the
processor's memory. So the processor can recompute a region from its beginning if the device fails. Steps of the
processor that need none of the region's results may lie within it and run meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nnbuild.model.graph import Graph
from nnbuild.ops.site import Site


@dataclass(frozen=True)
class Region:
    """Step numbers in execution order: the device's, and the processor's in between.

    inputs, exits: the storage of tensors that come from the processor's memory and go back to it.
    """

    steps: tuple[int, ...]
    beside: tuple[int, ...]
    inputs: tuple[str, ...]
    exits: tuple[str, ...]

    @property
    def first(self) -> int:
        return self.steps[0]

    @property
    def last(self) -> int:
        """The step after which the processor waits."""
        return max(*self.steps, *self.beside) if self.beside else self.steps[-1]


def regions_of(
    graph: Graph, sites: Sequence[Site], on_device: frozenset[int], roots: Mapping[str, str], apart: bool
) -> tuple[Region, ...]:
    """With `apart` every step of the device is a region of its own."""
    runs: list[tuple[list[int], list[int]]] = []
    steps: list[int] = []
    beside: list[int] = []
    pending: set[str] = set()
    for index, site in enumerate(sites):
        reads = {roots[tensor.name] for tensor in site.reads}
        if index not in on_device and reads & pending:
            runs.append((steps, beside))
            steps, beside, pending = [], [], set()
        if index in on_device:
            steps.append(index)
            pending |= {roots[tensor.name] for tensor in site.writes}
        elif steps:
            beside.append(index)
        if apart and steps:
            runs.append((steps, beside))
            steps, beside, pending = [], [], set()
    if steps:
        runs.append((steps, beside))
    return tuple(_region(graph, sites, run, without, roots, apart) for run, without in runs if run)


def _region(
    graph: Graph, sites: Sequence[Site], steps: list[int], beside: list[int], roots: Mapping[str, str], apart: bool
) -> Region:
    made = [roots[tensor.name] for step in steps for tensor in sites[step].writes]
    read = [roots[tensor.name] for step in steps for tensor in sites[step].reads]
    inside = set(steps)
    outside = {roots[tensor.name] for index, site in enumerate(sites) if index not in inside for tensor in site.reads}
    outside |= {roots[name] for name in graph.outputs}
    exits = [name for name in dict.fromkeys(made) if name in outside or apart]
    inputs = [name for name in dict.fromkeys(read) if name not in made]
    return Region(tuple(steps), tuple(beside), tuple(inputs), tuple(exits))


def times_of(count: int, regions: Sequence[Region]) -> tuple[int, ...]:
    """The latest time at which each step affects the processor's memory. The device's steps of a region come after the
    processor's steps beside them, since the processor may have to recompute them."""
    order: list[int] = []
    within = {step: region for region in regions for step in (*region.steps, *region.beside)}
    for step in range(count):
        region = within.get(step)
        if region is None:
            order.append(step)
        elif step == min((*region.steps, *region.beside)):
            order += [*region.beside, *region.steps]
    times = [0] * count
    for time, step in enumerate(order):
        times[step] = time
    return tuple(times)
