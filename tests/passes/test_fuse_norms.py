"""Vectors divided by their length, as converters and TensorFlow spell it, with a vector of zeros among the samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite")

from nnbuild import cli, passes
from nnbuild.frontend import load
from nnbuild.ops import interpret
from nnbuild.passes.fuse_norms import fuse_norms
from tests.frontend.tflite_files import File, O, T, to_bytes

SHAPE, ROW = (1, 6), (1, 1)


def normalizing(bounded_before: bool, again: bool = False) -> File:
    """Keras bounds the reciprocal of the length, TensorFlow the sum; `again` reads the length once more."""
    bound = T("bound", (), "float32", data=np.float32(1e-12 if bounded_before else 1e6))
    axes = T("axes", (1,), "int32", (), (), data=np.int32([1]))
    names = ("x", "squares", "sum", "first", "second", "out")
    shapes = (SHAPE, SHAPE, ROW, ROW, ROW, SHAPE)
    tensors = [*(T(n, s, "float32") for n, s in zip(names, shapes, strict=True)), bound, axes]
    steps = [("MAXIMUM", [2, 6]), ("RSQRT", [3])] if bounded_before else [("RSQRT", [2]), ("MINIMUM", [3, 6])]
    operators = [O("SQUARE", [0], [1]), O("SUM", [1, 7], [2], "ReducerOptions", {"KeepDims": True})]
    operators += [O(kind, inputs, [place]) for (kind, inputs), place in zip(steps, (3, 4), strict=True)]
    operators.append(O("MUL", [0, 4], [5], "MulOptions"))
    return File(tensors, operators, [0], [5, 4] if again else [5])


def written(file: File, folder: Path) -> Path:
    path = folder / "net.tflite"
    path.write_bytes(to_bytes(file))
    return path


def vectors() -> np.ndarray:
    x = np.random.default_rng(3).normal(size=(40, 6)).astype(np.float32)
    x[7] = 0
    return x


@pytest.mark.parametrize("bounded_before", [False, True])
def test_becomes_one_operation(bounded_before: bool, tmp_path: Path) -> None:
    graph = passes.run(load(written(normalizing(bounded_before), tmp_path)))
    made = fuse_norms(graph)
    assert [op.kind for op in made.ops] == ["layer_norm"]
    wanted, found = (interpret.run(g, {"x": vectors()})["out"] for g in (graph, made))
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert not found[7].any()


def test_a_length_that_others_read_stays(tmp_path: Path) -> None:
    graph = passes.run(load(written(normalizing(True, again=True), tmp_path)))
    assert fuse_norms(graph).ops == graph.ops


def test_zeros_are_no_obstacle_to_calibration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(normalizing(False), tmp_path)
    np.savez(tmp_path / "samples.npz", x=vectors())
    assert cli.main(["quantize", str(path), "--quantize", "int8", "--calibrate", str(tmp_path / "samples.npz")]) == 0
    printed = capsys.readouterr().out
    assert "cosine 0.999" in printed
