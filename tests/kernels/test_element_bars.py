"""Integer layers without weights stay within the instructions an element that the benchmark allows on a Cortex-M4."""

from __future__ import annotations

import pytest

from benchmarks.elements import bars, measured


@pytest.mark.emulator
def test_no_layer_takes_more_instructions_than_allowed() -> None:
    found = {(bar.name, bar.form): (cost, bar.most) for bar, _, cost in measured(list(bars()))}
    assert len(found) == len(list(bars()))
    assert {key: pair for key, pair in found.items() if pair[0] > pair[1]} == {}
