"""Kernels chosen together with the arena they lead to: the fastest, or those of the fewest bytes, that leave it small
enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nnbuild.plan.chain import Work
from nnbuild.plan.select import Alternative, Choice, Offer
from nnbuild.plan.shared_code import sharing
from nnbuild.plan.target import Target
from nnbuild.plan.weight_growth import SPARE, SPARE_FLASH, SPARE_MEMORY, light, modest

SizeOf = Callable[[list[Work], int], int]
"""The size of the arena for these kernels, which need not be searched further than to so many bytes."""


Lower = Callable[[list[Work]], list[Work]]
"""Puts steps together so that the arena is smaller."""


def unchanged(work: list[Work]) -> list[Work]:
    return work


GROWTH = 2
"""So many times the arena may become for constants that are copied to RAM."""
SLACK = 1 / 16
"""The share of the smallest arena that faster kernels may add to it: a step must not be many times slower to save
a little."""


def settle(work: list[Work], size_of: SizeOf, target: Target, lower: Lower = unchanged) -> list[Work]:
    """With `optimize=ram`, the fastest kernels of about the smallest arena; with a limit, the best that keep to it.

    Where the target names kernels, they stay.

    Where even the smallest arena is above the limit, that one: how much is missing is then said at its best.
    """
    if target.kernels:
        return work
    small = sharing(work, target.fewest) if target.optimize == "size" else work
    if target.pace is not None and target.optimize == "speed":
        small = _staged(small, size_of, target)
    spare = SPARE_MEMORY if target.ample else SPARE if target.pace is None else SPARE_FLASH
    settled = _for_memory(modest(small, spare), size_of, target, lower)
    if target.weights is None:
        return settled
    room = None if target.room is None else max(target.room, size_of(settled, target.room))

    def with_choices(choices: list[Choice]) -> list[Work]:
        return [replace(item, choice=choice) for item, choice in zip(settled, choices, strict=True)]

    def fits(choices: list[Choice]) -> bool:
        return room is None or size_of(with_choices(choices), room) <= room

    return with_choices(light([item.choice for item in settled], target.weights, fits=fits))


def _staged(work: list[Work], size_of: SizeOf, target: Target) -> list[Work]:
    """Constants are copied to RAM where that gains most, as long as the arena does not become GROWTH times larger."""
    plain = [_taking(item, _unstaged(item)) for item in work]
    limit = int(GROWTH * size_of(plain, 0))
    if target.room is not None:
        limit = min(limit, max(target.room, size_of(plain, target.room)))
    wanted = sorted(range(len(work)), key=lambda at: work[at].choice.price.cycles - plain[at].choice.price.cycles)
    for index in wanted:
        for number in _faster_offers(plain[index]):
            before = plain[index]
            if work[index].choice.offers[number].price.weights > work[index].choice.price.weights:
                continue
            plain[index] = _taking(before, number)
            if size_of(plain, limit) <= limit:
                break
            plain[index] = before
    return [_decided(item) for item in plain]


def _unstaged(work: Work) -> int:
    """The best offer that copies no constants."""
    offers = work.choice.offers
    return next((number for number, offer in enumerate(offers) if not offer.demand.copied), 0)


def _decided(work: Work) -> Work:
    """Without offers that copy constants but were not taken: there is no room for them."""
    choice = work.choice
    kept = tuple(o for n, o in enumerate(choice.offers) if n == choice.taken or not o.demand.copied)
    refused = tuple(
        Alternative(
            o.kernel.name, reason=f"{o.demand.copied:,} bytes of constants in RAM are too many for what they gain"
        )
        for n, o in enumerate(choice.offers)
        if n != choice.taken and o.demand.copied
    )
    taken = next(n for n, o in enumerate(kept) if o is choice.offers[choice.taken])
    return replace(work, choice=Choice(kept, (*choice.refused, *refused), taken))


def _for_memory(work: list[Work], size_of: SizeOf, target: Target, lower: Lower) -> list[Work]:
    if target.optimize != "ram" and (target.room is None or size_of(work, target.room) <= target.room):
        return work
    smallest = [_least(item) for item in work]
    if target.room is None or size_of(smallest, target.room) > target.room:
        smallest = lower(smallest)
    floor = size_of(smallest, 0)
    limit = int(floor * (1 + SLACK)) if target.room is None else max(target.room, floor)
    if target.optimize == "size":
        names = {item.site: item.choice.kernel.name for item in work}
        return _better(smallest, size_of, limit, _bytes, lambda item: _smaller_offers(item, names.get(item.site)))
    return _better(smallest, size_of, limit, lambda offer: offer.price.cycles, _faster_offers)


def _least(work: Work) -> Work:
    """The kernel with which this step alone needs the fewest bytes."""
    offers = work.choice.offers
    best = min(range(len(offers)), key=lambda index: (need(work, offers[index]), offers[index].price.cycles))
    return _taking(work, best)


def _taking(work: Work, index: int) -> Work:
    return replace(work, choice=replace(work.choice, taken=index))


def need(work: Work, offer: Offer) -> int:
    """Bytes of a step's tensors and scratch, with what an output may share of an input."""
    sizes = [tensor.nbytes for tensor in (*work.site.reads, *work.site.writes)]
    shared = 0
    for overlap in offer.demand.overlaps:
        out, source = work.site.writes[overlap.output].nbytes, work.site.reads[overlap.input].nbytes
        shared = max(shared, out + source - max(out, source + max(overlap.distance, 0)))
    return sum(sizes) - shared + offer.demand.scratch


def _better(
    work: list[Work], size_of: SizeOf, limit: int, cost: Callable[[Offer], float], better: Callable[[Work], list[int]]
) -> list[Work]:
    """Takes better kernels, where they gain most first, as long as the arena keeps to the limit."""
    settled = list(work)

    def gain(index: int) -> float:
        choice = settled[index].choice
        return cost(choice.offers[choice.taken]) - min(map(cost, choice.offers))

    for index in sorted(range(len(settled)), key=lambda index: (-gain(index), index)):
        before = settled[index]
        for offer in better(before):
            settled[index] = _taking(before, offer)
            if size_of(settled, limit) <= limit:
                break
            settled[index] = before
    return settled


def _bytes(offer: Offer) -> float:
    return offer.price.weights + offer.price.code.alone


def _smaller_offers(work: Work, wanted: str | None) -> list[int]:
    """What was chosen for the whole program first, then those of fewer bytes than what is taken, the fewest first."""
    choice = work.choice
    chosen = [index for index, offer in enumerate(choice.offers) if offer.kernel.name == wanted]
    return chosen + list(range(choice.taken))  # offers are sorted by bytes


def _faster_offers(work: Work) -> list[int]:
    """Those that are faster than what is taken, the fastest first."""
    offers, cycles = work.choice.offers, work.choice.price.cycles
    faster = [index for index, offer in enumerate(offers) if offer.price.cycles < cycles]
    return sorted(faster, key=lambda index: offers[index].price.cycles)
