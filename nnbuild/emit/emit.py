"""Turns a plan into the files of a model."""

from __future__ import annotations

import hashlib

import numpy as np

from nnbuild.emit.artifact import Artifact
from nnbuild.emit.core_memory import local_sources
from nnbuild.emit.device import device_file, device_sources
from nnbuild.emit.header import header
from nnbuild.emit.kernels import kernels, private_header
from nnbuild.emit.model import model
from nnbuild.emit.weights import weight_files
from nnbuild.emit.wrap import wrapped
from nnbuild.model.graph import Graph
from nnbuild.plan.plan import Plan


def emit(plan: Plan, weights: str = "array", classes: tuple[str, ...] = ()) -> Artifact:
    p = plan.prefix
    texts = {
        f"{p}.h": header(plan, digest(plan.graph), classes),
        f"{p}_private.h": private_header(plan),
        f"{p}.c": model(plan),
        f"{p}_kernels.c": kernels(plan),
    }
    if plan.device is not None:
        texts[f"{p}_device.c"] = device_file(plan, plan.device)
    beside = local_sources(plan) | (device_sources(plan.device.device) if plan.device is not None else {})
    return Artifact(
        {name: wrapped(text).encode() for name, text in texts.items()} | weight_files(plan, weights) | beside
    )


def digest(graph: Graph) -> str:
    """Identifies the computation: equal for equal operations, shapes, types and weights only."""
    seen = hashlib.sha256()
    for tensor in (graph.tensors[name] for name in (*graph.inputs, *graph.outputs)):
        seen.update(repr((tensor.shape, tensor.dtype, tensor.quant)).encode())
    for op in graph.ops:
        seen.update(repr((op.kind, sorted(vars(op.attributes).items()), op.inputs, op.outputs, op.outer)).encode())
        seen.update(repr(op.arithmetic).encode() if op.arithmetic is not None else b"")
        for role, name in sorted(op.constants.items()):
            data = graph.constants[name].data
            seen.update(f"{role} {data.dtype.name} {data.shape}".encode())
            seen.update(np.ascontiguousarray(data).tobytes())
    for state in graph.states:
        if state.initial is not None:
            seen.update(repr((state.before, state.after)).encode() + graph.constants[state.initial].data.tobytes())
    return seen.hexdigest()[:16]
