"""Networks as training leaves them, made without a file: operations put together, quantized, planned and profiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nnbuild import passes
from nnbuild.backends.registry import backend_of
from nnbuild.base.names import identifier
from nnbuild.compress.record import Compression
from nnbuild.device.layers import LayerCost, layer_costs
from nnbuild.device.session import profile_sample
from nnbuild.emit.emit import emit
from nnbuild.jobs.job import build_program, connected, place, samples_for
from nnbuild.jobs.options import Options, board_of, target_of
from nnbuild.jobs.pipeline import Compiled, precision
from nnbuild.model.graph import Array, Constant, Graph, Op, Shape, State, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops.base import Attributes
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.quantize.calibrate import Range, calibrate
from nnbuild.quantize.quantize import Recipe, quantize_with

SAMPLES = 16
NOTHING: Mapping[str, Any] = {}


class Net:
    """Puts a float graph together; every method of it gives the name of the tensor that is made."""

    def __init__(self, name: str, seed: int = 1) -> None:
        self.name = name
        self.chance = np.random.default_rng([seed, *name.encode()])
        self._tensors: dict[str, Tensor] = {}
        self._constants: dict[str, Constant] = {}
        self._ops: list[Op] = []
        self._inputs: list[str] = []
        self._states: list[State] = []

    def input(self, *shape: int) -> str:
        name = f"x{len(self._inputs)}"
        self._tensors[name] = Tensor(name, shape)
        self._inputs.append(name)
        return name

    def shape(self, tensor: str) -> Shape:
        return self._tensors[tensor].shape

    def add(
        self,
        attributes: Attributes,
        inputs: Sequence[str],
        constants: Mapping[str, Array] | None = None,
        layer: str = "",
    ) -> str:
        """An operation of one output."""
        values = {role: np.asarray(value, np.float32) for role, value in (constants or {}).items()}
        shapes = attributes.shapes([self.shape(name) for name in inputs], {n: v.shape for n, v in values.items()})
        name = layer or f"{attributes.kind}{len(self._ops)}"
        roles = {role: f"{name}/{role}" for role in values}
        self._constants |= {roles[role]: Constant(roles[role], value) for role, value in values.items()}
        outputs = [f"{name}:{i}" for i in range(len(shapes))]
        self._tensors |= {out: Tensor(out, shape) for out, shape in zip(outputs, shapes, strict=True)}
        self._ops.append(Op(name, attributes, tuple(inputs), tuple(outputs), roles, layer=name))
        return outputs[0]

    def graph(self, *outputs: str) -> Graph:
        graph = Graph(
            self.name,
            self._tensors,
            self._constants,
            tuple(self._ops),
            tuple(self._inputs),
            outputs,
            tuple(self._states),
        )
        return verify(graph)


def quantized(graph: Graph, form: str) -> Graph:
    """In integers, calibrated with normal numbers; as floats it only goes through the passes."""
    folded = passes.run(graph)
    if form == "float":
        return folded
    chance = np.random.default_rng(5)
    batch = {name: chance.normal(size=(SAMPLES, *graph.tensors[name].shape)) for name in graph.inputs}
    samples = {name: values.astype(np.float32) for name, values in batch.items()}
    ranges: Mapping[str, Range] = calibrate(folded, lambda: [samples], "minmax", 16 if form == "int16" else 8)
    return quantize_with(folded, Recipe(form=form), ranges)


def planned(
    graph: Graph, board: str, isa: str | None = None, optimize: str = "speed", kernels: Mapping[str, str] = NOTHING
) -> Plan:
    """The plan of a graph that is quantized already, if it is to be; with these kernels for the operations named."""
    chosen = tuple(kernels.items())
    options = Options(Path(graph.name), board, isa=isa, optimize=optimize, price="instructions", kernels=chosen)
    found = board_of(options)
    backend = backend_of(found)
    target = backend.prepare(graph, target_of(options, found), isa)
    return backend.settle(make_plan(graph, identifier(graph.name), target), target)


def compiled_for(graph: Graph, board: str, kernels: Mapping[str, str] = NOTHING, price: str = "cycles") -> Compiled:
    """What a command has of a graph that is quantized already, with these kernels for the operations named."""
    chosen = tuple(kernels.items())
    options = Options(Path(graph.name), board, precision(graph).replace("mixed", "int8"), price=price, kernels=chosen)
    found = board_of(options)
    backend = backend_of(found)
    target = backend.prepare(graph, target_of(options, found), None)
    plan = backend.settle(make_plan(graph, identifier(graph.name), target), target)
    return Compiled(options, found, graph, graph, graph, plan, emit(plan, "array"), Compression(()))


def layer_costs_on(
    graph: Graph, board: str, optimize: str = "speed", kernels: Mapping[str, str] = NOTHING
) -> tuple[LayerCost, ...]:
    """What each layer takes on a board, in one run of drawn numbers."""
    options = Options(Path(graph.name), board, precision(graph).replace("mixed", "int8"), optimize=optimize)
    plan = planned(graph, board, optimize=optimize, kernels=kernels)
    compiled = Compiled(options, board_of(options), graph, graph, graph, plan, emit(plan, "array"), Compression(()))
    with place(None, None) as where:
        program = build_program(compiled, where)
        with connected(compiled, program, where.port) as (link, model):
            return layer_costs(model, profile_sample(link, model, next(iter(samples_for(compiled, None)))))
