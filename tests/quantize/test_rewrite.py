"""The integer graph: formats, conversions where formats meet, and what is said of values no integers hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.nets import Net
from nnbuild import passes
from nnbuild.base.errors import UsageError
from nnbuild.model.graph import WHOLE, Constant, Graph, Op, Quant, Tensor
from nnbuild.model.verify import verify
from nnbuild.numeric.multiplier import SMALLEST_SCALE
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Attributes, Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.convert import Convert
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.gather import Gather
from nnbuild.ops.integer import quant_of
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.pad import Pad
from nnbuild.ops.simple_rnn import SimpleRNN
from nnbuild.ops.slice import Slice
from nnbuild.ops.top_k import TopK
from nnbuild.quantize.calibrate import Range, calibrate
from nnbuild.quantize.quantize import RANDOM_WARNING, Recipe, quantize_with
from nnbuild.quantize.report import as_float
from tests.passes.test_passes import Chain
from tests.quantize.small import classifier, samples
from tests.support.graphs import single


def rewritten(graph: Graph, scale: float = 1.0, **options: Any) -> Graph:
    values = {
        name: np.resize(samples(), (100, *graph.tensors[name].shape)) * np.float32(scale) for name in graph.inputs
    }
    return quantize_with(graph, Recipe(**options), calibrate(graph, lambda: [values], "minmax", 8))


def types(graph: Graph) -> dict[str, str]:
    return {name: tensor.dtype for name, tensor in graph.tensors.items()}


def with_weights(graph: Graph, name: str, factor: float) -> Graph:
    scaled = replace(graph.constants[name], data=(graph.constants[name].data * factor).astype(np.float32))
    return replace(graph, constants={**graph.constants, name: scaled})


@pytest.mark.parametrize("form", ["int8", "int16"])
def test_everything_is_integer(form: str) -> None:
    made = rewritten(classifier(), form=form)
    assert set(types(made).values()) == {form}
    assert all(constant.data.dtype.kind == "i" for constant in made.constants.values())
    assert made.constants["k1"].data.dtype == np.int8
    assert made.constants["b1"].data.dtype == {"int8": np.int32, "int16": np.int64}[form]


def test_float_edges() -> None:
    made = rewritten(classifier(), float_edge=True)
    assert made.ops[0].kind == made.ops[-1].kind == "convert"
    assert {made.tensors[name].dtype for name in (*made.inputs, *made.outputs)} == {"float32"}


def test_kept_layers_stand_between_conversions() -> None:
    made = rewritten(classifier(), keep={"second": "float"})
    assert types(made) | {"logits": "float32", "h": "int8", "probs": "int8"} == types(made)
    assert made.constants["k2"].data.dtype == np.float32
    assert sum(isinstance(op.attributes, Convert) for op in made.ops) == 2
    assert types(rewritten(classifier(), keep={"second": "int16"}))["logits"] == "int16"
    assert types(rewritten(classifier(), form="int16", keep={"first": "int8"}))["x"] == "int8"


def test_keep_of_no_layer() -> None:
    with pytest.raises(UsageError) as caught:
        rewritten(classifier(), keep={"third": "float"})
    assert str(caught.value) == (
        "--keep third: the model has no such layer, or computes it within another one. "
        "Its layers: first, h, logits, probs, second, sum …"
    )


def test_no_samples_are_never_silent() -> None:
    assert rewritten(classifier()).notes == (RANDOM_WARNING,)


def test_bias_correction_makes_up_for_rounded_weights() -> None:
    """With inputs far from zero the rounding of weights shifts every sum; biases take the shift back."""
    graph, shift = classifier(), np.float32(20)
    values = {"x": samples() + shift}
    ranges = calibrate(graph, lambda: [values], "minmax", 8)
    exact = interpret.run(graph, values)["logits"].mean(axis=0)
    off = []
    for corrected in (True, False):
        made = quantize_with(graph, Recipe(bias_correction=corrected, keep={"second": "float"}), ranges)
        found = interpret.run(made, values)
        off.append(float(np.abs(as_float(made.tensors["logits"], found["logits"]).mean(axis=0) - exact).max()))
    assert off[0] < off[1] - 0.02


def test_an_input_that_is_an_output() -> None:
    graph = replace(classifier(), outputs=("x", "probs"))
    for edge in (False, True):
        made = rewritten(graph, float_edge=edge)
        found = interpret.run(made, {"x": samples()})
        name = made.outputs[0]
        step = 1e-9 if edge else made.tensors[name].quant.scale / 2 * 1.001  # type: ignore[union-attr]
        np.testing.assert_allclose(as_float(made.tensors[name], found[name]), samples(), atol=step)


def sum_of(*factors: float, joined: Any) -> Graph:
    """Several multiples of one input, joined."""
    names = [f"p{index}" for index in range(len(factors))]
    held = {f"f{n}": Constant(f"f{n}", np.array([f], np.float32)) for n, f in zip(names, factors, strict=True)}
    ops = [Op(n, Binary("multiply"), ("x",), (n,), {"right": f"f{n}"}, layer=n) for n in names]
    width = 6 * len(names) if isinstance(joined, Concatenate) else 6
    tensors = {n: Tensor(n, (6,), layer=n) for n in ("x", *names)} | {"y": Tensor("y", (width,), layer="y")}
    return verify(Graph("sum", tensors, held, (*ops, Op("y", joined, tuple(names), ("y",), layer="y")), ("x",), ("y",)))


@pytest.mark.parametrize("joined", [Concatenate(0), Binary("add"), Binary("maximum")], ids=lambda joined: str(joined))
@pytest.mark.parametrize("form", ["int8", "int16"])
def test_different_ranges_meet(form: str, joined: Any) -> None:
    graph = sum_of(1.0, 12.0 if isinstance(joined, Concatenate) else 300.0, joined=joined)
    made = rewritten(graph, form=form)
    exact = interpret.run(graph, {"x": samples()})["y"]
    found = interpret.run(made, {"x": samples()})["y"]
    quant = made.tensors["y"].quant
    assert quant is not None
    assert np.abs(as_float(made.tensors["y"], found) - exact).max() <= 2 * quant.scale


@pytest.mark.parametrize("joined", [Concatenate(0), Binary("maximum")], ids=lambda joined: str(joined))
def test_what_meets_larger_steps_does_not_leave_zero(joined: Any) -> None:
    """Rounded twice, as by QUANTIZE, numbers are a quarter of a step too far from it, and sums of many are far off."""
    graph = sum_of(1.0, 3.3, joined=joined)
    x = np.random.default_rng(5).normal(scale=0.5, size=(500, 6)).astype(np.float32)
    ranges = calibrate(graph, lambda: [{"x": np.resize(samples(), (100, 6))}], "minmax", 8)
    made = quantize_with(graph, Recipe(), ranges)
    values = interpret.run(made, {"x": x})
    found, step = as_float(made.tensors["y"], values["y"])[:, :6], quant_of(made.tensors["y"]).scale
    held = as_float(made.tensors["p0"], values["p0"])
    away = (np.abs(found) - np.abs(held))[held < 0 if isinstance(joined, Binary) else held != 0]
    assert np.abs(away).max() < 0.51 * step and abs(away.mean()) < 0.06 * step


def test_scales_too_far_apart() -> None:
    graph = with_weights(classifier(), "k1", 1e15)
    with pytest.raises(UsageError) as caught:
        rewritten(graph)
    text = str(caught.value)
    assert text.startswith("layer 'first': a step of 'sum' is ")
    assert text.endswith(": too far apart for integers. Give --keep first=float, or train with values of similar size.")


def test_values_too_small_for_steps_take_few_of_them() -> None:
    """As an untrained deep network has them: what is built is still exact in its integers, and said to be coarse."""
    made = rewritten(classifier(), 1e-9)
    assert made.tensors["x"].quant == Quant((SMALLEST_SCALE,), -127)
    assert made.notes[0] == (
        "tensor 'x': its values, -3.33e-09 to 3.13e-09, are very small, and take only a few of the steps of int8, "
        "as in a model before its training. Otherwise give --keep first=float"
    )
    kept = rewritten(classifier(), 1e-9, keep={"first": "float"})
    assert kept.tensors["x"].dtype == "float32" and not any("tensor 'x'" in note for note in kept.notes)


def test_small_values_that_take_many_of_the_steps_of_int16_are_not_said_to_be_coarse() -> None:
    made = rewritten(classifier(), 1e-6, form="int16")
    assert made.tensors["x"].quant == Quant((SMALLEST_SCALE,))
    assert not any("tensor 'x'" in note for note in made.notes)


@pytest.mark.parametrize("form", ["int8", "int16"])
def test_dead_and_empty_channels(form: str) -> None:
    """A channel without weights gives its bias; one that is never positive gives zero."""
    graph = classifier()
    kernel, bias = graph.constants["k1"].data.copy(), graph.constants["b1"].data.copy()
    kernel[:, 0], bias[0] = 0.0, 2.0
    bias[1] = -1000.0
    constants = {**graph.constants, "k1": Constant("k1", kernel), "b1": Constant("b1", bias)}
    made = rewritten(passes.run(replace(graph, constants=constants)), form=form)
    found = interpret.run(made, {"x": samples()})["h"]
    tensor = made.tensors["h"]
    values = as_float(tensor, found)
    assert tensor.quant is not None
    np.testing.assert_allclose(values[:, 0], 2.0, atol=tensor.quant.scale * 4)
    assert not values[:, 1].any()


@pytest.mark.parametrize("weight", [0.0, 1e-7])
@pytest.mark.parametrize("form", ["int8", "int16"])
def test_a_small_bias_of_a_dead_channel_stays(form: str, weight: float) -> None:
    """A hundredth of the largest output, behind a recurrent layer, where weights have 16 bits and biases 44: the scale
    of the channel's weights must not be taken for none."""
    held = {"kernel": np.ones((1, 1)), "recurrent": np.zeros((1, 1))}
    graph = single(SimpleRNN(units=1), [(2, 1)], held)
    constants = {"k": np.array([[10.0, weight, 3.0]], np.float32), "b": np.array([0.0, 0.1, -0.01], np.float32)}
    dense = Op("dense", Dense(), ("y0",), ("z",), {"kernel": "k", "bias": "b"}, layer="dense")
    given = graph.constants | {name: Constant(name, values) for name, values in constants.items()}
    tensors = graph.tensors | {"z": Tensor("z", (3,))}
    graph = verify(replace(graph, tensors=tensors, constants=given, ops=(*graph.ops, dense), outputs=("z",)))
    x = np.random.default_rng(0).normal(size=(40, 2, 1)).astype(np.float32)
    ranges = calibrate(graph, lambda: iter([{"x0": x}]), "minmax", 16 if form == "int16" else 8)
    made = quantize_with(graph, Recipe(form=form), ranges)
    out = made.tensors[made.outputs[0]]
    found = as_float(out, interpret.run(made, {"x0": x})[out.name])
    assert out.quant is not None
    np.testing.assert_allclose(found[:, 1], 0.1, atol=2 * out.quant.scale)


