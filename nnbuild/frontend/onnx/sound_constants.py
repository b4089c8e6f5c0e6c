"""Constants of audio front ends: windows, and the weights of mel bands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from nnbuild.frontend.onnx.call import Call
from nnbuild.frontend.onnx.type_numbers import TYPE_NAMES
from nnbuild.model.graph import Array

MOST = 1 << 16
"""Numbers of a window, points of a transform, bands."""


def _typed(call: Call, values: Array) -> list[Array]:
    return [values.astype(TYPE_NAMES.get(call.integer("output_datatype", 1), "float32"))]


def _window(function: Callable[[Array], Array]) -> Callable[[Call, Sequence[Array]], Sequence[Array]]:
    def fold(call: Call, given: Sequence[Array]) -> Sequence[Array]:
        size = int(given[0].reshape(-1)[0])
        call.expect(0 <= size <= MOST, f"its window has {size} numbers.")
        last = float(size if call.integer("periodic", 1) else size - 1)
        return _typed(call, function(np.arange(size, dtype=np.float64) * 2 * np.pi / last))

    return fold


def _mel_weights(call: Call, given: Sequence[Array]) -> Sequence[Array]:
    """[bins, bands]: triangles whose corners are whole bins; a band's last corner is outside of it."""
    bands, length = (int(values.reshape(-1)[0]) for values in given[:2])
    rate, low, high = (float(values.reshape(-1)[0]) for values in given[2:])
    call.expect(0 < bands <= MOST and 0 < length <= MOST and rate > 0, "its sizes are out of range.")
    count = length // 2 + 1
    call.within_tables(count * bands)
    ends = 2595 * np.log10(1 + np.array([low, high]) / 700)
    hertz = 700 * (10 ** ((ends[0] + np.arange(bands + 2) * (ends[1] - ends[0]) / (bands + 2)) / 2595) - 1)
    corners = ((length + 1) * hertz // rate).astype(np.int64)
    rise = bool((np.diff(corners) >= 0).all()) and corners[0] >= 0 and corners[-2] < count and corners[-1] <= count
    call.expect(rise, f"its bands from {low:g} to {high:g} Hz do not lie within half its rate of {rate:g}.")
    begin, middle, end = (corners[i : i + bands] for i in range(3))
    at = np.arange(count)[:, None]
    rising = (at - begin) / np.maximum(middle - begin, 1)
    rising = np.where((begin <= at) & (at < middle), rising, at == middle)
    falling = (end - at) / np.maximum(end - middle, 1)
    return _typed(call, np.where((middle <= at) & (at < end), falling, rising))


FOLDS: Mapping[str, Callable[[Call, Sequence[Array]], Sequence[Array]]] = {
    "HannWindow": _window(lambda at: 0.5 - 0.5 * np.cos(at)),
    "HammingWindow": _window(lambda at: 25 / 46 - 21 / 46 * np.cos(at)),
    "BlackmanWindow": _window(lambda at: 0.42 - 0.5 * np.cos(at) + 0.08 * np.cos(2 * at)),
    "MelWeightMatrix": _mel_weights,
}
