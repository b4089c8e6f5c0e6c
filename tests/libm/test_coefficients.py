"""The constants in the sources are those that script/libm_coefficients.py computes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Run = Callable[..., str]
SCRIPT = Path(__file__).parents[2] / "script" / "libm_coefficients.py"
# The exponential's constants serve these too.
SHARED = {"expf": ("expf", "logisticpartsf")}


@pytest.mark.slow
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long double is no wider than double here")
def test_every_printed_constant_is_in_its_source(libm: Path, run: Run) -> None:
    name, checked = "", 0
    for line in run(sys.executable, SCRIPT).splitlines():
        if header := re.match(r"(\w+): ", line):
            name = header[1]
        for constant in re.findall(r"\b0x[0-9a-f.]+(?:p[+-]?\d+f)?", line):
            for user in SHARED.get(name, (name,)):
                text = (libm / f"nn_{user}.c").read_text()
                assert re.search(rf"\b{re.escape(constant)}\b", text), f"{constant} is not in nn_{user}.c"
                checked += 1
    assert checked > 100
