"""Spoils sound `.onnx` files and loads what comes out: an error for the user is fine, anything else is a bug.

    python -m tests.fuzz.onnx_models --cases 10000 --seed 1

The files are the onnx package's own cases. Every case follows from the seed and its number, so `--only NUMBER` repeats
one. What is imported is planned and printed too. Run as a process of its own, so that a crash in a library shows too.
"""

from __future__ import annotations

import random
import sys
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from nnbuild.frontend.onnx import records
from tests.fuzz.harness import Fuzzer, main
from tests.fuzz.importer import spoil_bytes
from tests.fuzz.tflite import ODD_NAMES, ODD_NUMBERS, ODD_SCALES, number
from tests.support.onnx_cases import cases, expanded

LARGEST_SEED = 20_000
"""Bytes: what is larger takes long, and teaches no more."""


@cache
def seeds() -> list[bytes]:
    """Cases with their inputs behind the first as constants, and as they are."""
    found = []
    for name, case in sorted(cases().items()):
        values = case.data_sets[0][0]
        if expanded(name) or not all(isinstance(value, np.ndarray) for value in values):
            continue
        found.append(case.model.SerializeToString())
        if len(values) > 1:
            model = onnx.ModelProto()
            model.CopyFrom(case.model)
            graph = model.graph
            ports = list(graph.input)
            del graph.input[1:]
            for port, value in zip(ports[1:], values[1:], strict=False):
                graph.initializer.append(numpy_helper.from_array(value, port.name))
            found.append(model.SerializeToString())
    return [data for data in found if len(data) < LARGEST_SEED]


def spoil_attribute(attribute: Any, rng: random.Random) -> None:
    match rng.randrange(7):
        case 0:
            attribute.i = number(rng, attribute.i)
        case 1:
            attribute.f = rng.choice(ODD_SCALES)
        case 2 if attribute.ints:
            attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(ODD_NUMBERS)
        case 3 if attribute.ints:
            del attribute.ints[rng.randrange(len(attribute.ints))]
        case 4:
            attribute.ints.append(rng.choice(ODD_NUMBERS))
        case 5:
            attribute.s = rng.choice(
                ("", "SAME_UPPER", "VALID", "linear", "reverse", "abc->", "i,j->ij", "DCR")
            ).encode()
        case _:
            attribute.name = rng.choice(("axis", "pads", "strides", "group", "to", "perm", "value", "odd"))


def spoil_tensor(tensor: Any, rng: random.Random) -> None:
    match rng.randrange(6):
        case 0 if tensor.dims:
            tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(ODD_NUMBERS)
        case 1:
            tensor.dims.append(rng.choice((0, 1, 2, 2**40, -1)))
        case 2:
            tensor.data_type = rng.randrange(27)
        case 3 if tensor.raw_data:
            tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data))]
        case 4 if tensor.raw_data:
            values = np.frombuffer(tensor.raw_data, np.uint8).copy()
            place = rng.randrange(len(values))
            values[place : place + 8] = rng.choice((0, 1, 127, 128, 255))
            tensor.raw_data = values.tobytes()
        case _:
            tensor.data_location = 1
            entry = tensor.external_data.add()
            entry.key, entry.value = "location", rng.choice(("../x", "/etc/passwd", "weights.bin", "", "\0"))


def spoil_node(node: Any, names: list[str], kinds: list[str], rng: random.Random) -> None:
    match rng.randrange(7):
        case 0 if node.input:
            node.input[rng.randrange(len(node.input))] = rng.choice([*names, ""])
        case 1 if node.input:
            del node.input[rng.randrange(len(node.input))]
        case 2:
            node.input.append(rng.choice([*names, ""]))
        case 3 if node.attribute:
            del node.attribute[rng.randrange(len(node.attribute))]
        case 4:
            node.op_type = rng.choice(kinds)
        case 5:
            node.name, node.domain = rng.choice(ODD_NAMES), rng.choice(("", "ai.onnx", "com.microsoft", "ai.onnx.ml"))
        case _:
            for attribute in list(node.attribute)[:1] or [node.attribute.add()]:
                spoil_attribute(attribute, rng)


def spoil_shape(port: Any, rng: random.Random) -> None:
    dims = port.type.tensor_type.shape.dim
    match rng.randrange(4):
        case 0 if dims:
            dims[rng.randrange(len(dims))].dim_value = rng.choice(ODD_NUMBERS)
        case 1 if dims:
            dims[rng.randrange(len(dims))].dim_param = rng.choice(("N", ""))
        case 2:
            dims.add().dim_value = rng.choice((1, 2, 0))
        case _:
            port.type.tensor_type.elem_type = rng.randrange(27)


def spoil_model(data: bytes, rng: random.Random, kinds: list[str]) -> bytes:
    model = onnx.ModelProto()
    model.ParseFromString(data)
    graph = model.graph
    names = [n for node in graph.node for n in (*node.input, *node.output)] or ["x"]
    for _ in range(rng.choice((1, 1, 2, 4))):
        match rng.randrange(9):
            case 0 if graph.initializer:
                spoil_tensor(rng.choice(graph.initializer), rng)
            case 1 if graph.input:
                spoil_shape(rng.choice(graph.input), rng)
            case 2 if model.opset_import:
                rng.choice(model.opset_import).version = rng.choice((0, 1, 7, 9, 11, 13, 18, 24, 99, -1))
            case 3 if len(graph.node) > 1:
                del graph.node[rng.randrange(len(graph.node))]
            case 4 if graph.node:
                graph.node.add().CopyFrom(rng.choice(graph.node))
            case 5 if graph.node and any(node.attribute for node in graph.node):
                node = rng.choice([node for node in graph.node if node.attribute])
                spoil_attribute(rng.choice(node.attribute), rng)
            case _ if graph.node:
                spoil_node(rng.choice(graph.node), names, kinds, rng)
    try:
        return bytes(model.SerializeToString())
    except ValueError:  # a message that protobuf cannot hold
        return data


@cache
def kinds() -> list[str]:
    return sorted({node.op_type for case in cases().values() for node in case.model.graph.node})


def make_case(rng: random.Random) -> tuple[str, bytes]:
    data = rng.choice(seeds())
    if rng.random() < 0.8:
        return "model", spoil_model(data, rng, kinds())
    return "bytes", spoil_bytes(data, rng)


FUZZER = Fuzzer("onnx", ".onnx", make_case, ((records._Reader, "model"),))


if __name__ == "__main__":
    sys.exit(main(lambda _: FUZZER))
