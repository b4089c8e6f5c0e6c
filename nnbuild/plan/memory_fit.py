"""Chooses kernels together with the arena they lead to: the fastest, or the smallest, that keep it within the limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nnbuild.plan.chain import Work
from nnbuild.plan.select import Alternative, Choice, Offer
from nnbuild.plan.shared_code import choose_by_program_size, exchange_of, share_arrays
from nnbuild.plan.target import Target
from nnbuild.plan.weight_growth import (
    ALLOWANCE,
    FLASH_ALLOWANCE,
    PC_ALLOWANCE,
    limit_weight_growth,
    within_limit,
)

SizeOf = Callable[[list[Work], int], int]
"""Size of the arena with these kernels; the search may stop at a given size."""


Fuse = Callable[[list[Work]], list[Work]]
"""Fuses steps so that the arena gets smaller."""


def unchanged(work: list[Work]) -> list[Work]:
    return work


MAX_COPY_GROWTH = 2
"""Factor by which constants copied to RAM may enlarge the arena."""
SLACK = 1 / 16
"""The share of the smallest arena that faster kernels may add to it: a step must not become many times slower to save a
few bytes."""


def fit_memory(work: list[Work], size_of: SizeOf, target: Target, lower: Fuse = unchanged) -> list[Work]:
    """With `optimize=ram`, the fastest kernels with about the smallest arena; with a limit, the best that keep to it.

    Forced kernels stay. If even the smallest arena exceeds the limit, that one is taken, so that the error reports the
    smallest excess.
    """
    if target.forced_kernels:
        return work
    small = choose_by_program_size(work, exchange_of(target), target.in_block) if target.optimize == "size" else work
    if target.pace is not None and target.optimize == "speed":
        small = _copy_weights_to_ram(small, size_of, target)
    spare = PC_ALLOWANCE if target.host_memory else ALLOWANCE if target.pace is None else FLASH_ALLOWANCE
    settled = _fit_arena(limit_weight_growth(small, spare), size_of, target, lower)
    if target.max_flash is None:
        return settled
    room = None if target.max_ram is None else max(target.max_ram, size_of(settled, target.max_ram))

    def with_choices(choices: list[Choice]) -> list[Work]:
        pairs = zip(settled, choices, strict=True)
        return [replace(item, choice=replace(item.choice, taken=choice.taken)) for item, choice in pairs]

    def fits(choices: list[Choice]) -> bool:
        return room is None or size_of(with_choices(choices), room) <= room

    sharing = share_arrays([item.choice for item in settled], target.in_block)
    return with_choices(within_limit(sharing, target.max_flash, fits=fits, with_code=True))


def _copy_weights_to_ram(work: list[Work], size_of: SizeOf, target: Target) -> list[Work]:
    """Copies constants to RAM where that gains most, as long as the arena does not grow beyond MAX_COPY_GROWTH."""
    plain = [_take(item, _first_without_copy(item)) for item in work]
    limit = int(MAX_COPY_GROWTH * size_of(plain, 0))
    if target.max_ram is not None:
        limit = min(limit, max(target.max_ram, size_of(plain, target.max_ram)))
    wanted = sorted(range(len(work)), key=lambda at: work[at].choice.price.cycles - plain[at].choice.price.cycles)
    for index in wanted:
        for number in _faster_offers(plain[index]):
            before = plain[index]
            if work[index].choice.offers[number].price.weights > work[index].choice.price.weights:
                continue
            plain[index] = _take(before, number)
            if size_of(plain, limit) <= limit:
                break
            plain[index] = before
    return [_refuse_copies(item) for item in plain]


def _first_without_copy(work: Work) -> int:
    """The best offer that copies no constants."""
    offers = work.choice.offers
    return next((number for number, offer in enumerate(offers) if not offer.demand.copied), 0)


def _refuse_copies(work: Work) -> Work:
    """Refuses the offers that copy constants and were not taken, for lack of RAM."""
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


def _fit_arena(work: list[Work], size_of: SizeOf, target: Target, lower: Fuse) -> list[Work]:
    if target.optimize != "ram" and (target.max_ram is None or size_of(work, target.max_ram) <= target.max_ram):
        return work
    smallest = [_smallest(item) for item in work]
    if target.max_ram is None or size_of(smallest, target.max_ram) > target.max_ram:
        smallest = lower(smallest)
    floor = size_of(smallest, 0)
    limit = int(floor * (1 + SLACK)) if target.max_ram is None else max(target.max_ram, floor)
    if target.optimize == "size":
        fused = choose_by_program_size(smallest, exchange_of(target), target.in_block)
        names = {item.site: item.choice.kernel.name for item in (*fused, *work)}
        return _upgrade(smallest, size_of, limit, _bytes, lambda item: _smaller_offers(item, names.get(item.site)))
    return _upgrade(smallest, size_of, limit, lambda offer: offer.price.cycles, _faster_offers)


def _smallest(work: Work) -> Work:
    """The kernel with which this step by itself needs the fewest bytes."""
    offers = work.choice.offers
    best = min(range(len(offers)), key=lambda index: (step_bytes(work, offers[index]), offers[index].price.cycles))
    return _take(work, best)


def _take(work: Work, index: int) -> Work:
    return replace(work, choice=replace(work.choice, taken=index))


def step_bytes(work: Work, offer: Offer) -> int:
    """Bytes of a step's tensors and scratch, less what an output may share with an input."""
    sizes = [tensor.nbytes for tensor in (*work.site.reads, *work.site.writes)]
    shared = 0
    for overlap in offer.demand.overlaps:
        out, source = work.site.writes[overlap.output].nbytes, work.site.reads[overlap.input].nbytes
        shared = max(shared, out + source - max(out, source + max(overlap.distance, 0)))
    return sum(sizes) - shared + offer.demand.scratch


def _upgrade(
    work: list[Work], size_of: SizeOf, limit: int, cost: Callable[[Offer], float], better: Callable[[Work], list[int]]
) -> list[Work]:
    """Switches to better kernels, largest gain first, as long as the arena stays within the limit."""
    settled = list(work)

    def gain(index: int) -> float:
        choice = settled[index].choice
        return cost(choice.offers[choice.taken]) - min(map(cost, choice.offers))

    for index in sorted(range(len(settled)), key=lambda index: (-gain(index), index)):
        before = settled[index]
        for offer in better(before):
            settled[index] = _take(before, offer)
            if size_of(settled, limit) <= limit:
                break
            settled[index] = before
    return settled


def _bytes(offer: Offer) -> int:
    return offer.price.size


def _smaller_offers(work: Work, wanted: str | None) -> list[int]:
    """The kernel chosen for the whole program first, then those of fewer bytes than the current one, fewest first."""
    choice = work.choice
    chosen = [index for index, offer in enumerate(choice.offers) if offer.kernel.name == wanted]
    return chosen + list(range(choice.taken))  # offers are sorted by bytes


def _faster_offers(work: Work) -> list[int]:
    """Those faster than the current one, fastest first."""
    offers, cycles = work.choice.offers, work.choice.price.cycles
    faster = [index for index, offer in enumerate(offers) if offer.price.cycles < cycles]
    return sorted(faster, key=lambda index: offers[index].price.cycles)