@pytest.mark.parametrize(
    ("function", "reach", "stays"),
    [("sin", 3, True), ("sin", 2000, False), ("rsqrt", 900, False), ("sqrt", 750, False)],
)
def test_functions_too_steep_for_a_table_are_computed_in_floats(function: str, reach: float, stays: bool) -> None:
    graph = single(Activation(function), [(50,)])
    x = np.abs(np.random.default_rng(5).uniform(1e-4, reach, (20, 50))).astype(np.float32)
    ranges = calibrate(graph, lambda: iter([{"x0": x}]), "minmax", 16)
    made = quantize_with(graph, Recipe(form="int16", float_edge=True), ranges)
    (kept,) = [op for op in made.ops if isinstance(op.attributes, Activation)]
    assert (made.tensors[kept.outputs[0]].dtype == "int16") is stays
    found, wanted = (interpret.run(g, {"x0": x})[g.outputs[0]] for g in (made, graph))
    # an input is off by half a step, and the function by as much as its slope makes of that
    assert np.abs(found - wanted).max() < {"sin": 0.05, "sqrt": 1e-4, "rsqrt": 60}[function]
    said = [note for note in made.notes if note.endswith("and it is computed in floats")]
    assert bool(said) is not stays
    if function == "sin" and said:
        assert said[0].startswith("layer 'op': its function changes too fast for 16 bits over inputs from 0.0")
        assert said[0].endswith("to 2e+03, and it is computed in floats")


