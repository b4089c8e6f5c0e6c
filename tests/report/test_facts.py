"""Facts survive being written as JSON, and what is no such file is refused by what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from nnbuild.report.facts import as_object, from_object
from tests.report import samples


@pytest.mark.parametrize("make", [samples.facts, samples.not_run, lambda: samples.large(40)])
def test_what_was_written_is_read_as_it_was(make: Callable[[], Any]) -> None:
    facts = make()
    assert from_object(json.loads(json.dumps(as_object(facts), allow_nan=False))) == facts


def test_what_is_no_finite_number_survives() -> None:
    layers = (replace(samples.layer("a"), priced=float("inf")),)
    facts = replace(samples.facts(), layers=layers)
    assert from_object(json.loads(json.dumps(as_object(facts), allow_nan=False))).layers == layers


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """The sample's JSON with one value replaced, or left out where `to` is ..."""
    value: dict[str, Any] = json.loads(json.dumps(as_object(samples.facts())))
    at: Any = value
    for step in path[:-1]:
        at = at[step]
    if to is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = to
    return value


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        ([], "it is not a report from nnbuild"),
        ({"verdict": "pass"}, "it is not a report from nnbuild"),
        (changed("version", to=99), "it is a report of version 99, and this nnbuild reads version 1"),
        (changed("arena", to=...), "arena is missing"),
        (changed("layers", 1, "macs", to=...), "layers[1].macs is missing"),
        (changed("arena", to="big"), "arena is 'big'"),
        (changed("arena", to=True), "arena is 'True'"),
        (changed("nodes", 0, "share", to="half"), "nodes[0].share is 'half'"),
        (changed("layers", to={}), "layers is '{}'"),
        (changed("buffers", 0, "role", to="guest"), "buffers[0].role is 'guest'"),
        (changed("memories", 0, "parts", 0, to=["weights"]), "memories[0].parts[0] is \"['weights']\""),
        (changed("stack", to=3), "stack is not an object"),
    ],
)
def test_what_is_wrong_is_named(value: Any, cause: str) -> None:
    with pytest.raises(ValueError) as raised:
        from_object(value)
    assert str(raised.value) == cause


def test_figures_of_the_whole() -> None:
    facts = samples.facts()
    assert (facts.macs, facts.cost, facts.accuracy, facts.agreement, facts.passed) == (1500, 3000.0, 0.9, 0.9, True)
    quiet = samples.not_run()
    assert (quiet.cost, quiet.accuracy, quiet.agreement, quiet.passed) == (3600.0, None, None, True)
