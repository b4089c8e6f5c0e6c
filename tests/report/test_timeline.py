"""The arena over a run: boxes lie where the buffers do, and shared bytes are shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nnbuild.report.picture import Box, Label, Line
from nnbuild.report.timeline import timeline
from tests.report import samples


@pytest.mark.parametrize("wide", [True, False])
def test_everything_is_inside_the_picture(wide: bool) -> None:
    picture = timeline(samples.large(120), wide)
    for shape in picture.shapes:
        if isinstance(shape, Box):
            assert shape.x >= 0
            assert shape.x + shape.width <= picture.width + 0.1
            assert shape.y >= 0
            assert shape.y + shape.height <= picture.height
        if isinstance(shape, Label):
            assert 0 <= shape.x <= picture.width


def test_height_is_bytes_and_width_is_steps() -> None:
    boxes = {s.title.split(":")[0]: s for s in timeline(samples.facts()).shapes if isinstance(s, Box) and s.title}
    a, b, scratch = boxes["a"], boxes["b"], boxes["scratch of b"]
    assert a.height == pytest.approx(b.height)
    assert a.height == pytest.approx(4 * scratch.height)
    assert a.width == pytest.approx(3 * scratch.width)
    assert a.y == pytest.approx(b.y + b.height)  # addresses grow upwards


def test_shared_bytes_are_marked_once() -> None:
    shared = [s for s in timeline(samples.facts()).shapes if isinstance(s, Box) and s.paint == "overlap"]
    assert [box.title for box in shared] == ["a and sum share 256 bytes"]


def test_the_peak_is_marked() -> None:
    picture = timeline(samples.facts())
    band = next(s for s in picture.shapes if isinstance(s, Box) and s.paint == "peak")
    scratch = next(s for s in picture.shapes if isinstance(s, Box) and s.title.startswith("scratch"))
    assert (band.x, band.width) == (scratch.x, scratch.width)
    assert sum(isinstance(s, Line) and s.paint == "peak" for s in picture.shapes) == 2
    assert "peak 576\N{NO-BREAK SPACE}B in b" in [s.text for s in picture.shapes if isinstance(s, Label)]


def test_without_a_peak_nothing_is_marked() -> None:
    picture = timeline(replace(samples.facts(), peak=None))
    assert not any(getattr(shape, "paint", "") == "peak" for shape in picture.shapes)


@pytest.mark.parametrize(
    ("arena", "top"), [(576, "576"), (9_999, "9,999"), (266_000, "260 KB"), (17_600, "17.2 KB"), (5 << 20, "5 MB")]
)
def test_addresses_are_short_and_in_one_unit(arena: int, top: str) -> None:
    picture = timeline(replace(samples.facts(), arena=arena), wide=False)
    texts = [s.text for s in picture.shapes if isinstance(s, Label) and s.anchor == "end"]
    assert texts[-1] == top
    assert {text.partition(" ")[2] for text in texts} == {top.partition(" ")[2]}
