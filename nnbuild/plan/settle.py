"""Kernels chosen together with the arena they lead to: the fastest that leave it small enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nnbuild.kernels.registry import variant_name
from nnbuild.plan.chain import Work
from nnbuild.plan.select import Alternative, Choice, Offer
from nnbuild.plan.target import Target

SizeOf = Callable[[list[Work], int], int]
"""The size of the arena for these kernels, which need not be searched further than to so many bytes."""


Lower = Callable[[list[Work]], list[Work]]
"""Puts steps together so that the arena is smaller."""


def unchanged(work: list[Work]) -> list[Work]:
    return work


SLACK = 1 / 16
"""The share of the smallest arena that faster kernels may add to it: a step must not be many times slower to save
a little."""


SPARE = 256 * 1024
"""Bytes by which fast kernels may make the constants larger than those of others that are not much slower."""

MUCH = 3
"""So many times slower is much: what trades bytes for fewer products, as Winograd's forms do, gains less."""


def settle(work: list[Work], size_of: SizeOf, target: Target, lower: Lower = unchanged) -> list[Work]:
    """With `optimize=ram`, the fastest kernels of about the smallest arena; with a limit, the fastest that keep to it.

    Kernels that the target names are taken first of all, and stay.

    Where even the smallest arena is above the limit, that one: how much is missing is then said at its best.
    """
    if target.kernels:
        return [_wanted(item, target) for item in work]
    settled = _for_memory(work, size_of, target, lower)
    return settled if target.weights is None else _lighter(settled, target.weights)


def _for_memory(work: list[Work], size_of: SizeOf, target: Target, lower: Lower) -> list[Work]:
    if target.optimize != "ram" and (target.room is None or size_of(work, target.room) <= target.room):
        return work
    smallest = [_least(item) for item in work]
    if target.room is None or size_of(smallest, target.room) > target.room:
        smallest = lower(smallest)
    floor = size_of(smallest, 0)
    limit = int(floor * (1 + SLACK)) if target.room is None else max(target.room, floor)
    return _faster(smallest, size_of, limit)


def _least(work: Work) -> Work:
    """The kernel with which this step alone needs the fewest bytes."""
    offers = work.choice.offers
    best = min(range(len(offers)), key=lambda index: (need(work, offers[index]), offers[index].price.cycles))
    return _taking(work, best)


def _wanted(work: Work, target: Target) -> Work:
    names = [variant_name(offer.kernel) for offer in work.choice.offers]
    wanted = target.kernels.get(work.site.op.name)
    return _taking(work, names.index(wanted)) if wanted in names else work


def _taking(work: Work, index: int) -> Work:
    return replace(work, choice=replace(work.choice, taken=index))


def need(work: Work, offer: Offer) -> int:
    """Bytes of a step's tensors and scratch, with what an output may share of an input."""
    sizes = [tensor.nbytes for tensor in (*work.site.reads, *work.site.writes)]
    shared = 0
    for overlap in offer.demand.overlaps:
        out, source = work.site.writes[overlap.output].nbytes, work.site.reads[overlap.input].nbytes
        shared = max(shared, out + source - max(out, source + max(overlap.lead, 0)))
    return sum(sizes) - shared + offer.demand.scratch


def _faster(work: list[Work], size_of: SizeOf, limit: int) -> list[Work]:
    """Takes faster kernels, where they gain most first, as long as the arena keeps to the limit."""
    settled = list(work)

    def gain(index: int) -> float:
        choice = settled[index].choice
        return choice.price.cycles - min(offer.price.cycles for offer in choice.offers)

    for index in sorted(range(len(settled)), key=lambda index: (-gain(index), index)):
        before = settled[index]
        for better in _faster_offers(before):
            settled[index] = _taking(before, better)
            if size_of(settled, limit) <= limit:
                break
            settled[index] = before
    return settled


def _faster_offers(work: Work) -> list[int]:
    """Those that are faster than what is taken, the fastest first."""
    offers, cycles = work.choice.offers, work.choice.price.cycles
    faster = [index for index, offer in enumerate(offers) if offer.price.cycles < cycles]
    return sorted(faster, key=lambda index: offers[index].price.cycles)


def _lighter(work: list[Work], limit: int) -> list[Work]:
    """Takes kernels with fewer bytes of constants until all are within the limit, first where a byte costs least."""
    choices = _light([item.choice for item in work], limit, float("inf"))
    return [replace(item, choice=choice) for item, choice in zip(work, choices, strict=True)]


def _light(choices: list[Choice], limit: int, much: float) -> list[Choice]:
    """None is taken that is more than `much` times slower than the fastest."""
    light = list(choices)
    while sum(choice.price.weights for choice in light) > limit:
        found = []
        for index, choice in enumerate(light):
            for number, offer in _bearable(choice, much):
                saved = choice.price.weights - offer.price.weights
                if saved > 0:
                    slower = max(0.0, offer.price.cycles - choice.price.cycles)
                    found.append((slower / saved, index, number))
        if not found:
            return light
        _, index, number = min(found)
        light[index] = replace(light[index], taken=number)
    return light


def _bearable(choice: Choice, much: float) -> list[tuple[int, Offer]]:
    fastest = min(offer.price.cycles for offer in choice.offers)
    return [(number, offer) for number, offer in enumerate(choice.offers) if offer.price.cycles <= much * fastest]


def modest(work: list[Work]) -> list[Work]:
    """Without kernels that would make the constants of a large model much larger and not much faster. The bytes go to
    those that gain most by them; for each of the target's sets by itself."""
    sets = [_modest([item.choice for item in work])]
    for number in range(len(work[0].others) if work else 0):
        sets.append(_modest([item.others[number] for item in work]))
    return [replace(item, choice=best, others=tuple(others)) for item, best, *others in zip(work, *sets, strict=True)]


def _modest(choices: list[Choice]) -> list[Choice]:
    least = sum(min(offer.price.weights for _, offer in _bearable(choice, MUCH)) for choice in choices)
    light = _light(choices, least + SPARE, MUCH)
    return [
        _without_heavier(chosen) if chosen.taken != given.taken else given
        for given, chosen in zip(choices, light, strict=True)
    ]


def _without_heavier(choice: Choice) -> Choice:
    """What is taken stays the heaviest, and the others have their reason."""
    weights = choice.price.weights
    kept = tuple(offer for offer in choice.offers if offer.price.weights <= weights)
    heavier = [offer for offer in choice.offers if offer.price.weights > weights]
    refused = (
        Alternative(
            variant_name(offer.kernel),
            reason=f"its constants are {offer.price.weights - weights:,} bytes larger, for too little time",
        )
        for offer in heavier
    )
    taken = next(index for index, offer in enumerate(kept) if offer is choice.offers[choice.taken])
    return Choice(kept, (*choice.refused, *refused), taken)
