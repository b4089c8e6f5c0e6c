"""Divides a plan's work between processor and device; falls back to the processor alone if that is estimated faster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nnbuild.model.graph import Graph
from nnbuild.plan.chain import Work
from nnbuild.plan.device_program import DeviceProgram, program_of
from nnbuild.plan.device_regions import regions_of
from nnbuild.plan.offload import DevicePlacement, PricedRegion, place_on_device, price_region, written_cycles
from nnbuild.plan.target import Target

Settled = Callable[[frozenset[str]], list[Work]]


def choose_device_work(
    graph: Graph, alone: list[Work], settled: Settled, roots: Mapping[str, str], target: Target
) -> tuple[list[Work], DeviceProgram]:
    """`alone` is the processor's work without the device; `settled` plans it with some operations on the device."""
    assert target.device is not None
    placed = place_on_device(graph, roots, target)
    work = settled(placed.chosen)
    regions = _priced_regions(graph, work, placed, roots, target)
    cycles = _cycles(work) + sum(region.host_cycles for region in regions)
    if cycles > _cycles(alone) and "device" not in target.forced_places.values():
        work, regions = alone, []
    return work, program_of(regions, target.device, placed.store, placed.refused)


def _cycles(work: Sequence[Work]) -> float:
    return sum(item.choice.price.cycles for item in work if not item.on_device)


def _priced_regions(
    graph: Graph, work: Sequence[Work], placed: DevicePlacement, roots: Mapping[str, str], target: Target
) -> list[PricedRegion]:
    assert target.device is not None
    on_device = frozenset(index for index, item in enumerate(work) if item.on_device)
    sites = [item.site for item in work]
    found = []
    for region in regions_of(graph, sites, on_device, roots, target.keep_tensors):
        uses = [placed.uses[sites[step].op.name] for step in region.steps]
        beside = sum(work[step].choice.price.cycles for step in region.beside)
        sizes = [placed.packed[sites[step].op.name] for step in region.steps]
        written = written_cycles(sizes, placed.store, target.device)
        found.append(price_region(region, uses, target.device, placed.store.size, beside, written))
    return found
