"""Models as onnxruntime's static quantizer writes them: both formats, all its types of activations and weights."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from onnx import numpy_helper

from nnbuild.model.graph import Array
from tests.support.onnx_light import entrance

TYPES = {"s8": "QInt8", "u8": "QUInt8", "s16": "QInt16", "u16": "QUInt16"}


@dataclass(frozen=True)
class Setting:
    """`form` is "qdq" or "operators"; types are those of TYPES; `even` asks for zero points in the middle."""

    form: str
    activations: str
    weights: str
    channels: bool
    even: bool

    @property
    def name(self) -> str:
        words = (self.form, self.activations, self.weights, "channels" if self.channels else "tensor")
        return "-".join((*words, *(["even"] if self.even else [])))


def _settings() -> Iterator[Setting]:
    for form in ("qdq", "operators"):
        for activations, weights in (("u8", "s8"), ("s8", "s8"), ("u8", "u8")):
            for channels in (False, True):
                for even in (False, True):
                    yield Setting(form, activations, weights, channels, even)
    for channels in (False, True):
        yield Setting("qdq", "s16", "s8", channels, True)
        yield Setting("qdq", "u16", "u8", channels, True)
        yield Setting("qdq", "u16", "s8", channels, False)


SETTINGS = {each.name: each for each in _settings()}


class _Samples:
    def __init__(self, name: str, rows: Array) -> None:
        self.rows = iter([{name: row} for row in rows])

    def get_next(self) -> Any:
        return next(self.rows, None)


def newer(model: onnx.ModelProto) -> onnx.ModelProto:
    """Scales by channels need an opset of 13."""
    if model.opset_import[0].version >= 13:
        return model
    known = {each.name for each in model.graph.initializer}
    kept = [each for each in model.graph.input if each.name not in known]
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    changed.ir_version = 8  # weights need not be inputs
    model = onnx.version_converter.convert_version(changed, 13)
    del model.graph.input[:]
    model.graph.input.extend(kept)
    model.ir_version = 8
    return model


def quantized(model: onnx.ModelProto, samples: Array, setting: Setting) -> onnx.ModelProto:
    """`samples` have the model's own batch in every row."""
    import onnxruntime
    from onnxruntime import quantization as q

    onnxruntime.set_default_logger_severity(4)
    extra: dict[str, Any] = {"ActivationSymmetric": setting.even, "WeightSymmetric": setting.even or None}
    extra = {key: value for key, value in extra.items() if value is not None}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        before, after = Path(folder, "floats.onnx"), Path(folder, "integers.onnx")
        onnx.save(newer(model), before)
        try:
            q.quantize_static(
                before,
                after,
                _Samples(entrance(model).name, samples),
                quant_format=q.QuantFormat.QDQ if setting.form == "qdq" else q.QuantFormat.QOperator,
                activation_type=getattr(q.QuantType, TYPES[setting.activations]),
                weight_type=getattr(q.QuantType, TYPES[setting.weights]),
                per_channel=setting.channels,
                extra_options=extra,
            )
        finally:
            logging.disable(logging.NOTSET)
        return onnx.load(after)


def step(model: onnx.ModelProto, output: str) -> float:
    """Of the integers that an output comes from; 0 where floats are computed behind them."""
    known = {each.name: each for each in model.graph.initializer}
    for node in model.graph.node:
        if output in node.output:
            if node.op_type == "DequantizeLinear":
                return float(numpy_helper.to_array(known[node.input[1]]).reshape(-1)[0])
            if node.op_type in ("Reshape", "Flatten", "Squeeze", "Transpose", "Identity"):
                return step(model, node.input[0])
    return 0.0


INPUT_ZERO, WEIGHTS, WEIGHTS_ZERO = 2, 3, 5
"""Their places among the inputs of QLinearConv, QLinearMatMul and QGemm."""


def without_saturation(data: bytes) -> bytes:
    """The same model with unsigned weights: products of uint8 and int8 saturate at 16 bits on x86 without VNNI."""
    model = onnx.load_from_string(data)
    known = {each.name: each for each in model.graph.initializer}
    names = {
        node.input[place]
        for node in model.graph.node
        if node.op_type in ("QLinearConv", "QLinearMatMul", "QGemm")
        and known[node.input[INPUT_ZERO]].data_type == onnx.TensorProto.UINT8
        for place in (WEIGHTS, WEIGHTS_ZERO)
    }
    for name in names & known.keys():
        values = numpy_helper.to_array(known[name])
        if values.dtype == "int8":
            known[name].CopyFrom(numpy_helper.from_array((values.astype("int16") + 128).astype("uint8"), name))
    return bytes(model.SerializeToString())


def computed(data: bytes, given: dict[str, Array]) -> list[Array]:
    """What onnxruntime makes of it, without optimizing the graph."""
    import onnxruntime

    data = without_saturation(data)

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, given))


@dataclass(frozen=True)
class Segment:
    """What lies between integers and the next integers, as a model of its own, and onnxruntime's values at its ends."""

    kinds: tuple[str, ...]
    model: onnx.ModelProto
    given: dict[str, Array]
    wanted: Array


INTEGERS = frozenset({"int8", "uint8", "int16", "uint16"})


def segments(model: onnx.ModelProto, given: dict[str, Array]) -> Iterator[Segment]:
    """Every step of a quantized model, fed with what onnxruntime has made before it: no difference is carried on."""
    graph = model.graph
    makers = {name: node for node in graph.node for name in node.output}
    constants = {each.name: each for each in graph.initializer}
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    names = [name for node in graph.node for name in node.output]
    del shown.graph.output[:]
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    values = given | dict(zip(names, computed(shown.SerializeToString(), given), strict=True))
    computed_names = _reached(graph.node, given)
    ends = {name for name in values if values[name].dtype.name in INTEGERS and name in computed_names}
    for name in names:
        if name in ends:
            nodes, begins = _between(makers, name, ends | set(given))
            if not any(node.op_type not in ("QuantizeLinear", "DequantizeLinear") for node in nodes):
                continue
            taken = {each for node in nodes for each in node.input}
            ports = [_port(each, values[each]) for each in sorted(begins)]
            own = onnx.helper.make_graph(
                [node for node in graph.node if any(node is each for each in nodes)],
                "segment",
                ports,
                [_port(name, values[name])],
                [constants[each] for each in sorted(taken & constants.keys())],
            )
            made = onnx.helper.make_model(own, opset_imports=model.opset_import, ir_version=model.ir_version)
            kinds = tuple(sorted({node.op_type for node in nodes} - {"QuantizeLinear", "DequantizeLinear"}))
            yield Segment(kinds, made, {each: values[each] for each in begins}, values[name])


def _reached(nodes: Any, given: dict[str, Array]) -> set[str]:
    """What depends on the inputs; the rest is constant."""
    found = set(given)
    for node in nodes:
        if found.intersection(node.input):
            found.update(node.output)
    return found


def _between(makers: dict[str, Any], end: str, stops: set[str]) -> tuple[list[Any], set[str]]:
    nodes: list[Any] = []
    begins: set[str] = set()
    waiting = [makers[end]]
    while waiting:
        node = waiting.pop()
        if any(node is each for each in nodes):
            continue
        nodes.append(node)
        for name in node.input:
            if name in stops:
                begins.add(name)
            elif name in makers:
                waiting.append(makers[name])
    return nodes, begins


def _port(name: str, values: Array) -> onnx.ValueInfoProto:
    kind = onnx.helper.np_dtype_to_tensor_dtype(values.dtype)
    return onnx.helper.make_tensor_value_info(name, kind, values.shape)
