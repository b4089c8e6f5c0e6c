"""Layers of bytes whose weights need nine bits, as those have that are unsigned and less a zero point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.model.graph import Constant, Graph
from nnbuild.ops import interpret
from nnbuild.plan.target import Target
from tests.kernels.cases import cases
from tests.kernels.test_variants import PORTABLE, candidates, graph_of, runs_here
from tests.support.compiled import SANITIZE
from tests.support.many import run_many
from tests.support.quantized import full_range

KINDS = ("conv2d", "depthwise_conv2d", "conv2d_transpose", "dense")
MOST = 255
SHARES = 48
BATCH = 60


def of_nine_bits(graph: Graph, seed: int) -> Graph:
    """The same layer with weights drawn from -255 to 255."""
    name = graph.ops[0].constants["kernel"]
    kernel = graph.constants[name]
    weights = np.random.default_rng(seed).integers(-MOST, MOST + 1, kernel.data.shape).astype(np.int16)
    return replace(graph, constants={**graph.constants, name: Constant(name, weights, kernel.quant)})


def layers(form: str) -> Iterator[tuple[str, Graph]]:
    for seed, (name, maker) in enumerate(cases()):
        graph = graph_of(name, maker, form)
        if graph is not None and len(graph.ops) == 1 and graph.ops[0].kind in KINDS:
            yield name, of_nine_bits(graph, seed)


def test_every_set_multiplies_them() -> None:
    """None falls to the portable kernel."""
    graph = dict(layers("int8"))["conv2d-0"]
    sets = {target.isa.name for _, target in candidates(graph)}
    assert {"armv6m", "armv7m", "armv7em_dsp", "rv32im", "sse2", "avx2_fma", "avx512", "neon", "zve32x"} <= sets


@pytest.mark.slow
@pytest.mark.turns(24)
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("form", ["int8", "real"])
def test_every_kernel_multiplies_them(form: str, share: int, tmp_path: Path) -> None:
    """In the set's instructions where this processor has them, otherwise in their meanings."""
    found = [(name, graph, kernel, t) for name, graph in layers(form) for kernel, t in candidates(graph)][share::SHARES]
    for here in (True, False):
        mine = [each for each in found if runs_here(each[3].isa) == here]
        for begin in range(0, len(mine), BATCH):
            folder = tmp_path / f"{here}{begin}"
            folder.mkdir()
            compare(mine[begin : begin + BATCH], folder, SANITIZE if here else PORTABLE)


def compare(mine: list[tuple[str, Graph, str, Target]], folder: Path, flags: tuple[str, ...]) -> None:
    runs = [(graph, full_range(graph, 4, seed=1)) for _, graph, _, _ in mine]
    outputs = run_many(runs, folder, targets=[target for *_, target in mine], flags=flags)
    for (name, graph, kernel, _), (_, inputs), found in zip(mine, runs, outputs, strict=True):
        wanted = interpret.run(graph, inputs)
        for output in graph.outputs:
            np.testing.assert_array_equal(found[output], wanted[output], err_msg=f"{name}, {kernel}")
