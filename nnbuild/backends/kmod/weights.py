"""<model>.nnw: exchangeable weights of a kernel module, as a firmware file; and the proof that nothing else of the
module depends on them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nnbuild.backends.kmod.bridge import plan_hash, with_short_pieces
from nnbuild.base.errors import ModelError
from nnbuild.emit.emit import digest
from nnbuild.emit.kernels import kernels
from nnbuild.emit.weights import blob
from nnbuild.model.graph import Constant, Graph
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target

MAGIC = b"WNN1"
HEAD = struct.Struct("<4sIII16s16s16x")
"""The header, as nn_kmod_weights.c reads it: magic, CRC-32 of everything from the plan's hash on, bytes of weights, 0,
plan, model."""
CRC_FROM = 16


def weights_file(plan: Plan) -> bytes:
    data = blob(plan)
    names = (plan_hash(plan).encode(), digest(plan.graph).encode())
    head = HEAD.pack(MAGIC, 0, len(data), 0, *names)
    return HEAD.pack(MAGIC, zlib.crc32(head[CRC_FROM:] + data), len(data), 0, *names) + data


def refuse_hidden_weights(plan: Plan, target: Target) -> None:
    """Prints the code again for other weights of the same kind: it must be identical. Weights of another kind, for
    example so large that sums need more bits, may need other code; they have another plan, whose hash the module
    rejects.
    """
    ours = _by_step(plan)
    for change in (_mixed, _rescaled):
        made = make_plan(_changed(plan.graph, change), plan.prefix, target)
        others = _by_step(with_short_pieces(made, target))
        for step, mine, theirs in zip(plan.steps, ours, others, strict=True):
            if mine != theirs:
                raise ModelError(
                    f"layer {step.layer!r}",
                    f"its code ({step.kernel_name}) depends on the weights, so they cannot be exchanged.",
                    "Build without --swappable, or with another --quantize or --isa.",
                )


def _by_step(plan: Plan) -> list[str]:
    """The printed code of each step; prices in comments do not count."""
    return [_code(kernels(replace(plan, steps=(step,)))) for step in plan.steps]


def _code(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("/*"))


def _changed(graph: Graph, change: Callable[[Constant], Constant]) -> Graph:
    return replace(graph, constants={name: change(constant) for name, constant in graph.constants.items()})


def _mixed(constant: Constant) -> Constant:
    """The same values in another order."""
    return replace(constant, data=np.roll(constant.data.reshape(-1), 1).reshape(constant.data.shape))


def _rescaled(constant: Constant) -> Constant:
    if constant.quant is None:
        return constant
    scales = tuple(scale * (0.9 + 0.05 * (i % 2)) for i, scale in enumerate(constant.quant.scales))
    return replace(constant, quant=replace(constant.quant, scales=scales))
