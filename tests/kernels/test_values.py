"""No fast kernel of 8-bit sums refuses a layer because of its values; all kernels give the reference's outputs for any.

A layer of one shape is drawn with ordinary scales, then with a dead channel, a nearly dead one, a huge one, one that
dominates all others, with huge biases and with no weights at all. Whatever takes the first takes all of them. The
domain is that of `numeric.requant`; a shape is one whose weights cannot make sums that need more than 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.kernels.contract import accepted
from nnbuild.kernels.cross_lane.scaling import total_scaling_of
from nnbuild.kernels.dsp.tile import scaling_of
from nnbuild.kernels.dsp.weight_layouts import Packed, Wide
from nnbuild.model.graph import Constant, Graph, Quant, Tensor
from nnbuild.model.verify import verify
from nnbuild.numeric.rounding import limits
from nnbuild.ops import interpret
from nnbuild.ops.base import Clamp
from nnbuild.ops.site import site_of
from nnbuild.plan.target import Target
from tests.kernels.cases import cases
from tests.kernels.test_variants import candidates, runs_here
from tests.support.many import run_many
from tests.support.quantized import full_range, quantized
from tests.support.shares import in_shares

pytestmark = pytest.mark.slow

SHAPES = ("conv2d-1", "conv2d-10", "depthwise-10-1", "dense-1", "dense-7")
CLAMPS = {"none": Clamp(), "relu": Clamp(0.0, None), "relu6": Clamp(0.0, 6.0)}
FORMATS = ("int8", "int16")
BATCH = 60

Change = Callable[[np.random.Generator, Graph], Graph]


def layer(graph: Graph) -> tuple[Constant, Constant | None, Tensor, Tensor]:
    op = graph.ops[0]
    bias = graph.constants[op.constants["bias"]] if "bias" in op.constants else None
    return graph.constants[op.constants["kernel"]], bias, graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]


def with_(graph: Graph, scales: np.ndarray, bias: np.ndarray | None = None, weights: np.ndarray | None = None) -> Graph:
    kernel, old, _, _ = layer(graph)
    assert kernel.quant is not None
    quant = Quant(tuple(map(float, scales.astype(np.float32))), 0, kernel.quant.axis)
    constants = {kernel.name: replace(kernel, quant=quant, data=kernel.data if weights is None else weights)}
    if old is not None and bias is not None:
        constants[old.name] = replace(old, data=bias.astype(old.data.dtype))
    return replace(graph, constants={**graph.constants, **constants})


def scales_of(graph: Graph) -> np.ndarray:
    kernel = layer(graph)[0]
    assert kernel.quant is not None
    channels = (graph.tensors[graph.ops[0].outputs[0]].shape)[-1]
    return np.array(np.broadcast_to(kernel.quant.scales, (channels,)), np.float64)


def biases_of(graph: Graph) -> np.ndarray:
    bias = layer(graph)[1]
    return np.zeros(len(scales_of(graph)), np.int64) if bias is None else bias.data.astype(np.int64)


def result_bias(graph: Graph, scales: np.ndarray, share: float, bits: int = 30) -> np.ndarray:
    """A bias of this share of the output's range in every channel, as far as it fits its type."""
    _, _, x, out = layer(graph)
    assert x.quant is not None and out.quant is not None
    wanted = share * float(limits(out.dtype)[1]) * out.quant.scale / (x.quant.scale * scales)
    return np.clip(np.round(wanted), -(2.0**bits), 2.0**bits).astype(np.int64)


def dead(chance: np.random.Generator, graph: Graph) -> Graph:
    """A channel without weights as the quantizer leaves it: weights are 0, and its bias has 30 bits."""
    kernel = layer(graph)[0].data.copy()
    kernel.reshape(-1, kernel.shape[-1])[:, 0] = 0
    scales, bias = scales_of(graph), biases_of(graph)
    scales[0] *= 2.0**-22
    bias[0] = result_bias(graph, scales, 0.4)[0]
    return with_(graph, scales, bias, kernel)


def nearly_dead(power: int) -> Change:
    def change(chance: np.random.Generator, graph: Graph) -> Graph:
        scales, bias = scales_of(graph), biases_of(graph)
        scales[-1] *= 2.0**-power
        bias[-1] = result_bias(graph, scales, chance.uniform(-0.6, 0.6))[-1]
        return with_(graph, scales, bias)

    return change


def huge(power: int) -> Change:
    """A channel whose scale is so large that most of its outputs saturate."""

    def change(chance: np.random.Generator, graph: Graph) -> Graph:
        scales = scales_of(graph)
        _, _, x, out = layer(graph)
        assert x.quant is not None and out.quant is not None
        scales[0] = 1.3 * 2.0**power * out.quant.scale / x.quant.scale
        return with_(graph, scales)

    return change


def dominant(chance: np.random.Generator, graph: Graph) -> Graph:
    """An output scale that suits one channel only, beside which the others hardly show."""
    scales = scales_of(graph)
    scales[1:] *= 2.0 ** -chance.uniform(6, 16, len(scales) - 1)
    return with_(graph, scales)


def biased(chance: np.random.Generator, graph: Graph) -> Graph:
    scales = scales_of(graph)
    bias = result_bias(graph, scales, 1.0, 29) * chance.choice([-1, 1], len(scales))
    return with_(graph, scales, 20 * bias)


