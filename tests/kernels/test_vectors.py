"""The float kernels of x86 on shapes with different tiles, blocks and last lanes; and their chains."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nnbuild.emit.artifact import Artifact
from nnbuild.emit.emit import emit
from nnbuild.isa.isa import Isa
from nnbuild.isa.registry import isas
from nnbuild.kernels.contract import Kernel
from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Constant, Graph, Op, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Attributes, Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.gru import GRU
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.simple_rnn import SimpleRNN
from nnbuild.ops.site import site_of
from nnbuild.ops.softmax import Softmax
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.select import refusal
from nnbuild.plan.target import Target
from tests.kernels.cases import normal
from tests.kernels.test_float import samples
from tests.kernels.test_variants import home, runs_here
from tests.support.graphs import single
from tests.support.many import run_many

pytestmark = pytest.mark.slow

SETS = ("sse2", "avx2_fma", "avx512")


def convolutions() -> Iterator[Graph]:
    for h, w, c, kernel, filters, stride, pad, groups in (
        (7, 19, 1, 3, 4, 1, 1, 1),
        (9, 11, 1, 5, 6, 1, 2, 1),
        (6, 33, 3, 3, 16, 1, 1, 1),
        (5, 16, 3, 3, 17, 2, 1, 1),
        (12, 5, 2, 4, 2, 2, 1, 1),
        (4, 9, 16, 3, 32, 1, 1, 1),
        (3, 8, 33, 3, 70, 1, 1, 1),
        (12, 8, 16, 3, 48, 1, 1, 1),
        (5, 5, 64, 1, 64, 1, 0, 1),
        (7, 7, 48, 1, 40, 1, 0, 1),
        (9, 9, 20, 1, 24, 2, 0, 1),
        (6, 6, 8, 3, 40, 1, 1, 2),
        (8, 12, 96, 3, 96, 1, 1, 1),
        (16, 16, 16, 3, 32, 2, 1, 1),
        (17, 33, 32, 3, 48, 2, 0, 1),
    ):
        attributes = Conv2D((stride, stride), padding=((pad, pad), (pad, pad)), groups=groups, clamp=Clamp(low=0.0))
        constants = {
            "kernel": normal(kernel, kernel, c // groups, filters) / (kernel * c**0.5),
            "bias": normal(filters),
        }
        yield single(attributes, [(h, w, c)], constants)
    for h, w, c, stride, size in (
        (5, 5, 64, 1, 3),
        (9, 20, 8, 1, 3),
        (8, 17, 19, 2, 3),
        (6, 9, 70, 1, 5),
        (3, 30, 5, 2, 3),
    ):
        pad = size // 2
        attributes = DepthwiseConv2D((stride, stride), padding=((pad, pad), (pad - 1, pad)), clamp=Clamp(0.0, 6.0))
        yield single(attributes, [(h, w, c)], {"kernel": normal(size, size, c, 1), "bias": normal(c)})


def others() -> Iterator[Graph]:
    for shape, out in (((1,), 3), ((70,), 17), ((64,), 1), ((33,), 70), ((256,), 2), ((5, 21), 40), ((13, 64), 128)):
        yield single(Dense(), [shape], {"kernel": normal(shape[-1], out) * 0.3, "bias": normal(out)})
    for size in (1, 3, 5, 16, 17, 70):
        yield single(Softmax(1, 1), [(3, size)])
    for channels in (3, 16, 70):
        yield single(Pool2D("average", (3, 3), (2, 2), ((1, 1), (0, 1))), [(7, 9, channels)])
        yield single(Reduce("mean", 0, 2, False), [(5, 5, channels)])
    for kind in (LSTM, GRU, SimpleRNN):
        for units in (3, 16, 35, 70):
            attributes = kind(units=units, sequences=True)
            constants = {"kernel": normal(9, units * kind.gates) * 0.3}
            constants |= {
                "recurrent": normal(units, units * kind.gates) * 0.2,
                "bias": normal(*attributes.bias_shape()),
            }
            yield single(attributes, [(4, 9)], constants)


def every_kernel(graphs: Iterator[Graph], isa: Isa) -> Iterator[tuple[Graph, Target]]:
    """Each graph with each kernel of a set that accepts it."""
    for graph in graphs:
        op = graph.ops[0]
        for kernel in variants(op.kind):
            if home_name(kernel) == isa.name:
                target = Target(isa, alignment=64, forced_kernels={op.name: kernel.name})
                if refusal(kernel, site_of(graph, op), target) is None:
                    yield graph, target


def home_name(kernel: Kernel) -> str | None:
    isa = home(kernel)
    return isa.name if isa else None


@pytest.mark.turns(6)
@pytest.mark.parametrize("maker", [convolutions, others])
@pytest.mark.parametrize("name", SETS)
def test_shapes(name: str, maker: object, tmp_path: Path) -> None:
    compare(list(every_kernel(maker(), isa_here(name))), tmp_path)  # type: ignore[operator]


def isa_here(name: str) -> Isa:
    isa = isas()[name]
    if not runs_here(isa):
        pytest.skip(f"this processor has no {name}")
    return isa


def compare(work: list[tuple[Graph, Target]], folder: Path, flags: tuple[str, ...] | None = None) -> None:
    runs = [(graph, samples(graph, False, 2)) for graph, _ in work]
    options = {"flags": flags} if flags else {}
    found = run_many(runs, folder, targets=[target for _, target in work], **options)  # type: ignore[arg-type]
    for (graph, inputs), (_, target), result in zip(runs, work, found, strict=True):
        wanted = interpret.run(graph, inputs, "float64")
        told = f"{graph.ops[0].attributes}, {dict(target.forced_kernels)}"
        for output in graph.outputs:
            np.testing.assert_allclose(result[output], wanted[output], rtol=1e-5, atol=1e-5, err_msg=told)


def chain(head: Attributes, shape: tuple[int, ...], constants: dict[str, np.ndarray], *tail: Attributes) -> Graph:
    """An operation and those that follow on its result; a Binary takes another input."""
    tensors = {"x": Tensor("x", shape)}
    held = {role: Constant(role, value) for role, value in constants.items()}
    ops: list[Op] = []
    inputs = ["x"]
    last = "x"
    for index, attributes in enumerate((head, *tail)):
        given = [last]
        if isinstance(attributes, Binary):
            tensors[f"other{index}"] = Tensor(f"other{index}", tensors[last].shape)
            inputs.append(f"other{index}")
            given = [f"other{index}", last] if index % 2 else [last, f"other{index}"]
        roles = {role: role for role in held} if index == 0 else {}
        shapes = attributes.shapes([tensors[n].shape for n in given], {r: held[r].data.shape for r in roles})
        tensors[f"t{index}"] = Tensor(f"t{index}", shapes[0])
        ops.append(Op(f"op{index}", attributes, tuple(given), (f"t{index}",), roles, layer=f"op{index}"))
        last = f"t{index}"
    return verify(Graph("net", tensors, held, tuple(ops), tuple(inputs), (last,)))


def chains() -> Iterator[Graph]:
    def conv(size: int, channels: int, filters: int, pad: int) -> tuple[Conv2D, dict[str, np.ndarray]]:
        constants = {"kernel": normal(size, size, channels, filters) * 0.3, "bias": normal(filters)}
        return Conv2D(padding=((pad, pad), (pad, pad)), clamp=Clamp(low=0.0)), constants

    for size, channels, filters, pad in ((3, 1, 4, 1), (5, 1, 6, 0), (3, 8, 16, 1), (3, 4, 40, 1)):
        head, constants = conv(size, channels, filters, pad)
        yield chain(head, (11, 13, channels), constants, Pool2D())
        yield chain(head, (9, 10, channels), constants, Pool2D("max", (3, 2), (3, 2), clamp=Clamp(high=1.0)))
        yield chain(head, (7, 9, channels), constants, Binary("add", Clamp(low=0.0)), Activation("tanh"))
    head, constants = conv(3, 16, 24, 1)
    yield chain(head, (10, 10, 16), constants, Activation("sigmoid"), Binary("subtract"))
    depthwise = DepthwiseConv2D(padding=((1, 1), (1, 1)))
    yield chain(depthwise, (6, 6, 20), {"kernel": normal(3, 3, 20, 1)}, Binary("subtract"), Activation("swish"))
    for out in (2, 5, 10, 40):
        yield chain(Dense(), (30,), {"kernel": normal(30, out) * 0.3, "bias": normal(out)}, Softmax(0, 1))
    yield chain(Dense(), (3, 16), {"kernel": normal(16, 24) * 0.3}, Binary("add"), Activation("leaky_relu", (0.2,)))


@pytest.mark.turns(2)
@pytest.mark.parametrize("name", SETS)
def test_chains(name: str, tmp_path: Path) -> None:
    isa = isa_here(name)
    target = Target(isa, alignment=64)
    work = [(graph, target) for graph in chains()]
    fused = sum(len(make_plan(graph, "m", target).steps) == 1 for graph, _ in work)
    assert fused > len(work) / 2, f"only {fused} of {len(work)} chains are computed in one step"
    compare(work, tmp_path)


@pytest.mark.turns(4)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_optimized_code_gives_the_same(compiler: str, tmp_path: Path) -> None:
    """Sanitized code is not the code that will run."""
    name = next((name for name in reversed(SETS) if runs_here(isas()[name])), None)
    if name is None:
        pytest.skip("this processor has none of the sets")
    graphs = [*chains(), *list(convolutions())[::3], *list(others())[::4]]
    runs = [(graph, samples(graph, False, 1)) for graph in graphs]
    targets = [Target(isas()[name], alignment=64)] * len(runs)
    found = run_many(runs, tmp_path, compiler=compiler, flags=["-O2"], targets=targets)
    for (graph, inputs), result in zip(runs, found, strict=True):
        wanted = interpret.run(graph, inputs, "float64")
        np.testing.assert_allclose(result[graph.outputs[0]], wanted[graph.outputs[0]], rtol=1e-5, atol=1e-5)


def one_by_one(plan: Plan) -> Artifact:
    """The model's files, with every step's function called once per work item."""
    made = emit(plan)
    name = f"{plan.prefix}.c"
    text = made.files[name].decode()
    loop = r"for (int32_t piece = 0; piece < \3; ++piece) \1(\2, piece, piece + 1);"
    changed, count = re.subn(r"(\w+)\(([^;{]*),\s+0,\s+(\d+)\);", loop, text)
    assert count == len(plan.steps)
    return Artifact({**made.files, name: changed.encode()})


@pytest.mark.turns(3)
def test_single_work_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On one width: the division of work does not depend on it."""
    monkeypatch.setattr("tests.support.many.emit", one_by_one)
    target = Target(isa_here("avx2_fma"), alignment=64, chunked=True)
    graphs = [*list(chains())[::2], *list(convolutions())[5:9], *list(others())[::3]]
    work = list(every_kernel((graph for at, graph in enumerate(convolutions()) if at in (5, 6, 13, 14)), target.isa))
    compare([(graph, target) for graph in graphs] + work, tmp_path)


def test_winograd_needs_enough_patches() -> None:
    """The transformed weights would have 16 taps instead of 9, for the products of nine patches."""
    kernels = {}
    for places in (6, 8):
        constants = {"kernel": normal(3, 3, 64, 64)}
        graph = single(Conv2D(padding=((1, 1), (1, 1))), [(places, places, 64)], constants)
        kernels[places] = make_plan(graph, "m", Target(isas()["avx512"], alignment=64)).steps[0].kernel_name
    assert kernels == {6: "avx512", 8: "avx512_winograd"}
