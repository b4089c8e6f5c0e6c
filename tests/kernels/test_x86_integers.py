"""Integer kernels on x86 beyond the common cases: any shape, extreme scales, chains, single work items."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.emit.artifact import Artifact
from nnbuild.emit.emit import emit
from nnbuild.isa.isa import Isa
from nnbuild.isa.registry import isas
from nnbuild.kernels.contract import Kernel
from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Array, Constant, Graph, Op, Quant, Tensor
from nnbuild.model.verify import verify
from nnbuild.numeric.real_scale import LOW_BITS
from nnbuild.ops import interpret
from nnbuild.ops.base import Attributes, Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.site import site_of
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.select import refusal
from nnbuild.plan.target import Target
from tests.kernels import test_variants
from tests.support import many
from tests.support.quantized import SUM_TYPES, full_range

pytestmark = pytest.mark.slow

OFTEN = ("sse2", "avx2_fma", "avx512_vnni")
"""The others share all their code with these, and are tested in full runs."""
SETS = ("sse2", "avx2_fma", "avx_vnni", "avx512", "avx512_vnni")
EMULATED = {"sse2": "qemu64", "ssse3": "Conroe", "avx2_fma": "Haswell"}
"""Processors that have a set but no larger one."""
BY_SET = [pytest.param(name, marks=() if name in OFTEN else pytest.mark.full) for name in SETS]
BY_SET_AND_TYPE = [
    pytest.param(name, dtype, marks=() if name in often else pytest.mark.full)
    for name in SETS
    for dtype, often in (("int8", OFTEN), ("int16", OFTEN[-1:]))
]
Runs = list[tuple[Graph, Mapping[str, Array]]]


def own(isa: Isa, kind: str) -> Kernel:
    """A set's integer kernel."""
    return next(kernel for kernel in variants(kind) if kernel.name == f"{isa.name}_integers")


def target_for(isa: Isa, graph: Graph) -> Target:
    return Target(isa, alignment=64, forced_kernels={graph.ops[0].name: f"{isa.name}_integers"})


def accepted(isa: Isa, graph: Graph) -> bool:
    site = site_of(graph, graph.ops[0])
    return refusal(own(isa, graph.ops[0].kind), site, target_for(isa, graph)) is None


def present(name: str) -> Isa:
    isa = isas()[name]
    if not test_variants.runs_here(isa):
        pytest.skip(f"this processor has no {name}")
    return isa


def check(graphs: Sequence[Graph], isa: Isa, folder: Path, **options: Sequence[str]) -> list[Plan]:
    folder.mkdir(parents=True, exist_ok=True)
    runs: Runs = [(graph, full_range(graph, 3, seed=5)) for graph in graphs]
    targets = [target_for(isa, graph) for graph in graphs]
    found = many.run_many(runs, folder, targets=targets, **options)  # type: ignore[arg-type]
    for index, ((graph, inputs), outputs) in enumerate(zip(runs, found, strict=True)):
        wanted = interpret.run(graph, inputs)
        for name in graph.outputs:
            np.testing.assert_array_equal(outputs[name], wanted[name], err_msg=f"{index}: {graph.ops[0].attributes}")
    return [make_plan(graph, "m", target) for graph, target in zip(graphs, targets, strict=True)]


