"""Looks for cliffs in random networks: steps that cost much more than the best of their class.

    python benchmarks/random_cliffs.py [--minutes M] [--from SEED] [--times N] [TARGET ...]

`cliffs.py` prices a few networks that look trained; here random ones of several makers are priced, in every format, and
a class has the same shape, target and format. Printed are the steps beyond N times the best of their class, the most
expensive first, one of each target, kernel and operation. Few are mistakes: small layers pay their beginning and end,
few channels leave lanes empty, and a transposed convolution's multiply-adds are those of its input.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import count
from math import prod
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.broad_graphs import broad_graph
from benchmarks.cliffs import PLACES, Cost, class_of
from benchmarks.even_graphs import even_graph
from benchmarks.nets import planned, quantized
from benchmarks.random_graphs import random_graph
from nnbuild.base.errors import NnbuildError

MAKERS = {"even": even_graph, "random": random_graph, "broad": broad_graph}
FORMS = ("int8", "int8", "int16", "float")
SMALL = 10_000
"""Cycles above the best of its class from which a step is shown."""


def costs(seed: int, targets: list[str]) -> Iterator[Cost]:
    name = list(MAKERS)[seed % len(MAKERS)]
    form = FORMS[seed // len(MAKERS) % len(FORMS)]
    graph = MAKERS[name](seed)
    if form != "float":
        graph = quantized(graph, form)
    for target in targets:
        for step in planned(graph, *PLACES[target]).steps:
            work, cycles = step.macs or prod(step.site.inputs[0].shape), step.choice.price.cycles
            key = f"{target} {form} {class_of(step, work)}"
            yield Cost(f"{name} {seed}", step.layer, step.kernel_name, key, cycles / work, cycles)


def shown(found: list[Cost], times: float) -> Iterator[str]:
    best: dict[str, float] = {}
    for cost in found:
        best[cost.key] = min(best.get(cost.key, cost.each), cost.each)
    lost = {id(cost): cost.cycles * (1 - best[cost.key] / cost.each) for cost in found}
    known = set()
    for cost in sorted(found, key=lambda cost: -lost[id(cost)]):
        kind = (*cost.key.split()[:3], cost.kernel)
        if cost.each > times * best[cost.key] and lost[id(cost)] > SMALL and kind not in known:
            known.add(kind)
            of = f"{cost.net} {cost.layer}, {cost.kernel}, {cost.each:.3f}"
            yield f"{cost.each / best[cost.key]:.1f} times: {cost.key}, {of}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--times", type=float, default=3.0)
    wished = parser.parse_args()
    end, found, networks = time.monotonic() + 60 * wished.minutes, [], 0
    for seed in count(wished.first):
        if time.monotonic() > end:
            break
        try:
            found += list(costs(seed, wished.targets or list(PLACES)))
            networks += 1
        except NnbuildError:
            continue  # no integers have its range
    print("\n".join([*shown(found, wished.times), f"{len(found)} steps of {networks} networks"]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
