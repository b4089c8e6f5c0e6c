"""Where Resize takes its pixels from, against onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx import helper, numpy_helper

from nnbuild.frontend import load
from nnbuild.ops import interpret

SIZES = ((3, 10), (5, 13), (10, 3), (10, 7), (6, 4), (7, 1), (1, 4), (11, 22), (23, 9))
MODES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "tf_half_pixel_for_nn")
NEAREST = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


@pytest.mark.parametrize("by", ["scales", "sizes"])
@pytest.mark.parametrize("mode", MODES)
def test_resizes_equal_onnxruntime(mode: str, by: str, tmp_path: Path) -> None:
    """A scale is a float32, and its product with the size is one: 3 rows by 10/3 are 10 rows, not 9."""
    kinds = [("nearest", {"nearest_mode": way}) for way in NEAREST]
    for kind, options in [*kinds, *([("linear", {}), ("cubic", {})] if mode != "tf_half_pixel_for_nn" else [])]:
        for size, wanted in SIZES:
            ratio = np.array([1, 1, wanted / size, 1], np.float32)
            given = {"s": ratio} if by == "scales" else {"z": np.array([1, 1, wanted, 2])}
            inputs = ["x", "", "s"] if by == "scales" else ["x", "", "", "z"]
            options = {"coordinate_transformation_mode": mode, "mode": kind, **options}
            node = helper.make_node("Resize", inputs, ["y"], **options)  # type: ignore[arg-type]
            _equal(tmp_path / "net.onnx", node, given, size, wanted)


@pytest.mark.parametrize("way", NEAREST)
@pytest.mark.parametrize("scale", [1, 1 + 2e-5, 1 + 4e-2])
def test_a_scale_near_one_takes_other_neighbours(scale: float, way: str, tmp_path: Path) -> None:
    """As of scales that are quantized: the size is the same, the neighbours are not, where another size changes."""
    options = {"coordinate_transformation_mode": "asymmetric", "mode": "nearest", "nearest_mode": way}
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], **options)  # type: ignore[arg-type]
    for beside in (1, 2):
        _equal(tmp_path / "net.onnx", node, {"s": np.array([1, 1, scale, beside], np.float32)}, 11, 11)


def _equal(path: Path, node: object, given: dict[str, np.ndarray], size: int, wanted: int) -> None:
    runtime = pytest.importorskip("onnxruntime")
    ports = [helper.make_tensor_value_info("x", 1, [1, 1, size, 2]), helper.make_tensor_value_info("y", 1, None)]
    constants = [numpy_helper.from_array(values, name) for name, values in given.items()]
    graph = helper.make_graph([node], "g", ports[:1], ports[1:], constants)  # type: ignore[list-item]
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    x = np.random.default_rng(size).normal(size=(1, 1, size, 2)).astype(np.float32)
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    answer = session.run(None, {"x": x})[0]
    loaded = load(path)
    found = interpret.run(loaded, {"x": x})[loaded.outputs[0]]
    assert answer.shape[2] == wanted, (node, size)
    np.testing.assert_allclose(found.reshape(answer.shape), answer, atol=1e-5, err_msg=f"{node} of {size}")
