"""Splits a step over cores into ranges of work items, so that the slowest part finishes early."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, pairwise
from math import prod

from nnbuild.kernels.contract import Demand
from nnbuild.ops.site import Site
from nnbuild.plan.chain import Work
from nnbuild.plan.cores import Cores
from nnbuild.plan.select import Choice, Offer

Borders = tuple[int, ...]
"""Work item at which each part begins, and the end of the last part."""
TOLERANCE = 1.02
"""Factor by which a kernel may be slower on all cores together and still be preferred: it came first for other reasons,
too."""


def split(work: Work, cores: Cores) -> tuple[Borders, ...]:
    """The borders for each version of the step; empty where one core alone is faster."""
    if cores.count == 1 or work.site.attributes.sequential:
        return ()
    demands = [divisible(work.site, demand) for demand in work.demands]
    parts = _parts(demands[0], work.choice.price.cycles, cores, min(_units(demand) for demand in demands))
    return tuple(_borders(demand, parts, cores) for demand in demands) if parts > 1 else ()


def critical_cycles(work: Work, cores: Cores) -> float:
    """Cycles until the last core finishes the step."""
    borders = split(work, cores)
    if not borders:
        return work.choice.price.cycles / cores.speed(0)
    return _parallel_cycles(work.choice.price.cycles, divisible(work.site, work.demands[0]), borders[0], cores)


def fastest_on_cores(work: Work, cores: Cores) -> Work:
    """The step with the kernel that finishes first on all cores. Floats keep theirs: kernels add in different orders,
    and the bits must not depend on the number of cores."""
    floats = any(tensor.dtype == "float32" for tensor in (*work.site.reads, *work.site.writes))
    if cores.count == 1 or work.others or floats:
        return work
    lengths = [critical_cycles(replace(work, choice=Choice((offer,), ())), cores) for offer in work.choice.offers]
    enough = TOLERANCE * min(lengths)
    best = next(index for index, length in enumerate(lengths) if length <= enough)
    offers: list[Offer] = list(work.choice.offers)
    offers.insert(0, offers.pop(best))
    return replace(work, choice=Choice(tuple(offers), work.choice.refused))


def shares(demand: Demand, borders: Borders) -> tuple[float, ...]:
    """Each part's share of a step's cost."""
    if demand.costs:
        sums = [0.0, *accumulate(demand.costs)]
        return tuple((sums[end] - sums[begin]) / sums[-1] for begin, end in pairwise(borders))
    return tuple(-(-(end - begin) // demand.grain) / _units(demand) for begin, end in pairwise(borders))


def divisible(site: Site, demand: Demand) -> Demand:
    """What can be divided: the kernel's work items, or the indices of the outer axes."""
    return Demand(prod(site.op.outer)) if site.op.outer else demand


def _units(demand: Demand) -> int:
    """Groups of work items that a kernel computes together."""
    return -(-demand.extent // demand.grain)


def _parts(demand: Demand, cycles: float, cores: Cores, most: int) -> int:
    """The number of parts that finishes soonest; the smallest such number."""
    best, soonest = 1, cycles / cores.speed(0)
    for parts in range(2, min(cores.count, most) + 1):
        length = _parallel_cycles(cycles, demand, _borders(demand, parts, cores), cores)
        if length < soonest:
            best, soonest = parts, length
    return best


def _parallel_cycles(cycles: float, demand: Demand, borders: Borders, cores: Cores) -> float:
    longest = max(share / cores.speed(core) for core, share in enumerate(shares(demand, borders)))
    return cycles * longest + cores.fork + cores.each * (len(borders) - 1)


def _borders(demand: Demand, parts: int, cores: Cores) -> Borders:
    if demand.costs or cores.speeds:
        return _by_cost(demand.costs or (1.0,) * demand.extent, demand.grain, cores.speeds[:parts] or (1.0,) * parts)
    units = _units(demand)
    return tuple(min(demand.extent, units * part // parts * demand.grain) for part in range(parts + 1))


@lru_cache(maxsize=1024)
def _by_cost(costs: tuple[float, ...], grain: int, speeds: tuple[float, ...]) -> Borders:
    """The borders with which the last part finishes soonest, by bisecting the time that a part may take."""
    parts = len(speeds)
    sums = [0.0, *(total for at, total in enumerate(accumulate(costs), 1) if at % grain == 0 or at == len(costs))]
    largest = max(b - a for a, b in pairwise(sums))
    low, high = max(sums[-1] / sum(speeds), largest / max(speeds)), sums[-1] / min(speeds)
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if len(_greedy_borders(sums, middle, speeds)) - 1 <= parts else (middle, high)
    units = _greedy_borders(sums, high, speeds)
    return tuple(min(len(costs), unit * grain) for unit in units)


def _greedy_borders(sums: list[float], limit: float, speeds: tuple[float, ...]) -> list[int]:
    """Borders of parts within the limit, each as large as it allows; at least one unit is left for every later part."""
    borders = [0]
    while borders[-1] < len(sums) - 1:
        left = max(0, len(speeds) - len(borders))
        most = limit * speeds[min(len(borders), len(speeds)) - 1]
        reach = bisect_right(sums, sums[borders[-1]] + most + 1e-9 * sums[-1]) - 1
        borders.append(max(borders[-1] + 1, min(reach, len(sums) - 1 - left)))
    return borders
