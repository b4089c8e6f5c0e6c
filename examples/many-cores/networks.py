"""Writes the networks with which many cores are tried, with random weights.

    python examples/many-cores/networks.py lenet|cifarnet|inception-v3|resnet-50 FILE [--size N]

FILE is a .onnx for cifarnet, whose normalizations over neighbouring channels Keras has no layer for; a .keras for the
others. `--size` is the side of the input of the two large ones: 299 and 224 unless it is given.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

CLASSES = 10
SIDES = {"inception-v3": 299, "resnet-50": 224}


def lenet(file: Path) -> None:
    import keras
    from keras import layers

    keras.utils.set_random_seed(1)
    network = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(6, 5, padding="same", activation="tanh"),
            layers.AveragePooling2D(2),
            layers.Conv2D(16, 5, activation="tanh"),
            layers.AveragePooling2D(2),
            layers.Flatten(),
            layers.Dense(120, activation="tanh"),
            layers.Dense(84, activation="tanh"),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )
    network.save(file)


def application(name: str, file: Path, side: int) -> None:
    import keras

    keras.utils.set_random_seed(1)
    made = {"inception-v3": keras.applications.InceptionV3, "resnet-50": keras.applications.ResNet50}[name]
    made(weights=None, input_shape=(side, side, 3)).save(file)


class Onnx:
    """A chain of ONNX nodes; channels come first."""

    def __init__(self, *shape: int) -> None:
        from onnx import TensorProto, helper

        self.helper, self.kind = helper, TensorProto.FLOAT
        self.chance = np.random.default_rng(1)
        self.inputs = [helper.make_tensor_value_info("image", self.kind, [1, *shape])]
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.last = "image"

    def node(self, kind: str, *weights: tuple[int, ...], **attributes: Any) -> None:
        """The first of its weights is a kernel, the second an offset."""
        from onnx import numpy_helper

        name = f"{kind.lower()}_{len(self.nodes)}"
        given = []
        for index, shape in enumerate(weights):
            spread = np.sqrt(2 / np.prod(shape[1:])) if index == 0 else 0.1
            data = self.chance.normal(0, spread, shape).astype(np.float32)
            self.weights.append(numpy_helper.from_array(data, f"{name}_weight{index}"))
            given.append(f"{name}_weight{index}")
        self.nodes.append(self.helper.make_node(kind, [self.last, *given], [name], name=name, **attributes))
        self.last = name

    def save(self, name: str, file: Path, outputs: int) -> None:
        out = self.helper.make_tensor_value_info(self.last, self.kind, [1, outputs])
        graph = self.helper.make_graph(self.nodes, name, self.inputs, [out], self.weights)
        model = self.helper.make_model(graph, opset_imports=[self.helper.make_opsetid("", 17)])
        file.write_bytes(model.SerializeToString())


def cifarnet(file: Path) -> None:
    net = Onnx(3, 32, 32)
    response = {"size": 9, "alpha": 0.001, "beta": 0.75, "bias": 1.0}
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 0, 1, 1]}
    net.node("Conv", (64, 3, 5, 5), (64,), pads=[2, 2, 2, 2])
    net.node("Relu")
    net.node("MaxPool", **pool)
    net.node("LRN", **response)
    net.node("Conv", (64, 64, 5, 5), (64,), pads=[2, 2, 2, 2])
    net.node("Relu")
    net.node("LRN", **response)
    net.node("MaxPool", **pool)
    net.node("Flatten")
    for outputs, inputs in ((384, 64 * 8 * 8), (192, 384)):
        net.node("Gemm", (outputs, inputs), (outputs,), transB=1)
        net.node("Relu")
    net.node("Gemm", (CLASSES, 192), (CLASSES,), transB=1)
    net.node("Softmax", axis=1)
    net.save("cifarnet", file, CLASSES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", choices=("lenet", "cifarnet", *SIDES))
    parser.add_argument("file", type=Path)
    parser.add_argument("--size", type=int)
    given = parser.parse_args()
    if given.network in SIDES:
        application(given.network, given.file, given.size or SIDES[given.network])
    else:
        {"lenet": lenet, "cifarnet": cifarnet}[given.network](given.file)


if __name__ == "__main__":
    main()
