"""A lower bound of the bytes of a model's constants in flash, whichever kernels are taken."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from fractions import Fraction

from nnbuild.model.graph import Array, Graph
from nnbuild.plan.chain import divide
from nnbuild.plan.select import Choice
from nnbuild.plan.target import Target

Content = tuple[str, tuple[int, ...], bytes]


def content(data: Array) -> Content:
    """What makes two constants equal, so that a program holds one of them."""
    return data.dtype.name, data.shape, hashlib.sha256(data.tobytes()).digest()


def least_constants(graph: Graph, target: Target) -> int:
    """Every step takes the kernel of the fewest bytes, and bears an equal part of each constant that others may hold,
    too: together they bear no constant more than once. A device may hold them in another form."""
    if target.device is not None:
        return 0
    work = divide(graph, replace(target, optimize="size"))
    offered = [_offered(choice) for item in work for choice in (item.choice, *item.others)]
    holders = Counter(key for offers in offered for key in {key for offer in offers for key in offer})
    borne = (min(sum(Fraction(n, holders[key]) for key, n in offer.items()) for offer in offers) for offers in offered)
    return int(sum(borne, Fraction()))


def _offered(choice: Choice) -> list[dict[Content, int]]:
    """For each kernel the bytes of its constants."""
    return [{content(data): data.nbytes for data in offer.demand.packed.values()} for offer in choice.offers]
