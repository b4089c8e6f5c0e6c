"""Files trained for integers: what stands between their layers are the scales, whatever the samples reach."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite")

from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.quantize.data import Source
from nnbuild.quantize.quantize import Recipe, quantize_with, ranges_of
from tests.frontend.tflite_files import File, O, T, to_bytes

RNG = np.random.default_rng(12)


def trained() -> File:
    """input in steps -> dense in steps -> relu in steps, as training for integers leaves a float file."""
    weights = T("w", (3, 4), "float32", data=RNG.normal(size=(3, 4)).astype(np.float32))
    names = (("x", 4), ("x_steps", 4), ("sums", 3), ("sums_steps", 3), ("relu", 3), ("out", 3))
    tensors = [*(T(n, (1, size), "float32") for n, size in names), weights]
    ranges = [{"Min": low, "Max": high, "NumBits": 8} for low, high in ((-2.0, 2.0), (-6.0, 4.2), (0.0, 3.1))]
    steps = [
        O("FAKE_QUANT", [a], [b], "FakeQuantOptions", v)
        for (a, b), v in zip(((0, 1), (2, 3), (4, 5)), ranges, strict=True)
    ]
    dense = O("FULLY_CONNECTED", [1, 6, -1], [2], "FullyConnectedOptions")
    return File(tensors, [steps[0], dense, steps[1], O("RELU", [3], [4]), steps[2]], [0], [5])


def quantized(folder: Path, form: str = "int8", size: float = 0.3) -> tuple[Graph, Graph, np.ndarray]:
    path = folder / "net.tflite"
    path.write_bytes(to_bytes(trained()))
    graph = passes.run(load(path))
    x = RNG.normal(size=(50, 4)).astype(np.float32) * np.float32(size)  # far from what the ranges say
    np.savez(folder / "samples.npz", x=x)
    recipe = Recipe(form, source=Source(folder / "samples.npz"))
    return graph, quantize_with(graph, recipe, ranges_of(graph, recipe)), x


def test_scales_are_the_trained_ones(tmp_path: Path) -> None:
    _, made, _ = quantized(tmp_path)
    scales = {t.name: t.quant.scale for t in made.tensors.values() if t.quant is not None}
    assert scales[made.inputs[0]] == pytest.approx(4.0 / 255, rel=1e-2)  # zero must be one of the steps
    assert scales[made.outputs[0]] == pytest.approx(3.1 / 255, rel=1e-6)
    assert any(scale == pytest.approx(10.2 / 255, rel=1e-2) for scale in scales.values())
    assert sum("steps" in str(op.attributes) for op in made.ops) <= 1


def test_integers_are_what_it_was_trained_to_be(tmp_path: Path) -> None:
    """Within a step of the float file, whose tensors are in the same steps."""
    graph, made, x = quantized(tmp_path)
    wanted = interpret.run(graph, {"x": x})[graph.outputs[0]]
    found = interpret.run(made, {made.inputs[0]: x})[made.outputs[0]]
    quant = made.tensors[made.outputs[0]].quant
    assert quant is not None
    real = (found.astype(np.float32) - quant.zero_point) * quant.scale
    assert np.abs(real - wanted).max() <= 2.5 * 10.2 / 255


def test_integers_of_16_bits_are_held_within_what_it_was_trained_with(tmp_path: Path) -> None:
    """Their scales are symmetric, and would let -4 through where training ended at 0, or 6 where it ended at 4.2."""
    graph, made, x = quantized(tmp_path, "int16", 4.0)
    wanted = interpret.run(graph, {"x": x})[graph.outputs[0]]
    found = interpret.run(made, {made.inputs[0]: x})[made.outputs[0]]
    quant = made.tensors[made.outputs[0]].quant
    assert quant is not None and wanted.max() == pytest.approx(3.1, rel=1e-6)
    assert np.abs(found * quant.scale - wanted).max() <= 2.5 * 10.2 / 255
    assert [op.kind for op in made.ops if op.kind in ("dense", "activation")] == ["dense"]
