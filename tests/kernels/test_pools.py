"""Pools of integers: every kernel of every set equals the reference, for windows inside the input and at its edges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Graph
from nnbuild.numeric.mean import FEW_WORDS, MOST_WORDS, RUN_BITS, WORD_LIFT, factor_above, word_factor
from nnbuild.numeric.rounding import limits, rounding_mean
from nnbuild.ops import interpret
from nnbuild.ops.base import Clamp
from nnbuild.ops.pool2d import Pool2D
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.kernels.test_variants import BATCH, PORTABLE, candidates, compare, emulated, home, runs_here
from tests.support.graphs import single
from tests.support.many import run_many
from tests.support.quantized import quantized

WINDOWS = [
    ((2, 2), (2, 2), ((0, 0), (0, 0))),
    ((3, 3), (1, 1), ((1, 1), (1, 1))),
    ((3, 2), (2, 1), ((1, 0), (0, 1))),
    ((5, 5), (1, 1), ((2, 2), (2, 2))),  # too many inputs to unroll
    ((1, 3), (1, 2), ((0, 0), (1, 1))),
]
CHANNELS = (3, 16, 70)
CLAMPS = (Clamp(), Clamp(0.0), Clamp(-0.25, 0.5))
SETS = sorted({isa.name for kernel in variants("pool2d") if (isa := home(kernel)) and isa.features})
BYTES = sorted(name for kernel in variants("pool2d") if kernel.name.endswith("_bytes") for name in kernel.needs)


FORMS = {"int8": "int8", "int16": "int16", "upward": "int8"}
"""Bytes also with averages whose halves are rounded upward."""


def graphs(form: str) -> Iterator[Graph]:
    seed, upward = 0, form == "upward"
    for function in ("average",) if upward else ("max", "average"):
        for window, strides, padding in WINDOWS:
            for channels in CHANNELS:
                seed += 1
                pool = single(
                    Pool2D(function, window, strides, padding, CLAMPS[seed % len(CLAMPS)], upward), [(5, 6, channels)]
                )
                yield quantized(pool, FORMS[form], seed, same_scale=True, powers=(-5.0, -5.0))


@pytest.mark.turns(12)
@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SETS)
def test_every_kernel_gives_the_references_bits(name: str, form: str, tmp_path: Path) -> None:
    isa = isas()[name]
    cases = [("pool", kernel, graph, target) for graph in graphs(form) for kernel, target in candidates(graph, name)]
    elsewhere = emulated(isa)
    for start in range(0, len(cases), BATCH):
        some = cases[start : start + BATCH]
        compare(some, form, tmp_path / f"meanings{start}", PORTABLE)
        if runs_here(isa) or elsewhere:
            compare(some, form, tmp_path / f"native{start}", () if elsewhere else ("-O1",), elsewhere)


LARGE = [
    ((11, 11), (3, 3), ((5, 5), (5, 5))),
    ((9, 15), (4, 5), ((4, 4), (7, 7))),  # more words than one width of factors divides
    ((1, 1), (1, 2), ((0, 0), (0, 0))),
    ((12, 12), (1, 1), ((0, 0), (0, 0))),
    ((2, 4), (2, 4), ((0, 0), (0, 0))),
]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_portable_averages_and_those_of_pairs(form: str, tmp_path: Path) -> None:
    """Of numbers at both ends of their range, and of small ones, whose averages lie halfway between two, too."""
    pools = [single(Pool2D("average", *window, upward=form == "upward"), [(12, 15, 3)]) for window in WINDOWS + LARGE]
    nets = [quantized(pool, FORMS[form], 3, same_scale=True, powers=(-5.0, -5.0)) for pool in pools]
    low, high = limits(FORMS[form])
    chance = np.random.default_rng(7)
    ranges = ((low, high), (low, low), (high, high), (-2, 2), (low, low + 1))
    drawn = [chance.integers(first, last + 1, (2, 12, 15, 3)) for first, last in ranges]
    inputs = np.concatenate(drawn).astype(FORMS[form])
    for isa in ("c99", "armv7em_dsp"):
        runs = [(graph, {graph.inputs[0]: inputs}) for graph in nets]
        targets = [Target(isas()[isa])] * len(runs)
        for (graph, given), outputs in zip(runs, run_many(runs, tmp_path / isa, targets=targets), strict=True):
            np.testing.assert_array_equal(outputs[graph.outputs[0]], interpret.run(graph, given)[graph.outputs[0]])


@pytest.mark.parametrize("name", BYTES)
@pytest.mark.parametrize("window", WINDOWS[:4], ids=str)
def test_maxima_of_bytes_take_as_many_as_a_vector_has(name: str, window: tuple) -> None:
    graph = quantized(single(Pool2D("max", *window), [(24, 24, 64)]), "int8", 1, same_scale=True)
    chosen = make_plan(graph, "net", Target(isas()[name])).steps[0].kernel_name
    assert chosen.endswith("_bytes"), chosen


@pytest.mark.parametrize("count", [*range(1, 100), 4095, 4096, 4097, MOST_WORDS])
def test_one_multiplication_divides_sums_of_words(count: int) -> None:
    """At all sums where the quotient changes, at both ends, and at the largest magnitude."""
    factor, shift = word_factor(count)
    largest = 32768 * count + count // 2
    edges = np.unique(np.concatenate([np.arange(0, largest, count)[by] for by in (slice(3000), slice(-3000, None))]))
    sums = np.unique(np.clip(np.concatenate([edges + by for by in (-1, 0, 1)] + [[largest]]), 0, largest))
    assert factor < 1 << 31 and 4 * largest < 1 << 31
    np.testing.assert_array_equal((4 * sums * factor) >> (32 + shift), sums // count)


@pytest.mark.parametrize("count", [*range(1, 100), FEW_WORDS, 128, 4095, 4096, 4097, MOST_WORDS])
def test_one_multiplication_divides_lifted_sums_of_words(count: int) -> None:
    """As above, in floors of sums that are none below 0; of few words by a factor of one width, too."""
    tops = np.arange(-32768 * count, 32767 * count + 1, count)
    near = np.concatenate([part + by for part in (tops[:3000], tops[-3000:]) for by in range(-2, 3)])
    halves = np.concatenate([near, near + count // 2])
    sums = np.unique(np.clip(halves, -32768 * count, 32767 * count))
    lifted = sums - (sums < 0) * (count % 2 == 0) + WORD_LIFT * count + count // 2
    assert lifted.min() >= 0
    factor, shift = word_factor(count)
    wanted = rounding_mean(sums, count)
    np.testing.assert_array_equal((lifted * factor >> (30 + shift)) - WORD_LIFT, wanted)
    if count <= FEW_WORDS:
        factor = factor_above(count, RUN_BITS)
        assert factor < 1 << 31
        np.testing.assert_array_equal((lifted * factor >> RUN_BITS) - WORD_LIFT, wanted)