class Draw:
    """Random integer graphs."""

    def __init__(self, seed: int, dtype: str = "int8") -> None:
        self.chance = np.random.default_rng(seed)
        self.dtype = dtype

    def whole(self, low: int, high: int) -> int:
        return int(self.chance.integers(low, high + 1))

    def quant(self, low: float = -8, high: float = -2) -> Quant:
        return Quant((float(np.float32(2.0 ** self.chance.uniform(low, high))),), self.zero())

    def zero(self) -> int:
        return self.whole(-128, 127) if self.dtype == "int8" else 0

    def clamp(self) -> Clamp:
        return [Clamp(), Clamp(0.0), Clamp(0.0, 6.0), Clamp(-1.0, 1.0)][self.whole(0, 3)]

    def constants(
        self, shape: tuple[int, ...], channels: int, powers: tuple[float, float], bias: int
    ) -> dict[str, Constant]:
        scales = tuple(map(float, (2.0 ** self.chance.uniform(*powers, channels)).astype(np.float32)))
        kernel = Constant("kernel", self.chance.integers(-127, 128, shape).astype(np.int8), Quant(scales, 0, -1))
        summands = self.chance.integers(-bias, bias + 1, channels).astype(SUM_TYPES[self.dtype])
        return {"kernel": kernel, "bias": Constant("bias", summands)} if self.whole(0, 3) else {"kernel": kernel}

    def graph(
        self,
        attributes: Attributes,
        shape: tuple[int, ...],
        constants: Mapping[str, Constant],
        powers: tuple[float, float] | None = None,
        followers: Sequence[Attributes] = (),
    ) -> Graph:
        """One operation and its tail; an addition takes a second input."""
        shapes = attributes.shapes([shape], {role: value.data.shape for role, value in constants.items()})
        x = Tensor("x", shape, self.dtype, self.quant())
        if isinstance(attributes, Pool2D):
            typical = x.quant
        else:
            typical = self.quant(*powers) if powers else self.typical(x, constants)
        tensors = [x, Tensor("y", shapes[0], self.dtype, typical)]
        ops = [Op("first", attributes, ("x",), ("y",), {role: role for role in constants}, layer="first")]
        inputs = ["x"]
        for index, follower in enumerate(followers):
            before, name = tensors[-1], f"z{index}"
            sources = [before.name]
            if isinstance(follower, Binary):
                other = Tensor(f"other{index}", before.shape, "int8", self.quant())
                inputs.append(other.name)
                sources.insert(self.whole(0, 1), other.name)
                tensors.insert(-1, other)
                made = Tensor(name, before.shape, "int8", self.quant(-6, -1))
            else:
                made = Tensor(name, follower.shapes([before.shape], {})[0], self.dtype, before.quant)
            tensors.append(made)
            ops.append(Op(name, follower, tuple(sources), (name,), {}, layer=name))
        named = {tensor.name: tensor for tensor in tensors}
        return verify(Graph("net", named, dict(constants), tuple(ops), tuple(inputs), (ops[-1].outputs[0],)))

    def typical(self, x: Tensor, constants: Mapping[str, Constant]) -> Quant:
        """A format that few outputs saturate."""
        kernel = constants["kernel"]
        assert kernel.quant is not None and x.quant is not None
        taps = max(1, kernel.data.size // len(kernel.quant.scales))
        scale = max(kernel.quant.scales) * x.quant.scale * 70 * 70 * np.sqrt(taps) * 3 / 127
        return Quant((float(np.float32(scale)),), self.zero())

    def convolution(
        self,
        powers: tuple[float, float] = (-9, -5),
        bias: int = 3000,
        followers: Sequence[Attributes] = (),
        **out: tuple[float, float],
    ) -> Graph:
        kernel = (self.whole(1, 4), self.whole(1, 4))
        groups = 1 if self.whole(0, 3) or followers else 2
        depth, share = self.whole(1, 36), self.whole(1, 70)
        shape = (self.whole(kernel[0] + 3, 12), self.whole(kernel[1] + 3, 40), depth * groups)
        pads = tuple((self.whole(0, n - 1), self.whole(0, n - 1)) for n in kernel)
        strides, dilation = (self.whole(1, 2), self.whole(1, 2)), (1, self.whole(1, 2) if kernel[1] < 3 else 1)
        attributes = Conv2D(strides, dilation, (pads[0], pads[1]), groups, clamp=self.clamp())
        held = self.constants((*kernel, depth, share * groups), share * groups, powers, bias)
        return self.graph(attributes, shape, held, out.get("out"), followers)

    def depthwise(self, powers: tuple[float, float] = (-9, -5), bias: int = 3000, **out: tuple[float, float]) -> Graph:
        kernel = (self.whole(1, 5), self.whole(1, 6))
        channels = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 64, 96, 128][self.whole(0, 13)]
        shape = (self.whole(5, 12), self.whole(7, 24), channels)
        pads = tuple((self.whole(0, n - 1), self.whole(0, n - 1)) for n in kernel)
        attributes = DepthwiseConv2D(
            (self.whole(1, 2), self.whole(1, 3)), (1, 1), (pads[0], pads[1]), clamp=self.clamp()
        )
        held = self.constants((*kernel, channels, 1), channels, powers, bias)
        return self.graph(attributes, shape, held, out.get("out"))

    def dense(self, powers: tuple[float, float] = (-9, -5), bias: int = 3000, **out: tuple[float, float]) -> Graph:
        inputs, outputs = self.whole(1, 300), self.whole(1, 150)
        shape = (inputs,) if self.whole(0, 1) else (self.whole(2, 20), inputs)
        held = self.constants((inputs, outputs), outputs, powers, bias)
        return self.graph(Dense(self.clamp()), shape, held, out.get("out"))