@pytest.mark.parametrize(("function", "parameters"), [("exponential", ()), ("elu", (1.0,)), ("square", ())])
@pytest.mark.parametrize("low", [-4.7, -9.0])
def test_a_table_is_right_up_to_the_largest_sample(function: str, parameters: tuple[float, ...], low: float) -> None:
    """The range below zero, which is the longer one, decides where the entry beyond the largest sample lies."""
    graph = single(Activation(function, parameters), [(200,)])
    x = np.linspace(low, min(4.2, -0.97 * low), 200, dtype=np.float32)[None]
    ranges = calibrate(graph, lambda: iter([{"x0": x}]), "minmax", 16)
    made = quantize_with(graph, Recipe(form="int16", float_edge=True), ranges)
    assert made.tensors[next(op for op in made.ops if isinstance(op.attributes, Activation)).outputs[0]].quant
    found, wanted = (interpret.run(g, {"x0": x})[g.outputs[0]] for g in (made, graph))
    assert np.abs(found - wanted).max() < 3e-4 * np.ptp(wanted)


@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize("factor", [1.0, 1e-3, 1e-6])
def test_summands_of_normalizations_may_be_large_beside_factors(factor: float, form: str) -> None:
    held = {"scale": np.array([factor, -factor, 0.0]), "shift": np.array([-0.6, 0.3, 0.1])}
    graph = single(LayerNorm(), [(3,)], held)
    x = np.random.default_rng(6).normal(size=(40, 3)).astype(np.float32)
    ranges = calibrate(graph, lambda: iter([{"x0": x}]), "minmax", 16 if form == "int16" else 8)
    made = quantize_with(graph, Recipe(form=form), ranges)
    out = made.tensors[made.outputs[0]]
    entered = {made.inputs[0]: interpret.as_input(made.tensors[made.inputs[0]], x, "float32")}
    found, wanted = as_float(out, interpret.run(made, entered)[out.name]), interpret.run(graph, {"x0": x})["y0"]
    np.testing.assert_allclose(found, wanted, atol=0.1 * factor + 2 * (out.quant.scale if out.quant else 0))


