"""Sums of 8-bit tensors as two products: the same as TFLite's for every pair, for scales of every ratio."""

from __future__ import annotations

import numpy as np

from nnbuild.model.graph import Quant
from nnbuild.numeric.linear_sum import FRACTION, linear_sum, pairs
from nnbuild.numeric.rounding import INT8, saturate
from nnbuild.ops.binary import Formats, combined


def test_every_pair_of_many_scales() -> None:
    chance = np.random.default_rng(0)
    for index in range(12):
        scales = [float(np.float32(0.02 * 2 ** chance.uniform(-2, 2))) for _ in range(3)]
        zeros = [int(chance.integers(-128, 128)) for _ in range(3)]
        left, right, out = (Quant((scale,), zero) for scale, zero in zip(scales, zeros, strict=True))
        function, limits = ("add", INT8) if index % 2 else ("subtract", (out.zero_point, 127))
        wanted = saturate(combined(function, *pairs(), Formats(left, right, out, 8)), *limits)
        slopes = (left.scale / out.scale, right.scale / out.scale * (1 if function == "add" else -1))
        found = linear_sum(wanted, slopes, limits)
        assert found is not None
        a, b = pairs()
        sums = (a * found.first >> FRACTION) + (b * found.second >> FRACTION) + found.start
        assert max(abs(found.first), abs(found.second), int(np.abs(sums).max())) < 1 << 31
        np.testing.assert_array_equal(saturate(sums >> found.shift, *limits), wanted)


def test_nonlinear_functions_are_refused() -> None:
    a, b = pairs()
    assert linear_sum(saturate(a * b >> 7, *INT8), (0.5, 0.5), INT8) is None
