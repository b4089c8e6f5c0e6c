"""Each pass leaves the meaning of a graph alone, and does what it is there for."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.model.graph import Constant, Graph, Op, Shape, State, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import Attributes, Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.pad import Pad
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.transpose import Transpose
from nnbuild.passes.constant_bounds import constant_bounds
from nnbuild.passes.drop_noops import drop_noops
from nnbuild.passes.fold_affine import fold_affine
from nnbuild.passes.fold_pads import fold_pads
from nnbuild.passes.merge_clamps import merge_clamps
from nnbuild.passes.remove_dead import remove_dead
from nnbuild.passes.reshapes import collapse_reshapes, sink_reshapes
from tests.support.graphs import single

RELU = Activation("clamp", (0.0, inf))


class Chain:
    """Builds a graph operation by operation, with random constants."""

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.tensors = {"x": Tensor("x", shape)}
        self.constants: dict[str, Constant] = {}
        self.ops: list[Op] = []
        self.last = "x"

    def add(self, attributes: Attributes, *inputs: str, outer: Shape = (), **constants: Shape) -> str:
        number = len(self.ops)
        names = {role: f"{role}{number}" for role in constants}
        for role, shape in constants.items():
            values = self.rng.normal(size=shape).astype(np.float32)
            self.constants[names[role]] = Constant(names[role], values)
        inputs = inputs or (self.last,)
        shapes = [self.tensors[name].shape[len(outer) :] for name in inputs]
        (shape,) = attributes.shapes(shapes, constants)
        self.last = f"t{number}"
        self.tensors[self.last] = Tensor(self.last, outer + shape, layer=f"layer{number}")
        self.ops.append(Op(f"op{number}", attributes, inputs, (self.last,), names, f"layer{number}", outer))
        return self.last

    def graph(self, *outputs: str, states: tuple[State, ...] = ()) -> Graph:
        outputs = outputs or (self.last,)
        return verify(Graph("test", self.tensors, self.constants, tuple(self.ops), ("x",), outputs, states))


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops]


def same(before: Graph, after: Graph) -> None:
    """Equal outputs in float64, where folding costs no more than one rounding of a weight to float32."""
    verify(after)
    assert after.outputs == before.outputs
    assert after.inputs == before.inputs
    rng = np.random.default_rng(5)
    inputs = {name: rng.normal(size=(3, *before.tensors[name].shape)) for name in before.inputs}
    one, other = (interpret.run(graph, inputs, "float64") for graph in (before, after))
    for name in before.outputs:
        np.testing.assert_allclose(other[name], one[name], rtol=2e-6, atol=2e-6)


IMAGE = (6, 5, 4)

LINEAR = [
    (Conv2D(padding=((1, 1), (1, 1))), {"kernel": (3, 3, 4, 6), "bias": (6,)}),
    (Conv2D(strides=(2, 1), groups=2), {"kernel": (3, 2, 2, 6)}),
    (DepthwiseConv2D(), {"kernel": (3, 3, 4, 2), "bias": (8,)}),
    (DepthwiseConv2D(padding=((1, 1), (0, 0))), {"kernel": (3, 3, 4, 1)}),
    (Conv2DTranspose((13, 11), (2, 2)), {"kernel": (3, 3, 5, 4), "bias": (5,)}),
    (Dense(), {"kernel": (4, 7), "bias": (7,)}),
    (Dense(), {"kernel": (4, 7)}),
]


@pytest.mark.parametrize(("linear", "constants"), LINEAR)
def test_affine_folds_into_the_layer_before(linear: Attributes, constants: dict[str, Shape]) -> None:
    chain = Chain(IMAGE)
    chain.add(linear, **constants)
    channels = chain.tensors[chain.last].shape[-1]
    chain.add(Affine(2, Clamp(0.0, None)), scale=(channels,), shift=(channels,))
    graph = chain.graph()
    folded = fold_affine(graph)
    same(graph, folded)
    assert len(folded.ops) == 1
    assert folded.ops[0].attributes.clamp == Clamp(0.0, None)  # type: ignore[attr-defined]
    assert remove_dead(folded).constants.keys() == set(folded.ops[0].constants.values())


@pytest.mark.parametrize("roles", [(), ("scale",), ("shift",), ("scale", "shift")])
def test_affine_folds_into_a_normalization_of_its_channels(roles: tuple[str, ...]) -> None:
    chain = Chain(IMAGE)
    chain.add(LayerNorm(1), **dict.fromkeys(roles, (4,)))
    chain.add(Affine(2), scale=(4,), shift=(4,))
    graph = chain.graph()
    folded = fold_affine(graph)
    same(graph, folded)
    assert [op.kind for op in folded.ops] == ["layer_norm"]


@pytest.mark.parametrize(("count", "clamp"), [(2, Clamp()), (1, Clamp(0.0, None))])
def test_affine_stays_behind_a_normalization_of_more_than_channels(count: int, clamp: Clamp) -> None:
    chain = Chain(IMAGE)
    chain.add(LayerNorm(count))
    chain.add(Affine(2, clamp), scale=(4,), shift=(4,))
    assert len(fold_affine(chain.graph()).ops) == 2


@pytest.mark.parametrize(("linear", "constants"), LINEAR)
@pytest.mark.parametrize("summand", [True, False])
def test_affine_folds_into_the_layer_behind_only_where_exact(
    linear: Attributes, constants: dict[str, Shape], summand: bool
) -> None:
    chain = Chain(IMAGE)
    if summand:
        chain.add(Affine(2), scale=(4,), shift=(4,))
    else:
        chain.add(Binary("multiply"), right=(4,))
    chain.add(linear, **constants)
    graph = chain.graph()
    folded = fold_affine(graph)
    same(graph, folded)
    pads = getattr(linear, "padding", None) not in (None, ((0, 0), (0, 0))) or linear.kind == "conv2d_transpose"
    assert len(folded.ops) == (2 if summand and pads else 1)


def test_affine_folds_through_reshapes_into_the_layer_behind() -> None:
    behind: list[tuple[tuple[Shape, ...], Attributes, dict[str, Shape]]] = [
        (((120,),), Dense(), {"kernel": (120, 7), "bias": (7,)}),
        (((30, 4), (10, 12)), Dense(), {"kernel": (12, 3)}),
        (((1, 30, 4),), Conv2D(), {"kernel": (1, 3, 4, 5)}),
    ]
    for shapes, linear, constants in behind:
        chain = Chain(IMAGE)
        chain.add(Affine(2), scale=(4,), shift=(4,))
        for shape in shapes:
            chain.add(Reshape(shape))
        chain.add(linear, **constants)
        folded = fold_affine(chain.graph())
        same(chain.graph(), folded)
        assert "affine" not in kinds(folded)


def test_affine_does_not_fold_through_a_reshape_that_parts_channels() -> None:
    chain = Chain(IMAGE)
    chain.add(Affine(2), scale=(4,), shift=(4,))
    chain.add(Reshape((60, 2)))
    chain.add(Dense(), kernel=(2, 3))
    assert kinds(fold_affine(chain.graph())) == ["affine", "reshape", "dense"]


def test_affine_does_not_fold_where_somebody_else_reads_the_layer() -> None:
    chain = Chain(IMAGE)
    y = chain.add(Dense(), kernel=(4, 7))
    z = chain.add(Affine(2), y, scale=(7,), shift=(7,))
    chain.add(Binary("add"), y, z)
    assert kinds(fold_affine(chain.graph())) == ["dense", "affine", "binary"]
    assert kinds(fold_affine(chain.graph(y, z))) == ["dense", "affine", "binary"]


def test_affine_does_not_fold_through_an_activation_or_another_axis() -> None:
    chain = Chain(IMAGE)
    chain.add(Dense(clamp=Clamp(0.0, None)), kernel=(4, 4))
    chain.add(Affine(2), scale=(4,), shift=(4,))
    chain.add(Dense(), kernel=(4, 4))
    graph = chain.graph()
    folded = fold_affine(graph)
    same(graph, folded)
    assert kinds(folded) == ["dense", "dense"]  # the one behind takes it, not the one before
    other = Chain(IMAGE)
    other.add(Dense(), kernel=(4, 4))
    other.add(Affine(0), scale=(6,), shift=(6,))
    assert kinds(fold_affine(other.graph())) == ["dense", "affine"]


@pytest.mark.parametrize(
    ("between", "sinks"),
    [
        (Pool2D("max", (2, 2), (2, 2)), True),
        (Pool2D("average", (3, 3), (1, 1), ((1, 1), (1, 1))), True),
        (Pool2D("max", (2, 2), (2, 2), clamp=Clamp(0.0, None)), False),
        (Reduce("mean", 0, 2), True),
        (Reduce("mean", 0, 1, keep=True), True),
        (Reduce("mean", 2, 1), False),
        (Reduce("sum", 0, 2), False),
        (Transpose((1, 0, 2)), True),
        (Transpose((2, 0, 1)), False),
    ],
)
def test_affine_sinks_through_pools_means_and_axes_into_the_layer_behind(between: Attributes, sinks: bool) -> None:
    chain = Chain(IMAGE)
    chain.add(RELU)
    chain.add(Affine(2), scale=(4,), shift=(4,))
    chain.add(between)
    chain.add(Dense(), kernel=(chain.tensors[chain.last].shape[-1], 7), bias=(7,))
    graph = chain.graph()
    graph = replace(graph, constants={**graph.constants, "scale1": Constant("scale1", np.float32([0.5, 2, 1e-5, 3]))})
    folded = remove_dead(fold_affine(graph))
    same(graph, folded)
    assert ("affine" not in kinds(folded)) == sinks


def test_affine_with_a_factor_below_zero_stays_ahead_of_a_maximum() -> None:
    chain = Chain(IMAGE)
    chain.add(RELU)
    chain.add(Affine(2), scale=(4,), shift=(4,))
    chain.add(Pool2D())
    graph = chain.graph()
    graph = replace(graph, constants={**graph.constants, "scale1": Constant("scale1", np.float32([1, 2, -3, 0]))})
    folded = fold_affine(graph)
    same(graph, folded)
    assert kinds(folded) == ["activation", "affine", "pool2d"]


def test_affine_keeps_a_kernel_that_another_call_shares() -> None:
    chain = Chain(IMAGE)
    y = chain.add(Dense(), kernel=(4, 4), bias=(4,))
    chain.add(Affine(2), scale=(4,), shift=(4,))
    first = chain.last
    shared = dict(chain.ops[0].constants)
    chain.tensors["again"] = Tensor("again", IMAGE)
    chain.ops.append(Op("again", Dense(), ("x",), ("again",), shared))
    graph = chain.graph(first, "again")
    folded = fold_affine(graph)
    same(graph, folded)
    assert len(folded.ops) == 2
    assert y not in folded.tensors


def test_affine_that_does_not_fit_single_precision_stays() -> None:
    chain = Chain((4,))
    chain.add(Dense(), kernel=(4, 4))
    chain.add(Affine(0), scale=(4,), shift=(4,))
    for name, value in (("kernel0", 1e30), ("scale1", 1e30)):
        chain.constants[name] = Constant(name, np.full_like(chain.constants[name].data, value))
    assert kinds(fold_affine(chain.graph())) == ["dense", "affine"]


@pytest.mark.parametrize("function", ["add", "subtract", "multiply", "divide"])
@pytest.mark.parametrize("role", ["left", "right"])
@pytest.mark.parametrize("size", [(), (1,), (4,), (1, 1, 4)])
def test_constant_operands_fold_like_affines(function: str, role: str, size: Shape) -> None:
    chain = Chain(IMAGE)
    chain.add(Dense(), kernel=(4, 4), bias=(4,))
    chain.add(Binary(function, Clamp(None, 1.0)), **{role: size})
    graph = chain.graph()
    folded = fold_affine(graph)
    same(graph, folded)
    assert len(folded.ops) == (2 if (function, role) == ("divide", "left") else 1)


def test_constant_operands_of_other_shapes_do_not_fold() -> None:
    for size in ((6, 1, 1), (5, 1), (5, 4), IMAGE):
        chain = Chain(IMAGE)
        chain.add(Dense(), kernel=(4, 4))
        chain.add(Binary("add"), right=size)
        graph = chain.graph()
        same(graph, fold_affine(graph))
        assert len(fold_affine(graph).ops) == 2
    wider = Chain((6, 5, 1))
    wider.add(Dense(), kernel=(1, 1))
    wider.add(Binary("add"), right=(4,))
    assert len(fold_affine(wider.graph()).ops) == 2


def test_affines_in_a_row_become_one() -> None:
    chain = Chain(IMAGE)
    chain.add(Binary("multiply"), right=())
    chain.add(Binary("add"), right=(1,))
    chain.add(Affine(2), scale=(4,), shift=(4,))
    graph = chain.graph()
    folded = fold_affine(graph)
    same(graph, folded)
    assert kinds(folded) == ["affine"]


def test_pads_fold_into_convolutions_but_not_into_pools() -> None:
    for conv, constants in LINEAR[:4]:
        chain = Chain(IMAGE)
        chain.add(Pad(((1, 2), (0, 3), (0, 0))))
        chain.add(conv, **constants)
        graph = chain.graph()
        folded = fold_pads(graph)
        same(graph, folded)
        assert len(folded.ops) == 1
    for function in ("max", "average"):
        chain = Chain(IMAGE)
        chain.add(Pad(((1, 1), (1, 1), (0, 0))))
        chain.add(Pool2D(function))
        assert kinds(fold_pads(chain.graph())) == ["pad", "pool2d"]


def test_pads_fold_into_a_convolution_of_one_axis() -> None:
    chain = Chain((9, 4))
    chain.add(Pad(((2, 1), (0, 0))))
    chain.add(Reshape((1, 12, 4)))
    chain.add(Conv2D(), kernel=(1, 3, 4, 5))
    graph = chain.graph()
    folded = fold_pads(graph)
    same(graph, folded)
    assert kinds(folded) == ["reshape", "conv2d"]


def test_pads_that_are_no_zeros_around_the_image_stay() -> None:
    for pad in (Pad(((1, 1), (1, 1), (0, 0)), 1.0), Pad(((0, 0), (0, 0), (1, 1)))):
        chain = Chain(IMAGE)
        chain.add(pad)
        chain.add(Conv2D(), kernel=(3, 3, chain.tensors[chain.last].shape[2], 2))
        assert kinds(fold_pads(chain.graph())) == ["pad", "conv2d"]


@pytest.mark.parametrize(("linear", "constants"), [*LINEAR, (Pool2D(), {}), (Binary(), {"right": (4,)})])
def test_clamps_merge_into_the_operation_before(linear: Attributes, constants: dict[str, Shape]) -> None:
    chain = Chain(IMAGE)
    chain.add(linear, **constants)
    chain.add(RELU)
    chain.add(Activation("clamp", (-1.0, 0.5)))
    graph = chain.graph()
    merged = merge_clamps(graph)
    same(graph, merged)
    assert len(merged.ops) == 1
    assert merged.ops[0].attributes.clamp == Clamp(0.0, 0.5)  # type: ignore[attr-defined]


def test_clamps_merge_with_each_other_and_not_into_what_cannot_clamp() -> None:
    chain = Chain(IMAGE)
    chain.add(Reduce("max"))
    chain.add(Activation("clamp", (0.0, 6.0)))
    chain.add(Activation("clamp", (7.0, inf)))
    graph = chain.graph()
    merged = merge_clamps(graph)
    same(graph, merged)
    assert kinds(merged) == ["reduce", "activation"]


def test_a_clamp_behind_an_output_stays() -> None:
    chain = Chain(IMAGE)
    y = chain.add(Dense(), kernel=(4, 4))
    chain.add(RELU)
    graph = chain.graph(y, chain.last)
    same(graph, merge_clamps(graph))
    assert kinds(merge_clamps(graph)) == ["dense", "activation"]


def test_noops_vanish() -> None:
    chain = Chain(IMAGE)
    chain.add(Activation())
    chain.add(Transpose((0, 1, 2)))
    chain.add(Dense(), kernel=(4, 4))
    chain.add(Slice((0, 0, 0), (1, 1, 1), IMAGE))
    chain.add(Activation())
    graph = chain.graph()
    dropped = drop_noops(graph)
    same(graph, dropped)
    assert kinds(dropped) == ["dense"]
    assert dropped.tensors[dropped.outputs[0]].layer == "layer4"


def test_noops_between_input_and_output_stay() -> None:
    chain = Chain(IMAGE)
    y = chain.add(Activation())
    z = chain.add(Activation(), y)
    graph = chain.graph(y, z)
    same(graph, drop_noops(graph))
    assert drop_noops(graph).outputs == (y, z)


def test_a_slice_that_reverses_is_no_noop() -> None:
    chain = Chain((3, 4))
    chain.add(Dense(), kernel=(4, 4))
    chain.add(Slice((2, 0), (-1, 1), (3, 4)))
    chain.add(Dense(), kernel=(4, 4))
    same(chain.graph(), drop_noops(chain.graph()))
    assert kinds(drop_noops(chain.graph())) == ["dense", "slice", "dense"]


def test_reshapes_sink_and_meet() -> None:
    chain = Chain((8, 4))
    chain.add(Reshape((1, 8, 4)))
    chain.add(Conv2D(), kernel=(1, 3, 4, 5), bias=(5,))
    chain.add(Reshape((6, 5)))
    chain.add(Affine(1), scale=(5,), shift=(5,))
    chain.add(RELU)
    chain.add(Reshape((1, 6, 5)))
    chain.add(Conv2D(), kernel=(1, 2, 5, 3))
    chain.add(Reshape((5, 3)))
    graph = chain.graph()
    for each in (sink_reshapes, collapse_reshapes):
        same(graph, each(graph))
    whole = passes.run(graph)
    same(graph, whole)
    assert kinds(whole) == ["reshape", "conv2d", "conv2d", "reshape"]


@pytest.mark.parametrize(
    ("op", "constants", "sinks"),
    [
        (Activation("tanh"), {}, True),
        (Affine(0), {"scale": (6,), "shift": (6,)}, False),
        (Affine(1), {"scale": (4,), "shift": (4,)}, True),
        (Softmax(1), {}, True),
        (Softmax(0), {}, False),
        (Softmax(0, 2), {}, False),
        (Binary("add"), {"right": (4,)}, True),
        (Binary("add"), {"right": (6, 1)}, False),
        (Reduce("max", 0), {}, False),
    ],
)
def test_reshapes_only_sink_through_what_does_not_mind(
    op: Attributes, constants: dict[str, Shape], sinks: bool
) -> None:
    chain = Chain((2, 3, 4))
    chain.add(Reshape((6, 4)))
    chain.add(op, **constants)
    graph = chain.graph()
    sunk = sink_reshapes(graph)
    same(graph, sunk)
    assert (kinds(sunk)[0] != "reshape") == sinks


def test_a_function_is_known_behind_the_reshapes_of_its_parts() -> None:
    """x * sigmoid(x) behind a one-dimensional convolution, whose two factors are reshaped alike."""
    chain = Chain((1, 8, 4))
    convolved = chain.add(Conv2D(), kernel=(1, 3, 4, 4))
    gate = chain.add(Activation("sigmoid"))
    chain.add(Binary("multiply"), *(chain.add(Reshape((6, 4)), part) for part in (convolved, gate)))
    graph = chain.graph()
    same(graph, sink_reshapes(graph))
    whole = passes.run(graph)
    same(graph, whole)
    assert kinds(whole) == ["conv2d", "activation", "reshape"]


@pytest.mark.parametrize("seen", ["once", "twice"])
def test_a_reshaped_output_keeps_its_numbers_where_a_product_reads_it(seen: str) -> None:
    """A convolution along time that is an output, and is squared or gated."""
    chain = Chain((1, 8, 4))
    convolved = chain.add(Conv2D(), kernel=(1, 3, 4, 4))
    gate = chain.add(Reshape((6, 4)), chain.add(Activation("sigmoid"))) if seen == "once" else ""
    shown = chain.add(Reshape((6, 4)), convolved)
    product = chain.add(Binary("multiply"), gate or shown, shown)
    graph = replace(chain.graph(), outputs=(shown, product))
    same(graph, sink_reshapes(graph))
    same(graph, passes.run(graph))


def test_reshapes_do_not_sink_through_a_sum_of_tensors_of_other_shapes() -> None:
    chain = Chain((2, 3, 4))
    parts = [chain.add(Reshape((6, 4)), each) for each in ("x", chain.add(Transpose((1, 0, 2))))]
    chain.add(Binary("add"), *parts)
    same(chain.graph(), sink_reshapes(chain.graph()))
    assert kinds(sink_reshapes(chain.graph())) == kinds(chain.graph())


def test_reshapes_do_not_sink_through_softmax_when_rows_change() -> None:
    chain = Chain((2, 12))
    chain.add(Reshape((6, 4)))
    chain.add(Softmax(1))
    same(chain.graph(), sink_reshapes(chain.graph()))


def test_states_keep_their_tensors() -> None:
    chain = Chain((4,))
    chain.tensors["before"] = Tensor("before", (4,))
    chain.add(Binary("add"), "x", "before")
    after = chain.add(Activation())
    chain.add(Activation("tanh"))
    graph = Graph(
        "test", chain.tensors, chain.constants, tuple(chain.ops), ("x",), (chain.last,), (State("before", after),)
    )
    done = passes.run(graph)
    assert [state.before for state in done.states] == ["before"]
    x = np.random.default_rng(2).normal(size=(5, 4))
    one, other = (interpret.run(each, {"x": x}, "float64") for each in (graph, done))
    np.testing.assert_allclose(other[chain.last], one[chain.last])


def test_operations_along_other_axes_do_not_fold() -> None:
    chain = Chain((3, 6, 5, 4))
    chain.add(Conv2D(), kernel=(2, 2, 4, 5), outer=(3,))
    chain.add(Affine(3), scale=(5,), shift=(5,))
    graph = chain.graph()
    same(graph, passes.run(graph))
    assert kinds(passes.run(graph)) == ["conv2d", "affine"]


def test_dead_operations_go() -> None:
    chain = Chain((4,))
    y = chain.add(Dense(), kernel=(4, 4))
    chain.add(Dense(), kernel=(4, 9))
    done = remove_dead(chain.graph(y))
    assert kinds(done) == ["dense"]
    assert set(done.constants) == {"kernel0"}
    assert set(done.tensors) == {"x", y}


STEPS: list[tuple[Attributes, dict[str, Shape]]] = [
    (Activation(), {}),
    (RELU, {}),
    (Activation("tanh"), {}),
    (Affine(2), {"scale": (4,), "shift": (4,)}),
    (Binary("multiply"), {"right": ()}),
    (Binary("subtract"), {"left": (4,)}),
    (Conv2D(padding=((1, 1), (1, 1))), {"kernel": (3, 3, 4, 4), "bias": (4,)}),
    (Conv2D(), {"kernel": (1, 1, 4, 4)}),
    (DepthwiseConv2D(padding=((1, 1), (1, 1))), {"kernel": (3, 3, 4, 1)}),
    (Dense(), {"kernel": (4, 4), "bias": (4,)}),
    (Pad(((1, 1), (0, 1), (0, 0))), {}),
    (Pool2D("max", (2, 2), (1, 1), ((0, 1), (0, 1))), {}),
    (Transpose((0, 1, 2)), {}),
]


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_keep_their_meaning(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain = Chain(IMAGE, seed)
    made = ["x"]
    for _ in range(rng.integers(3, 14)):
        source = made[-1] if rng.random() < 0.8 else str(rng.choice(made))
        shape = chain.tensors[source].shape
        match rng.integers(6):
            case 0:
                flat = chain.add(Reshape((shape[0] * shape[1], shape[2])), source)
                act = chain.add(Activation("clamp", (-0.5, 2.0)), flat)
                made.append(chain.add(Reshape(shape), act))
            case 1:
                fellows = [name for name in made if chain.tensors[name].shape == shape]
                made.append(chain.add(Binary("add"), source, str(rng.choice(fellows))))
            case _:
                op, constants = STEPS[rng.integers(len(STEPS))]
                made.append(chain.add(op, source, **constants))
    outputs = {made[-1], str(rng.choice(made[1:]))}
    graph = chain.graph(*sorted(outputs))
    whole = passes.run(graph)
    verify(whole)
    rng = np.random.default_rng(5)
    x = {"x": rng.normal(size=(2, *IMAGE))}
    one, other = (interpret.run(each, x, "float64") for each in (graph, whole))
    for name in graph.outputs:
        scale = np.abs(one[name]).max() + 1
        np.testing.assert_allclose(other[name] / scale, one[name] / scale, atol=2e-6)
    assert len(whole.ops) <= len(graph.ops)


def test_concatenations_clamp_too() -> None:
    chain = Chain(IMAGE)
    chain.add(Concatenate(2), "x", "x")
    chain.add(RELU)
    graph = chain.graph()
    same(graph, merge_clamps(graph))
    assert kinds(merge_clamps(graph)) == ["concatenate"]


@pytest.mark.parametrize(
    ("function", "values", "bounds"),
    [
        ("maximum", np.zeros((1, 4)), (0.0, inf)),
        ("minimum", np.float32(6), (-inf, 6.0)),
        ("maximum", np.full(4, np.finfo(np.float32).min), (-inf, inf)),
        ("maximum", np.array([0.0, 1.0, 0.0, 0.0]), None),
        ("maximum", np.zeros((2, 3, 4)), None),
        ("add", np.zeros(4), None),
    ],
    ids=str,
)
def test_maxima_with_one_number_are_clamps(
    function: str, values: np.ndarray, bounds: tuple[float, float] | None
) -> None:
    """Unless the numbers differ, or the constant has more places than the input."""
    graph = single(Binary(function), [(3, 4)], {"right": values})
    (op,) = constant_bounds(graph).ops
    assert op.attributes == (Binary(function) if bounds is None else Activation("clamp", bounds))
    assert bounds is None or not op.constants


def test_a_number_without_axes_gets_one_from_what_is_added() -> None:
    chain = Chain((1,))
    chain.add(Reshape(()))
    chain.add(Binary("add"), right=(1,))
    same(chain.graph(), verify(sink_reshapes(chain.graph())))