@pytest.mark.parametrize("kind", ["conv", "depthwise", "transposed"])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_biases_are_corrected_for_taps_on_the_input_only(size: int, kind: str) -> None:
    """In a small image most taps lie on the padding: what rounding their weights adds must not be subtracted. Of a
    transposed convolution some lie on no input, the more the larger its strides."""
    chance, pads = np.random.default_rng(2), ((2, 2), (1, 1))
    shape = {"conv": (5, 3, 2, 6), "depthwise": (5, 3, 2, 3), "transposed": (5, 3, 6, 2)}[kind]
    how: Attributes = Conv2D(padding=pads)
    if kind == "depthwise":
        how = DepthwiseConv2D(padding=pads)
    if kind == "transposed":
        how = Conv2DTranspose((2 * size + 1, size + 1), (2, 1), crop=(1, 1))
    held = {"kernel": chance.normal(size=shape), "bias": chance.normal(size=6)}
    graph = single(how, [(size, size, 2)], held)
    x = (30 + chance.normal(size=(40, size, size, 2))).astype(np.float32)
    ranges = calibrate(graph, lambda: iter([{"x0": x}]), "minmax", 16)
    wanted = interpret.run(graph, {"x0": x})["y0"].mean(axis=(0, 1, 2))
    errors = []
    for correction in (True, False):
        made = quantize_with(graph, Recipe(form="int16", float_edge=True, bias_correction=correction), ranges)
        found = interpret.run(made, {"x0": x})[made.outputs[0]].mean(axis=(0, 1, 2))
        errors.append(np.abs(found - wanted).max())
    assert errors[0] < errors[1] / 20


