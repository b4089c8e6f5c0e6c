"""The LSTM's gates in C against numpy's, for every 16-bit input and every number of fraction bits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

from nnbuild.base.paths import FIRMWARE
from nnbuild.numeric.fixed_point import logistic, tanh
from tests.support.compiled import STRICT

FORMATS = range(7)
MAIN = """\
#include <stdio.h>
#include "nn_numeric.h"

int main(void)
{
    for (int32_t before = 0; before < 7; ++before) {
        for (int32_t a = -32768; a < 32768; ++a) {
            const int32_t found[2] = {nn_gate_logistic16(a, before), nn_gate_tanh16(a, before)};
            fwrite(found, sizeof found[0], 2, stdout);
        }
    }
    return 0;
}
"""


def test_gates_equal_the_rule(tmp_path: Path) -> None:
    folder, program = FIRMWARE / "numeric", tmp_path / "gates"
    (tmp_path / "main.c").write_text(MAIN)
    names = ["gate_logistic16", "gate_tanh16", "exp_negative16", "reciprocal_of_sum16", "high_multiply16"]
    sources = [str(folder / f"nn_{name}.c") for name in names]
    checks = ["-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all"]
    command = ["gcc", *STRICT, *checks, f"-I{folder}", str(tmp_path / "main.c"), *sources, "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    output = subprocess.run([str(program)], capture_output=True, check=True).stdout
    found = np.frombuffer(output, np.int32).reshape(len(FORMATS), 2**16, 2)
    every = np.arange(-32768, 32768)
    for before in FORMATS:
        np.testing.assert_array_equal(found[before, :, 0], logistic(every, before, 16))
        np.testing.assert_array_equal(found[before, :, 1], tanh(every, before, 16))
