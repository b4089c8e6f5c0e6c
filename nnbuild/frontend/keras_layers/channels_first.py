"""Layers whose channels come first are those with the channels last, between two transposes; a pass removes most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nnbuild.frontend.checked_config import Config
from nnbuild.frontend.keras_layers.activation import activate
from nnbuild.frontend.keras_layers.base import Build, Call, options, single
from nnbuild.ops.transpose import Transpose

FIRST = ("channels_first", "NCHW", "NCW", "NCDHW")
"""What Keras and TensorFlow call it."""


def is_first(config: Config) -> bool:
    return config.get("data_format") in FIRST


def of_images(build: Callable[[Call], str], axes: int) -> Build:
    """A layer of one output over that many axes beside the channels. Its activation sees these in the file's order."""
    inner = in_either_order(single(build), axes)

    def either(call: Call) -> tuple[str, ...]:
        if not is_first(options(call)) or "activation" not in call.config:
            return inner(call)
        bare = Config(call.config.where, {**call.config.values, "activation": None})
        return (activate(call, *inner(replace(call, config=bare))),)

    return either


def in_either_order(build: Build, axes: int, made: int | None = None) -> Build:
    """`axes` beside the channels come in, and `made` go out, if not as many."""

    def either(call: Call) -> tuple[str, ...]:
        if not is_first(options(call)):
            return build(call)
        config = Config(call.config.where, {**call.config.values, "data_format": "channels_last"})
        named = {key: value for key, value in call.named.items() if key != "data_format"}
        inputs = tuple(turned(call, name, axes, last=True) for name in call.inputs)
        outputs = build(replace(call, config=config, named=named, inputs=inputs))
        return tuple(turned(call, name, made or axes, last=False) for name in outputs)

    return either


def turned(call: Call, name: str, axes: int, *, last: bool) -> str:
    """The same values with the channels last, or first again; a tensor of fewer axes has no others."""
    rank = len(call.builder.shape(name))
    before = rank - axes - 1
    if before < 0 or axes == 0:
        return name
    spatial = range(before + 1, rank) if last else range(before, rank - 1)
    order = (*range(before), *spatial, before) if last else (*range(before), rank - 1, *spatial)
    return call.one(Transpose(order), name)