@pytest.mark.parametrize("form", ["int8", "int16"])
def test_the_largest_values_keep_their_format_and_their_places_are_whole(form: str) -> None:
    graph = single(TopK(2), [(6,)])
    tensors = graph.tensors | {"y1": replace(graph.tensors["y1"], dtype="int32", quant=WHOLE)}
    made = rewritten(verify(replace(graph, tensors=tensors)), form=form)
    assert made.tensors["y0"].quant == made.tensors["x0"].quant
    assert made.tensors["y1"].is_whole


def test_a_scale_of_one_is_a_scale() -> None:
    """Images less 127.5 have steps of exactly 1, which makes no whole numbers of them."""
    graph = single(Binary("multiply"), [(2, 2, 3)], {"right": np.array([0.3, 0.4, 2.0], np.float32)})
    x = np.random.default_rng(1).uniform(-127.5, 127.5, (50, 2, 2, 3)).astype(np.float32)
    x[0, 0, 0] = -127.5, 127.5, 0
    ranges = calibrate(graph, lambda: iter([{"x0": x}]), "minmax", 8)
    made = quantize_with(graph, Recipe(form="int8", float_edge=True), ranges)
    inner = made.ops[1]
    assert made.tensors[inner.inputs[0]].quant == Quant((1.0,)) and not made.tensors[inner.inputs[0]].is_whole
    assert made.constants[inner.constants["right"]].data.dtype == np.int8
    apart = interpret.run(made, {"x0": x})[made.outputs[0]] - interpret.run(graph, {"x0": x})["y0"]
    assert np.abs(apart).max() < 2.5


@pytest.mark.parametrize("form", ["int8", "int16"])
def test_products_too_coarse_for_their_output(form: str) -> None:
    """A step of a product times the largest multiplier would still have to be shifted to the left."""
    tensors = {"x": Tensor("x", (2, 2, 1)), "y": Tensor("y", (2, 2, 1), layer="y")}
    one = {"k": Constant("k", np.ones((1, 1, 1, 1), np.float32))}
    graph = Graph("net", tensors, one, (Op("y", Conv2D(), ("x",), ("y",), {"kernel": "k"}, layer="y"),), ("x",), ("y",))
    for reach in (1e9, 4.2e6):
        made = quantize_with(graph, Recipe(form=form), {"x": Range(-reach, reach), "y": Range(-1.0, 1.0)})
        assert made.tensors["y"].dtype == "float32"
        assert made.notes[0] == (
            "layer 'y': its results may lie too far beyond their range, -1 to 1, for integers, and it is computed in "
            "floats"
        )


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("mark", [-10.0, -1.0, 0.0, 0.3, 4.4])
@pytest.mark.parametrize("calibrated", ["with marks", "without"])
def test_a_mark_equals_itself(calibrated: str, mark: float, dtype: str) -> None:
    """Masking leaves out steps of one value, which may lie far from all others."""
    values = np.random.default_rng(2).normal(size=(50, 7, 3)).astype(np.float32)
    marked = values.copy()
    marked[:, ::2] = mark
    graph = single(Compare("not_equal"), [(7, 3)], {"right": np.full((1,), mark)})
    ranges = calibrate(graph, lambda: [{"x0": marked if calibrated == "with marks" else values}], "minmax", 8)
    found = interpret.run(quantize_with(graph, Recipe(dtype), ranges), {"x0": marked})["y0"]
    assert not found[:, ::2].any()
    assert found[:, 1::2].mean() > 0.95


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("mark", [1.0, -1.0])
def test_a_computed_result_equals_a_mark(mark: float, dtype: str) -> None:
    """Of the signs, -1 to 1 in 255 steps, 1 lies halfway between two steps."""
    zero, wanted = (Constant(name, np.array([value], np.float32)) for name, value in (("zero", 0.0), ("mark", mark)))
    truths = {name: Tensor(name, (40,), "int8", WHOLE, layer=name) for name in ("above", "below", "y")}
    floats = {name: Tensor(name, (40,), layer=name) for name in ("x", "one", "other", "sign")}
    ops = (
        Op("above", Compare("greater"), ("x",), ("above",), {"right": "zero"}),
        Op("below", Compare("less"), ("x",), ("below",), {"right": "zero"}),
        Op("one", Convert(), ("above",), ("one",)),
        Op("other", Convert(), ("below",), ("other",)),
        Op("sign", Binary("subtract"), ("one", "other"), ("sign",)),
        Op("y", Compare("equal"), ("sign",), ("y",), {"right": "mark"}),
    )
    graph = Graph("net", truths | floats, {"zero": zero, "mark": wanted}, ops, ("x",), ("y",))
    x = np.random.default_rng(2).choice([-3, -1, 2, 3], (9, 40)).astype(np.float32)
    made = quantize_with(graph, Recipe(dtype), calibrate(graph, lambda: [{"x": x}], "minmax", 8))
    np.testing.assert_array_equal(interpret.run(made, {"x": x})["y"], x * mark > 0)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("function", ["equal", "not_equal"])
