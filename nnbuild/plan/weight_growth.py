"""Limits how much fast kernels enlarge a large model's constants: much larger ones must save much time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf

import numpy as np

from nnbuild.plan.chain import Work
from nnbuild.plan.code_size import total
from nnbuild.plan.select import Alternative, Choice, Offer, Price
from nnbuild.plan.shared_code import divide_arrays

ALLOWANCE = 256 * 1024
"""Bytes that fast kernels may add to the constants, compared with kernels that are not much slower."""

PC_ALLOWANCE = 384 * 1024
"""The same for constants in a PC's memory."""

FLASH_ALLOWANCE = 160 * 1024
"""The same where slow flash reads are priced."""

BUCKETS = 4096
"""Resolution of the search: a limit of bytes is divided into so many units."""

MAX_SLOWDOWN = 3
"""Factor beyond which a kernel counts as much slower; kernels that trade bytes for fewer products, such as Winograd's,
gain less than this."""


def within_limit(
    choices: list[Choice],
    limit: int,
    much: float = inf,
    fits: Callable[[list[Choice]], bool] = lambda choices: True,
    with_code: bool = False,
) -> list[Choice]:
    """Switches to kernels with smaller constants, or `with_code` with smaller constants and code, until their sum is
    within `limit`, the cheapest savings per byte first. Never to a kernel more than `much` times slower than the
    fastest, nor to one with which the whole does not fit."""
    size_of = _size_with_code(choices) if with_code else _size
    if sum(_least(choice, much, with_code) for choice in choices) > limit:  # no search ends before the smallest
        smallest = [_smallest(choice, much, size_of) for choice in choices]
        if fits(smallest):
            return smallest
    chosen, refused = list(choices), set[tuple[int, int]]()
    while sum(choice.price.weights for choice in chosen) + (_code(chosen) if with_code else 0) > limit:
        found = [each for each in _savings(chosen, much, size_of) if each[1:] not in refused]
        if not found:
            break
        _, index, number = min(found)
        before = chosen[index]
        chosen[index] = replace(before, taken=number)
        if not fits(chosen):
            chosen[index] = before
            refused.add((index, number))
    return chosen


def _able(choice: Choice, much: float) -> list[tuple[int, Offer]]:
    """The kernel that is taken, and those that may take its place."""
    return [(choice.taken, choice.offers[choice.taken]), *_fast_enough(choice, much)]


def _least(choice: Choice, much: float, with_code: bool) -> int:
    """A lower bound of its bytes: as if all shared routines were there already."""
    prices = [offer.price for _, offer in _able(choice, much)]
    return min(price.weights + (price.code.own if with_code else 0) for price in prices)


def _smallest(choice: Choice, much: float, size_of: Callable[[Price], float]) -> Choice:
    number, _ = min(_able(choice, much), key=lambda each: size_of(each[1].price))
    return replace(choice, taken=number)


def _code(choices: list[Choice]) -> int:
    return total(choice.price.code for choice in choices)


def _size(price: Price) -> float:
    return price.weights


def _size_with_code(choices: list[Choice]) -> Callable[[Price], float]:
    """Bytes of constants and code; a routine that several of the steps call is divided among them."""
    users = Counter(name for choice in choices for name in choice.price.code.shared)

    def size(price: Price) -> float:
        shared = sum(size / max(1, users[name]) for name, size in price.code.shared.items())
        return price.weights + price.code.own + shared

    return size


def _savings(choices: list[Choice], much: float, size_of: Callable[[Price], float]) -> Iterator[tuple[float, int, int]]:
    """(cycles per byte saved, step, offer) for each kernel with fewer bytes."""
    for index, choice in enumerate(choices):
        size = size_of(choice.price)
        for number, offer in _fast_enough(choice, much):
            saved = size - size_of(offer.price)
            if saved > 0:
                yield max(0.0, offer.price.cycles - choice.price.cycles) / saved, index, number


def _fast_enough(choice: Choice, much: float) -> list[tuple[int, Offer]]:
    fastest = min(offer.price.cycles for offer in choice.offers)
    return [(number, offer) for number, offer in enumerate(choice.offers) if offer.price.cycles <= much * fastest]


def limit_weight_growth(work: list[Work], spare: int = ALLOWANCE) -> list[Work]:
    """Gives up kernels that would enlarge a large model's constants for little speed. The bytes go to those that gain
    most; each of the target's sets is treated separately."""
    shared = any(site.shared for item in work for site in (item.site, *item.site.tail))
    sets = [_limit_choices([item.choice for item in work], spare, shared)]
    for number in range(len(work[0].others) if work else 0):
        sets.append(_limit_choices([item.others[number] for item in work], spare, shared))
    return [replace(item, choice=best, others=tuple(others)) for item, best, *others in zip(work, *sets, strict=True)]


def _limit_choices(given: list[Choice], spare: int, shared: bool) -> list[Choice]:
    if sum(choice.price.weights for choice in given) <= spare:
        return given
    choices = divide_arrays(given) if shared else given
    limit = sum(_least(choice, inf, False) for choice in choices) + spare
    if sum(choice.price.weights for choice in choices) <= limit:
        return given
    fast = sum(_least(choice, MAX_SLOWDOWN, False) for choice in choices) + spare
    found = _fastest(choices, limit) or _fastest(choices, fast) or within_limit(choices, fast, MAX_SLOWDOWN)
    return [
        _refuse_heavier(replace(before, taken=chosen.taken)) if chosen.taken != before.taken else before
        for before, chosen in zip(given, found, strict=True)
    ]


def _fastest(choices: list[Choice], limit: int) -> list[Choice] | None:
    """The kernels with the fewest total cycles within `limit` bytes, none of them much slower than the fastest, by
    dynamic programming over units of the limit; None where there are none."""
    unit = -(-limit // BUCKETS)
    cycles, taken = np.zeros(BUCKETS + 1), []
    for choice in choices:
        found, number = np.full(BUCKETS + 1, np.inf), np.zeros(BUCKETS + 1, np.int64)
        for at, offer in _fast_enough(choice, MAX_SLOWDOWN):
            size = -(-offer.price.weights // unit)
            whole = np.full(BUCKETS + 1, np.inf)
            whole[size:] = cycles[: max(BUCKETS + 1 - size, 0)] + offer.price.cycles
            better = whole < found
            found[better], number[better] = whole[better], at
        taken.append(number)
        cycles = found
    if np.isinf(cycles[-1]):
        return None
    left, result = BUCKETS, []
    for choice, number in zip(reversed(choices), reversed(taken), strict=True):
        result.append(replace(choice, taken=int(number[left])))
        left -= -(-result[-1].price.weights // unit)
    return result[::-1]


def _refuse_heavier(choice: Choice) -> Choice:
    """Drops the offers with larger constants than the one taken, and records why."""
    weights = choice.price.weights
    kept = tuple(offer for offer in choice.offers if offer.price.weights <= weights)
    heavier = [offer for offer in choice.offers if offer.price.weights > weights]
    refused = (
        Alternative(
            offer.kernel.name,
            reason=f"its constants are {offer.price.weights - weights:,} bytes larger, for too little time saved",
        )
        for offer in heavier
    )
    taken = next(index for index, offer in enumerate(kept) if offer is choice.offers[choice.taken])
    return Choice(kept, (*choice.refused, *refused), taken)
