"""Chooses kernels for a small program: a routine or an array that one step already uses costs the others nothing.

A few more bytes are accepted where they make the whole much faster: a routine's bytes are weighed once against the gain
of all steps that may call it. Bytes weigh more where weights give up accuracy for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from math import log

from nnbuild.plan.chain import Work
from nnbuild.plan.code_size import Code, total
from nnbuild.plan.select import Choice, Offer, Price
from nnbuild.plan.target import Target

EXCHANGE = 3
"""Percent of its time that a program must save for each percent of bytes added."""
COMPRESSED_EXCHANGE = 6
"""The same where weights are changed to take fewer bytes."""


def choose_by_program_size(work: list[Work], exchange: float | None = EXCHANGE, apart: bool = False) -> list[Work]:
    """The kernels with which the whole program takes the fewest bytes or, if there is an exchange, a few more for much
    less time; each of the target's sets is treated separately. With `apart` equal arrays are stored for each step."""
    sets = [_choose_together([item.choice for item in work], exchange, apart)]
    for number in range(len(work[0].others) if work else 0):
        sets.append(_choose_together([item.others[number] for item in work], exchange, apart))
    return [replace(item, choice=best, others=tuple(others)) for item, best, *others in zip(work, *sets, strict=True)]


def exchange_of(target: Target) -> float | None:
    """Percent of time that one percent of bytes is worth; None where no bytes are traded."""
    if target.min_size:
        return None
    return COMPRESSED_EXCHANGE if target.compressed else EXCHANGE


def _choose_together(choices: list[Choice], exchange: float | None, apart: bool) -> list[Choice]:
    """Starts from the best kernel for each step alone, and from the best if all routines were already there."""
    sharing = share_arrays(choices, apart)
    free = [_take_smallest(choice, _own_bytes) for choice in sharing]
    least = min((_minimize(start) for start in (sharing, free)), key=program_bytes)
    found = least if exchange is None else _trade_bytes_for_cycles(least, exchange)
    return [replace(choice, taken=like.taken) for choice, like in zip(choices, found, strict=True)]


def share_arrays(choices: list[Choice], apart: bool = False) -> list[Choice]:
    """The same with arrays that several steps may store, such as weights of a layer that is used at every time step,
    among the routines, of which a program holds one; unless they are stored apart."""
    if apart:
        return choices
    common = _steps_with_each(choices)
    if not common:
        return choices
    return [replace(choice, offers=tuple(_sharing(offer, common) for offer in choice.offers)) for choice in choices]


def divide_arrays(choices: list[Choice]) -> list[Choice]:
    """The same with each array's bytes divided among the steps that may store it, where only weights count."""
    steps = _steps_with_each(choices)

    def divided(offer: Offer) -> Offer:
        spared = sum(size - size // steps.get(name, 1) for name, size in offer.arrays.items())
        return replace(offer, price=replace(offer.price, weights=offer.price.weights - spared))

    return [replace(choice, offers=tuple(map(divided, choice.offers))) for choice in choices]


def _steps_with_each(choices: list[Choice]) -> dict[str, int]:
    """How many steps may store an array, of those that several may."""
    makers = Counter(name for choice in choices for name in {name for offer in choice.offers for name in offer.arrays})
    return {name: count for name, count in makers.items() if count > 1}


def _sharing(offer: Offer, common: Collection[str]) -> Offer:
    arrays = {name: size for name, size in offer.arrays.items() if name in common}
    price = offer.price

    def code() -> Code:
        return replace(price.code, shared={**price.code.shared, **arrays})

    return replace(offer, price=replace(price, weights=price.weights - sum(arrays.values()), measure=code))


def program_bytes(choices: list[Choice]) -> int:
    """Bytes of constants and code of all chosen kernels."""
    return sum(choice.price.weights for choice in choices) + total(choice.price.code for choice in choices)


def _minimize(choices: list[Choice]) -> list[Choice]:
    """Remakes each choice in turn, given the others, until the program stops shrinking."""
    settled = list(choices)
    while True:
        before = program_bytes(settled)
        for index, choice in enumerate(settled):
            others = Counter(name for other in settled for name in other.price.code.shared)
            others.subtract(choice.price.code.shared.keys())
            there = frozenset(name for name, count in others.items() if count > 0)
            settled[index] = _take_smallest(choice, partial(_added_bytes, there=there))
        if program_bytes(settled) >= before:
            return settled


def _own_bytes(price: Price) -> int:
    """Bytes of a kernel if all its routines are there already."""
    return price.weights + price.code.own


def _added_bytes(price: Price, there: frozenset[str]) -> int:
    """Bytes that a kernel adds to a program with these routines."""
    shared = price.code.shared.items()
    return _own_bytes(price) + sum(size for name, size in shared if name not in there)


def _take_smallest(choice: Choice, size: Callable[[Price], int]) -> Choice:
    """Takes the smallest offer, the fastest of equals; the current one stays unless another is better."""

    def key(offer: Offer) -> tuple[float, ...]:
        return size(offer.price), offer.price.cycles, offer is not choice.offers[choice.taken]

    return replace(choice, taken=min(range(len(choice.offers)), key=lambda index: key(choice.offers[index])))


def _trade_bytes_for_cycles(choices: list[Choice], exchange: float) -> list[Choice]:
    """Adds or removes routines, one set at a time, by which the program gains most in time or bytes; also takes better
    kernels that need no new routine."""
    while True:
        tries = [choices, *_neighbours(choices, exchange)]
        best = min(tries, key=partial(cost, exchange=exchange))
        if best is choices:
            return choices
        choices = best


def cost(choices: list[Choice], exchange: float) -> float:
    """Lower is better: log of time plus `exchange` times log of bytes, arrays of several steps being shared already."""
    cycles = sum(choice.price.cycles for choice in choices)
    return log(cycles + 1) + exchange * log(program_bytes(choices) + 1)


def _neighbours(choices: list[Choice], exchange: float) -> Iterator[list[Choice]]:
    """The choices after adding each new set of routines, after each single improvement that needs none, and after
    removing each routine."""
    there = frozenset(name for choice in choices for name in choice.price.code.shared)
    byte = exchange * sum(choice.price.cycles for choice in choices) / max(program_bytes(choices), 1)
    """Cycles that one byte is worth."""
    wanted: dict[frozenset[str], list[int]] = {}
    for index, choice in enumerate(choices):
        for offer in choice.offers:
            if offer.price.cycles < choice.price.cycles or _own_bytes(offer.price) < _own_bytes(choice.price):
                wanted.setdefault(frozenset(offer.price.code.shared) - there, []).append(index)
    for routines in sorted(wanted, key=sorted):
        yield _rechosen(choices, wanted[routines], there | routines, byte)
    for routine in sorted(there):
        callers = [index for index, choice in enumerate(choices) if routine in choice.price.code.shared]
        yield _rechosen(choices, callers, there - {routine}, byte)


def _rechosen(choices: list[Choice], places: Iterable[int], there: frozenset[str], byte: float) -> list[Choice]:
    """Remakes the choices at `places`, given these routines."""
    result = list(choices)
    for index in set(places):
        prices = [offer.price for offer in choices[index].offers]
        costs = [price.cycles + byte * _added_bytes(price, there) for price in prices]
        result[index] = replace(choices[index], taken=costs.index(min(costs)))
    return result