@pytest.mark.parametrize("mark", [1000.0, -1000.0, 3e38])
def test_nothing_equals_a_number_far_beyond_all_samples(mark: float, function: str, dtype: str) -> None:
    """Not even the highest value, which is the last integer."""
    x = np.random.default_rng(2).normal(size=(50, 3)).astype(np.float32)
    graph = single(Compare(function), [(3,)], {"right": np.array([mark])})
    made = quantize_with(graph, Recipe(dtype), calibrate(graph, lambda: [{"x0": x}], "minmax", 8))
    every = np.array([np.iinfo(dtype).min, 0, np.iinfo(dtype).max], dtype)[None]
    assert (interpret.run(made, {"x0": every})["y0"] == (function == "not_equal")).all()
    assert made.notes[0] == (
        f"layer 'op': it looks for {mark:.4g}, and no sample comes near: in integers its input, {x.min():.3g} to "
        f"{x.max():.3g}, never equals that; calibrate with samples that hold it, if any do"
    )


@pytest.mark.parametrize("form", ["int8", "int16"])
def test_rows_that_come_as_floats_are_compared_as_they_come(form: str) -> None:
    """One scale for columns of different units would blur those of small numbers."""
    graph = single(Compare("greater"), [(3,)], {"right": np.array([0.05])})
    x = (np.random.default_rng(2).normal(size=(200, 3)) * [1e4, 1.0, 0.1]).astype(np.float32)
    ranges = calibrate(graph, lambda: [{"x0": x}], "minmax", 8)
    made = quantize_with(graph, Recipe(form, float_edge=True), ranges)
    np.testing.assert_array_equal(interpret.run(made, {"x0": x})["y0"], x > np.float32(0.05))


@pytest.mark.parametrize("float_edge", [False, True])
def test_marks_looked_for_in_floats_are_not_noted(float_edge: bool) -> None:
    """As in a feature that is picked from a row, which is compared in floats."""
    net = Net("net")
    x = net.input(6)
    feature = net.add(Slice((0,), (1,), (1,)), [x])
    graph = net.graph(net.add(Compare("equal"), [feature], {"right": np.array([7777.0])}))
    values = np.random.default_rng(2).normal(size=(50, 6)).astype(np.float32)
    ranges = calibrate(graph, lambda: [{x: values}], "minmax", 8)
    made = quantize_with(graph, Recipe("int8", float_edge=float_edge), ranges)
    assert made.tensors[x].dtype == "float32" and made.notes == (RANDOM_WARNING,)


