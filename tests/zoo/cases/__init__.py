"""Every case of the zoo: one module a family of layers, each with a `cases()` that lists its own."""

from __future__ import annotations

from collections import Counter

from tests.zoo.case import Case
from tests.zoo.cases import (
    activation,
    convolution,
    dense,
    merge,
    nets,
    normalization,
    operations,
    pooling,
    recurrent,
    shape,
    topology,
    transpose,
    wrappers,
)

_FAMILIES = (
    dense,
    activation,
    convolution,
    transpose,
    pooling,
    normalization,
    shape,
    merge,
    recurrent,
    wrappers,
    topology,
    operations,
    nets,
)


def all_cases() -> list[Case]:
    """All cases, in a fixed order; no two share a name."""
    cases = [case for family in _FAMILIES for case in family.cases()]
    twice = [name for name, count in Counter(case.name for case in cases).items() if count > 1]
    if twice:
        raise ValueError(f"these case names occur twice: {', '.join(twice)}")
    return cases


def cases_of(writer: str) -> list[Case]:
    """The cases that `writer` can write: the others are listed with the version of Keras that has them."""
    return [case for case in all_cases() if writer in case.writers]
