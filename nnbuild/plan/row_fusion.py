"""Fuses steps row by row where the arena is fullest, so that only a few rows of the tensors between them are held."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from nnbuild.kernels.parts.row_stream import Part, Stream, streamable
from nnbuild.model.graph import Graph
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.site import Site
from nnbuild.plan.chain import Work, only_readers
from nnbuild.plan.printed import printed
from nnbuild.plan.select import Choice, Offer, offer_of
from nnbuild.plan.target import Target

MAX_STEPS = 4
"""Most steps in one stream."""

NAME = "stream"
"""Prefix of the kernel's name; the scratch bytes of its parts follow."""
FAR_FEWER = 0.6
"""The ratio of two amounts of constants from which one counts as far fewer."""

Fullest = Callable[[list[Work]], tuple[int, int]]
"""Returns (size of the arena, step at which most of it is in use)."""


def fuse_rows(graph: Graph, work: list[Work], fullest: Fullest, target: Target) -> list[Work]:
    """Adds streams around the fullest step, one at a time, as long as each makes the arena smaller."""
    size, step = fullest(work)
    while True:
        tries = [(*fullest(tried), tried) for tried in _fusions(graph, work, step, target)]
        best = min(tries, key=lambda found: found[0], default=None)
        if best is None or best[0] >= size:
            return work
        size, step, work = best


def _fusions(graph: Graph, work: list[Work], step: int, target: Target) -> Iterator[list[Work]]:
    for length in range(2, MAX_STEPS + 1):
        for begin in range(max(0, step - length + 1), min(step, len(work) - length) + 1):
            run = work[begin : begin + length]
            stream = _fuse(run, target) if _can_fuse(graph, run) else None
            if stream is not None:
                yield [*work[:begin], stream, *work[begin + length :]]


def _can_fuse(graph: Graph, run: list[Work]) -> bool:
    """Whether the result of every step but the last is read once, within the run, and no state is overwritten row by
    row while old rows are still to be read."""
    if not {state.after for state in graph.states}.isdisjoint(tensor.name for tensor in run[-1].site.writes):
        return False
    ops = [op for op in graph.ops if not isinstance(op.attributes, Reshape)]
    readers = only_readers(graph, ops)
    inside = {op.name for item in run for op in item.site.ops}
    last = [item.site.ops[-1].name for item in run[:-1]]
    return all(name in readers and readers[name].name in inside for name in last)


def _fuse(run: list[Work], target: Target) -> Work | None:
    """The steps as one, with fast kernels or small ones; None where one of them cannot be computed row by row."""
    if (
        target.extra_isas
        or any(item.on_device for item in run)
        or any(item.choice.kernel.name.startswith(NAME) for item in run)
    ):
        return None
    able = [[offer for offer in item.choice.offers if streamable(item.site, offer.demand)] for item in run]
    if not all(able):
        return None
    site = replace(run[0].site, tail=tuple(part for item in run for part in _unfused(item))[1:])
    found = [_offer(run, site, kernels, name, target) for name, kernels in _kernels_by_name(able).items()]
    found.sort(key=lambda offer: offer.price.key(target.optimize))
    smallest = min(range(len(found)), key=lambda index: (found[index].demand.scratch, index))
    return Work(site, Choice(tuple(found), (), smallest))


def _kernels_by_name(able: list[list[Offer]]) -> dict[str, list[Offer]]:
    """For each amount of scratch, the fastest kernels that need no more, and those with the fewest bytes of constants
    where they are far fewer."""
    least = max(min(offer.demand.scratch for offer in offers) for offers in able)
    amounts = {least} | {offer.demand.scratch for offers in able for offer in offers if offer.demand.scratch > least}
    forms = {}
    for scratch in sorted(amounts):
        name = f"{NAME}_{scratch}" if scratch else NAME
        fitting = [[offer for offer in offers if offer.demand.scratch <= scratch] for offers in able]
        forms[name] = [min(offers, key=lambda offer: offer.price.cycles) for offers in fitting]
        light = [min(offers, key=lambda offer: (offer.price.weights, offer.price.cycles)) for offers in fitting]
        if _weights(light) < FAR_FEWER * _weights(forms[name]):
            forms[f"{name}_light"] = light
    return forms


def _weights(offers: list[Offer]) -> int:
    return sum(offer.price.weights for offer in offers)


def _offer(run: list[Work], site: Site, kernels: list[Offer], name: str, target: Target) -> Offer:
    parts = (Part(item.site, offer.kernel, offer.demand) for item, offer in zip(run, kernels, strict=True))
    kernel = Stream(tuple(parts)).kernel(name)
    return offer_of(kernel, site, printed(kernel, site), target)


def _unfused(work: Work) -> tuple[Site, ...]:
    """The operation and its chained followers as separate sites."""
    return (replace(work.site, tail=()), *work.site.tail)
