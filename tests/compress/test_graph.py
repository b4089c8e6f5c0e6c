"""Whole graphs with compressed weights: what was asked for holds, accuracy is told, wrong use is refused."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from nnbuild.base.errors import CheckFailed, UsageError
from nnbuild.compress.compress import compress
from nnbuild.compress.measure import auc
from nnbuild.compress.options import weight_options
from nnbuild.compress.record import described, notes, trained
from nnbuild.compress.weight_matrices import kernel_of, matrices, scale_blocks, weight_roles
from nnbuild.model.graph import Graph
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.site import site_of
from nnbuild.quantize.data import Source
from nnbuild.quantize.quantize import Recipe, quantize_with, ranges_of
from nnbuild.quantize.report import predicted
from tests.compress.board import BOARD
from tests.compress.nets import many

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, Graph, Source]:
    """A network of every kind of weights, in floats and in integers, with samples that have labels."""
    file = tmp_path_factory.mktemp("samples") / "x.npz"
    graph = many()
    x = np.random.default_rng(3).normal(size=(200, 6, 6, 4)).astype(np.float32)
    np.savez(file, x=x, labels=predicted(interpret.run(graph, {"x": x})["probs"]))
    recipe = Recipe("int8", Source(file))
    return graph, quantize_with(graph, recipe, ranges_of(graph, recipe)), recipe.source


def test_the_path_names_the_format(made: tuple[Graph, Graph, Source]) -> None:
    original, _, source = made
    recipe = Recipe("int16", source)
    dense = quantize_with(original, recipe, ranges_of(original, recipe))
    _, record = compress(original, dense, source, weight_options(None, 8, None, None), BOARD, lambda _: None)
    assert [stage.name for stage in record.path] == ["float", "int16", "compressed"]


@pytest.mark.turns(3)
@pytest.mark.parametrize(
    ("prune", "share", "bits"), [("0.5", None, None), (None, 8, None), (None, None, 4), ("0.4", 6, 8)]
)
def test_every_layer_is_as_asked(
    made: tuple[Graph, Graph, Source], prune: str | None, share: int | None, bits: int | None
) -> None:
    original, dense, source = made
    found, record = compress(original, dense, source, weight_options(prune, share, bits, None), BOARD, lambda _: None)
    verify(found)
    assert [stage.name for stage in record.path] == ["float", "int8", "compressed"]
    assert record.path[0].value == 100
    assert record.path[2].value > 60
    assert record.measure == "accuracy on the labels"
    assert {each.role for each in record.weights} == {"kernel", "recurrent"}
    for each in record.weights:
        assert each.distinct <= (share or 255)
        assert each.largest <= (7 if bits == 4 else 127)
        if prune is not None and each.layer in ("conv", "grouped", "up", "lstm") and each.role == "kernel":
            assert each.sparsity >= float(prune) - 0.02
        assert each.asked or each.lost == 0


def test_layers_are_pruned_as_far_as_each_loses_little(made: tuple[Graph, Graph, Source]) -> None:
    _, record = compress(*made[:2], made[2], weight_options("by-layer", None, None, None), BOARD, lambda _: None)
    pruned = [each for each in record.weights if each.asked]
    assert {each.layer for each in pruned} >= {"grouped", "up"}
    assert all(0 < each.lost <= 0.015 for each in pruned)
    assert all(each.sparsity > 0.25 for each in pruned)


@pytest.mark.turns(6)
@pytest.mark.parametrize("words", [(None, None, None), ("auto", None, None), (None, "16", None), (None, None, "auto")])
def test_bytes_of_flash_are_kept(made: tuple[Graph, Graph, Source], words: tuple[str | None, ...]) -> None:
    whole, lines = BOARD.whole(made[1]).bytes, list[str]()
    limit = whole - 1500
    found, record = compress(*made[:2], made[2], weight_options(*words, str(limit), 60), BOARD, lines.append)
    assert record.bytes_after == BOARD.whole(found).bytes <= limit
    assert record.path[0].value - record.path[2].value <= 60
    kinds = {each.asked for each in record.weights if each.asked}
    assert kinds
    assert words[0] is None or all("pruned" in kind for kind in kinds)
    assert words[1] is None or kinds == {"16 values"}
    assert words[2] is None or all(re.fullmatch(r"[3-6] bits|-\d+ to \d+", kind) for kind in kinds)
    assert any(line.startswith("choice ") and line.endswith("points lost") for line in lines)


@pytest.mark.turns(3)
def test_room_that_is_left_goes_to_finer_forms(made: tuple[Graph, Graph, Source]) -> None:
    limit, lines = BOARD.whole(made[1]).bytes - 5000, list[str]()
    _, record = compress(*made[:2], made[2], weight_options(None, None, "auto", str(limit)), BOARD, lines.append)
    assert record.bytes_after <= limit
    assert any(line.startswith("choice with finer layers: ") for line in lines)


@pytest.mark.turns(4)
def test_as_few_bytes_as_the_drop_allows(made: tuple[Graph, Graph, Source]) -> None:
    sizes = []
    for drop in (8, 30):
        _, record = compress(
            *made[:2], made[2], weight_options("auto", None, "auto", None, drop), BOARD, lambda _: None
        )
        assert record.path[0].value - record.path[2].value <= drop
        sizes.append(record.bytes_after)
    assert sizes[1] < sizes[0] < BOARD.whole(made[1]).bytes


@pytest.mark.turns(4)
def test_what_cannot_be_kept_is_named_with_what_can(made: tuple[Graph, Graph, Source]) -> None:
    with pytest.raises(CheckFailed) as caught:
        compress(*made[:2], made[2], weight_options("auto", None, None, "11K", 8), BOARD, lambda _: None)
    found = re.fullmatch(
        r"--accuracy-drop 8: within --flash 11,264 the model loses [\d.]+ points; losing no more than 8 takes "
        r"[\d,]+ bytes\. Give --flash 11264 --accuracy-drop ([\d.]+), or --flash (\d+) --accuracy-drop 8\.",
        str(caught.value),
    )
    assert found is not None
    _, record = compress(*made[:2], made[2], weight_options("auto", None, None, found[2], 8), BOARD, lambda _: None)
    assert record.bytes_after <= int(found[2])
    with pytest.raises(CheckFailed) as caught:
        compress(*made[:2], made[2], weight_options(None, "16", None, "1K", 50), BOARD, lambda _: None)
    assert re.fullmatch(
        r"--flash 1,024: the fewest bytes that were found are [\d,]+, with [\d.-]+ points lost\. "
        r"Allow --flash \d+, or take a smaller model\.",
        str(caught.value),
    )
    with pytest.raises(CheckFailed) as caught:
        compress(*made[:2], made[2], weight_options("auto", None, None, None, 0), BOARD, lambda _: None)
    assert str(caught.value).startswith("--accuracy-drop: the integer model loses ")


def test_matrices_and_back(made: tuple[Graph, Graph, Source]) -> None:
    graph = made[1]
    for op, role in weight_roles(graph):
        site = site_of(graph, op)
        blocks = matrices(site, role, site.constant(role))
        assert np.array_equal(kernel_of(site, role, blocks), site.constant(role))
        assert np.broadcast_shapes(scale_blocks(site, role).shape, blocks.shape) == blocks.shape


def test_what_training_left_is_recognised(made: tuple[Graph, Graph, Source]) -> None:
    graph = made[1]
    assert list(notes(described(graph))) == []
    op = next(op for op in graph.ops if op.layer == "dense")
    name = op.constants["kernel"]
    few = np.where(np.arange(graph.constants[name].data.size) % 4 == 0, 5, 0).astype(np.int8)
    few = few.reshape(graph.constants[name].data.shape)
    changed = replace(graph, constants={**graph.constants, name: replace(graph.constants[name], data=few)})
    assert list(notes(described(changed))) == [
        "the model has weights that can be stored in fewer bytes: dense (75% zeros, 4 bits)"
    ]
    empty = replace(graph, constants={**graph.constants, name: replace(graph.constants[name], data=few * 0)})
    assert list(notes(described(empty))) == [
        "the model has weights that can be stored in fewer bytes: dense (all zeros)"
    ]
    for count, said in ((0, 0), (empty.constants[name].data.size, 1)):
        counted = replace(empty, parameters={"dense": count})
        assert len(list(notes(trained(counted, described(counted))))) == said
    small = [each for each in described(empty) if each.count >= 256]
    assert list(notes(tuple(replace(each, count=255) for each in small))) == []


@pytest.mark.turns(3)
@pytest.mark.parametrize("wish", [("0.5", None, None), (None, 8, None), (None, None, 3), ("0.5", 4, None)])
def test_weights_that_hardly_differ(
    made: tuple[Graph, Graph, Source], wish: tuple[str | None, int | None, int]
) -> None:
    """All of one value, all zero, and with columns of zeros: what is zero stays so."""
    original, dense, source = made
    fills = {"conv": lambda data: np.full_like(data, 5), "dense": np.zeros_like, "up": lambda data: data * 0}
    constants = dict(dense.constants)
    for op, role in weight_roles(dense):
        name, data = op.constants[role], dense.constants[op.constants[role]].data.copy()
        data[..., 0] = 0
        constants[name] = replace(constants[name], data=fills.get(op.layer, lambda data: data)(data))
    changed = replace(dense, constants=constants)
    found, _ = compress(original, changed, source, weight_options(*wish, None), BOARD, lambda _: None)
    verify(found)
    for op, role in weight_roles(changed):
        site, now = site_of(changed, op), found.constants[op.constants[role]].data
        was, now = (matrices(site, role, data) for data in (site.constant(role), now))
        dead = ~was.any(axis=1, keepdims=True)
        assert dead.any() or op.layer == "conv"
        assert not (now * dead).any()
    outputs = interpret.run(found, {"x": np.zeros((2, 6, 6, 4), np.float32)})["probs"]
    assert np.isfinite(outputs).all()


def test_refusals(made: tuple[Graph, Graph, Source]) -> None:
    original, dense, source = made
    for wish, said in {
        ("nowhere=0.5", None): "--prune nowhere=: the model has no such layer with 8-bit weights. Its layers: ",
        (None, "256"): "--share: no layer has more than 256 different values in 1024 weights or more. Leave it out.",
        ("dense=0.5", "256"): "--prune, --share: no layer to be pruned has the required 16 inputs, 4 outputs "
        "and 256 weights, and no layer has more than 256 different values in ",
    }.items():
        with pytest.raises(UsageError) as caught:
            compress(original, dense, source, weight_options(*wish, None, None), BOARD, lambda _: None)
        assert str(caught.value).startswith(said)
    bare = replace(dense, ops=tuple(op for op in dense.ops if op.kind == "softmax"))
    with pytest.raises(UsageError) as caught:
        compress(original, bare, source, weight_options("0.5", None, None, None), BOARD, lambda _: None)
    assert str(caught.value) == (
        "--prune: the model has no 8-bit weights. Leave it out, or give --quantize int8, without --keep, to a "
        "model with dense layers or convolutions."
    )


def test_auc() -> None:
    assert auc(np.array([1.0, 2, 3, 4]), np.array([0, 0, 1, 1])) == 1
    assert auc(np.array([1.0, 2, 2, 4]), np.array([0, 1, 0, 1])) == 0.875
    assert auc(np.array([1.0, 1]), np.array([0, 1])) == 0.5
    assert auc(np.array([1.0, 1]), np.array([1, 1])) == 0.5


def test_layers_behind_a_changed_one_make_up_for_it(made: tuple[Graph, Graph, Source]) -> None:
    _, dense, _ = made
    found, record = compress(*made[:2], made[2], weight_options("conv=0.6", None, None, None), BOARD, lambda _: None)
    assert [each.layer for each in record.weights if each.asked] == ["conv"]
    names = {op.layer: op.constants["kernel"] for op in dense.ops if op.layer in ("conv", "grouped", "dense")}
    same = {
        layer: np.array_equal(found.constants[name].data, dense.constants[name].data) for layer, name in names.items()
    }
    assert not same["conv"] and not same["dense"]
