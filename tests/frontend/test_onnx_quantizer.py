"""What onnxruntime's static quantizer writes of float models, in both formats and all its types, against onnxruntime.

Every step is fed with the integers that onnxruntime has made before it, so that nothing is carried on. 8 bits differ
where halves are rounded to even, or its sums of floats were rounded across a half; so do 16 bits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

from nnbuild import passes
from nnbuild.frontend.onnx import load_bytes
from nnbuild.model.graph import Array, Graph
from nnbuild.model.verify import verify
from nnbuild.numeric.nearness import near
from nnbuild.ops import interpret
from nnbuild.ops.tolerance import standards
from nnbuild.quantize.integer_stretches import join_stretches
from tests.frontend.test_onnx_models import MODELS
from tests.support.many import run_many
from tests.support.onnx_light import NAMES, entrance, with_weights
from tests.support.onnx_quantized import SETTINGS, Setting, computed, quantized, segments, step

EXPORTED = ("dscnn", "unet", "encoder", "resnet8", "mobilenetv2", "gru_tagger")
QUICK = {("dscnn", "qdq-u8-s8-tensor"), ("dscnn", "operators-u8-s8-tensor"), ("unet", "qdq-s16-s8-channels-even")}
LARGE = ("qdq-u8-s8-channels", "operators-u8-s8-tensor", "qdq-s8-s8-tensor")
"""Settings of networks with large images."""
SHIFTED = {"uint8": 128, "uint16": 32768}
MOST_DIFFER, OF_LONG_SUMS = 1e-3, 4e-3
"""The quantizer leaves a GRU in floats: at 16 bits, last bits of what it has added up over time cross more halves."""
FLOATS = ("u16-s8",)
"""A zero point beside the middle of 16 bits: computed in floats, in steps."""


def floats(name: str) -> tuple[onnx.ModelProto, Array]:
    """The float model, and samples with its own batch."""
    if name in NAMES:
        model = with_weights(name)
        shape = [dim.dim_value for dim in entrance(model).type.tensor_type.shape.dim]
        return model, np.random.default_rng(2).normal(size=(2, *shape)).astype(np.float32)
    if not MODELS.is_dir():
        pytest.skip("the folder shared/models/onnx is not there")
    with np.load(MODELS / f"{name}_golden.npz") as arrays:
        return onnx.load(MODELS / f"{name}_script.onnx"), arrays["x"][:8, None]


def imported(data: bytes) -> Graph:
    return passes.run(join_stretches(verify(load_bytes(data, "net"))))


def as_ours(values: Array, dtype: str) -> Array:
    """uint8 and uint16 are computed as the integers half their range below; floats as they are."""
    if dtype == "float32":
        return values
    shift = SHIFTED.get(values.dtype.name, 0) if dtype in ("int8", "int16") else 0
    return (values.astype(np.int64) - shift).astype(dtype)


def apart(model: onnx.ModelProto, x: Array) -> tuple[int, int, int]:
    """Of all integers of all steps: how many there are, how many differ, and by how much at most."""
    count, differ, most = 0, 0, 0
    for segment in segments(model, {entrance(model).name: x}):
        graph = imported(segment.model.SerializeToString())
        inputs = {
            n: as_ours(segment.given[n], graph.tensors[n].dtype).reshape(1, *graph.tensors[n].shape)
            for n in graph.inputs
        }
        (name,) = graph.outputs
        found = interpret.run(graph, inputs)[name].astype(np.int64)
        wanted = as_ours(segment.wanted, graph.tensors[name].dtype).astype(np.int64).reshape(found.shape)
        count, differ = count + wanted.size, differ + int((found != wanted).sum())
        most = max(most, int(np.abs(found - wanted).max()))
    return count, differ, most


CASES = [
    pytest.param(name, each, marks=() if (name, each) in QUICK else pytest.mark.full)
    for name in (*EXPORTED, *NAMES)
    for each in (LARGE if name in NAMES else SETTINGS)
]


@pytest.mark.parametrize(("name", "form"), CASES)
def test_steps_equal_those_of_onnxruntime(name: str, form: str) -> None:
    model, x = floats(name)
    setting = SETTINGS[form]
    made = quantized(model, x, setting)
    if any(part in form for part in FLOATS):
        found, wanted = whole(made, x[:1])
        assert np.abs(found - wanted).max() <= 4 * (step(made, made.graph.output[0].name) or 1e-3)
        return
    count, differ, most = apart(made, x[0])
    print(f"{name} {form}: {differ} of {count} differ, by {most} at most")
    assert count
    assert most <= 1
    assert differ <= (OF_LONG_SUMS if name == "gru_tagger" and "16" in form else MOST_DIFFER) * count


def whole(model: onnx.ModelProto, x: Array) -> tuple[Array, Array]:
    """The outputs of the whole network for some samples, ours and onnxruntime's."""
    data, name = model.SerializeToString(), entrance(model).name
    wanted = np.stack([computed(data, {name: row})[0] for row in x])
    graph = imported(data)
    found = interpret.run(graph, {name: x.reshape(len(x), *graph.tensors[name].shape)})[graph.outputs[0]]
    return found.reshape(wanted.shape), wanted


C_FORMS = ("qdq-u8-s8-tensor", "operators-u8-s8-channels", "qdq-s16-s8-channels-even", "operators-u8-u8-tensor")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "unet" else pytest.mark.full) for name in EXPORTED]
)
def test_c_equals_the_reference_in_every_bit(name: str, tmp_path: Path) -> None:
    model, x = floats(name)
    runs = []
    for form in C_FORMS:
        graph = imported(quantized(model, x, SETTINGS[form]).SerializeToString())
        given = x[:2].reshape(2, *graph.tensors[graph.inputs[0]].shape)
        runs.append((graph, {graph.inputs[0]: given}))
    outputs = run_many(runs, tmp_path, flags=["-O1"])
    for form, (graph, inputs), found in zip(C_FORMS, runs, outputs, strict=True):
        for output, wanted in standards(graph, inputs, graph.outputs).items():
            assert near(wanted.values, found[output], wanted.tolerance).all(), form


def test_settings_are_all_that_the_quantizer_has() -> None:
    assert len(SETTINGS) == 30
    assert SETTINGS["qdq-u8-s8-tensor"] == Setting("qdq", "u8", "s8", False, False)


@pytest.mark.parametrize("alpha", [0.5, -2.0])
def test_a_factor_of_qgemm_applies_to_its_bias_too(alpha: float) -> None:
    """That of Gemm does not; the quantizer leaves it in the scale of the bias."""
    chance = np.random.default_rng(7)
    held = {"w": chance.normal(size=(5, 3)).astype(np.float32), "b": chance.normal(size=3).astype(np.float32)}
    node = onnx.helper.make_node("Gemm", ["x", "w", "b"], ["y"], alpha=alpha)
    ends = [onnx.helper.make_tensor_value_info(n, 1, (1, size)) for n, size in (("x", 5), ("y", 3))]
    constants = [onnx.numpy_helper.from_array(values, name) for name, values in held.items()]
    graph = onnx.helper.make_graph([node], "net", ends[:1], ends[1:], constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    x = chance.normal(size=(8, 1, 5)).astype(np.float32)
    made = quantized(model, x, SETTINGS["operators-u8-s8-tensor"])
    assert [n.op_type for n in made.graph.node] == ["QuantizeLinear", "QGemm", "DequantizeLinear"]
    assert apart(made, x[0])[2] <= 1
    graph = imported(made.SerializeToString())
    assert graph.tensors[graph.ops[-2].outputs[0]].dtype == "int8"
