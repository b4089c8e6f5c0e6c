"""Looks for operations that are slow by themselves: each alone, beside a plain addition and beside itself in floats.

    python benchmarks/alone.py [--update] [TARGET ...]

`cliffs.py` compares a step with the best of its class, so it does not see a class that is slow as a whole. Here every
operation has inputs of its own and is priced for every target in int8 and in floats, an element of its output (of its
input, where it makes fewer). It is suspicious where an element takes more than 10 times what one of an addition of two
tensors takes there, or in int8 three times what it takes in floats, both measured by their additions; where no unit
computes floats, int8 is compared with its addition alone. Every suspicious one needs a cause in benchmarks/alone.json,
or this fails; so it does where one takes a tenth more than is kept there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from math import prod
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.cliffs import PLACES
from benchmarks.elements import Maker, concatenated, one
from benchmarks.nets import Net, planned, quantized
from nnbuild.model.graph import Graph
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.binary import Binary
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.lrn import LRN
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.pad import Pad
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.slice import Slice
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.transpose import Transpose
from nnbuild.report.table import render

TABLE = Path(__file__).with_name("alone.json")
PLAIN = "add"
FAR = 10.0
"""Times a plain addition."""
APART = 3.0
"""Times the same operation in floats, both by their additions."""
GROWN = 1.1
FORMS = ("int8", "float")
IN_SOFTWARE = ("m0", "rv32", "zve32x")
"""Targets without a unit for floats."""
IMAGE = (16, 16, 32)
FUNCTIONS = ("sigmoid", "tanh", "swish", "gelu", "erf", "softplus", "mish", "exponential", "elu", "hard_swish")


def decided(net: Net, name: str) -> str:
    """A softmax of many numbers, some of which get shares that bytes can tell apart."""
    far = net.add(Affine(0), [net.input(1000)], {"scale": np.full(1000, 5.0), "shift": np.zeros(1000)})
    return net.add(Softmax(0), [far], layer=name)


OPERATIONS: dict[str, Maker] = {
    **{name: one(Binary(name), IMAGE, IMAGE) for name in (PLAIN, "subtract", "multiply", "divide", "maximum")},
    **{name: one(Activation(name, (1.0,) if name == "elu" else ()), IMAGE) for name in FUNCTIONS},
    "multiply by a channel's gate": one(Binary("multiply"), IMAGE, (1, 1, 32)),
    "affine": one(Affine(2), IMAGE, scale=32, shift=32),
    "prelu": one(PReLU(), IMAGE, slope=(1, 1, 32)),
    "average pool": one(Pool2D("average"), IMAGE),
    "maximum pool": one(Pool2D("max"), IMAGE),
    "mean of an image": one(Reduce("mean", 0, 2), IMAGE),
    "mean of channels": one(Reduce("mean", 2, 1), IMAGE),
    "maximum of channels": one(Reduce("max", 2, 1), IMAGE),
    "softmax of 32": one(Softmax(1), (64, 32)),
    "softmax of 1000": decided,
    "layer norm": one(LayerNorm(1, 1e-3), (64, 64), scale=64, shift=64),
    "local response normalization": one(LRN(2, 1.0, 1e-4, 0.75), IMAGE),
    "concatenate with rescale": concatenated,
    "resize, bilinear": one(ResizeBilinear((32, 32)), IMAGE),
    "repeat": one(Repeat((2, 2, 1)), IMAGE),
    "transpose": one(Transpose((2, 0, 1)), IMAGE),
    "pad": one(Pad(((1, 1), (1, 1), (0, 0))), IMAGE),
    "slice": one(Slice((1, 1, 0), (1, 1, 1), (14, 14, 32)), IMAGE),
    "matrix product": one(MatMul(), (32, 32), (32, 32)),
}


def graph_of(form: str) -> Graph:
    net = Net(f"alone_{form}")
    graph = net.graph(*(make(net, name) for name, make in OPERATIONS.items()))
    return quantized(graph, form) if form != "float" else graph


def costs(target: str, form: str) -> Iterator[tuple[str, str, float]]:
    """(operation, its kernel, cycles an element)."""
    plan = planned(graph_of(form), *PLACES[target])
    for step in plan.steps:
        if step.layer in OPERATIONS:
            most = max(prod(step.site.output_shape()), max(prod(one.shape) for one in step.site.inputs))
            yield step.layer, step.kernel_name, step.choice.price.cycles / (step.macs or most)


def suspicious(found: dict[str, float], floats: bool = True) -> Iterator[tuple[str, str]]:
    """Of one target, by `operation form`: those to be explained, and why."""
    for key, each in found.items():
        name, form = key.rsplit(" ", 1)
        far = each / found[f"{PLAIN} {form}"]
        apart = far * found[f"{PLAIN} float"] / found[f"{name} float"]
        if form == "float" and not floats:
            continue
        if far > FAR:
            yield key, f"{far:.1f} times an addition"
        elif floats and far > 1.0 and apart > APART:
            yield key, f"{far:.1f} times an addition, {apart:.1f} times what it is in floats"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--update", action="store_true", help="keep the costs as the new ones")
    wished = parser.parse_args(words)
    known = json.loads(TABLE.read_text()) if TABLE.is_file() else {"costs": {}, "causes": {}}
    failed, lines = False, []
    for target in wished.targets or PLACES:
        of = {f"{name} {form}": (kernel, each) for form in FORMS for name, kernel, each in costs(target, form)}
        found = {key: round(each, 3) for key, (_, each) in of.items()}
        before = known["costs"].get(target, {})
        for key, why in suspicious(found, target not in IN_SOFTWARE):
            cause = known["causes"].get(key)
            failed |= cause is None
            lines.append([target, key, of[key][0], f"{found[key]:.2f}", why, cause or "NO CAUSE IS KNOWN"])
        for key, each in found.items():
            if not wished.update and each > GROWN * before.get(key, each):
                failed = True
                lines.append([target, key, of[key][0], f"{each:.2f}", f"was {before[key]:.2f}", "IT HAS GROWN"])
        if wished.update:
            known["costs"][target] = found
    print(render(("target", "operation", "kernel", "an element", "why", "cause"), lines, left=3))
    if wished.update:
        TABLE.write_text(json.dumps(known, indent=1) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
