"""Two builds side by side."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nnbuild.report.diff import Figure, as_object, as_text, difference, worst
from nnbuild.report.facts import Facts, StackUse
from tests.report import samples

A = samples.facts()


def figure(found: object, name: str) -> Figure:
    return next(each for each in found.figures if each.name == name)  # type: ignore[attr-defined]


def test_a_build_does_not_differ_from_itself() -> None:
    found = difference(A, A)
    assert (found.changes, found.layers, worst(found).worse) == ((), (), 0.0)
    assert as_text(found).endswith("A and B are the same build.")


def better() -> Facts:
    check = A.check
    assert check is not None
    layers = (replace(A.layers[0], cost=750, kernel="scalar", weights=50), *A.layers[1:])
    options = (("board", "stm32"), ("quantize", "int16"))
    return replace(
        A,
        layers=layers,
        arena=1152,
        precision="int16",
        check=replace(check, mean=2250.0),
        origin=replace(A.origin, options=options, digest="f" * 16),
    )


def test_what_changed_is_listed() -> None:
    found = difference(A, better())
    changes = [(change.what, change.a, change.b) for change in found.changes]
    assert changes == [
        ("precision", "int8", "int16"),
        ("quantize", "int8", "int16"),
        ("computation", "0123456789abcdef", "f" * 16),
    ]
    assert figure(found, "one run").change == pytest.approx(-0.25)
    assert figure(found, "arena").change == pytest.approx(1.0)
    (row,) = found.layers
    assert (row.name, row.kernel_a, row.kernel_b) == ("a", "smlad", "scalar")
    assert (row.cost_a, row.cost_b, row.bytes_a, row.bytes_b) == (1500, 750, 400, 350)
    assert (worst(found).name, worst(found).worse) == ("arena", pytest.approx(1.0))


def test_costs_in_different_units_are_not_compared() -> None:
    found = difference(A, samples.not_run())
    assert figure(found, "one run").change is None
    assert figure(found, "accuracy").change is None
    assert found.unit == ""
    assert "The costs are in different units and cannot be compared." in as_text(found)
    assert as_object(found)["unit"] is None


@pytest.mark.parametrize(
    ("unit", "a", "b", "more", "worse"),
    [
        ("bytes", 100, 110, False, 0.1),
        ("bytes", 100, 90, False, 0.0),
        ("bytes", 0, 0, False, 0.0),
        ("bytes", 0, 8, False, float("inf")),
        ("bytes", None, 8, False, 0.0),
        ("share", 0.99, 0.97, True, 0.02),
        ("share", 0.97, 0.99, True, 0.0),
    ],
)
def test_worse_is_told_from_better(unit: str, a: float | None, b: float | None, more: bool, worse: float) -> None:
    assert Figure("f", unit, a, b, more_is_better=more).worse == pytest.approx(worse)


def test_a_layer_that_only_one_has_is_shown() -> None:
    found = difference(A, replace(A, layers=A.layers[:2]))
    (row,) = found.layers
    assert (row.name, row.kernel_b, row.cost_b, row.bytes_b) == ("sum", None, None, None)


def test_layers_of_one_name_are_told_apart() -> None:
    twice = (samples.layer("dense", 10), samples.layer("dense", 20))
    found = difference(replace(A, layers=twice), replace(A, layers=(twice[0], replace(twice[1], cost=30))))
    assert [(row.cost_a, row.cost_b) for row in found.layers] == [(20, 30)]


def test_the_text_lines_up() -> None:
    stack = StackUse(300, 2048, 412, 2816, ())
    text = as_text(difference(A, replace(A, stack=stack)))
    assert [line.split() for line in text.splitlines() if line.startswith("stack")] == [
        ["stack", "of", "a", "run,", "bytes", "248", "300", "+20.97", "%"]
    ]