@pytest.mark.turns(4)
@pytest.mark.parametrize(("name", "dtype"), BY_SET_AND_TYPE)
def test_any_shape(name: str, dtype: str, tmp_path: Path) -> None:
    isa, draw = present(name), Draw(SETS.index(name), dtype)
    graphs = [make() for make in (draw.convolution, draw.depthwise, draw.dense) for _ in range(4)]
    fitting = [graph for graph in graphs if accepted(isa, graph)]
    assert len(fitting) > 6  # the sums of 16-bit inputs may need more than 32 bits
    check(fitting, isa, tmp_path)


@pytest.mark.parametrize("name", BY_SET)
def test_rows_that_no_tile_divides_and_many_strips(name: str, tmp_path: Path) -> None:
    isa, draw = present(name), Draw(800 + SETS.index(name))
    graphs = []
    for width, filters in ((38, 3), (42, 16), (62, 33), (38, 64), (80, 4)):
        held = draw.constants((2, 2, 5, filters), filters, (-9, -5), 3000)
        graphs.append(draw.graph(Conv2D(padding=((1, 0), (0, 0)), clamp=draw.clamp()), (3, width, 5), held))
    large = draw.constants((3, 3, 40, 8), 8, (-9, -5), 3000)
    graphs.append(draw.graph(Conv2D(padding=((1, 1), (1, 1))), (15, 40, 40), large))
    deep = draw.constants((3, 3, 64, 1), 64, (-9, -5), 3000)
    graphs.append(draw.graph(DepthwiseConv2D(padding=((1, 1), (1, 1))), (17, 23, 64), deep))
    assert all(accepted(isa, graph) for graph in graphs)
    check(graphs, isa, tmp_path)


def beyond_reason(graph: Graph) -> bool:
    """Whether a dense layer's scale is too large for its rule."""
    site = site_of(graph, graph.ops[0])
    attributes = site.op.attributes
    return isinstance(attributes, Dense) and min(scale.shift for scale in attributes.scales(site)) <= LOW_BITS


@pytest.mark.turns(6)
@pytest.mark.parametrize(("name", "dtype"), BY_SET_AND_TYPE)
def test_extreme_scales(name: str, dtype: str, tmp_path: Path) -> None:
    """Channels that are dead, shift to the left or always saturate, with sums near the limits of 32 bits."""
    isa, draw = present(name), Draw(100 + SETS.index(name), dtype)
    makers: list[Callable[..., Graph]] = [draw.convolution, draw.depthwise, draw.dense]
    graphs = [
        make(powers=powers, bias=bias, out=out)
        for make in makers
        for powers, out in (((-40, 2), (-10, 4)), ((-14, -8), (-9, -6)), ((-3, 3), (-6, 0)), ((-30, -20), (-24, -18)))
        for bias in (1, 2**30)
    ]
    fitting = [graph for graph in graphs if accepted(isa, graph) and not beyond_reason(graph)]
    assert len(fitting) > len(graphs) / 4
    check(fitting, isa, tmp_path)


def test_dead_channels_are_no_reason_to_refuse() -> None:
    isa, draw = isas()["avx512_vnni"], Draw(700)
    for powers in ((-60, -5), (-26, -20)):
        assert accepted(isa, draw.convolution(powers=powers))
        assert accepted(isa, draw.depthwise(powers=powers))


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", BY_SET)
def test_pools_and_sums_are_computed_with_their_convolution(name: str, tmp_path: Path) -> None:
    isa, draw = present(name), Draw(200 + SETS.index(name))
    followers = [
        Pool2D("max"),
        Pool2D("max", (1, 3), (1, 3), clamp=Clamp(0.0)),
        Binary("add"),
        Binary("add", Clamp(0.0)),
    ]
    graphs = [draw.convolution(followers=[follower]) for follower in followers for _ in range(3)]
    fitting = [graph for graph in graphs if accepted(isa, graph)]
    plans = check(fitting, isa, tmp_path)
    assert sum(len(plan.steps) == 1 for plan in plans) > len(plans) / 3


@pytest.mark.parametrize("name", BY_SET)
def test_means_pools_and_sums_alone(name: str, tmp_path: Path) -> None:
    isa, draw = present(name), Draw(300 + SETS.index(name))
    shape = (9, 8, 16)
    pools = [
        Pool2D("average", (3, 3), (2, 2)),
        Pool2D("average", (9, 8), (1, 1)),
        Pool2D("max", (3, 2), (2, 1), ((1, 1), (1, 0))),
    ]
    alone = [draw.graph(pool, shape, {}) for pool in pools]
    means = [
        draw.graph(Reduce("mean", axis, 2), (3, *shape)[1 - axis :], {}, (-9, 3)) for axis in (0, 1) for _ in range(4)
    ]
    sums = [draw.graph(Reduce("sum", 0, 2), shape, {}, (-2, 3)) for _ in range(4)]
    fitting = [graph for graph in (*alone, *means, *sums) if accepted(isa, graph)]
    assert len(fitting) > 10
    check(fitting, isa, tmp_path)


