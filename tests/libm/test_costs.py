"""Kernels are priced by what calls of the vendored functions take on an emulated Cortex-M4F."""

from __future__ import annotations

import pytest

from benchmarks.libm import costs
from nnbuild.base.helper_costs import helper_cost


@pytest.mark.emulator
def test_costs_are_what_is_counted() -> None:
    assert costs() == 0


def test_numbers_for_a_scale_are_cheaper_than_variables() -> None:
    known, *others = helper_cost("requantize", ("sum", "1518500250", "-9"))
    variable, *_ = helper_cost("requantize", ("sum", "multiplier[c]", "shift[c]"))
    assert known < variable
    assert helper_cost("requantize", ("sum[c]", "1518500250", "-9")) == (known, *others)
