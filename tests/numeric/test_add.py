"""Sums and differences of integers, down to the smallest output scales for which the reference is defined."""

from __future__ import annotations

import numpy as np
import pytest

from nnbuild.base.errors import UsageError
from nnbuild.model.graph import Quant, Tensor
from nnbuild.numeric.elementwise import add, add_scales, subtract, sum_limit
from nnbuild.numeric.rounding import limits, saturate
from nnbuild.ops.binary import Binary
from nnbuild.quantize.rewrite import _check_scales
from tests.support.graphs import single


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("function", ["add", "subtract"])
def test_sums_are_near_the_real_ones_down_to_the_limit(dtype: str, function: str) -> None:
    """For all scales: within two steps of the real result; overflow of 32 bits never shows."""
    bits = 8 * np.dtype(dtype).itemsize
    low, high = limits(dtype)
    chance = np.random.default_rng(bits)
    for _ in range(300):
        scales = 2.0 ** chance.uniform(-12, 4, 2)
        out = float(2 * scales.max() / sum_limit(bits) * 2.0 ** chance.uniform(0.001, np.log2(sum_limit(bits)) + 2))
        zeros = tuple(int(chance.integers(-128, 128)) for _ in range(3)) if bits == 8 else (0, 0, 0)
        a, b = (np.append(chance.integers(low, high + 1, 60), [low, high, zero]) for zero in zeros[:2])
        rule = add if function == "add" else subtract
        found = saturate(rule(a, b, zeros, add_scales(*scales, out, bits)), low, high)
        right = scales[0] * (a - zeros[0]) + (1 if function == "add" else -1) * scales[1] * (b - zeros[1])
        wanted = np.clip(right / out + zeros[2], low, high)
        lost = 2 * scales.max() / out / 2 ** (20 if bits == 8 else 15)  # the spare bits limit the precision of a sum
        assert np.abs(found - wanted).max() <= 1.5 + 2 * lost, (scales, out, zeros)


@pytest.mark.parametrize(("dtype", "ratio", "fits"), [("int8", 2**18, True), ("int8", 2**19, False),
                                                      ("int16", 2**13, True), ("int16", 2**14, False)])  # fmt: skip
def test_an_output_scale_far_below_the_inputs_is_refused(dtype: str, ratio: int, fits: bool) -> None:
    op = single(Binary("subtract"), [(4,), (4,)]).ops[0]
    tensors = [Tensor(n, (4,), dtype, Quant((s,), 0)) for n, s in (("x0", 3.0), ("x1", 1.5), ("y0", 3 / ratio))]
    if fits:
        _check_scales(op, tensors)
        return
    with pytest.raises(UsageError, match="too far apart for integers"):
        _check_scales(op, tensors)
