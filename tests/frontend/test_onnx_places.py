"""Operators that take or put elements at places that are constant or computed, as onnxruntime computes them."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from nnbuild.base.errors import ModelError
from nnbuild.frontend.onnx import load_bytes
from nnbuild.model.graph import Array
from nnbuild.ops import interpret
from tests.frontend.test_onnx_operands import equal, made, node
from tests.support.many import run_many

CASES = range(12)


def drawn(chance: np.random.Generator, *shape: int) -> Array:
    return chance.normal(size=shape).astype(np.float32)


def sizes(chance: np.random.Generator, count: int, most: int, least: int = 1) -> list[int]:
    return [int(n) for n in chance.integers(least, most + 1, count)]


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(
    ("mode", "edge", "corners"), list(product(["linear", "nearest"], ["zeros", "border", "reflection"], [0, 1]))
)
def test_sampling(mode: str, edge: str, corners: int, constant: bool) -> None:
    chance = np.random.default_rng(corners)
    for batch, image, places in ((1, (7, 5), (4, 6)), (2, (3, 8), (2, 2)), (1, (1, 4), (3, 1)), (1, (2, 1), (2, 3))):
        x, grid = drawn(chance, batch, 3, *image), chance.uniform(-3, 3, (batch, *places, 2)).astype(np.float32)
        sample = node("GridSample", "x g", mode=mode, padding_mode=edge, align_corners=corners)
        equal([sample], {"x": x} if constant else {"x": x, "g": grid}, {"g": grid} if constant else {}, opset=20)


@pytest.mark.filterwarnings("error")
def test_positions_far_outside() -> None:
    grid, x = np.array([[[[3e38, -3e38]]]], np.float32), np.ones((1, 2, 4, 3), np.float32)
    graph = load_bytes(made([node("GridSample", "x g")], x, {"g": grid}, ["y"], 16), "net")
    assert not interpret.run(graph, {"x": x.reshape(1, *graph.tensors["x"].shape)})["y"].any()


def test_a_spatial_transformer_in_c(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    nodes = [
        node("Flatten", "x", "f"),
        node("Gemm", "f w b", "t"),
        node("Reshape", "t s", "m"),
        node("AffineGrid", "m n", "g"),
        node("GridSample", "x g", mode="linear"),
    ]
    x = drawn(chance, 1, 2, 6, 6)
    constants = {"w": drawn(chance, 72, 6) / 20, "b": np.float32([1, 0, 0, 0, 1, 0]), "s": np.array([1, 2, 3])}
    graph = equal(nodes, x, {**constants, "n": np.array([1, 2, 5, 4])}, opset=20)
    ((name),) = graph.inputs
    inputs = {name: x.reshape(1, *graph.tensors[name].shape)}
    (found,) = run_many([(graph, inputs)], tmp_path)
    np.testing.assert_allclose(found["y"], interpret.run(graph, inputs)["y"], atol=1e-5)


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("size", [[1, 3, 4, 5], [2, 1, 2, 3], [1, 2, 3, 4, 2]])
def test_affine_grids(size: list[int], corners: int) -> None:
    axes = len(size) - 2
    theta = drawn(np.random.default_rng(0), size[0], axes, axes + 1)
    equal([node("AffineGrid", "x n", align_corners=corners)], theta, {"n": np.array(size)}, opset=20)


@pytest.mark.parametrize("seed", CASES)
def test_deformed_windows(seed: int) -> None:
    chance = np.random.default_rng(seed)
    several, batch, out = sizes(chance, 3, 2)
    channels, window, image = several * int(chance.integers(1, 4)), sizes(chance, 2, 3), sizes(chance, 2, 8, 5)
    strides, dilations, pads = sizes(chance, 2, 2), sizes(chance, 2, 2), sizes(chance, 4, 2, 0)
    places = [(image[i] + pads[i] + pads[i + 2] - dilations[i] * (window[i] - 1) - 1) // strides[i] + 1 for i in (0, 1)]
    taps = several * int(np.prod(window))
    given = {"x": drawn(chance, batch, channels, *image), "o": 2 * drawn(chance, batch, 2 * taps, *places)}
    constants = {"w": drawn(chance, out, channels, *window), "b": drawn(chance, out)}
    if seed % 3 < 2:
        (constants if seed % 3 else given)["m"] = chance.random((batch, taps, *places)).astype(np.float32)
    if seed % 4 == 3:
        constants["o"] = given.pop("o")
    options = {"strides": strides, "dilations": dilations, "pads": pads, "offset_group": several}
    equal([node("DeformConv", "x w o b" + (" m" if seed % 3 < 2 else ""), **options)], given, constants, opset=19)


@pytest.mark.parametrize("seed", CASES)
@pytest.mark.parametrize("constant", [False, True])
def test_gathering_at_places(seed: int, constant: bool) -> None:
    chance = np.random.default_rng(seed)
    rank = int(chance.integers(1, 5))
    shape, lead = sizes(chance, rank, 5), int(chance.integers(0, rank))
    depth, between = int(chance.integers(1, rank - lead + 1)), sizes(chance, int(chance.integers(1, 3)), 4)
    named = shape[lead : lead + depth]
    indices = np.stack([chance.integers(-n, n, shape[:lead] + between) for n in named], -1)
    x = drawn(chance, *shape) if seed % 3 else chance.integers(-99, 99, shape).astype(np.int32)
    gather = node("GatherND", "x i", batch_dims=lead)
    equal([gather], {"x": x} if constant else {"x": x, "i": indices}, {"i": indices} if constant else {})


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("constant", [False, True])
def test_scattering_along_an_axis(reduction: str, constant: bool) -> None:
    for seed in range(4):
        chance = np.random.default_rng(seed)
        rank = int(chance.integers(1, 4))
        shape, axis = sizes(chance, rank, 5), int(chance.integers(rank))
        count = int(chance.integers(1, min(4, shape[axis]) + 1))
        indices = np.argsort(chance.random(shape), axis).take(range(count), axis)
        if reduction != "none":
            indices = chance.integers(-shape[axis], shape[axis], indices.shape)
        updates = drawn(chance, *indices.shape)
        given = {"x": drawn(chance, *shape), "u": updates}
        scatter = node("ScatterElements", "x i u", axis=axis, reduction=reduction)
        equal([scatter], given if constant else {**given, "i": indices}, {"i": indices} if constant else {})


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("constant", [False, True])
def test_scattering_rows(reduction: str, constant: bool) -> None:
    for seed in range(4):
        chance = np.random.default_rng(seed)
        shape = sizes(chance, int(chance.integers(1, 5)), 5)
        depth, count = int(chance.integers(1, len(shape) + 1)), int(chance.integers(1, 5))
        rows = int(np.prod(shape[:depth]))
        flat = chance.permutation(rows)[:count] if reduction == "none" else chance.integers(0, rows, count)
        indices = np.stack(np.unravel_index(flat, shape[:depth]), -1)
        indices = indices - np.array(shape[:depth]) * chance.integers(0, 2, indices.shape)
        given = {"x": drawn(chance, *shape), "u": drawn(chance, len(flat), *shape[depth:])}
        scatter = node("ScatterND", "x i u", reduction=reduction)
        equal([scatter], given if constant else {**given, "i": indices}, {"i": indices} if constant else {})


def test_what_is_scattered_in_a_part_of_the_rows_is_refused() -> None:
    given = {"x": np.zeros((3, 4), np.float32), "i": np.zeros((2, 1), np.int64), "u": np.ones((2, 1), np.float32)}
    data = made([node("ScatterElements", "x i u", axis=1)], given, {}, ["y"], 18)
    with pytest.raises(ModelError, match=r"writes \[2, 1\] values into \[3, 4\] at places computed at run time"):
        load_bytes(data, "net")


def folded(x: Array, size: list[int], block: list[int], options: dict[str, list[int]]) -> Array:
    """Each block's numbers added to the image."""
    count = len(size)
    strides, dilations = (options.get(name, [1] * count) for name in ("strides", "dilations"))
    pads = options.get("pads", [0] * 2 * count)
    padded = [n + pads[i] + pads[i + count] for i, n in enumerate(size)]
    counts = [(padded[i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(count)]
    image = np.zeros((x.shape[0], x.shape[1] // int(np.prod(block)), *padded), np.float64)
    blocks = x.reshape(*image.shape[:2], *block, *counts)
    for tap in product(*map(range, block)):
        begins = [t * d for t, d in zip(tap, dilations, strict=True)]
        ranges = (slice(b, b + s * (n - 1) + 1, s) for b, s, n in zip(begins, strides, counts, strict=True))
        image[(slice(None), slice(None), *ranges)] += blocks[(slice(None), slice(None), *tap)]
    return image[(slice(None), slice(None), *(slice(pads[i], pads[i] + n) for i, n in enumerate(size)))]


FOLDS: tuple[tuple[int, list[int], list[int], int, dict[str, list[int]]], ...] = (
    (1, [6, 8], [3, 2], 8, {"strides": [3, 2]}),
    (2, [6, 6], [2, 3], 6, {"strides": [2, 3]}),
    (1, [5, 5], [3, 3], 25, {"pads": [1, 1, 1, 1]}),
    (1, [7, 6], [2, 3], 4, {"strides": [3, 2], "dilations": [2, 2], "pads": [1, 0, 0, 1]}),
    (2, [6, 5], [2, 2], 6, {"strides": [2, 2]}),
    (1, [5, 5, 5], [2, 3, 1], 18, {"strides": [2, 1, 2], "dilations": [1, 2, 1], "pads": [1, 0, 1, 1, 1, 0]}),
)


@pytest.mark.parametrize(("batch", "size", "block", "count", "options"), FOLDS)
def test_blocks_become_an_image(
    batch: int, size: list[int], block: list[int], count: int, options: dict[str, Any]
) -> None:
    x = drawn(np.random.default_rng(2), batch, 2 * int(np.prod(block)), count)
    data = made([node("Col2Im", "x n b", **options)], x, {"n": np.array(size), "b": np.array(block)}, ["y"], 18)
    graph = load_bytes(data, "net")
    found = interpret.run(graph, {"x": x.reshape(1, *graph.tensors["x"].shape)})["y"]
    wanted = folded(x, size, block, options)
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, atol=1e-5)
    side_by_side = block == options.get("strides") and "pads" not in options and not np.mod(size, block).any()
    assert side_by_side == all(op.kind in ("reshape", "transpose") for op in graph.ops)


@pytest.mark.parametrize(
    ("kind", "given", "constants", "options", "text"),
    [
        ("GridSample", {"x": (1, 1, 3, 3), "g": (1, 2, 2, 2)}, {}, {"mode": "cubic"}, "samples with 'cubic'"),
        ("GridSample", {"x": (1, 1, 3, 3, 3), "g": (1, 2, 2, 2, 3)}, {}, {}, "images of two axes, not on 3"),
        ("GridSample", {"x": (2, 1, 3, 3), "g": (1, 2, 2, 2)}, {}, {}, "does not match"),
        ("AffineGrid", {"x": (1, 2, 3)}, {"n": [1, 1, 3, 1]}, {"align_corners": 1}, "one pixel has no two"),
        ("AffineGrid", {"x": (1, 2, 3)}, {"n": [1, 1, 3, 1, 2]}, {}, "do not match"),
        ("DeformConv", {"x": (1, 2, 4, 4)}, {"w": (2, 1, 1, 1), "o": (1, 2, 4, 4)}, {"group": 2}, "in 2 groups"),
        ("DeformConv", {"x": (1, 2, 4, 4)}, {"w": (2, 2, 1, 1), "o": (1, 2, 3, 4)}, {}, "'o' is"),
        ("Col2Im", {"x": (1, 4, 5)}, {"n": [4, 4], "b": [2, 2]}, {}, "it needs 9 blocks, not 5"),
        ("Col2Im", {"x": (1, 5, 9)}, {"n": [4, 4], "b": [2, 2]}, {}, r"its blocks \[2, 2\] do not match"),
    ],
)
def test_places_that_are_refused(
    kind: str,
    given: dict[str, tuple[int, ...]],
    constants: dict[str, Any],
    options: dict[str, Any],
    text: str,
) -> None:
    inputs = {name: np.zeros(shape, np.float32) for name, shape in given.items()}
    held = {
        name: np.zeros(each, np.float32) if isinstance(each, tuple) else np.array(each)
        for name, each in constants.items()
    }
    data = made([node(kind, " ".join([*inputs, *held]), **options)], inputs, held, ["y"], 20)
    with pytest.raises(ModelError, match=text):
        load_bytes(data, "net")
