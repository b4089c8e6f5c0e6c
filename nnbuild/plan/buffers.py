"""Buffers of the arena: every tensor and all scratch, with lifetimes and permitted overlaps."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

from nnbuild.model.graph import Graph, Op
from nnbuild.plan.aliases import partially_aliased
from nnbuild.plan.chain import Work
from nnbuild.plan.core_memory import Tiling, tile_step
from nnbuild.plan.device_regions import Region, regions_of, times_of
from nnbuild.plan.place import Buffer
from nnbuild.plan.split import split
from nnbuild.plan.target import Target


def regions_for(graph: Graph, work: list[Work], roots: dict[str, str], target: Target) -> tuple[Region, ...]:
    on_device = frozenset(index for index, item in enumerate(work) if item.on_device)
    return regions_of(graph, [item.site for item in work], on_device, roots, target.keep_tensors) if on_device else ()


def buffers_of(
    graph: Graph, work: list[Work], roots: dict[str, str], target: Target, away: frozenset[str] = frozenset()
) -> list[Buffer]:
    """Every buffer of the arena with its exact lifetime. Inputs exist from before the first step. `away` are tensors of
    the device that lie here because its memory has no room for them."""
    end = len(work)
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for name in graph.inputs:
        first[roots[name]], last[roots[name]] = -1, -1
    regions = regions_for(graph, work, roots, target)
    times = times_of(len(work), regions)
    for index, item in sorted(enumerate(work), key=lambda pair: times[pair[0]]):
        for tensor in (*item.site.reads, *item.site.writes):
            first.setdefault(roots[tensor.name], times[index])
            last[roots[tensor.name]] = times[index]
    for region in regions:  # what the driver reads back must not overwrite what the processor needs to start over
        for name in {*region.exits, *away}.intersection(
            roots[tensor.name] for step in region.steps for tensor in work[step].site.writes
        ):
            first[name] = times[region.first]
    for name in first if target.keep_tensors else map(roots.__getitem__, graph.outputs):
        last[name] = end
    kept = {state.before for state in graph.states}
    overlaps = _overlaps(work, times, roots, partially_aliased(graph), first, last, target)
    buffers = [
        Buffer(
            name,
            graph.tensors[name].nbytes,
            first[name],
            last[name],
            {source: lead for source, (lead, _) in overlaps.get(name, {}).items()},
            {source: every for source, (_, every) in overlaps.get(name, {}).items()},
        )
        for name in first
        if name not in kept
    ]
    for index, item in enumerate(work):
        scratch = (
            0 if isinstance(tiling_of(item, target), Tiling) else scratch_of(item, target) * parts_of(item, target)
        )
        if scratch:
            buffers.append(Buffer(scratch_name(item.site.op), scratch, times[index], times[index]))
    return buffers


def scratch_of(work: Work, target: Target) -> int:
    """Bytes of scratch for one part of a step."""
    size = max(demand.scratch for demand in work.demands)
    return -(-size // target.alignment) * target.alignment


def parts_of(work: Work, target: Target) -> int:
    if work.on_device:
        return 1
    borders = split(work, target.cores)
    return len(borders[0]) - 1 if borders else 1


def tiling_of(work: Work, target: Target) -> Tiling | str | None:
    """How the step is tiled for core-local memories, or why it is not; None where cores have none."""
    if target.cores.local is None or work.on_device:
        return None
    return tile_step(work, next(iter(split(work, target.cores)), ()), target.cores.local)


def scratch_name(op: Op) -> str:
    """Name of the scratch buffer of the step that begins with this operation."""
    return f"scratch of {op.name}"


def _overlaps(
    work: list[Work],
    times: Sequence[int],
    roots: dict[str, str],
    apart: frozenset[str],
    first: dict[str, int],
    last: dict[str, int],
    target: Target,
) -> dict[str, dict[str, tuple[int, int]]]:
    """Output -> {input: (safe distance, granularity)}, for the inputs it may overlap: those no later step needs."""
    allowed: dict[str, dict[str, tuple[int, int]]] = {}
    for index, item in enumerate(work):
        site = item.site
        own = tiling_of(item, target)
        if site.op.outer or item.on_device or parts_of(item, target) > 1 or (isinstance(own, Tiling) and own.tiled):
            continue
        distances = _distances(item, target.chunked)
        for out, source in sorted({(output, site.reads[number].name) for output, number in distances}):
            a, b = roots[site.writes[out].name], roots[source]
            # A tensor may be read as several inputs; the output may overlap it only as all of them allow.
            reads = [number for number, tensor in enumerate(site.reads) if roots[tensor.name] == b]
            known = [distances[out, number] for number in reads if (out, number) in distances]
            if (
                {a, b}.isdisjoint(apart)
                and a != b
                and first[a] == times[index]
                and last[b] == times[index]
                and len(known) == len(reads)
            ):
                allowed.setdefault(a, {})[b] = max(known)
    return allowed


def _distances(work: Work, pieces: bool) -> dict[tuple[int, int], tuple[int, int]]:
    """(output, input) -> the safe distance and granularity for all versions; pairs that any version forbids are left
    out."""
    each = [{(o.output, o.input): o for o in demand.overlaps} for demand in work.demands]
    pairs = set(each[0]).intersection(*each[1:])
    return {
        pair: (max(o[pair].distance_of(pieces) for o in each), lcm(*(o[pair].step for o in each)))
        for pair in sorted(pairs)
    }
