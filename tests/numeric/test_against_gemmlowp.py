"""The fixed-point functions against the original library's, compiled from the header TensorFlow ships."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nnbuild.numeric import fixed_point, rounding

pytestmark = pytest.mark.oracle

PROGRAM = """
#include <cstdint>
#include <cstdio>
#include "fixedpoint/fixedpoint.h"
using namespace gemmlowp;
template <typename T, int I> void rows(const std::vector<int64_t>& xs) {
  typedef FixedPoint<T, I> F;
  for (int64_t x : xs) {
    T v = static_cast<T>(x);
    F f = F::FromRaw(v);
    T down = v > 0 ? static_cast<T>(-v) : v;
    printf("%ld %ld %ld ", (long)logistic(f).raw(), (long)tanh(f).raw(),
           (long)exp_on_negative_values(F::FromRaw(down)).raw());
    printf("%ld %ld ", (long)SaturatingRoundingDoublingHighMul(v, static_cast<T>(v / 3 + 7)),
           (long)RoundingDivideByPOT(v, I + 3));
    printf("%ld\\n", (long)RoundingHalfSum(v, static_cast<T>(12345)));
  }
}
int main(int argc, char** argv) {
  std::vector<int64_t> xs;
  long x;
  while (scanf("%ld", &x) == 1) xs.push_back(x);
  switch (atoi(argv[1])) { CASES }
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.origin is None:
        pytest.skip("TensorFlow, which ships the header, is not installed")
    include = Path(spec.origin).parent / "include" / "external" / "gemmlowp"
    cases = "".join(
        f"case {bits * 10 + i}: rows<int{bits}_t, {i}>(xs); break;\n" for bits in (16, 32) for i in (0, 2, 3, 4, 5)
    )
    folder = tmp_path_factory.mktemp("gemmlowp")
    (folder / "rows.cc").write_text("#include <cstdlib>\n#include <vector>\n" + PROGRAM.replace("CASES", cases))
    command = ["g++", "-O1", "-fwrapv", "-std=c++14", f"-I{include}", "rows.cc", "-o", "rows"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "rows"


def inputs(bits: int) -> np.ndarray:
    if bits == 16:
        return np.arange(-32768, 32768)
    rng = np.random.default_rng(6)
    corners = [0, 1, -1, 2**31 - 1, -(2**31), -(2**31) + 1, 2**29, -(2**29), 2**26, -(2**26)]
    size = rng.integers(1, 32, 20000)
    return np.concatenate([corners, rng.integers(-(2**31), 2**31, 20000) >> size])


@pytest.mark.parametrize("integer_bits", [0, 2, 3, 4, 5])
@pytest.mark.parametrize("bits", [16, 32])
def test_fixed_point_equals_gemmlowp(program: Path, bits: int, integer_bits: int) -> None:
    x = inputs(bits)
    text = "\n".join(map(str, x.tolist()))
    done = subprocess.run(
        [program, str(bits * 10 + integer_bits)], input=text, capture_output=True, text=True, check=True
    )
    columns = np.array(done.stdout.split(), np.int64).reshape(x.size, 6).T
    third = np.sign(x) * (np.abs(x) // 3) + 7
    ours = [
        fixed_point.logistic(x, integer_bits, bits),
        fixed_point.tanh(x, integer_bits, bits),
        fixed_point.exp_of_negative(-np.abs(x), integer_bits, bits),
        rounding.high_multiply(x, third, bits),
        rounding.rounding_shift(x, integer_bits + 3),
        rounding.rounding_half_sum(x, 12345),
    ]
    assert [int(np.count_nonzero(a != b)) for a, b in zip(ours, columns, strict=True)] == [0] * 6
