"""What integer layers without weights take on a Cortex-M4: instructions an element, in the emulator, against bars.

    python benchmarks/elements.py [NAME ...]

Each layer has inputs of its own, so nothing is folded into a neighbour. Fails where a bar is exceeded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.nets import Net, layer_costs_on, quantized
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import Attributes, Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.transpose import Transpose
from nnbuild.report.table import render

BOARD = "mps2-an386"


Maker = Callable[[Net, str], str]
"""Adds a layer, of this name, on inputs of its own to a network."""


@dataclass(frozen=True)
class Bar:
    """One layer: how many instructions an element of its output, or of its input, it may take."""

    name: str
    make: Maker
    most: float
    of_input: bool = False
    form: str = "int8"
    whole: bool = False
    """`most` is for all elements together."""


def one(attributes: Attributes, *shapes: tuple[int, ...], **channels: int | tuple[int, ...]) -> Maker:
    """One operation; `channels` are the sizes of its constants."""

    def make(net: Net, name: str) -> str:
        constants = {role: net.chance.normal(1.0, 0.3, size=size) for role, size in channels.items()}
        return net.add(attributes, [net.input(*shape) for shape in shapes], constants, name)

    return make


def concatenated(net: Net, name: str) -> str:
    """Parts of different ranges."""
    parts = [net.input(16, 16, 16)]
    for factor in (0.25, 3.0):
        scale = np.full(12, factor)
        parts.append(net.add(Affine(2), [net.input(16, 16, 12)], {"scale": scale, "shift": net.chance.normal(size=12)}))
    return net.add(Concatenate(2), parts, layer=name)


def bars() -> Iterator[Bar]:
    image = (9, 16, 32)
    yield Bar("multiply", one(Binary("multiply"), image, image), 7)
    yield Bar("multiply by a channel's gate", one(Binary("multiply"), image, (1, 1, 32)), 7)
    yield Bar("multiply, relu", one(Binary("multiply", Clamp(0.0)), (15, 8, 21), (15, 8, 21)), 7)
    yield Bar("affine", one(Affine(2), image, scale=32, shift=32), 4)
    yield Bar("affine, relu6", one(Affine(2, Clamp(0.0, 6.0)), image, scale=32, shift=32), 4)
    yield Bar("affine of 21 channels", one(Affine(2), (15, 8, 21), scale=21, shift=21), 4.6)
    yield Bar("average pool 2x2", one(Pool2D("average"), image), 2.5, of_input=True)
    yield Bar("average pool 7x7", one(Pool2D("average", (7, 7), (7, 7)), (7, 7, 256)), 2.5, of_input=True)
    yield Bar("average pool 3x3", one(Pool2D("average", (3, 3), (3, 3)), (15, 15, 32)), 2.5, of_input=True)
    yield Bar("mean of an image", one(Reduce("mean", 0, 2), (12, 24, 32)), 2.5, of_input=True)
    yield Bar("mean of channels", one(Reduce("mean", 2, 1), (9, 16, 32)), 2.5, of_input=True)
    yield Bar("maximum of an image", one(Reduce("max", 0, 2), (12, 24, 32)), 2.5, of_input=True)
    yield Bar("swish", one(Activation("swish"), image), 3.5)
    yield Bar("sigmoid", one(Activation("sigmoid"), image), 3.5)
    yield Bar("concatenate with rescale", concatenated, 6)
    yield Bar("softmax over 10", one(Softmax(), (10,)), 290, whole=True)
    yield Bar("maximum", one(Binary("maximum"), image, image), 12.5)
    yield Bar("prelu", one(PReLU(), image, slope=(1, 1, 32)), 4)
    yield Bar("layer norm", one(LayerNorm(1, 1e-3), (16, 64), scale=64, shift=64), 20)
    yield Bar("resize, bilinear", one(ResizeBilinear((16, 16)), (8, 8, 32)), 18.5)
    yield Bar("transpose", one(Transpose((2, 0, 1)), image), 6.5)
    yield Bar("multiply in 16 bits", one(Binary("multiply"), image, image), 17, form="int16")
    yield Bar("add in 16 bits", one(Binary("add"), image, image), 19, form="int16")
    yield Bar("affine in 16 bits", one(Affine(2), image, scale=32, shift=32), 20, form="int16")
    yield Bar("sigmoid in 16 bits", one(Activation("sigmoid"), image), 27, form="int16")
    yield Bar("mean in 16 bits", one(Reduce("mean", 0, 2), (12, 24, 32)), 2.2, of_input=True, form="int16")
    yield Bar("maximum of 16 bits", one(Reduce("max", 0, 2), (12, 24, 32)), 2.2, of_input=True, form="int16")
    yield Bar("average pool in 16 bits", one(Pool2D("average"), image), 3.2, of_input=True, form="int16")
    yield Bar("maximum pool in 16 bits", one(Pool2D("max"), image), 2.6, of_input=True, form="int16")


def measured(chosen: list[Bar]) -> Iterator[tuple[Bar, str, float]]:
    """Each with its kernel and what an element takes: all of one format in one program."""
    for form in dict.fromkeys(bar.form for bar in chosen):
        mine = [bar for bar in chosen if bar.form == form]
        net = Net(f"elements_{form}")
        outputs = [bar.make(net, bar.name) for bar in mine]
        graph = quantized(net.graph(*outputs), form)
        costs = {layer.name: layer for layer in layer_costs_on(graph, BOARD)}
        ops = {op.layer: op for op in graph.ops}
        for bar in mine:
            layer, op = costs[bar.name], ops[bar.name]
            count = 1 if bar.whole else prod(graph.tensors[(op.inputs if bar.of_input else op.outputs)[0]].shape)
            yield bar, layer.kernel, layer.cost / count


def main(names: list[str]) -> int:
    lines, failed = [], False
    for bar, kernel, cost in measured([bar for bar in bars() if not names or any(n in bar.name for n in names)]):
        failed |= cost > bar.most
        lines.append([bar.name, kernel, f"{cost:.2f}", f"{bar.most:g}", "too many" if cost > bar.most else ""])
    print(render(("layer", "kernel", "instructions", "at most", ""), lines, left=2))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
