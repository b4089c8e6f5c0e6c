"""Operations scaled by the real scale and rounded once, as in ONNX, on every set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nnbuild.isa.registry import isas
from nnbuild.model.graph import Graph
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.convert import Convert
from nnbuild.ops.convolution import Convolution
from nnbuild.plan.target import Target
from tests.kernels.cases import Maker, cases
from tests.kernels.test_variants import PORTABLE, Case, candidates, compare
from tests.support.graphs import single
from tests.support.quantized import quantized
from tests.support.shares import in_shares

SHARES = 24


def rounded_once(maker: Maker, dtype: str, seed: int) -> Graph | None:
    graph = quantized(maker(), dtype, seed=seed)
    (op,) = graph.ops
    own = op.attributes
    product = isinstance(own, Binary) and own.function == "multiply"
    if not product and not isinstance(own, (Convolution, Concatenate, Convert)):
        return None
    return replace(graph, ops=(replace(op, attributes=replace(own, once=True)),))


def makers() -> Iterator[tuple[str, Maker]]:
    yield from (case for case in cases() if case[0].startswith(("conv", "depthwise", "binary", "concatenate")))
    yield "convert", lambda: single(Convert(), [(40,)])


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@in_shares(SHARES)
def test_sums_are_rounded_once(dtype: str, share: int, tmp_path: Path) -> None:
    some: list[Case] = []
    for name, maker in list(makers())[share::SHARES]:
        graph = rounded_once(maker, dtype, len(name))
        if graph is not None:
            some.append((name, "scalar", graph, Target(isas()["c99"])))
            if share:
                some += [(name, kernel, graph, target) for kernel, target in candidates(graph)]
    compare(some, dtype, tmp_path / "programs", PORTABLE)
