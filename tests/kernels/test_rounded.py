"""Elementwise functions of integers in rounded arithmetic, and look-ups: every set's kernels equal the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Array, Graph
from nnbuild.numeric.resize import CENTRES
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.plan.target import Target
from tests.kernels.test_variants import candidates
from tests.support.graphs import single
from tests.support.quantized import full_range, quantized
from tests.support.references import equal_the_reference

SHAPE = (3, 2, 19)
"""Of more channels than a vector's lanes, and some left over."""
KERNELS = ("_rounded", "_tables", "_integers", "_across", "high_words", "high_words_many", "tables")
FUNCTIONS: list[tuple[str, tuple[float, ...]]] = [
    ("linear", ()),
    ("relu", (6.0, 0.0, 0.0)),
    ("relu", (np.inf, 0.2, 0.7)),
    ("leaky_relu", (0.3,)),
    ("leaky_relu", (-1.7,)),
    ("absolute", ()),
    ("hard_swish", ()),
    ("hard_sigmoid", ()),
    ("hard_sigmoid_fifth", ()),
    ("tanh", ()),
]
SHARES = 2
Made = tuple[str, Callable[[], Graph]]


def makers() -> Iterator[Made]:
    def of(name: str, attributes: Attributes, inputs: int = 1, constants: dict[str, Array] | None = None) -> Made:
        return name, lambda: single(attributes, [SHAPE] * inputs, constants or {})

    for function, parameters in FUNCTIONS:
        yield of(f"{function} {parameters}", Activation(function, parameters))
    for function in ("add", "subtract", "multiply", "maximum", "minimum"):
        yield of(function, Binary(function), 2)
    for role, function in (("right", "divide"), ("left", "divide"), ("right", "multiply"), ("left", "subtract")):
        number = {role: np.array([1.7], np.float32)}
        yield of(f"{function} with a number as the {role} one", Binary(function), 1, number)
    slopes = np.random.default_rng(1).normal(0, 0.5, (1, 1, SHAPE[-1])).astype(np.float32)
    yield of("prelu", PReLU(), 1, {"slope": slopes})
    yield of("multiply once", Binary("multiply", once=True), 2)
    yield of("multiply with a number once", Binary("multiply", once=True), 1, {"right": np.array([1.7], np.float32)})
    yield of("concatenate", Concatenate(2), 3)
    yield of("concatenate once", Concatenate(2, once=True), 3)
    for function in ("max", "average"):
        yield of(f"{function} pool same", Pool2D(function, (2, 2), (1, 1), ((0, 0), (0, 0))))
    for size in ((5, 7), (1, 3)):
        yield of(f"resize {size} same", ResizeBilinear(size, CENTRES))


def graphs(form: str) -> Iterator[Graph]:
    """Tensors in scales that differ little and much; where numbers are only moved, in one."""
    for seed, (name, maker) in enumerate(makers()):
        for powers in ((-6.0, -4.0), (-5.0, -5.0), (-8.0, -2.0)):
            yield quantized(maker(), form, seed, same_scale=name.split()[-1] == "same", powers=powers)


@pytest.mark.turns(4)
@pytest.mark.turns(2 * SHARES)
@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("form", ("int8", "int16"))
def test_every_set_gives_the_references_bits(form: str, share: int, tmp_path: Path) -> None:
    runs: list[tuple[Graph, dict[str, Array]]] = []
    targets: list[Target] = []
    seen = set()
    for graph in graphs(form):
        for kernel, target in candidates(graph):
            if kernel.endswith(KERNELS):
                seen.add((graph.ops[0].kind, kernel))
                runs.append((graph, full_range(graph, 3, seed=1)))
                targets.append(target)
    mine = ("_rounded", "_tables") if form == "int8" else ("_rounded", "high_words", "high_words_many")
    kinds = ("activation", "binary", "concatenate", "prelu")
    wanted = {(kind, k.name) for kind in kinds for k in variants(kind) if k.name.endswith(mine)}
    assert wanted - seen == set()
    equal_the_reference(runs[share::SHARES], targets[share::SHARES], tmp_path)
