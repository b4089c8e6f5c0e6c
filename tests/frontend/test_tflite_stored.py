"""How constants and codes may be stored in a `.tflite` file: in few bits, in blocks, behind the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite")

from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.frontend.tflite import read
from nnbuild.frontend.tflite.records import Tensor
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from tests.frontend.tflite_files import File, O, T, to_bytes
from tests.fuzz.tflite_seeds import SEEDS
from tests.fuzz.tflite_selection_seeds import composite

INPUTS, OUTPUTS, BLOCK = 12, 5, 4
WEIGHTS = np.random.default_rng(3).integers(-8, 8, (OUTPUTS, INPUTS)).astype(np.int8)
SCALES = np.random.default_rng(4).uniform(0.05, 0.2, (OUTPUTS, INPUTS // BLOCK)).astype(np.float16)
ROWS = np.random.default_rng(5).normal(size=(3, INPUTS)).astype(np.float32)


def packed(values: np.ndarray, bits: int) -> np.ndarray:
    """The first number in the lowest bits of a byte."""
    parts = 8 // bits
    flat = values.reshape(-1).view(np.uint8) & (1 << bits) - 1
    rows = np.append(flat, np.zeros(-len(flat) % parts, np.uint8)).reshape(-1, parts)
    return np.asarray((rows << np.arange(0, 8, bits, dtype=np.uint8)).sum(axis=1), np.uint8)


def dense(**weights: object) -> File:
    """A dense layer of floats; tensor 1 holds its weights, tensor 2 what the scales of blocks are."""
    tensors = [
        T("x", (1, INPUTS), "float32"),
        replace(T("w", (OUTPUTS, INPUTS), "int8", (0.1,), (0,), data=WEIGHTS), **weights),  # type: ignore[arg-type]
        T("scales", SCALES.shape, "float16", (), data=SCALES),
        T("y", (1, OUTPUTS), "float32"),
    ]
    return File(tensors, [O("FULLY_CONNECTED", [0, 1, -1], [3], "FullyConnectedOptions")], [0], [3])


def imported(file: File, folder: Path) -> Graph:
    path = folder / "net.tflite"
    path.write_bytes(to_bytes(file))
    return load(path)


def answers(graph: Graph) -> np.ndarray:
    return np.asarray(interpret.run(passes.run(graph), {graph.inputs[0]: ROWS})[graph.outputs[0]])


@pytest.mark.parametrize(("dtype", "bits"), [("int4", 4), ("int2", 2)])
def test_narrow_weights(dtype: str, bits: int, tmp_path: Path) -> None:
    weights = WEIGHTS >> (4 - bits)
    graph = imported(dense(dtype=dtype, data=packed(weights, bits)), tmp_path)
    np.testing.assert_allclose(answers(graph), ROWS @ (weights * np.float32(0.1)).T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int4", "int8"])
def test_weights_in_blocks(dtype: str, tmp_path: Path) -> None:
    data = WEIGHTS if dtype == "int8" else packed(WEIGHTS, 4)
    graph = imported(dense(dtype=dtype, data=data, scales=(), blocks=(2, BLOCK)), tmp_path)
    real = WEIGHTS * np.repeat(SCALES.astype(np.float32), BLOCK, axis=1)
    np.testing.assert_allclose(answers(graph), ROWS @ real.T, rtol=1e-5, atol=1e-5)
    assert any("Weights stored in 8 bits" in note for note in graph.notes)


AGAIN = "Convert the model again, or give the original .h5 or .keras file."
REFUSED: dict[str, tuple[Callable[[], File], str]] = {
    "too short": (
        lambda: dense(dtype="int2", data=packed(WEIGHTS, 2)[:-1]),
        "tensor 'w': it holds 14 bytes, not 60 numbers of 2 bits. The file is damaged; convert the model again.",
    ),
    "a type of no weights": (
        lambda: dense(dtype="uint4", data=packed(WEIGHTS, 4)),
        f"tensor 'w': its type is UINT4, which nnbuild does not read. {AGAIN}",
    ),
    "blocks that do not fit": (
        lambda: dense(scales=(), blocks=(2, 5)),
        "tensor 'w': its blocks of 5 do not match its shape [5, 12]. The file is damaged; convert the model again.",
    ),
    "scales that do not exist": (
        lambda: dense(scales=(), blocks=(9, 4)),
        f"tensor 'w': its quantization in blocks has no scales, or blocks of several axes. {AGAIN}",
    ),
    "blocks of nothing": (
        lambda: dense(scales=(), blocks=(2, 0)),
        f"tensor 'w': its quantization in blocks has no scales, or blocks of several axes. {AGAIN}",
    ),
    "scales without end": (
        lambda: dense(scales=(), blocks=(2, 4)).with_tensor(2, data=np.full_like(SCALES, np.inf)),
        "tensor 'w': a scale of its blocks is not finite. The file is damaged; convert the model again.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_named(name: str, tmp_path: Path) -> None:
    make, text = REFUSED[name]
    with pytest.raises(ModelError) as caught:
        imported(make(), tmp_path)
    assert str(caught.value) == text


def itself() -> File:
    """A composite whose subgraph holds one of its kind."""
    x, y = T("x", (1, 4)), T("y", (1, 4))
    inside = composite(File([], [], [], []), [x, y], [0], 1)
    return composite(replace(inside, others=()), [x, y], [0], 1)


COMPOSITES: dict[str, tuple[Callable[[], File], str]] = {
    "a subgraph that is not there": (
        lambda: composite(File([], [], [], []), [T("x", (1, 4)), T("y", (1, 4))], [0], 1, index=7),
        "operator 0 (STABLEHLO_COMPOSITE) for 'y': it calls subgraph 7, which does not exist.",
    ),
    "other ends": (
        lambda: composite(File([T("a", (1, 4))], [], [0], []), [T("x", (1, 4)), T("y", (1, 4))], [0], 1),
        "operator 0 (STABLEHLO_COMPOSITE) for 'y': its subgraph takes 1 tensors and makes 0, and it 1 and 1.",
    ),
    "nothing inside": (
        lambda: composite(File([T("a", (1, 4))], [], [0], [0]), [T("x", (1, 4)), T("y", (1, 4))], [0], 1),
        "operator 0 (STABLEHLO_COMPOSITE) for 'y': its subgraph does not compute its output 'y'.",
    ),
    "without end": (
        itself,
        "operator 0 (STABLEHLO_COMPOSITE) for 'y': its composites are nested 16 deep, of 17 operators.",
    ),
}


def branch(condition: T | None = None, then: File | None = None) -> File:
    """An IF of which a part is wrong."""
    whole = SEEDS["IF-known-float32"]
    whole = whole.with_tensor(0, data=None)
    first, other = whole.others
    whole = replace(whole, inputs=[0, 1], others=(then or first, other))
    return whole if condition is None else replace(whole, tensors=[condition, *whole.tensors[1:]])


COMPOSITES |= {
    "a condition that is none": (
        lambda: branch(T("is", (), "float32")),
        "operator 0 (IF) for 'y': its condition is not one truth value.",
    ),
    "several conditions": (
        lambda: branch(T("is", (4,), "bool", (), ())),
        "operator 0 (IF) for 'y': its condition is not one truth value.",
    ),
    "a branch of other ends": (
        lambda: branch(then=File([], [], [], [])),
        "operator 0 (IF) for 'y': its subgraph takes 0 tensors and makes 0, and it 1 and 1.",
    ),
    "no branches": (
        lambda: branch().with_operator(0, options="NONE", values={}),
        "operator 0 (IF) for 'y': it does not name its subgraphs.",
    ),
    "branches without end": (
        lambda: branch(then=replace(branch(T("is", (), "bool", (), (), data=np.array(True))), inputs=[1], others=())),
        "operator 0 (IF) for 'y/y': its branches are nested 16 deep, of 17 operators.",
    ),
}


def test_a_branch_keeps_no_state(tmp_path: Path) -> None:
    kept = replace(SEEDS["RNN-float32"], others=())
    with pytest.raises(ModelError) as caught:
        shape = {"shape": kept.tensors[0].shape}
        made = {"shape": kept.tensors[kept.outputs[0]].shape}
        imported(branch(then=kept).with_tensor(1, **shape).with_tensor(2, **made), tmp_path)
    assert str(caught.value) == (
        "operator 0 (RNN) for 'y/out': it keeps a state in a branch, and nnbuild computes both branches. "
        "Keep the state outside of tf.cond."
    )


@pytest.mark.parametrize("name", COMPOSITES)
def test_composites_that_are_wrong(name: str, tmp_path: Path) -> None:
    make, text = COMPOSITES[name]
    with pytest.raises(ModelError) as caught:
        imported(make(), tmp_path)
    assert str(caught.value) == f"{text} The file is damaged; convert the model again."


def test_codes_in_the_younger_field_alone(tmp_path: Path) -> None:
    tensors = [T("x", (1, 4)), T("y", (1, 4), "float32")]
    graph = imported(File(tensors, [O("DEQUANTIZE", [0], [1], version=2, younger=True)], [0], [1]), tmp_path)
    x = np.array([[-128, 0, 5, 127]], np.int8)
    np.testing.assert_allclose(interpret.run(graph, {graph.inputs[0]: x})[graph.outputs[0]], x * np.float32(0.1))


def outside(data: bytes, values: bytes, begin: int) -> bytes:
    """The file with `values` at its end, and the buffer of the weights there."""
    import tflite

    root = tflite.Model.GetRootAs(data, 0)
    place = root.Subgraphs(0).Tensors(1).Buffer()
    table = root.Buffers(place)._tab
    # A buffer's table with a place and a length, in front of which its list of fields is
    fields = np.array([10, 20], "<u2").tobytes() + np.array([0, 4, 12], "<u2").tobytes() + bytes(6)
    end = len(data) + -len(data) % 16
    room = end + 16
    made = np.array([room - end], "<i4").tobytes() + np.array([begin, len(values)], "<u8").tobytes()
    vector = root._tab.Vector(root._tab.Offset(12)) + 4 * place
    moved = bytearray(data + bytes(end - len(data)) + fields + made)
    assert table.Pos != room
    moved[vector : vector + 4] = np.array([room - vector], "<u4").tobytes()
    return bytes(moved) + bytes(-len(moved) % 16) + values


def test_values_behind_the_tables(tmp_path: Path) -> None:
    data = to_bytes(dense(data=None))
    moved = outside(data, WEIGHTS.tobytes(), 0)
    begin = len(moved) - WEIGHTS.size
    path = tmp_path / "net.tflite"
    path.write_bytes(outside(data, WEIGHTS.tobytes(), begin))
    found: Tensor = read(path).tensors[1]
    np.testing.assert_array_equal(found.values(), WEIGHTS)
    path.write_bytes(outside(data, WEIGHTS.tobytes(), begin + 1))
    with pytest.raises(ModelError, match=r"tensor 'w': its values lie outside the file\. The file is damaged"):
        read(path)
