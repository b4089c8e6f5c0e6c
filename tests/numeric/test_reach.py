"""Values beyond what a format holds."""

from __future__ import annotations

import numpy as np

from nnbuild.numeric.reach import cut_off, cut_outputs, ends


def test_a_few_samples_a_little_beyond_are_no_news() -> None:
    low, high = ends("int8", 1 / 255, -128)
    assert (low, round(high, 6)) == (0, 1)
    values = np.full((200, 2), 0.5)
    values[0] = 1.06, -0.06
    assert cut_off(values, low, high) == 0
    values[1] = 0.5, -0.1
    assert cut_off(values, low, high) == 0
    values[2] = 1.1, 0.5
    assert cut_off(values, low, high) == 2
    assert cut_off(values[2], low, high) == 1


def test_outputs_show_their_format_by_any_of_their_numbers() -> None:
    raw = np.array([[127], [127], [-100]], np.int8)
    y = (raw + 128.0) * 0.5
    assert cut_outputs(np.array([[127.5], [300.0], [14.0]]), y, raw, 0.5) == 1
    assert cut_outputs(np.array([[127.5], [300.0], [14.0]]), y, y.astype(np.float32), 1.0) == 0