def empty(chance: np.random.Generator, graph: Graph) -> Graph:
    kernel = layer(graph)[0]
    return with_(graph, scales_of(graph), weights=np.zeros_like(kernel.data))


def apart_at_halves(chance: np.random.Generator, graph: Graph) -> Graph:
    """A real scale of .35, whose products floats round to halves or just beside them, so that no line is exact."""
    kernel, _, x, out = layer(graph)
    assert x.quant is not None and out.quant is not None
    quants = {x.name: Quant((7.0,), x.quant.zero_point), out.name: Quant((20.0,), out.quant.zero_point)}
    tensors = {name: replace(graph.tensors[name], quant=quant) for name, quant in quants.items()}
    weights = np.zeros_like(kernel.data)
    weights.reshape(-1, weights.shape[-1])[0] = 2  # few sums, for which integers follow floats all the same
    scales = np.ones(len(scales_of(graph)))
    return with_(replace(graph, tensors={**graph.tensors, **tensors}), scales, 0 * biases_of(graph), weights)


SHARES = 9
CHANGES: dict[str, Change] = {
    "dead": dead,
    "nearly dead by 2**9": nearly_dead(9),
    "nearly dead by 2**13": nearly_dead(13),
    "nearly dead by 2**19": nearly_dead(19),
    "nearly dead by 2**26": nearly_dead(26),
    "huge 1/2": huge(-1),
    "huge 2": huge(1),
    "huge 8": huge(3),
    "dominant": dominant,
    "huge biases": biased,
    "no weights": empty,
    "apart at halves": apart_at_halves,
}


def ordinary(maker: Callable[[], Graph], form: str, seed: int, clamp: Clamp) -> Graph:
    graph = quantized(maker(), form, seed=seed)
    op = graph.ops[0]
    op = replace(op, attributes=replace(op.attributes, clamp=clamp))  # type: ignore[call-arg]
    return verify(replace(graph, ops=(op,)))


@cache
def drawn(form: str) -> list[tuple[str, Graph, Target]]:
    """(change, graph, target) for every layer and every fast kernel that accepts its shape; clamps alternate."""
    makers, result = dict(cases()), []
    for seed, shape in enumerate(SHAPES):
        for turn, (name, clamp) in enumerate(CLAMPS.items()):
            plain = ordinary(makers[shape], form, seed, clamp)
            for kernel, target in candidates(plain):
                for changed, change in list(CHANGES.items())[(seed + turn) % len(CLAMPS) :: len(CLAMPS)]:
                    graph = verify(change(np.random.default_rng([seed, len(changed)]), plain))
                    result.append((f"{shape}, {name}, {changed}: {kernel}", graph, target))
    return result


@pytest.mark.parametrize(
    ("isa", "form"),
    [(name, form) for name in isas() if name != "c99" for form in FORMATS],
)
@in_shares(SHARES)
def test_values_are_no_reason_to_refuse(isa: str, form: str, share: int) -> None:
    mine = [(what, graph, target) for what, graph, target in drawn(form) if target.isa.name == isa][share::SHARES]
    refused = [what for what, graph, target in mine if what.rpartition(": ")[2] not in dict(candidates(graph))]
    assert not refused


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.parametrize("form", ["int8", pytest.param("int16", marks=pytest.mark.full)])
@pytest.mark.parametrize("isa", [name for name in isas() if name != "c99"])
@in_shares(SHARES)
def test_any_values_give_the_reference(isa: str, form: str, share: int, tmp_path: Path) -> None:
    if not runs_here(isas()[isa]):
        pytest.skip(f"this processor has no {isa}")
    mine = [
        (what, graph, target)
        for what, graph, target in drawn(form)
        if target.isa.name == isa and what.rpartition(": ")[2] in dict(candidates(graph))
    ][share::SHARES]
    for begin in range(0, len(mine), BATCH):
        batch = mine[begin : begin + BATCH]
        runs = [(graph, full_range(graph, 4, seed=begin)) for _, graph, _ in batch]
        folder = tmp_path / str(begin)
        folder.mkdir()
        outputs = run_many(runs, folder, targets=[target for _, _, target in batch])
        for (what, graph, _), (_, inputs), result in zip(batch, runs, outputs, strict=True):
            for output in graph.outputs:
                np.testing.assert_array_equal(result[output], interpret.run(graph, inputs)[output], err_msg=what)


@pytest.mark.parametrize(("form", "power"), [*product(["int8"], range(6)), *product(["int16"], range(3))])
def test_a_huge_channel_leaves_the_others_fast(form: str, power: int) -> None:
    """On Cortex-M no sum is scaled by the vendored function, which is exact for all but takes 20 cycles or more."""
    plain = ordinary(dict(cases())["conv2d-1"], form, power, CLAMPS["none"])
    graph = verify(huge(power)(np.random.default_rng(power), plain))
    site = site_of(graph, graph.ops[0])
    layouts = [Packed(), Wide()] if form == "int8" else [Wide()]
    found = [accepted(scaling_of(layout, site)) for layout in layouts]
    assert all(scaling.form is not None for scaling in (*found, accepted(total_scaling_of(site)).scaling))
