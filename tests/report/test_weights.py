"""What a report says of weights: the table of what each byte cost, the page's section, the comparison."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.report.diff import as_text, difference
from nnbuild.report.facts import as_object, from_object
from nnbuild.report.page import page
from nnbuild.report.weights import weights_text
from tests.report.samples import facts


def test_the_table_says_what_each_byte_cost() -> None:
    weights = facts().weights
    assert weights is not None
    assert weights_text(weights).splitlines() == [
        "weights of     stored            weights  zeros  values  bytes before  after  % lost  % a KB saved",
        "─────────────  ────────────────  ───────  ─────  ──────  ────────────  ─────  ──────  ────────────",
        "a              90% pruned (4x1)    1,000    90%      90         1,200    300    2.00          2.28",
        "b (recurrent)  as it is              500     1%     200           600    600",
        "─────────────  ────────────────  ───────  ─────  ──────  ────────────  ─────  ──────  ────────────",
        "whole model                        1,500    60%                 2,400  1,500",
        "accuracy on the labels, in %: float 99.00 → int8 98.50 → compressed 98.25 (50 samples, samples that "
        "were not used for fitting)",
    ]


def test_the_page_shows_them() -> None:
    text = page(facts())
    assert " of the weights are zero. Changed for --prune: 2,400 → 1,500 bytes of flash." in text
    assert "90% pruned (4x1)" in text
    plain = replace(facts(), weights=None)
    assert "All weights are stored unencoded" in page(plain)
    assert from_object(as_object(facts())) == facts()
    assert from_object(as_object(plain)) == plain


def test_builds_are_compared_by_them() -> None:
    one = facts()
    assert one.weights is not None
    other = replace(
        one, weights=replace(one.weights, path=(*one.weights.path[:2], replace(one.weights.path[2], value=90.0)))
    )
    text = as_text(difference(one, other))
    assert "with the weights stored" in text
    assert "weights that are zero" in text