@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize(
    "joined",
    [
        Activation("clamp", (-3.4e38, 1.0)),
        Activation("clamp", (-1e38, 1e38)),
        Binary("add", clamp=Clamp(None, 1e37)),
        Binary("maximum"),
        Binary("minimum"),
    ],
    ids=str,
)
def test_bounds_beyond_all_numbers_bound_nothing(joined: Attributes, form: str) -> None:
    """As -3.4e38, which exporters write for minus infinity: alone, and among others."""
    far = 3.4e38 if joined.kind != "binary" or joined != Binary("maximum") else -3.4e38
    bounds = np.array([0.5, far, -0.5, far])
    held = {"right": bounds if joined in (Binary("maximum"), Binary("minimum")) else bounds.clip(-1, 1)}
    graph = single(joined, [(4,)], held if isinstance(joined, Binary) else {})
    x = np.float32(np.random.default_rng(1).uniform(-1, 1, (64, 4)))
    made = quantize_with(graph, Recipe(form=form), calibrate(graph, lambda: [{"x0": x}], "minmax", 8))
    found = as_float(made.tensors["y0"], interpret.run(made, {"x0": x})["y0"])
    wanted = interpret.run(graph, {"x0": x})["y0"]
    assert np.abs(found - wanted).max() < (0.03 if form == "int8" else 0.001)
    for op in made.ops:
        for name in op.constants.values():
            quant = made.constants[name].quant
            assert quant is None or quant.scale < 1, "the others keep their steps"


@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize("scale", [1e-4, 0.01, 1.0, 300.0])
@pytest.mark.parametrize("function", ["greater", "greater_equal", "less", "less_equal"])
def test_comparisons_are_as_fine_as_what_they_compare(function: str, scale: float, form: str) -> None:
    """However small it is; with a number, one beyond all values, and another tensor."""
    chance = np.random.default_rng(1)
    x, y = (np.float32(chance.normal(scale=scale, size=(50, 40))) for _ in range(2))
    for limit in (0.0, 0.4 * scale, 9 * scale, -9 * scale):
        graph = single(Compare(function), [(40,)], {"right": np.array([limit])})
        made = quantize_with(graph, Recipe(form=form), calibrate(graph, lambda: [{"x0": x}], "minmax", 8))
        wrong = interpret.run(made, {"x0": x})["y0"] != interpret.run(graph, {"x0": x})["y0"]
        assert wrong.mean() < (0.015 if form == "int8" else 0.001)
    graph, both = single(Compare(function), [(40,), (40,)]), {"x0": x, "x1": 2 * y}
    made = quantize_with(graph, Recipe(form=form), calibrate(graph, lambda: [both], "minmax", 8))
    wrong = interpret.run(made, both)["y0"] != interpret.run(graph, both)["y0"]
    assert wrong.mean() < (0.03 if form == "int8" else 0.001)


@pytest.mark.parametrize("border", [-5.0, 3.0, 0.0])
@pytest.mark.parametrize("form", ["int8", "int16"])
def test_a_border_beyond_the_values_is_held(border: float, form: str) -> None:
    """And one that is a bound, as that of a maximum, takes no steps away."""
    x = np.float32(np.random.default_rng(1).uniform(0, 2, (40, 6, 2)))
    for value in (border, -3e38):
        graph = single(Pad(((1, 2), (0, 0)), value), [(6, 2)])
        made = quantize_with(graph, Recipe(form=form), calibrate(graph, lambda: [{"x0": x}], "minmax", 8))
        found = as_float(made.tensors["y0"], interpret.run(made, {"x0": x})["y0"])
        wanted = interpret.run(graph, {"x0": x})["y0"]
        inner = np.abs(found - wanted)[:, 1:7] if value == -3e38 else np.abs(found - wanted)
        assert inner.max() < (0.02 if form == "int8" else 2e-4)


