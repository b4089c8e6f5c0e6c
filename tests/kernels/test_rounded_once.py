"""Operations scaled by the real scale and rounded once, as in ONNX, on every set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nnbuild.isa.registry import isas
from nnbuild.model.graph import Graph
from nnbuild.ops.affine import Affine
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.convert import Convert
from nnbuild.ops.convolution import Convolution
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.reduce import Reduce
from nnbuild.plan.target import Target
from tests.kernels.cases import Maker, cases
from tests.kernels.test_variants import BATCH, PORTABLE, Case, candidates, compare, runs_here
from tests.support.graphs import single
from tests.support.quantized import quantized
from tests.support.shares import in_shares

SHARES = 24
KINDS = ("affine", "binary", "concatenate", "conv", "depthwise", "matmul")


def rounded_once(maker: Maker, dtype: str, seed: int) -> Graph | None:
    graph = quantized(maker(), dtype, seed=seed)
    (op,) = graph.ops
    own = op.attributes
    product = isinstance(own, Binary) and own.function == "multiply"
    bytes_only = isinstance(own, (Affine, MatMul)) and dtype == "int8"
    if not product and not bytes_only and not isinstance(own, (Convolution, Concatenate, Convert)):
        return None
    return replace(graph, ops=(replace(op, attributes=replace(own, once=True)),))


def makers() -> Iterator[tuple[str, Maker]]:
    yield from (case for case in cases() if case[0].startswith(KINDS))
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


def few() -> Iterator[tuple[str, Graph]]:
    """Conversions and reductions of bytes, rounded once and twice."""
    for seed, once in enumerate((True, False, True)):
        yield f"convert {seed}", quantized(single(Convert(once=once), [(3, 37)]), "int8", seed)
        for function in ("mean", "sum"):
            for shape, count in (((7, 7, 19), 2), ((3, 40), 1), ((1, 2, 64), 2)):
                reduce = Reduce(function, 0, count, once=once)
                powers = (-9.0, -7.0) if function == "mean" else (-8.0, -1.0)
                yield f"{function} {shape} {seed}", quantized(single(reduce, [shape]), "int8", seed, powers=powers)


@pytest.mark.turns(3)
@pytest.mark.slow
def test_conversions_and_reductions_on_every_set(tmp_path: Path) -> None:
    some = [(name, kernel, graph, target) for name, graph in few() for kernel, target in candidates(graph)]
    some += [(name, "portable", graph, Target(isas()["c99"])) for name, graph in few()]
    assert any(kernel.endswith("_tables") for _, kernel, _, _ in some)
    once = [kernel for name, kernel, graph, _ in some if name.startswith("mean") and graph.ops[0].attributes.once]
    assert any(kernel.endswith("_integers") for kernel in once)
    for start in range(0, len(some), BATCH):
        compare(some[start : start + BATCH], "int8", tmp_path / str(start), PORTABLE)
        here = [case for case in some[start : start + BATCH] if runs_here(case[3].isa)]
        if here:
            compare(here, "int8", tmp_path / f"native{start}", ("-O1",))
