"""What is asked of the weights, as it is typed: understood, or refused with what to type instead."""

from __future__ import annotations

import pytest

from nnbuild.base.errors import UsageError
from nnbuild.compress.options import weight_options

BYTES = "it is not a number of bytes. For example: --flash 64K or --flash 48000."
SHARES = "Give a share of the weights such as 0.9, one per layer such as fc1=0.9,fc2=0.5, by-layer, or auto."


@pytest.mark.parametrize(
    ("prune", "whole", "single"),
    [
        ("0.9", 0.9, {}),
        (0.5, 0.5, {}),
        ("auto", "auto", {}),
        ("by-layer", "by-layer", {}),
        ("fc1=0.9,fc2=.5", None, {"fc1": 0.9, "fc2": 0.5}),
        ({"a=b": 0.25}, None, {"a=b": 0.25}),
        ("a=b=0.25", None, {"a=b": 0.25}),
        ("a,1=0.5,b c=2=1e-1,é/ü=0.25", None, {"a,1": 0.5, "b c=2": 0.1, "é/ü": 0.25}),
    ],
)
def test_shares(prune: object, whole: float | str | None, single: dict[str, float]) -> None:
    found = weight_options(prune, None, None, None)
    assert (found.prune, found.by_layer) == (whole, single)
    assert found.any
    assert found.needs_search == (whole == "auto")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("0", f"--prune 0: no weight would be removed. {SHARES}"),
        ("a=0,b=0", f"--prune a=0,b=0: no weight would be removed. {SHARES}"),
        ("1", f"--prune 1: nothing would be left. {SHARES}"),
        ("1.5", f"--prune 1.5: it is not a share of the weights from 0 to less than 1. {SHARES}"),
        ("nan", f"--prune nan: it is not a share of the weights from 0 to less than 1. {SHARES}"),
        ("much", f"--prune much: it is not a share of the weights from 0 to less than 1. {SHARES}"),
        ("a=0.5,b=0,a=0.5", "--prune a=0.5,b=0,a=0.5: layer 'a' is named twice. Name it once."),
        ("a=0.5,", f"--prune a=0.5,: it is not a list of layers, each with a share. {SHARES}"),
        ("a=0.5,b", f"--prune a=0.5,b: it is not a list of layers, each with a share. {SHARES}"),
        ("=0.5", f"--prune =0.5: it is not a list of layers, each with a share. {SHARES}"),
        ("a=", f"--prune a=: it is not a share of the weights from 0 to less than 1. {SHARES}"),
    ],
)
def test_what_is_no_share(given: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        weight_options(given, None, None, None)
    assert str(caught.value) == said


WIDTHS = (
    "there is no such choice. Give one of 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, auto, one per layer such as fc1=4,"
    "fc2=2.5, or a default first as in 3,fc2=2.5."
)


@pytest.mark.parametrize(
    ("given", "largest"),
    [
        ("2", (1, 1)),
        (2.5, (2, 2)),
        ("3", (3, 3)),
        ("3.5", (5, 5)),
        (4, (7, 7)),
        ("8", (127, 127)),
        ("auto", (127, 127)),
        ("a=4", (7, 127)),
        ("3,a=2.5", (2, 3)),
        ("3,b,c=2", (3, 3)),
        ({"a": 2.5, "b,c": "5"}, (2, 127)),
    ],
)
def test_bits(given: object, largest: tuple[int, int]) -> None:
    found = weight_options(None, None, given, None)
    assert (found.max_integer("a"), found.max_integer("b")) == largest
    assert found.any == (given != "8")


@pytest.mark.parametrize("given", ["1", "2.7", "3,", "3,a", "a=", "=3", "a=3,b", "auto,a=3", "a=auto", "a=nan"])
def test_what_is_no_number_of_bits(given: str) -> None:
    with pytest.raises(UsageError) as caught:
        weight_options(None, None, given, None)
    assert str(caught.value) == f"--weights-bits {given}: {WIDTHS}"


def test_a_layer_is_named_once() -> None:
    with pytest.raises(UsageError) as caught:
        weight_options(None, None, "3,a=2,a=2.5", None)
    assert str(caught.value) == "--weights-bits 3,a=2,a=2.5: layer 'a' is named twice. Name it once."


@pytest.mark.parametrize(("given", "found"), [("64K", 65536), ("48000", 48000), ("1m", 1 << 20), ("2KB", 2048)])
def test_bytes(given: str, found: int) -> None:
    assert weight_options(None, None, None, given).flash == found


def test_what_is_no_other_wish() -> None:
    for wrong, said in {
        (None, "1", None, None): "--share 1: weights can share 2 to 256 different values. For example: --share 16.",
        (None, "x", None, None): "--share x: weights can share 2 to 256 different values. For example: --share 16.",
        (None, None, 9, None): f"--weights-bits 9: {WIDTHS}",
        (None, None, None, "0"): f"--flash 0: {BYTES}",
        (
            None,
            None,
            None,
            "6G",
        ): f"--flash 6G: {BYTES}",
    }.items():
        with pytest.raises(UsageError) as caught:
            weight_options(*wrong)
        assert str(caught.value) == said


@pytest.mark.parametrize(("drop", "shown"), [(-1.0, "-1"), (101.0, "101"), (float("nan"), "nan")])
def test_what_is_no_drop(drop: float, shown: str) -> None:
    with pytest.raises(UsageError) as caught:
        weight_options(None, 16, None, None, drop)
    assert str(caught.value) == f"--accuracy-drop {shown}: it is a number of percentage points. Give 0 to 100."


def test_nothing_is_wished_for() -> None:
    assert not weight_options(None, None, None, None, 0.5).any


def test_a_limit_alone_changes_no_weights() -> None:
    """A budget with room must not make a program slower."""
    budget = weight_options(None, None, None, "1M")
    assert budget.any and not budget.changes_weights
    for given in ((0.5, None, None), (None, 16, None), (None, None, "auto"), (None, None, "a=4")):
        assert weight_options(*given, None).changes_weights
