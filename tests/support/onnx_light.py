"""The networks that the onnx package brings without their weights, with random ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = (
    "squeezenet", "bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "vgg19",
    "zfnet512",
)  # fmt: skip


def with_weights(name: str) -> onnx.ModelProto:
    """Weights that keep the size of what goes through; the softmax at the end is left out, since it hides much."""
    model, chance = onnx.load(str(FOLDER / f"light_{name}.onnx")), np.random.default_rng(1)
    graph = model.graph
    known = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    for node in list(graph.node):
        if node.op_type != "ConstantOfShape" or node.input[0] not in known:
            continue
        shape, made = tuple(int(n) for n in known[node.input[0]]), node.output[0]
        uses = {(n.op_type, list(n.input).index(made)) for n in graph.node if made in n.input}
        wide = len(shape) > 1
        spread = np.sqrt(2 / max(1, int(np.prod(shape[1:])))) if wide else 0.1
        values = chance.normal(size=shape) * spread
        if uses & {("BatchNormalization", 1), ("BatchNormalization", 4)}:
            values = 1 + np.abs(values)
        graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), made))
        graph.node.remove(node)
    last = graph.node[-1]
    if last.op_type == "Softmax":
        graph.node.remove(last)
        graph.output[0].name = last.input[0]
        graph.output[0].type.tensor_type.ClearField("shape")
    return model


def entrance(model: onnx.ModelProto) -> onnx.ValueInfoProto:
    """The one input that is no weight."""
    known = {each.name for each in model.graph.initializer}
    (port,) = (each for each in model.graph.input if each.name not in known)
    return port