@pytest.mark.parametrize("name", BY_SET)
def test_sums_and_products(name: str, tmp_path: Path) -> None:
    isa, draw = present(name), Draw(400 + SETS.index(name))
    graphs = []
    for index in range(15):
        shape = (4, 4, 5 if index > 10 else 16)
        quants = [draw.quant(-20 if index % 4 == 0 else -6, -2) for _ in range(3)]
        if index % 5 == 0:
            quants[1] = replace(quants[1], scales=quants[0].scales)
        tensors = {n: Tensor(n, shape, "int8", q) for n, q in zip(("x", "w", "y"), quants, strict=True)}
        op = Op(
            "sum", Binary(("add", "subtract", "multiply")[index % 3], draw.clamp()), ("x", "w"), ("y",), layer="sum"
        )
        graphs.append(verify(Graph("net", tensors, {}, (op,), ("x", "w"), ("y",))))
    fitting = [graph for graph in graphs if accepted(isa, graph)]
    assert len(fitting) > 6
    check(fitting, isa, tmp_path)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("names", [("avx2_fma", "avx_vnni"), ("avx512", "avx512_vnni")])
def test_a_model_may_take_kernels_of_several_sets(names: tuple[str, str], dtype: str, tmp_path: Path) -> None:
    """Each is faster for some layers, and their steps use different instructions on vectors of one width."""
    isa, draw = present(names[1]), Draw(700, dtype)
    graphs = (draw.convolution() for _ in range(50))
    one = next(graph for graph in graphs if all(accepted(isas()[name], graph) for name in names))
    op, out = one.ops[0], one.outputs[0]
    again = replace(op, name="second", outputs=("again",), layer="second")
    tensors = {**one.tensors, "again": replace(one.tensors[out], name="again")}
    both = verify(replace(one, tensors=tensors, ops=(op, again), outputs=(out, "again")))
    kernels = {op.name: f"{names[0]}_integers", "second": f"{names[1]}_integers"}
    inputs = full_range(both, 3, seed=5)
    outputs = many.run_many([(both, inputs)], tmp_path, targets=[Target(isa, alignment=64, forced_kernels=kernels)])[0]
    wanted = interpret.run(one, inputs)[out]
    for name in both.outputs:
        np.testing.assert_array_equal(outputs[name], wanted)


@pytest.mark.parametrize("name", ["sse2", "avx512_vnni"])
def test_single_work_items(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isa, draw = present(name), Draw(500)
    changed: list[str] = []

    def by_work_items(plan: Plan) -> Artifact:
        made = emit(plan)
        whole = made.files[f"{plan.prefix}.c"].decode()
        text = re.sub(
            r"(\w+)\((.*), 0, (\d+)\);", r"for (int32_t piece = \3; piece-- > 0;) \1(\2, piece, piece + 1);", whole
        )
        changed.append(text if text != whole else "")
        return replace(made, files={**made.files, f"{plan.prefix}.c": text.encode()})

    monkeypatch.setattr(many, "emit", by_work_items)
    graphs = [draw.convolution(), draw.convolution(followers=[Pool2D("max")]), draw.depthwise(), draw.dense()]
    check([graph for graph in graphs if accepted(isa, graph)], isa, tmp_path)
    assert changed and all(changed)


@pytest.mark.turns(3)
@pytest.mark.emulator
@pytest.mark.parametrize("name", EMULATED)
def test_no_instruction_of_a_larger_set_slips_in(name: str, tmp_path: Path) -> None:
    emulator = shutil.which("qemu-x86_64")
    if emulator is None:
        pytest.skip("no qemu-x86_64")
    isa, draw = isas()[name], Draw(600)
    mine = isas()[max((n for n in SETS if n in isa.features), key=SETS.index)]
    graphs = [make() for make in (draw.convolution, draw.depthwise, draw.dense) for _ in range(4)]
    fitting = [graph for graph in graphs if accepted(mine, graph)]
    assert fitting
    runner = (emulator, "-cpu", EMULATED[name])
    check(fitting, mine, tmp_path, flags=("-O2", "-static"), runner=runner)