def test_what_a_logarithm_needs_before_it_is_computed_in_floats() -> None:
    """16 bits lose the epsilon of log(x * x + epsilon)."""
    x = np.float32(np.random.default_rng(1).normal(scale=3, size=(60, 16)))
    ops = (
        Op("square", Activation("square"), ("x",), ("s",)),
        Op("sum", Binary("add"), ("s",), ("a",), {"right": "e"}),
        Op("log", Activation("log"), ("a",), ("y",)),
    )
    constants = {"e": Constant("e", np.full((1,), 1e-6, np.float32))}
    tensors = {name: Tensor(name, (16,)) for name in ("x", "s", "a", "y")}
    graph = verify(Graph("net", tensors, constants, ops, ("x",), ("y",)))
    recipe = Recipe(form="int16", float_edge=True)
    made = quantize_with(graph, recipe, calibrate(graph, lambda: [{"x": x}], "minmax", 8))
    found = interpret.run(made, {"x": x})[made.outputs[0]]
    np.testing.assert_allclose(found, np.log(x * x + 1e-6), atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize("form", ["int8", "int16"])
def test_whole_numbers_of_a_table_are_not_rounded(form: str) -> None:
    """As the leaves that a forest finds, by which their depths are looked up: 17 in steps of 0.3 is 16.8, and 16."""
    table = Constant("table", np.array([17, 31, 84, 5], np.float32))
    tensors = {name: Tensor(name, (6,), "int32", WHOLE, layer=name) for name in ("x", "y")}
    tensors |= {name: Tensor(name, (6,), layer=name) for name in ("leaf", "whole")}
    ops = (
        Op("leaf", Gather(0), ("x",), ("leaf",), {"table": "table"}),
        Op("whole", Activation("floor"), ("leaf",), ("whole",)),
        Op("y", Convert(), ("whole",), ("y",)),
    )
    graph = verify(Graph("net", tensors, {"table": table}, ops, ("x",), ("y",)))
    x = np.random.default_rng(3).integers(0, 4, (20, 6)).astype(np.int32)
    made = quantize_with(graph, Recipe(form), calibrate(graph, lambda: [{"x": x}], "minmax", 8))
    np.testing.assert_array_equal(interpret.run(made, {"x": x})["y"], table.data[x])


def test_roots_of_what_is_rounded_below_zero_are_numbers() -> None:
    """As of squared distances, which are sums of large numbers: in floats a root of -3 would be NaN."""
    graph = sum_of(1.0, joined=Activation("sqrt"))
    x = np.geomspace(1e-7, 1e6, 600, dtype=np.float32).reshape(100, 6)
    ranges = calibrate(graph, lambda: [{"x": x}], "minmax", 16)
    made = quantize_with(graph, Recipe("int16", keep={"y": "float"}), ranges)
    found = interpret.run(made, {"x": np.concatenate([x, np.full((1, 6), -20, np.float32)])})["y"]
    assert made.tensors[made.outputs[0]].dtype == "float32"
    assert np.abs(found[:-1] - np.sqrt(x)).max() < 5 and (found[-1] == 0).all()


@pytest.mark.parametrize("form", ["int8", "int16"])
def test_a_maximum_of_one_format_keeps_it(form: str) -> None:
    """As of the taps of a dilated pool, some of which lie in its padding: the lowest number there is."""
    chain = Chain((6,), seed=2)
    chain.add(Pad(((2, 2),), float(np.finfo(np.float32).min)))
    padded = chain.graph()
    tensors = {name: Tensor(name, (4,), layer=name) for name in ("left", "right", "y")}
    ops = (
        Op("left", Slice((0,), (1,), (4,)), padded.outputs, ("left",)),
        Op("right", Slice((1,), (1,), (4,)), padded.outputs, ("right",)),
        Op("y", Binary("maximum"), ("left", "right"), ("y",)),
    )
    graph = verify(replace(padded, tensors={**padded.tensors, **tensors}, ops=(*padded.ops, *ops), outputs=("y",)))
    made = rewritten(graph, form=form)
    assert made.tensors["y"].quant == made.tensors["x"].quant
    found, exact = (interpret.run(each, {"x": samples()})["y"] for each in (made, graph))
    step = quant_of(made.tensors["y"]).scale
    assert np.abs(as_float(made.tensors["y"], found) - exact)[:, 1:].max() < 0.51 * step
